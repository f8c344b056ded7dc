"""The merge against plain Python on small random corpora."""

import random
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.corpus import merge as merge_module
from helpers.corpus.collection import PART
from helpers.corpus.merge import NORMAL, MergeSettings, minhash, open_tables, run_step
from helpers.corpus.posts_table import open_database

MIN_WORDS = 8  # these are the constants of merge.sql
SHINGLE = 3
MAX_RUN_WORDS = 24
MIN_POSTS = 3
MIN_SHARE = 0.03
MIN_EXCLUSIVE = 0.9
MAX_AUTHORS = 6

PLAIN = MergeSettings(
    min_chars=1, near_duplicate=0, keep_copies=True, strip_signatures=False, names={}
)


def write_rows(path, texts, authors=None):
    authors = authors or ["a"] * len(texts)
    times = list(range(len(texts)))
    columns = [authors, times, ["t"] * len(texts), texts, [None] * len(texts)]
    pq.write_table(pa.table(columns, schema=PART), path)


@pytest.fixture
def tables(tmp_path):
    """Function of texts, authors and settings, gives a connection after the step "posts"."""
    with open_database(tmp_path / "work") as connection:

        def make(texts, authors=None, **changes):
            write_rows(tmp_path / "part.parquet", texts, authors)
            chosen = MergeSettings(**vars(PLAIN) | changes)
            open_tables(connection, [tmp_path / "part.parquet"], chosen)
            run_step(connection, "masked")
            run_step(connection, "posts")
            return connection

        yield make


@pytest.fixture
def macros(tables):
    return tables(["a text"])


def near_copies(made):
    for step in ("bands", "pairs", "shingled", "near_copies"):
        run_step(made, step)
    query = "SELECT time FROM posts SEMI JOIN near_copies USING (post)"
    return {second for (second,) in made.execute(query).fetchall()}


def signature_words(made):
    """Number of words that are cut from each post, in order of time."""
    for number in range(merge_module.MAX_ROUNDS):
        for step in ("marks", "signed"):
            run_step(made, step, number)
    query = """
        SELECT coalesce(sum(words), 0)::INT FROM posts p LEFT JOIN signed s ON p.post = s.post
        GROUP BY time ORDER BY time"""
    return [words for (words,) in made.execute(query).fetchall()]


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


def hashed(connection, texts):
    """The hashes of the runs of SHINGLE words of each text, an Arrow list each."""
    words = [text.split() for text in texts]
    connection.register("frame", pd.DataFrame({"n": range(len(texts)), "words": words}))
    query = "SELECT shingles(words) AS hashes FROM frame ORDER BY n"
    return connection.sql(query).to_arrow_table().column("hashes").combine_chunks()


def test_minhash_estimates_jaccard(macros):
    rng = random.Random(3)
    left = []
    right = []
    for _ in range(300):
        text = [f"w{rng.randrange(3000)}" for _ in range(60)]
        left.append(" ".join(text))
        for place in range(60):
            if rng.random() < 0.15 * rng.random():
                text[place] = f"v{rng.randrange(3000)}"
        right.append(" ".join(text))
    # a slice, as batches are
    signatures = [minhash(hashed(macros, ["skipped", *texts])[1:]) for texts in (left, right)]
    estimate = (signatures[0] == signatures[1]).mean(1)
    true = np.array([true_jaccard(a, b) for a, b in zip(left, right, strict=True)])
    error = estimate - true
    spread = np.sqrt(true * (1 - true) / merge_module.PERMUTATIONS).mean()
    assert true.std() > 0.1
    assert abs(error.mean()) < 0.01  # 0.05 / sqrt(300) is 0.003
    assert error.std() < 1.1 * spread  # no worse than as many independent permutations would give


@pytest.mark.parametrize("similarity", [0.5, 1.0])
def test_near_finds_the_posts_that_copy_an_earlier_one(similarity, tables):
    texts = variants(4, texts=80)
    found = near_copies(tables(texts, near_duplicate=similarity))
    is_long = [len(text.split()) >= MIN_WORDS for text in texts]
    expected = set()
    for later, earlier in combinations(range(len(texts) - 1, -1, -1), 2):
        if is_long[later] and is_long[earlier]:
            if true_jaccard(texts[later], texts[earlier]) >= similarity:
                expected.add(later)
    assert found == expected and len(expected) > 20


def test_near_handles_a_form_letter_sent_a_thousand_times(tables):
    letter = "this is the monthly reminder of the list that you are on as of today"
    texts = [f"dear member {i} {letter}" for i in range(1000)]
    assert near_copies(tables(texts, near_duplicate=0.6)) == set(range(1, 1000))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=["a", " ", "\n", "\t", "\u00a0", "\u2028", "\x1f", "\u3000", "\x85"]))
def test_normal_text_has_single_blanks_for_white_space(text):
    query = f"SELECT {NORMAL} FROM (SELECT $text AS text)"
    assert duckdb.execute(query, {"text": text}).fetchall()[0][0] == " ".join(text.split())


def find_slowly(texts, authors, authors_each):
    """The rule of signatures word for word, one round after the other."""
    left = [text.split() for text in texts]
    cuts, fresh = [0] * len(texts), set(range(len(texts)))
    for _ in range(merge_module.MAX_ROUNDS):
        ends = {}
        for i, words in enumerate(left):
            for length in range(1, min(MAX_RUN_WORDS, len(words)) + 1):
                prior = words[-length - 1] if len(words) > length else None
                ends.setdefault(tuple(words[-length:]), []).append((authors[i], prior, i in fresh))
        labels = set()
        for run, uses in ends.items():
            owners = []
            for author in {author for author, _, _ in uses}:
                priors = [prior for who, prior, _ in uses if who == author]
                share = len(priors) / authors.count(author)
                if len(set(priors)) >= MIN_POSTS and share >= MIN_SHARE:
                    owners.append((author, len(priors)))
            if 1 <= len(owners) <= max(1, min(MAX_AUTHORS, len(set(authors)) // authors_each)):
                if sum(count for _, count in owners) >= MIN_EXCLUSIVE * len(uses):
                    new = {who for who, _, is_fresh in uses if is_fresh}
                    labels |= {(author, run) for author, _ in owners if author in new}
        fresh = set()
        for i, words in enumerate(left):
            lengths = range(min(MAX_RUN_WORDS, len(words)), 0, -1)
            best = next((n for n in lengths if (authors[i], tuple(words[-n:])) in labels), 0)
            if best:
                left[i], cuts[i] = words[:-best], cuts[i] + best
                fresh.add(i)
    return cuts


@pytest.mark.parametrize("seed, crowd", [(1, 6), (3, 1)])
def test_signatures_follow_the_rule(seed, crowd, tables):
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(30)]
    common = ["thanks!", "best wishes,", "hope this helps"]
    texts, authors = [], []
    for number in range(12):
        greeting = f"cheers, name{number // 2}"
        signature = " ".join(f"sig{number}x{i}" for i in range(rng.choice([3, 30])))
        for _ in range(rng.choice([5, 20, 120])):
            text = [rng.choice(vocabulary) for _ in range(rng.randint(1, 12))]
            thanks = rng.choice(common)
            ends = [[], [thanks], [greeting], [greeting, signature], [thanks, "-z"]]
            text += rng.choice(ends)
            texts.append(" ".join(text))
            authors.append(f"a{number}")
    made = tables(texts, authors)
    made.execute(f"SET VARIABLE authors_each = {crowd}")
    expected = find_slowly(texts, authors, crowd)
    assert signature_words(made) == expected and sum(map(bool, expected)) > 50


def test_one_person_with_several_addresses_is_found_in_a_large_corpus(tables):
    texts = [f"w{i} x{i} jane doe" for i in range(60)] + [f"post number{i}" for i in range(1000)]
    authors = [f"jane{i % 3}" for i in range(60)] + [f"a{i}" for i in range(1000)]
    assert signature_words(tables(texts, authors)) == [2] * 60 + [0] * 1000
