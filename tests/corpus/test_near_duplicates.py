"""Near-duplicates against plain Python on small random corpora."""

import random

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.corpus import near_duplicates
from helpers.corpus.collect import CollectConfig
from helpers.corpus.near_duplicates import (
    JACCARD,
    MIN_WORDS,
    SHINGLE,
    SHINGLES,
    minhash,
    near_pairs,
)


def shingles(text):
    words = text.split()
    return {" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)}


def true_jaccard(left, right):
    left, right = shingles(left), shingles(right)
    return len(left & right) / len(left | right) if left | right else 0.0


def variants(seed, texts=60, words=40, vocabulary=400):
    """Random texts, each followed by copies with more and more words changed."""
    rng = random.Random(seed)
    word = [f"w{i}é" if i % 7 == 0 else f"w{i}" for i in range(vocabulary)]
    out = []
    for _ in range(texts):
        text = [rng.choice(word) for _ in range(rng.randint(3, words))]
        out.append(" ".join(text))
        for _ in range(rng.randint(0, 4)):
            text = list(text)
            for _ in range(rng.choice([0, 0, 1, 1, 2, 6])):
                text[rng.randrange(len(text))] = rng.choice(word)
            out.append(" ".join(text))
    return out


def connect(texts):
    connection = duckdb.connect()
    connection.register("frame", pd.DataFrame({"n": np.arange(len(texts)), "normal": texts}))
    connection.execute("CREATE TABLE posts AS FROM frame")
    return connection


def test_normal_text_is_what_python_makes_of_it():
    texts = [
        "  Two\twords ",
        "a\u00a0b\u2003c\u3000d",
        "x\n\n\r\ny\x0b\x0cz\x85",
        "MiXed Étude",
        "",
        "\x1c a \x1f",
    ]
    connection = duckdb.connect()
    connection.register("frame", pd.DataFrame({"n": range(len(texts)), "text": texts}))
    found = connection.execute(f"SELECT {near_duplicates.NORMAL} FROM frame ORDER BY n").fetchall()
    assert [row[0] for row in found] == [" ".join(text.lower().split()) for text in texts]


def hashed(texts):
    """The hashes of the runs of SHINGLE words of each text, an Arrow list each."""
    connection = duckdb.connect()
    words = [text.split() for text in texts]
    connection.register("frame", pd.DataFrame({"n": range(len(texts)), "words": words}))
    table = connection.sql(f"SELECT {SHINGLES} AS hashes FROM frame ORDER BY n").to_arrow_table()
    return table.column("hashes").combine_chunks()


def test_equal_runs_of_words_have_equal_hashes_and_others_do_not():
    texts, seen = ["", "one", "one two", *variants(1, 30), "déjà vu encore"], {}
    for text, hashes in zip(texts, hashed(texts).to_pylist(), strict=True):
        words = text.split()
        runs = [" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)]
        assert len(hashes) == len(runs)
        assert all(seen.setdefault(run, value) == value for run, value in zip(runs, hashes))
    assert len(set(seen.values())) == len(seen) > 100


def test_jaccard_is_exact():
    texts = variants(2)
    rng = random.Random(2)
    pairs = [(rng.randrange(len(texts)),) * 2 for _ in range(5)]
    pairs += [(i, j) for i in range(len(texts)) for j in range(max(0, i - 3), i)]
    pairs = [pair for pair in pairs if min(len(texts[n].split()) for n in pair) >= SHINGLE]
    left, right = ([texts[pair[side]] for pair in pairs] for side in (0, 1))
    columns = {"n": range(len(pairs)), "a": hashed(left), "b": hashed(right)}
    connection = duckdb.connect()
    connection.register("pairs", pa.table(columns))
    query = f"SELECT {JACCARD.format('a', 'b')} FROM pairs ORDER BY n"
    found = connection.sql(query).fetchnumpy()
    assert next(iter(found.values())) == pytest.approx(
        [true_jaccard(a, b) for a, b in zip(left, right)], abs=1e-12
    )


def test_minhash_estimates_jaccard():
    rng = random.Random(3)
    left, right = [], []
    for _ in range(300):
        text = [f"w{rng.randrange(3000)}" for _ in range(60)]
        changed = [
            word if rng.random() > 0.15 * rng.random() else f"v{rng.randrange(3000)}"
            for word in text
        ]
        left.append(" ".join(text))
        right.append(" ".join(changed))
    signatures = [
        minhash(hashed(["skipped", *texts])[1:]) for texts in (left, right)
    ]  # a slice, as batches are
    estimate = (signatures[0] == signatures[1]).mean(1)
    true = np.array([true_jaccard(a, b) for a, b in zip(left, right, strict=True)])
    error = estimate - true
    spread = np.sqrt(true * (1 - true) / near_duplicates.PERMUTATIONS).mean()
    assert true.std() > 0.1
    assert abs(error.mean()) < 0.01  # 0.05 / sqrt(300) is 0.003
    assert error.std() < 1.1 * spread  # no worse than as many independent permutations would give


def test_rows_per_band_keep_the_promised_recall():
    for similarity in (0.3, 0.5, 0.8, 0.9, 1.0):
        rows = near_duplicates.rows_per_band(similarity)
        assert 1 - (1 - similarity**rows) ** (near_duplicates.PERMUTATIONS // rows) >= 0.995
    assert near_duplicates.rows_per_band(0.8) == 4


@pytest.mark.parametrize("similarity", [0.5, 0.8, 1.0])
def test_near_finds_the_posts_that_copy_an_earlier_one(similarity):
    texts = variants(4, texts=120)
    connection = connect(texts)
    near_pairs(connection, "posts", similarity)
    found = {row[0] for row in connection.execute("SELECT n FROM copies").fetchall()}
    expected = {
        i
        for i, text in enumerate(texts)
        if len(text.split()) >= MIN_WORDS
        and any(
            len(texts[j].split()) >= MIN_WORDS and true_jaccard(text, texts[j]) >= similarity
            for j in range(i)
        )
    }
    assert found == expected and len(expected) > 20


def test_near_handles_a_form_letter_sent_a_thousand_times():
    letter = "this is the monthly reminder of the list that you are on as of today"
    texts = [f"dear member {i} {letter}" for i in range(1000)]
    connection = connect(texts)
    near_pairs(connection, "posts", 0.6)
    assert connection.execute("SELECT count(*), min(n) FROM copies").fetchall() == [(999, 1)]


@pytest.mark.parametrize("similarity", [-1, 1.01, float("nan")])
def test_an_impossible_similarity_is_refused_before_any_work(similarity):
    with pytest.raises(ValueError, match="'near_duplicate' is "):
        CollectConfig.of({"source": "demo", "near_duplicate": similarity})


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=["a", " ", "\n", "\t", "\u00a0", "\u2028", "\x1f", "\u3000", "\x85"]))
def test_normal_text_has_single_blanks_for_white_space(text):
    query = f"SELECT {near_duplicates.NORMAL} FROM (SELECT $text AS text)"
    assert duckdb.execute(query, {"text": text}).fetchall()[0][0] == " ".join(text.split())
