"""Repeated signatures against plain Python on small random corpora."""

import random

import duckdb
import numpy as np
import pandas as pd
import pytest

from helpers.corpus import signatures


def connect(texts, authors=None):
    connection = duckdb.connect()
    frame = pd.DataFrame(
        {"n": np.arange(len(texts)), "author": authors or ["a"] * len(texts), "normal": texts}
    )
    connection.register("frame", frame)
    connection.execute("CREATE TABLE posts AS FROM frame")
    return connection


def find_slowly(texts, authors):
    """The rule of signatures.find word for word, one round after the other."""
    left = [text.split() for text in texts]
    cuts, fresh = [0] * len(texts), set(range(len(texts)))
    for _ in range(signatures.MAX_ROUNDS):
        ends = {}
        for i, words in enumerate(left):
            for length in range(
                signatures.MIN_RUN_WORDS, min(signatures.MAX_RUN_WORDS, len(words)) + 1
            ):
                prior = words[-length - 1] if len(words) > length else None
                ends.setdefault(tuple(words[-length:]), []).append((authors[i], prior, i in fresh))
        labels = set()
        for run, uses in ends.items():
            owners = []
            for author in {author for author, _, _ in uses}:
                priors = [prior for who, prior, _ in uses if who == author]
                share = len(priors) / authors.count(author)
                if (
                    len(priors) >= signatures.MIN_POSTS
                    and share >= signatures.MIN_SHARE
                    and len(set(priors)) >= signatures.MIN_POSTS
                ):
                    owners.append((author, len(priors)))
            if (
                1
                <= len(owners)
                <= max(1, min(signatures.MAX_AUTHORS, len(set(authors)) // signatures.AUTHORS_EACH))
            ):
                if sum(count for _, count in owners) >= signatures.MIN_EXCLUSIVE * len(uses):
                    new = {who for who, _, is_fresh in uses if is_fresh}
                    labels |= {(author, run) for author, _ in owners if author in new}
        fresh = set()
        for i, words in enumerate(left):
            lengths = range(min(signatures.MAX_RUN_WORDS, len(words)), 0, -1)
            best = next((n for n in lengths if (authors[i], tuple(words[-n:])) in labels), 0)
            if best:
                left[i], cuts[i] = words[:-best], cuts[i] + best
                fresh.add(i)
    return cuts


@pytest.mark.parametrize("seed, crowd", [(0, 200), (1, 6), (2, 4), (3, 1)])
def test_signatures_follow_the_rule(seed, crowd, monkeypatch):
    monkeypatch.setattr(signatures, "AUTHORS_EACH", crowd)
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(30)]
    common = ["thanks!", "best wishes,", "hope this helps"]
    texts, authors = [], []
    for number in range(12):
        own = [
            f"cheers, name{number // 2}",
            " ".join(f"sig{number}x{i}" for i in range(rng.choice([3, 30]))),
            "-z",
        ]
        for _ in range(rng.choice([5, 20, 120])):
            text = [rng.choice(vocabulary) for _ in range(rng.randint(1, 12))]
            text += rng.choice(
                [[], [rng.choice(common)], [own[0]], [own[0], own[1]], [rng.choice(common), own[2]]]
            )
            texts.append(" ".join(text))
            authors.append(f"a{number}")
    found = signatures.find_signatures(connect(texts, authors), "posts", len(texts))
    expected = find_slowly(texts, authors)
    assert found.tolist() == expected and sum(map(bool, expected)) > 50


def test_names_go_and_style_stays():
    rng = random.Random(0)
    texts, authors = [], []
    for author in ("ann", "bob", "cy", "dee"):
        for _ in range(40):
            body = " ".join(f"w{rng.randrange(200)}" for _ in range(8))
            texts.append(
                f"{body} thanks! best wishes, {author} smith"
                if author < "cy"
                else f"{body} thanks!"
            )
            authors.append(author)
    cuts = signatures.find_signatures(connect(texts, authors), "posts", len(texts))
    left = [signatures.cut_signature(text, words) for text, words in zip(texts, cuts, strict=True)]
    assert not any(author in text for author, text in zip(authors, left, strict=True))
    assert all("thanks!" in text for text in left[80:])


def test_one_person_with_several_addresses_is_found_in_a_large_corpus():
    texts = [f"w{i} x{i} jane doe" for i in range(60)] + [f"post number{i}" for i in range(1000)]
    authors = [f"jane{i % 3}" for i in range(60)] + [f"a{i}" for i in range(1000)]
    assert (
        signatures.find_signatures(connect(texts, authors), "posts", len(texts))
        == [2] * 60 + [0] * 1000
    ).all()


def test_a_form_letter_is_no_signature():
    texts = [f"week {i} the build is broken again see the log for details" for i in range(50)] + [
        "hello there"
    ] * 3
    prior = "the build is broken again see the log for details"
    assert signatures.find_signatures(connect(texts, ["a"] * 50 + ["b"] * 3), "posts", 53)[
        0
    ] == len(prior.split())
    texts = [
        f"week {i} the build {i}" + " is broken again see the log for details" for i in range(2)
    ]
    assert not signatures.find_signatures(connect(texts), "posts", 2).any()


@pytest.mark.parametrize(
    "text, words, left",
    [
        ("a b  c\n-- \nJane Doe", 2, "a b  c\n--"),
        ("a b", 0, "a b"),
        ("a b", 2, ""),
        ("a b", 5, ""),
        (" a b ", 1, " a"),
        ("a\u00a0b", 1, "a"),
        ("", 1, ""),
        ("a\u2003b\u3000c", 2, "a"),
    ],
)
def test_cut_takes_words_from_the_end(text, words, left):
    assert signatures.cut_signature(text, words) == left
