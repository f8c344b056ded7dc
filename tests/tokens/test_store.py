"""The token store against a plain loop over the posts, and after interruptions and damage."""

import json
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.accounts.encoder import AuthorEncoder
from helpers.corpus import workers
from helpers.tokens.batch import make_batch
from helpers.tokens.store import (
    FILES,
    SUFFIX,
    build_store,
    file_checksum,
    join_stores,
    list_topics,
    open_store,
    subset,
)
from tests.factories import store_in_memory

NAMES = {f"{name}.{SUFFIX[kind]}": kind for name, kind in FILES.items()}
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
    arrays = {name: [] for name in FILES} | {"post_offsets": [0]}
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


@pytest.mark.parametrize("row_group_size", [1, 7, 1000], ids="row groups of {}".format)
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
        for stop in range(0, total, 3):
            folder = tmp_path / str(stop)
            assert self.build(path, folder, stop) == stop
            for name in NAMES:  # what a kill in the middle of writing leaves
                with open(folder / name, "ab") as file:
                    file.write(b"half")
            assert self.build(path, folder) == total - stop, "what is done is not done again"
            assert contents(folder) == expected

    @pytest.mark.parametrize(
        ("first", "topics", "fingerprint"), [(1, "yxz", "v1"), (0, "yx", "v1"), (0, "yxz", "v2")]
    )
    def test_other_posts_topics_or_tokens_make_another_store(
        self, built, write_posts, first, topics, fingerprint
    ):
        path = write_posts(rows()[first:], "other.parquet")
        rebuilt = build_store(path, built.folder, encode, list(topics), fingerprint)
        assert rebuilt.meta["fingerprint"] != built.meta["fingerprint"]
        is_encoded_alike = rebuilt.meta["encoding"] == built.meta["encoding"]
        assert is_encoded_alike == (first == 1)


class TestWorkers:
    def test_daft_gives_the_same_bytes(self, write_posts, tmp_path):
        """With a tokenizer that must reach the workers."""
        pytest.importorskip("daft")
        path = write_posts(rows(), row_group_size=9)
        words = AuthorEncoder.load("open-small").tokenizer
        about = words.encode, ["y"], words.fingerprint
        by_daft = partial(workers.run_by_daft, workers=2)
        plain = build_store(path, tmp_path / "plain", *about)
        daft = build_store(path, tmp_path / "daft", *about, run_jobs=by_daft)
        assert contents(plain.folder) == contents(daft.folder) and len(plain.tokens) > 500


class TestErrors:
    @pytest.mark.parametrize("row_group_size", [2, 100], ids=["across row groups", "within one"])
    def test_unsorted_table(self, write_posts, tmp_path, row_group_size):
        posts = [(author, 0, "x", "p") for author in "abcca"]
        path = write_posts(posts, row_group_size=row_group_size)
        with pytest.raises(ValueError, match="not sorted by author"):
            build_store(path, tmp_path / "store", encode, [], "v1")

    @pytest.mark.parametrize("name", ["tokens.u16", "authors.parquet"])
    @pytest.mark.parametrize("damage", ["missing", "middle"])
    def test_damage_is_refused_and_the_store_is_built_again(self, built, write_posts, name, damage):
        path = built.folder / name
        whole = path.read_bytes()
        data = bytearray(whole)
        data[len(whole) // 2] ^= 1
        path.unlink()
        if damage == "middle":
            path.write_bytes(data)
        told = f"{name} is (missing|not the file that store.json describes): look"
        with pytest.raises(ValueError, match=told):
            open_store(built.folder)
        posts = write_posts(rows(), "same.parquet")
        build_store(posts, built.folder, encode, ["y", "x", "z"], "v1")
        assert path.read_bytes() == whole


def test_topics_by_frequency_then_name(write_posts):
    posts = [("a", 0, topic, "") for topic in "qqqzzbbbx"]
    assert list_topics(write_posts(posts), 3) == ["b", "q", "z"]
    assert list_topics(write_posts(posts)) == ["b", "q", "z", "x"]
    known = list_topics(write_posts(posts), 3, known=["z", "w"])
    assert known == ["z", "w", "b", "q"], "known ones keep their rows"


def post_of(store, post):
    tokens = store.tokens[slice(*store.post_offsets[post : post + 2])]
    return tokens.tolist(), store.hour[post], store.time[post], store.topic[post]


def test_taken_posts_are_the_chosen_ones_in_their_order(built):
    lists = [[5, 2, built.posts - 1], [], [2], list(range(9))]
    posts = np.concatenate(lists).astype(int)
    chosen = subset(built, posts, np.cumsum([0, *map(len, lists)]))
    assert (chosen.authors, chosen.posts) == (4, len(posts))
    assert chosen.posts_per_author().tolist() == [3, 0, 1, 9]
    for new, old in enumerate(posts):
        assert post_of(chosen, new) == post_of(built, old)
    assert chosen.meta == {"topics": ["y", "x", "z"], "vocabulary": 2**16}


def test_joined_stores_hold_the_posts_of_all():
    first = named_store([2, 3], "first", topics=3)
    second = named_store([1, 4], "second", topics=6)
    joined = join_stores([first, second])
    assert joined.authors == 4 and joined.posts == 10
    assert joined.meta["fingerprint"] not in ("first", "second")
    assert joined.meta["topics"] == first.meta["topics"]
    for number in range(10):
        store, post = (first, number) if number < 5 else (second, number - 5)
        *expected, topic = post_of(store, post)
        # 2 is other of the first store
        assert post_of(joined, number) == (*expected, min(topic, 2))
    assert joined.author_offsets.tolist() == [0, 2, 5, 6, 10]


def named_store(counts, fingerprint, vocabulary=99, topics=3):
    store = store_in_memory(counts, len(fingerprint), vocabulary=vocabulary, topics=topics)
    meta = store.meta | {"fingerprint": fingerprint, "vocabulary": vocabulary}
    return replace(store, meta=meta)


def test_tokens_beyond_the_reach_of_32_bits(tmp_path):
    """In files of zeros, which take no room on the disk."""
    posts = 10_000
    tokens_per_post = 2**32 // posts + 1
    counts = dict.fromkeys(FILES, posts) | {"tokens": posts * tokens_per_post}
    counts |= {"post_offsets": posts + 1, "author_offsets": 101}
    for name, kind in NAMES.items():
        with open(tmp_path / name, "wb") as file:
            file.truncate(counts[name.split(".")[0]] * np.dtype(kind).itemsize)
    (tmp_path / "authors.parquet").touch()
    offsets = np.arange(posts + 1) * tokens_per_post
    np.memmap(tmp_path / "post_offsets.i64", "i8", "r+")[:] = offsets
    np.memmap(tmp_path / "author_offsets.i64", "i8", "r+")[:] = np.arange(101) * 100
    last_post = slice(-tokens_per_post, 8 - tokens_per_post)
    np.memmap(tmp_path / "tokens.u16", "u2", "r+")[last_post] = np.arange(1, 9)
    checksums = {name: file_checksum(tmp_path / name) for name in [*NAMES, "authors.parquet"]}
    meta = {"sha256": checksums, "topics": [], "fingerprint": "v1"}
    (tmp_path / "store.json").write_text(json.dumps(meta))
    store = open_store(tmp_path)
    batch = make_batch(store, np.array([99]), np.array([posts - 1]), np.array([1]), 8)
    assert batch.tokens.tolist() == [[[1, 2, 3, 4, 5, 6, 7, 8]]]
