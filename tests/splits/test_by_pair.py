"""The split by given pairs, against a loop over pairs; what it promises, and what it cannot."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from helpers.splits import PairSplit
from helpers.splits.assignment import make_split
from tests.splits.test_by_author import pairs

SPLITS = PairSplit.splits


@pytest.fixture
def posts(tmp_path):
    return pairs(tmp_path)


def authors_of_pairs(path):
    table = pq.read_table(path)
    people = {}
    for name, author in zip(table["id"].to_pylist(), table["author"].to_pylist()):
        people.setdefault(name.rsplit("/", 1)[0], set()).add(author)
    return people


def test_pairs_are_drawn_and_moved_as_in_a_loop(tmp_path, posts):
    report = make_split(posts, tmp_path / "out", PairSplit(test=0.1, dev=0.1, seed=5))
    people = authors_of_pairs(posts)
    order = np.random.default_rng(5).permutation(sorted(people)).tolist()
    place = dict.fromkeys(order, "train")
    for name in ("test", "dev"):
        drawn = [pair for pair in order if place[pair] == "train"][:6]
        known = set().union(*(people[pair] for pair in drawn))
        for pair in order:
            if place[pair] == "train" and people[pair] & known:
                place[pair] = name
    for name in SPLITS:
        found = authors_of_pairs(tmp_path / f"out/{name}.parquet")
        assert found == {pair: people[pair] for pair in order if place[pair] == name}
    known = set().union(*(people[pair] for pair in order if place[pair] == "train"))
    tested = set().union(*(people[pair] for pair in order if place[pair] != "train"))
    assert sum(name != "train" for name in place.values()) > 12, "more than were drawn: some moved"
    assert report["half_known_authors"] == len(known & tested) > 0
    assert sum(part["posts"] for part in report["splits"].values()) == 120


def test_a_text_of_several_pairs_stays_in_those_of_test(tmp_path, posts):
    """An author who is half known repeats a text; the pairs of test and dev stay whole."""
    table = pq.read_table(posts)
    texts = [f"said by {name}" for name in table["author"].to_pylist()]
    path = tmp_path / "repeated.parquet"
    pq.write_table(table.set_column(3, "text", [texts]), path)
    report = make_split(path, tmp_path / "out", PairSplit(test=0.1, dev=0.1, seed=5))
    assert report["unused"]["texts_of_other_splits"] > 0
    people = authors_of_pairs(posts)
    names = pq.read_table(tmp_path / "out/test.parquet")["id"].to_pylist()
    assert len(names) == 2 * len({name.rsplit("/", 1)[0] for name in names})
    assert authors_of_pairs(tmp_path / "out/test.parquet").items() <= people.items()
