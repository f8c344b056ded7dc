"""The splits by author, by given files and by given pairs, against loops; and the audit."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.splits import AuthorSplit, GivenSplit, PairSplit
from helpers.splits.assignment import make_split
from tests.factories import read_posts

SPLITS = AuthorSplit.splits


def documents(authors=60):
    rng = random.Random(0)
    rows = []
    for number in range(authors):
        for i in range(rng.randrange(1, 30)):
            topic = f"topic {rng.randrange(9)}/\N{SNOWMAN}"
            rows.append((f"o'{number:02d}", 1000 * number + i, topic, f"{number} wrote {i}"))
    return rows


def by_authors(path, folder, **settings):
    return make_split(path, folder, AuthorSplit.of(settings))


def test_shares_of_authors_with_all_their_posts(tmp_path, write_posts):
    rows = documents()
    report = by_authors(write_posts(rows), tmp_path / "out", test=0.2, dev=0.1)
    made = {name: read_posts(tmp_path / f"out/{name}.parquet") for name in SPLITS}
    assert sorted(sum(made.values(), [])) == rows
    assert [len({row[0] for row in made[name]}) for name in SPLITS] == [42, 12, 6]
    assert sum(part["posts"] for part in report["splits"].values()) == len(rows)
    assert not report["given_pairs"]
    other = by_authors(write_posts(rows), tmp_path / "other", test=0.2, dev=0.1, seed=1)
    assert other["fingerprint"] != report["fingerprint"]
    assert read_posts(tmp_path / "other/test.parquet") != made["test"]


def pairs(tmp_path):
    """Write 60 pairs of texts by 100 authors; an author may have several pairs."""
    rng = random.Random(3)
    rows = []
    for pair in range(60):
        for side in "ab":
            author = f"a{rng.randrange(100):03d}"
            rows.append((author, "x", f"text {pair} {side}", f"it's/{pair}/{side}"))
    rows.sort()
    author, topic, text, ids = map(list, zip(*rows))
    seconds = pa.array([0] * len(rows), pa.timestamp("s", "UTC"))
    columns = {"author": author, "time": seconds, "topic": topic, "text": text, "id": ids}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    return tmp_path / "pairs.parquet"


def test_given_pairs_stay_whole(tmp_path):
    report = by_authors(pairs(tmp_path), tmp_path / "out", test=0.2, dev=0.2)
    side = {}
    for name in SPLITS:
        ids = pq.read_table(tmp_path / f"out/{name}.parquet")["id"].to_pylist()
        side |= dict.fromkeys(ids, name)
    assert len(side) == 120 and report["given_pairs"]
    assert all(side[f"it's/{pair}/a"] == side[f"it's/{pair}/b"] for pair in range(60))
    assert set(side.values()) == set(SPLITS)


def test_given_files_are_splits_as_they_are(tmp_path):
    path = pairs(tmp_path)
    table = pq.read_table(path)
    later = [int(name.split("/")[1]) >= 45 for name in table["id"].to_pylist()]
    folders = ["2021" if late else "old" for late in later]
    names = table["id"].to_pylist()
    ids = [f"{folder}/pairs.jsonl/{name}" for folder, name in zip(folders, names)]
    rows = list(zip(table["author"].to_pylist(), table["text"].to_pylist(), later))
    pq.write_table(table.set_column(4, "id", [ids]), path)
    report = make_split(path, tmp_path / "out", GivenSplit(files={"test": "2021"}, dev=0.2))
    made = {name: read_posts(tmp_path / f"out/{name}.parquet") for name in SPLITS}
    test = [row for row in rows if row[2]]
    assert [(row[0], row[3]) for row in made["test"]] == [row[:2] for row in test]
    known = {row[0] for row in test}
    rest = sorted(row[:2] for row in rows if not row[2] and row[0] not in known)
    assert sorted((row[0], row[3]) for name in ("train", "dev") for row in made[name]) == rest
    people = {row[0] for row in rest}
    assert 0 < len({row[0] for row in made["dev"]}) <= round(0.2 * len(people))
    assert report["unused"] == {"authors_of_other_splits": len(rows) - len(test) - len(rest)}


PAIR_SPLITS = PairSplit.splits


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
    for name in PAIR_SPLITS:
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
