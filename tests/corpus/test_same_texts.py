"""Pairs of authors who posted the same texts, against plain Python."""

import random
import re
from collections import Counter
from itertools import combinations, product

import duckdb
import pandas as pd
import pytest

from helpers.corpus import same_texts
from helpers.corpus.same_texts import MAX_TEXT_AUTHORS, MIN_SHARE, MIN_TEXT_CHARS, MIN_TEXTS


def words_of(text):
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def drawn_posts(authors, seed):
    """Posts of authors who repeat themselves and each other, with other case and marks."""
    rng = random.Random(seed)
    texts = ["Yes, that is it!"] + [f"Text {n} of what somebody said, or wrote" for n in range(200)]
    rows = []
    for author in authors:
        own = rng.sample(texts, rng.choice([3, 5, 40]))
        for text in [*own, *own[:3], *texts[:2]]:
            text = rng.choice([text, text.upper(), f"{text} :)", text.replace(" ", "\n ")])
            rows.append((author, text))
    return rows


def expected_pairs(posts, pairs):
    counts = Counter(author for author, _ in posts)
    texts = {author: set() for author in counts}
    for author, text in posts:
        if len(words_of(text)) >= MIN_TEXT_CHARS:
            texts[author].add(words_of(text))
    authors_of_text = Counter(text for own in texts.values() for text in own)
    rows = []
    for a, b in pairs:
        shared = [t for t in texts[a] & texts[b] if authors_of_text[t] <= MAX_TEXT_AUTHORS]
        least = MIN_SHARE * min(len(texts[a]), len(texts[b]))
        if len(shared) >= max(MIN_TEXTS, least):
            rows.append((a, b, len(shared), counts[a], counts[b]))
    return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))


@pytest.fixture
def written(tmp_path):
    def write(posts, name):
        pd.DataFrame(posts, columns=["author", "text"]).to_parquet(tmp_path / name)
        target = tmp_path / f"texts-{name}"
        same_texts.write_texts(duckdb.connect(), [tmp_path / name], target)
        return target

    return write


@pytest.mark.parametrize("seed", range(2))
def test_pairs_are_those_of_plain_python(written, seed):
    names = [f"author {number:02d}" for number in range(MAX_TEXT_AUTHORS + 5)]
    posts = drawn_posts(names, seed)
    path = written(posts, "a.parquet")
    pairs = same_texts.pairs_with_same_texts(duckdb.connect(), path)
    expected = expected_pairs(posts, combinations(names, 2))
    assert list(pairs.itertuples(index=False, name=None)) == expected and expected
    assert set(same_texts.authors_of_texts(path)) == set(names)

    other_posts = drawn_posts(names[:9], seed + 10)
    other = written(other_posts, "b.parquet")
    pairs = same_texts.pairs_with_same_texts(duckdb.connect(), path, other)
    joint = [("a" + name, text) for name, text in posts]
    joint += [("b" + name, text) for name, text in other_posts]
    sides = product(["a" + name for name in names], ["b" + name for name in names[:9]])
    expected = expected_pairs(joint, sides)
    expected = [(a[1:], b[1:], *numbers) for a, b, *numbers in expected]
    assert list(pairs.itertuples(index=False, name=None)) == expected


def test_texts_with_some_words_more_are_the_same(written):
    draw = random.Random(0)
    words = [f"word{number}" for number in range(500)]
    texts = [" ".join(draw.choices(words, k=30)) for _ in range(40)]
    rows = [("a", text) for text in texts] + [("b", f"Hello. {text}") for text in texts[:20]]
    rows += [("b", f"{text}, EDIT: typo") for text in texts[20:]]
    rows += [("c", " ".join(draw.choices(words, k=30))) for _ in range(40)]
    pairs = same_texts.pairs_with_same_texts(duckdb.connect(), written(rows, "a.parquet"))
    assert pairs[["account_a", "account_b"]].to_numpy().tolist() == [["a", "b"]]
    assert pairs.texts[0] >= 30
