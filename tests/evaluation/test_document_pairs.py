"""Pairs against enumeration of all of them; given pairs are found again."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from helpers.evaluation.document_pairs import (
    KIND_NAMES,
    KINDS,
    PairsConfig,
    count_kinds,
    given_pairs,
    make_pairs,
    pair_capacity,
)
from helpers.published import published_table


def documents(size=60, authors=8, topics=4, seed=0):
    rng = np.random.default_rng(seed)
    shares = np.arange(1, authors + 1)
    author = rng.choice(authors, size, p=shares / shares.sum())
    topic = (author + rng.integers(0, 2, size)) % topics
    return pd.DataFrame({"author": author, "topic": topic}).astype(str)


def enumerated(table):
    kinds = {kind: set() for kind in KINDS}
    rows = list(zip(table.author, table.topic))
    for i, j in combinations(range(len(rows)), 2):
        kinds[rows[i][0] == rows[j][0], rows[i][1] == rows[j][1]].add((i, j))
    return kinds


def pairs_by_kind(pairs):
    """The pairs by kind; none may be there twice."""
    kinds = {kind: set() for kind in KINDS}
    for row in pairs.itertuples():
        pair = min(row.first, row.second), max(row.first, row.second)
        assert pair not in kinds[row.same, row.same_topic]
        kinds[row.same, row.same_topic].add(pair)
    return kinds


@pytest.mark.parametrize("seed", range(2))
def test_capacity_and_kinds_are_those_of_the_enumeration(seed):
    table = documents(seed=seed)
    every = enumerated(table)
    assert pair_capacity(table) == {kind: len(pairs) for kind, pairs in every.items()}
    for count in (1, 40, 2 * min(len(every[True, True]) + len(every[True, False]), 10**9)):
        pairs = make_pairs(table, count, seed)
        pairs_of_kind = pairs_by_kind(pairs)
        assert len(pairs) == count and all(pairs_of_kind[kind] <= every[kind] for kind in KINDS)
        assert abs(pairs.same.sum() - count / 2) <= 0.5
    for kind in ((True, True), (True, False)):
        assert pairs_of_kind[kind] == every[kind], "all there are"


def test_authors_come_alike_as_far_as_their_pairs_go():
    """30 authors of 4 documents and one of 400: 6 pairs each and 79,800."""
    author = np.concatenate([np.repeat(np.arange(30), 4), np.full(400, 30)])
    table = pd.DataFrame({"author": author, "topic": 0})
    times = {}
    for count in (62, 300, 10_000):
        pairs = make_pairs(table, count, same_share=1)
        times[count] = np.bincount(author[pairs["first"]], minlength=31)
    assert times[62][30] < 10 and times[300][30] > 100
    assert times[300][:30].min() >= 2 and (times[10_000][:30] == 6).all()
    with pytest.raises(ValueError, match="90000 pairs of one author asked for, 79980 can be made"):
        make_pairs(table, 90_000, same_share=1)


def test_uniform_over_the_pairs_of_two_authors():
    table = pd.DataFrame({"author": list("aabbc"), "topic": list("xyxyz")})
    times = Counter()
    for seed in range(120):
        times.update(pairs_by_kind(make_pairs(table, 4, seed, same_share=0))[False, False])
    assert set(times) == enumerated(table)[False, False]
    assert sum(times.values()) == 240 and max(times.values()) < 1.8 * min(times.values())


def test_topic_alone_never_tells_who_wrote():
    """Few texts of one author on one topic: pairs of two authors are as seldom within a topic."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"author": rng.integers(0, 40, 200), "topic": rng.integers(0, 30, 200)})
    pairs = make_pairs(table, 240)
    shares = pairs.groupby("same").same_topic.mean()
    assert 0 < shares[True] < 0.5 and shares[True] == pytest.approx(shares[False], abs=0.02)
    assert make_pairs(table, 240, topic_share=0.0).same_topic.sum() == 0
    loose, room = make_pairs(table, 240, topic_share=None), pair_capacity(table)
    for same in (True, False):
        natural = room[same, True] / (room[same, True] + room[same, False])
        assert loose[loose.same == same].same_topic.mean() == pytest.approx(natural, abs=0.02)


def test_given_pairs_are_found_again_in_any_order():
    rng = np.random.default_rng(0)
    author = rng.integers(0, 30, (40, 2))
    author[::2, 1] = author[::2, 0]
    ids = [f"pair {row}/{side}" for row in range(40) for side in "ab"]
    columns = {"author": author.ravel().astype(str), "topic": rng.integers(0, 3, 80), "id": ids}
    table = pd.DataFrame(columns).sample(frac=1, random_state=0).drop(5).reset_index(drop=True)
    pairs = given_pairs(table)
    assert len(pairs) == 39, "one text is not there any more"
    for row in pairs.itertuples():
        first, second = table.loc[row.first], table.loc[row.second]
        assert first.id.endswith("/a") and second.id == first.id[:-1] + "b"
        assert row.same == (first.author == second.author)
        assert row.same_topic == (first.topic == second.topic)
    assert pairs["first"].is_monotonic_increasing and 10 < pairs.same.sum() < 30
    with pytest.raises(ValueError, match="no two documents"):
        given_pairs(table.assign(id=table.index.astype(str)))


def test_pairs_like_those_of_pan_have_the_shares_of_its_pairs():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"author": rng.integers(0, 40, 400), "topic": rng.integers(0, 6, 400)})
    pairs = PairsConfig(kind="pan", dev=20, test=1000).pairs_of({"dev": table, "test": table})
    counted = count_kinds(pairs["test"], table)["pairs"]
    published = published_table("tyo2021", 0).set_axis(KIND_NAMES.values())["pairs"]
    expected = 1000 * published / published.sum()
    assert counted[expected.index].tolist() == pytest.approx(expected.tolist(), abs=1)
    assert counted["one author, one topic"] == 0
