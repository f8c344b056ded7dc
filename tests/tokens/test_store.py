"""The token store against a plain loop over the posts, and after every kind of interruption and
damage.
"""

import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.accounts.encoder import AuthorEncoder
from helpers.core.artifacts import write_checksum
from helpers.corpus import workers
from helpers.tokens.batch import make_batch
from helpers.tokens.store import (
    FILES,
    SUFFIX,
    build_store,
    concat_ranges,
    file_checksum,
    join_stores,
    list_topics,
    open_store,
    subset,
)
from tests.factories import store_in_memory

NAMES = {f"{name}.{SUFFIX[kind]}": kind for name, kind in FILES.items()}
ALL = [*NAMES, "authors.parquet"]
NEAR_2038 = 2**31 - 5


def rows(seed=0, authors=9):
    rng = random.Random(seed)
    result = []
    for number in range(authors):
        for _ in range(rng.choice([1, 2, 9, 20])):
            when = rng.choice([-7201, 0, 3599, 3600, 86_399, NEAR_2038, rng.randrange(10**9)])
            text = "".join(rng.choices("abcé ☺", k=rng.choice([0, 1, 5, 40])))
            result.append((f"ü{number}", when, rng.choice(["x", "y", "z", "never seen"]), text))
    return sorted(result)


def encode(texts):
    """Characters as ids; their number varies, and so does their type."""
    return [np.array([ord(letter) % 2**16 for letter in text], np.int32) for text in texts]


def loops(posts, topics):
    arrays = {
        "tokens": [],
        "post_offsets": [0],
        "hour": [],
        "time": [],
        "topic": [],
        "author_offsets": [],
    }
    previous = None
    for number, (author, when, topic, text) in enumerate(posts):
        if author != previous:
            arrays["author_offsets"].append(number)
        previous = author
        arrays["tokens"] += [ord(letter) % 2**16 for letter in text]
        arrays["post_offsets"].append(len(arrays["tokens"]))
        arrays["hour"].append(when % 86_400 // 3600)
        arrays["time"].append(when)
        arrays["topic"].append(topics.index(topic) if topic in topics else len(topics))
    arrays["author_offsets"].append(len(posts))
    return arrays


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@pytest.fixture
def built(write_posts, tmp_path):
    return build_store(write_posts(rows()), tmp_path / "store", encode, ["y", "x", "z"], "v1")


@pytest.mark.parametrize("row_group_size", [1, 3, 7, 1000], ids="row groups of {}".format)
def test_it_holds_what_the_table_holds(write_posts, tmp_path, row_group_size):
    posts = rows()
    path = write_posts(posts, row_group_size=row_group_size)
    store = build_store(path, tmp_path / "store", encode, ["y", "x", "z"], "v1")
    for name, values in loops(posts, ["y", "x", "z"]).items():
        array = getattr(store, name)
        assert array.dtype == np.dtype(FILES[name]) and array.tolist() == values, name
    names = list(dict.fromkeys(author for author, *_ in posts))
    assert store.author_names() == names
    assert (store.posts, store.authors) == (len(posts), len(names))
    assert store.posts_per_author().tolist() == [
        sum(row[0] == name for row in posts) for name in names
    ]
    assert store.meta["topics"] == ["y", "x", "z"]
    assert set(contents(store.folder)) == {*NAMES, "store.json", "authors.parquet"}


def two_posts():
    time = pa.array([0, 0], pa.timestamp("s", "UTC"))
    return pa.table({"author": ["a", "b"], "time": time, "topic": ["x", "x"], "text": ["pq", "r"]})


def test_an_empty_row_group_is_passed_over(tmp_path):
    table = two_posts()
    with pq.ParquetWriter(tmp_path / "posts.parquet", table.schema) as writer:
        for part in (table[:0], table[:1], table[:0], table[1:], table[:0]):
            writer.write_table(part)
    store = build_store(tmp_path / "posts.parquet", tmp_path / "store", encode, ["x"], "v1")
    assert store.author_offsets.tolist() == [0, 1, 2]


def test_times_finer_than_seconds_are_the_same_hours(write_posts, tmp_path):
    table = pq.read_table(write_posts(rows()))
    fine = table.set_column(1, "time", table["time"].cast(pa.timestamp("us", "UTC")))
    pq.write_table(fine, tmp_path / "fine.parquet")
    store = build_store(tmp_path / "fine.parquet", tmp_path / "store", encode, [], "v1")
    assert store.hour.tolist() == loops(rows(), [])["hour"]


class TestInterruption:
    def build(self, path, folder, stop_at=None, fingerprint="v1", code=encode):
        calls = []

        def encode_or_die(texts):
            if len(calls) == stop_at:
                raise KeyboardInterrupt
            calls.append(len(texts))
            return code(texts)

        try:
            build_store(path, folder, encode_or_die, ["y"], fingerprint)
        except KeyboardInterrupt:
            with pytest.raises(ValueError, match="store.json is missing"):
                open_store(folder)
        return len(calls)

    def test_it_continues_and_ends_with_the_same_bytes(self, write_posts, tmp_path):
        path = write_posts(rows(), row_group_size=5)
        total = self.build(path, tmp_path / "whole")
        expected = contents(tmp_path / "whole")
        for stop in range(total):
            folder = tmp_path / str(stop)
            assert self.build(path, folder, stop) == stop
            for name in NAMES:  # what a kill in the middle of writing leaves
                with open(folder / name, "ab") as file:
                    file.write(b"half")
            assert self.build(path, folder) == total - stop, "what is done is not done again"
            assert contents(folder) == expected

    def test_a_current_store_is_opened_only(self, built, write_posts):
        reopened = build_store(
            write_posts(rows(), "same.parquet"), built.folder, None, ["y", "x", "z"], "v1"
        )
        assert (reopened.tokens == built.tokens).all()

    @pytest.mark.parametrize("changed", ["posts", "topics", "encoding"])
    def test_other_posts_topics_or_tokens_make_another_store(self, built, write_posts, changed):
        encoding = built.meta["encoding"]
        path = write_posts(rows()[1:] if changed == "posts" else rows(), "other.parquet")
        topics = ["y", "x"] if changed == "topics" else ["y", "x", "z"]
        rebuilt = build_store(
            path, built.folder, encode, topics, "v2" if changed == "encoding" else "v1"
        )
        assert rebuilt.meta["fingerprint"] != built.meta["fingerprint"]
        assert (rebuilt.meta["encoding"] == encoding) == (changed == "posts")


class TestWorkers:
    def test_of_two_that_begin_at_once_one_builds_it(self, write_posts, tmp_path):
        path, made = write_posts(rows(), row_group_size=5), []

        def slow(texts):
            made.append(len(texts))
            time.sleep(0.01)
            return encode(texts)

        with ThreadPoolExecutor(2) as pool:
            stores = list(
                pool.map(
                    lambda _: build_store(path, tmp_path / "both", slow, ["y"], "v1"), range(2)
                )
            )
        alone = build_store(path, tmp_path / "alone", encode, ["y"], "v1")
        assert contents(stores[0].folder) == contents(alone.folder) and sum(made) == len(rows())
        assert (stores[0].tokens == stores[1].tokens).all()

    def test_daft_gives_the_same_bytes(self, write_posts, tmp_path):
        """With a tokenizer that must reach the workers."""
        pytest.importorskip("daft")
        path = write_posts(rows(), row_group_size=9)
        words = AuthorEncoder.load("open-small").tokenizer
        stores = [
            build_store(
                path,
                tmp_path / str(number),
                words.encode,
                ["y"],
                words.fingerprint,
                run_jobs=run_jobs,
            )
            for number, run_jobs in enumerate(
                (
                    partial(workers.run_jobs, workers=1),
                    partial(workers.run_by_daft, workers=2),
                )
            )
        ]
        assert (
            contents(stores[0].folder) == contents(stores[1].folder) and len(stores[0].tokens) > 500
        )


class TestErrors:
    def test_empty_table(self, write_posts, tmp_path):
        with pytest.raises(ValueError, match="holds no posts"):
            build_store(write_posts([]), tmp_path / "store", encode, [], "v1")

    @pytest.mark.parametrize("row_group_size", [2, 100], ids=["across row groups", "within one"])
    @pytest.mark.parametrize("order", ["abacc", "abcca"])
    def test_unsorted_table(self, write_posts, tmp_path, order, row_group_size):
        path = write_posts(
            [(author, 0, "x", "p") for author in order], row_group_size=row_group_size
        )
        with pytest.raises(ValueError, match="not sorted by author"):
            build_store(path, tmp_path / "store", encode, [], "v1")

    @pytest.mark.parametrize("name", ALL)
    @pytest.mark.parametrize("damage", ["missing", "longer", "middle"])
    def test_damage_is_refused_and_the_store_is_built_again(self, built, write_posts, name, damage):
        path = built.folder / name
        whole = path.read_bytes()
        data = bytearray(whole + b"\0" * (damage == "longer"))
        data[len(whole) // 2] ^= damage == "middle"
        path.unlink()
        if damage != "missing":
            path.write_bytes(data)
        with pytest.raises(
            ValueError,
            match=f"{name} is (missing|not the file that store.json describes): look",
        ):
            open_store(built.folder)
        build_store(
            write_posts(rows(), "same.parquet"), built.folder, encode, ["y", "x", "z"], "v1"
        )
        assert path.read_bytes() == whole

    def test_a_damaged_table_of_posts(self, write_posts, tmp_path):
        path = write_posts(rows())
        write_checksum(path)
        path.write_bytes(path.read_bytes()[:-1] + b"2")
        with pytest.raises(ValueError, match="posts.parquet is damaged"):
            build_store(path, tmp_path / "store", encode, ["y", "x", "z"], "v1")


def test_topics_by_frequency_then_name(write_posts):
    posts = [("a", 0, topic, "") for topic in "qqqzzbbbx"]
    assert list_topics(write_posts(posts), 3) == ["b", "q", "z"]
    assert list_topics(write_posts(posts)) == ["b", "q", "z", "x"]
    assert list_topics(write_posts(posts), 3, known=["z", "w"]) == ["z", "w", "b", "q"], (
        "known ones keep their rows"
    )


def test_ranges_are_those_of_a_loop():
    first, count = np.array([7, 0, 3, 3]), np.array([2, 0, 3, 1])
    numbers, offsets = concat_ranges(first, count)
    assert numbers.tolist() == [
        number for begin, size in zip(first, count) for number in range(begin, begin + size)
    ]
    assert offsets.tolist() == [0, 2, 2, 5, 6]
    assert [part.tolist() for part in concat_ranges(first[:0], count[:0])] == [[], [0]]


def arrays(store):
    return store.hour, store.time, store.topic


def test_taken_posts_are_the_chosen_ones_in_their_order(built):
    lists = [[5, 2, built.posts - 1], [], [2], list(range(9))]
    posts = np.concatenate(lists).astype(int)
    chosen = subset(built, posts, np.cumsum([0, *map(len, lists)]))
    assert (chosen.authors, chosen.posts) == (4, len(posts))
    assert chosen.posts_per_author().tolist() == [3, 0, 1, 9]
    for new, old in enumerate(posts):
        new_post, old_post = (
            (
                *store.tokens[slice(*store.post_offsets[row : row + 2])],
                *(array[row] for array in arrays(store)),
            )
            for store, row in ((chosen, new), (built, old))
        )
        assert new_post == old_post
    assert chosen.meta == {"topics": ["y", "x", "z"], "vocabulary": 2**16}
    with pytest.raises(FileNotFoundError):
        chosen.author_names()


def test_joined_stores_hold_the_posts_of_all():
    first = named_store([2, 3], "first", topics=3)
    second = named_store([1, 4], "second", topics=6)
    joined = join_stores([first, second])
    assert joined.authors == 4 and joined.posts == 10
    assert joined.meta["fingerprint"] not in ("first", "second")
    assert joined.meta["topics"] == first.meta["topics"]
    for number in range(10):
        store, post = (first, number) if number < 5 else (second, number - 5)
        begin, end = joined.post_offsets[number : number + 2]
        old_begin, old_end = store.post_offsets[post : post + 2]
        assert joined.tokens[begin:end].tolist() == store.tokens[old_begin:old_end].tolist()
        assert joined.hour[number] == store.hour[post] and joined.time[number] == store.time[post]
        assert joined.topic[number] == min(store.topic[post], 2), "2 is other of the first store"
    assert joined.author_offsets.tolist() == [0, 2, 5, 6, 10]


def named_store(counts, fingerprint, vocabulary=99, topics=3):
    store = store_in_memory(counts, len(fingerprint), vocabulary=vocabulary, topics=topics)
    meta = store.meta | {"fingerprint": fingerprint, "vocabulary": vocabulary}
    return replace(store, meta=meta)


def test_stores_that_cannot_be_joined_are_refused():
    store = named_store([2, 3], "first")
    assert join_stores([store]) is store
    with pytest.raises(ValueError, match=r"vocabularies of \[98, 99\] tokens"):
        join_stores([store, named_store([2], "other", vocabulary=98)])


def sparse_store(folder, posts, tokens_per_post, per_author=100):
    """A store of zeros, whose files take no room on the disk."""
    authors = posts // per_author
    counts = dict.fromkeys(("hour", "time", "topic"), posts) | {"tokens": posts * tokens_per_post}
    counts["post_offsets"] = posts + 1
    counts["author_offsets"] = authors + 1
    folder.mkdir()
    for name, kind in NAMES.items():
        with open(folder / name, "wb") as file:
            file.truncate(counts[name.split(".")[0]] * np.dtype(kind).itemsize)
    (folder / "authors.parquet").touch()
    describe(folder)
    return counts


def describe(folder):
    meta = {
        "sha256": {name: file_checksum(folder / name) for name in ALL},
        "topics": [],
        "fingerprint": "v1",
    }
    (folder / "store.json").write_text(json.dumps(meta))


def test_opening_takes_no_memory_and_little_time_whatever_the_size(tmp_path):
    """A hundred million posts, 14 GB (in a process of its own, after its imports): 0.3 s on a
    laptop.
    """
    sparse_store(tmp_path / "store", 10**8, 60)
    code = """
import resource, sys, time
from helpers.tokens.store import open_store

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before, began = used(), time.perf_counter()
store = open_store(sys.argv[1])
print(time.perf_counter() - began, used() - before, store.posts, store.authors)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "store"], capture_output=True, text=True, check=True
    )
    seconds, kilobytes, posts, authors = map(float, done.stdout.split())
    assert (posts, authors) == (10**8, 10**6)
    assert seconds < 3 and kilobytes < 10_000


def test_tokens_beyond_the_reach_of_32_bits(tmp_path):
    posts = 10_000
    tokens_per_post = 2**32 // posts + 1
    counts = sparse_store(tmp_path / "store", posts, tokens_per_post)
    assert counts["tokens"] > 2**32
    folder = tmp_path / "store"
    np.memmap(folder / "post_offsets.i64", "i8", "r+")[:] = np.arange(posts + 1) * tokens_per_post
    np.memmap(folder / "author_offsets.i64", "i8", "r+")[:] = np.arange(101) * 100
    np.memmap(folder / "tokens.u16", "u2", "r+")[-tokens_per_post : 8 - tokens_per_post] = (
        np.arange(1, 9)
    )
    describe(folder)
    store = open_store(folder)
    batch = make_batch(store, np.array([99]), np.array([posts - 1]), np.array([1]), 8)
    assert batch.tokens.tolist() == [[[1, 2, 3, 4, 5, 6, 7, 8]]]
