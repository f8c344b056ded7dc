"""The token store: every post of a split as token ids, ragged and memory-mapped.

======================  ======================================================
``tokens.u16``          all tokens of all posts, one after the other
``post_offsets.i64``    (posts + 1): where each post's tokens begin
``hour.u8``             (posts): hour of publication, 0..23, UTC
``time.i64``            (posts): seconds since 1970, UTC
``topic.u16``           (posts): row of the topic list, the last row = other
``author_offsets.i64``  (authors + 1): where each author's posts begin
``store.json``          counts, topics, what it was made from, checksums
``authors.parquet``     the authors' names, in order
======================  ======================================================

Opening maps the files and compares their checksums: of a file beyond 256 MB those of its size and of 16 parts of it,
so that no store takes long to open. A batch touches only its own posts, whatever the size of the store.
Whoever is free encodes a row group of the posts table and seals it; a re-run goes on there. Then the parts are joined.
"""

import hashlib
import json
import mmap
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from helpers.core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    is_current,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from helpers.core.progress import progress_bar

FILES = {
    "tokens": "u2",
    "post_offsets": "i8",
    "hour": "u1",
    "time": "i8",
    "topic": "u2",
    "author_offsets": "i8",
}
VERSION = 1  # raised when the same posts and settings give other files
READ_WHOLE = 2**28  # bytes; smaller files soon are in memory anyway, and reading ahead helps
UNSORTED = "the posts table is not sorted by author"
SUFFIX = {"u1": "u8", "u2": "u16", "i8": "i64"}


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.{SUFFIX[FILES[name]]}"


def _files(folder: Path) -> list[Path]:
    return [*(_file(folder, name) for name in FILES), folder / "authors.parquet"]


@dataclass(frozen=True)
class TokenStore:
    """An opened store: the arrays of the table above as memory maps, ``store.json`` as meta."""

    folder: Path
    meta: dict
    tokens: np.ndarray
    post_offsets: np.ndarray
    hour: np.ndarray
    time: np.ndarray
    topic: np.ndarray
    author_offsets: np.ndarray

    @property
    def posts(self) -> int:
        return len(self.hour)

    @property
    def authors(self) -> int:
        return len(self.author_offsets) - 1

    def posts_per_author(self) -> np.ndarray:
        """(authors,) int64."""
        return np.diff(self.author_offsets)

    def author_names(self) -> list[str]:
        """The names, in the order of the author numbers."""
        return pq.read_table(self.folder / "authors.parquet")["author"].to_pylist()


def file_checksum(path: Path) -> str:
    """Of all bytes of a file up to READ_WHOLE, of a larger one of its size and of 16 MB of it, both ends among them."""
    size = path.stat().st_size
    if size <= READ_WHOLE:
        return file_fingerprint(path)
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        for begin in np.linspace(0, size - 2**20, 16).astype(int):
            file.seek(begin)
            digest.update(file.read(2**20))
    return digest.hexdigest()[:16]


def open_store(folder: str | Path) -> TokenStore:
    """Map a store. Raises ValueError where it is missing, unfinished or damaged."""
    folder = Path(folder)
    meta = read_json(folder / "store.json")
    for path in _files(folder):
        if not path.exists() or file_checksum(path) != meta.get("sha256", {}).get(path.name):
            raise ValueError(f"{path} is not the file that {folder / 'store.json'} describes: delete {folder} and run "
                             "the notebook that makes it")  # fmt: skip
    arrays = {}
    for name, dtype in FILES.items():
        size = (path := _file(folder, name)).stat().st_size
        arrays[name] = np.memmap(path, dtype, "r") if size else np.empty(0, dtype)
        if size > READ_WHOLE and hasattr(mmap, "MADV_RANDOM"):
            arrays[name]._mmap.madvise(
                mmap.MADV_RANDOM
            )  # else each page brings 30 neighbours that nobody asked for
    return TokenStore(folder, meta, **arrays)


def concat_ranges(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """first[n] .. first[n] + count[n] - 1 for each of N ranges, one after the other, and where each begins (N + 1,)."""
    offsets = np.concatenate([[0], np.cumsum(count)])
    return np.repeat(first - offsets[:-1], count) + np.arange(offsets[-1]), offsets


def with_arrays(
    store: TokenStore, name: str, posts: np.ndarray, **arrays: np.ndarray
) -> TokenStore:
    """A store in memory and in no folder, its posts with time and topic of ``posts``; its "authors" have no names."""
    meta = {key: value for key, value in store.meta.items() if key in ("topics", "vocabulary")}
    arrays |= {key: getattr(store, key)[posts] for key in ("hour", "time", "topic")}
    return replace(store, folder=store.folder / name, meta=meta, **arrays)


def subset(store: TokenStore, posts: np.ndarray, offsets: np.ndarray) -> TokenStore:
    """A store in memory that holds chosen posts only, in the given order: any list of posts becomes a window of it.

    Its nth "author" is the sample of posts[offsets[n] : offsets[n + 1]], and has no name. offsets (N + 1,).
    Takes 10 bytes a token while it copies, 2 after.
    """
    begin = store.post_offsets[posts]
    place, post_offsets = concat_ranges(begin, store.post_offsets[posts + 1] - begin)
    tokens = store.tokens[place]
    return with_arrays(
        store, "taken", posts, tokens=tokens, post_offsets=post_offsets, author_offsets=offsets
    )


def list_topics(posts: str | Path, max_topics: int = 2048, known: Sequence[str] = ()) -> list[str]:
    """``known`` ones, then the ``max_topics`` most frequent (khan2021: 2048) topics of a posts table, ties by name."""
    query = "select topic from read_parquet(?) group by topic order by count(*) desc, topic limit ?"
    return [
        *dict.fromkeys(
            [
                *known,
                *(name for (name,) in duckdb.execute(query, [str(posts), max_topics]).fetchall()),
            ]
        )
    ]


def run_serially(function: Callable, jobs: list[tuple]) -> None:
    """``function(*job)`` for every job, here, one after the other."""
    for job in progress_bar(jobs, desc="encoding", unit="part"):
        function(*job)


def build_store(
    posts: str | Path,
    folder: str | Path,
    encode: Callable[[list[str]], list[np.ndarray]],
    topics: list[str],
    encoding: str,
    vocabulary: int = 2**16,
    each: Callable[[Callable, list[tuple]], object] = run_serially,
) -> TokenStore:
    """Encode a posts table (sorted by author, then time) into a store, or open it where it is current and whole.

    encode : texts -> arrays of token ids below 2^16.
    topics : from training posts; any other topic becomes the extra last row.
    encoding : fingerprint of the tokenizer; with the topics' it is the ``encoding`` by which a model knows its tokens.
    vocabulary : number of token ids, kept for those who embed them.
    each : calls a function with the arguments of every job, such as :func:`helpers.corpus.daft_engine.map_parts` by workers.
    Raises ValueError for an empty, unsorted or damaged table.
    """
    folder = Path(folder)
    encoding = fingerprint_of(VERSION, encoding, vocabulary, topics)
    fingerprint = fingerprint_of(encoding, file_fingerprint(posts))
    with (
        nullcontext()
        if is_current(folder / "store.json", fingerprint)
        else FileLock(folder / ".lock")
    ):
        if is_current(
            folder / "store.json", fingerprint
        ):  # by now, perhaps: two notebooks may begin at once
            with suppress(ValueError):  # damaged: it is built again
                return open_store(folder)
        (folder / "store.json").unlink(missing_ok=True)
        (parts := folder / "parts" / fingerprint).mkdir(parents=True, exist_ok=True)
        files = [
            parts / f"{group:06d}.npz" for group in range(pq.ParquetFile(posts).num_row_groups)
        ]
        each(
            partial(_encode, posts, encode, {name: row for row, name in enumerate(topics)}),
            [*enumerate(files)],
        )
        names, counts = _join(folder, files, dict.fromkeys(FILES, 0))
        if not names:
            raise ValueError(f"{posts} holds no posts")
        with atomic_write(folder / "authors.parquet") as temporary:
            pq.write_table(pa.table({"author": pa.array(names, pa.string())}), temporary)
        sha256 = {path.name: file_checksum(path) for path in _files(folder)}
        shutil.rmtree(parts.parent)  # before the store is there: none would do it after
        write_json(
            folder / "store.json",
            {
                "fingerprint": fingerprint,
                "encoding": encoding,
                "counts": counts,
                "vocabulary": vocabulary,
                "topics": topics,
                "sha256": sha256,
                "posts": counts["hour"],
                "authors": counts["author_offsets"] - 1,
                "tokens": counts["tokens"],
            },
        )
        return open_store(folder)


def _encode(posts: str | Path, encode, topic_row: dict, group: int, file: Path) -> None:
    """Write the part of one row group, unless it is there: its posts' arrays, and where in it which author begins."""
    if verify_checksum(file):
        return
    rows = pq.ParquetFile(posts).read_row_group(group)
    author, seconds = (
        rows["author"].to_numpy(),
        rows["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64()).to_numpy(),
    )
    if (author[1:] < author[:-1]).any():
        raise ValueError(UNSORTED)
    ids, begin = (
        encode(rows["text"].to_pylist()),
        np.flatnonzero(np.r_[True, author[1:] != author[:-1]][: len(rows)]),
    )
    with atomic_write(file) as temporary, open(temporary, "wb") as out:
        np.savez(out, tokens=np.concatenate([np.empty(0, "u2"), *ids]).astype("u2"), length=[*map(len, ids)],
                 hour=seconds // 3600 % 24, time=seconds, begin=begin, names=json.dumps(author[begin].tolist()),
                 topic=[topic_row.get(name, len(topic_row)) for name in rows["topic"].to_pylist()])  # fmt: skip
    write_checksum(file)


def _join(
    folder: Path, files: list[Path], counts: dict[str, int]
) -> tuple[list[str], dict[str, int]]:
    """Lay parts end to end; counts: how many values of each file were before. Return the authors and the counts."""
    for name in FILES:
        _file(folder, name).write_bytes(b"")
    _append(folder, "post_offsets", [counts["tokens"]], counts)
    names = []
    for file in files:
        with np.load(file) as part:
            here = json.loads(str(part["names"]))
            if names and here and here[0] < names[-1]:
                raise ValueError(UNSORTED)
            again = int(
                here[:1] == names[-1:] != []
            )  # the last author of one part goes on in the next
            names += here[again:]
            _append(folder, "author_offsets", counts["hour"] + part["begin"][again:], counts)
            _append(
                folder, "post_offsets", counts["tokens"] + part["length"].cumsum(dtype="i8"), counts
            )
            for name in ("tokens", "hour", "time", "topic"):
                _append(folder, name, part[name], counts)
    _append(folder, "author_offsets", [counts["hour"]], counts)
    return names, counts


def _append(folder, name, values, counts):
    with open(_file(folder, name), "ab") as file:
        file.write(np.ascontiguousarray(values, FILES[name]).tobytes())
    counts[name] += len(values)
