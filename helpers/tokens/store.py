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
Building streams the posts table row group by row group and continues after an interruption where it stopped.
"""

import hashlib
import mmap
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.runs.artifacts import atomic_write, file_fingerprint, fingerprint_of, is_current, read_json, write_json
from helpers.runs.progress import progress_bar

FILES = {"tokens": "u2", "post_offsets": "i8", "hour": "u1", "time": "i8", "topic": "u2", "author_offsets": "i8"}
VERSION = 1  # raised when the same posts and settings give other files
READ_WHOLE = 2**28  # bytes; smaller files soon are in memory anyway, and reading ahead helps
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


def checksum(path: Path) -> str:
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
        if not path.exists() or checksum(path) != meta.get("sha256", {}).get(path.name):
            raise ValueError(f"{path} is not the file that {folder / 'store.json'} describes: delete {folder} and run "
                             "the notebook that makes it")  # fmt: skip
    arrays = {}
    for name, dtype in FILES.items():
        path = _file(folder, name)
        size = path.stat().st_size
        arrays[name] = np.memmap(path, dtype, "r") if size else np.empty(0, dtype)
        if size > READ_WHOLE and hasattr(mmap, "MADV_RANDOM"):
            arrays[name]._mmap.madvise(mmap.MADV_RANDOM)  # else each page brings 30 neighbours that nobody asked for
    return TokenStore(folder, meta, **arrays)


def ranges(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """first[n] .. first[n] + count[n] - 1 for each of N ranges, one after the other, and where each begins (N + 1,)."""
    offsets = np.concatenate([[0], np.cumsum(count)])
    return np.repeat(first - offsets[:-1], count) + np.arange(offsets[-1]), offsets


def derived(store: TokenStore, name: str, posts: np.ndarray, **arrays: np.ndarray) -> TokenStore:
    """A store in memory and in no folder, its posts with time and topic of ``posts``; its "authors" have no names."""
    meta = {key: value for key, value in store.meta.items() if key in ("topics", "vocabulary")}
    arrays |= {key: getattr(store, key)[posts] for key in ("hour", "time", "topic")}
    return replace(store, folder=store.folder / name, meta=meta, **arrays)


def take(store: TokenStore, posts: np.ndarray, offsets: np.ndarray) -> TokenStore:
    """A store in memory that holds chosen posts only, in the given order: any list of posts becomes a window of it.

    Its nth "author" is the sample of posts[offsets[n] : offsets[n + 1]], and has no name. offsets (N + 1,).
    Takes 10 bytes a token while it copies, 2 after.
    """
    begin = store.post_offsets[posts]
    place, post_offsets = ranges(begin, store.post_offsets[posts + 1] - begin)
    tokens = store.tokens[place]
    return derived(store, "taken", posts, tokens=tokens, post_offsets=post_offsets, author_offsets=offsets)


def list_topics(posts: str | Path, max_topics: int = 2048, known: Sequence[str] = ()) -> list[str]:
    """``known`` ones, then the ``max_topics`` most frequent (khan2021: 2048) topics of a posts table, ties by name."""
    query = "select topic from read_parquet(?) group by topic order by count(*) desc, topic limit ?"
    rows = duckdb.execute(query, [str(posts), max_topics]).fetchall()
    return [*dict.fromkeys([*known, *(name for name, in rows)])]


def build_store(posts: str | Path, folder: str | Path, encode: Callable[[list[str]], list[np.ndarray]],
                topics: list[str], encoding: str, vocabulary: int = 2**16, progress: bool = True) -> TokenStore:
    """Encode a posts table (sorted by author, then time) into a store, or open it where it is current and whole.

    encode : texts -> arrays of token ids below 2^16.
    topics : from training posts; any other topic becomes the extra last row.
    encoding : fingerprint of the tokenizer; with the topics' it is the ``encoding`` by which a model knows its tokens.
    vocabulary : number of token ids, kept for those who embed them.
    Raises ValueError for an empty, unsorted or damaged table.
    """
    folder = Path(folder)
    encoding = fingerprint_of(VERSION, encoding, vocabulary, topics)
    fingerprint = fingerprint_of(encoding, file_fingerprint(posts))
    if is_current(folder / "store.json", fingerprint):
        with suppress(ValueError):  # damaged: it is built again
            return open_store(folder)
    (folder / "store.json").unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    table = pq.ParquetFile(posts)
    if not table.metadata.num_rows:
        raise ValueError(f"{posts} holds no posts")
    state = _resume(folder, fingerprint)
    counts = state["counts"]
    topic_row = {name: row for row, name in enumerate(topics)}
    groups = range(state["groups"], table.num_row_groups)
    for group in progress_bar(groups, progress=progress, desc="encoding", unit="group"):
        _append(folder, table.read_row_group(group), encode, topic_row, state)
        state["groups"] = group + 1
        write_json(folder / "progress.json", state)
    _append_to(folder, "author_offsets", np.array([counts["hour"]]), counts)
    names = duckdb.execute("select distinct author from read_parquet(?) order by author", [str(posts)]).fetchall()
    with atomic_write(folder / "authors.parquet") as partial:
        pq.write_table(pa.table({"author": pa.array([name for name, in names], pa.string())}), partial)
    write_json(folder / "store.json", {
        "fingerprint": fingerprint, "encoding": encoding, "counts": counts, "vocabulary": vocabulary, "topics": topics,
        "sha256": {path.name: checksum(path) for path in _files(folder)}, "posts": counts["hour"],
        "authors": counts["author_offsets"] - 1, "tokens": counts["tokens"]})
    (folder / "progress.json").unlink()
    return open_store(folder)


def _resume(folder: Path, fingerprint: str) -> dict:
    """The state of an interrupted build, files cut back to it, or that of a new one."""
    if is_current(folder / "progress.json", fingerprint):
        state = read_json(folder / "progress.json")
    else:
        (folder / "progress.json").unlink(missing_ok=True)  # of another build, whose files end here
        state = {"fingerprint": fingerprint, "groups": 0, "last_author": "", "counts": dict.fromkeys(FILES, 0)}
        for name in FILES:
            _file(folder, name).write_bytes(b"")
        _append_to(folder, "post_offsets", np.array([0]), state["counts"])
    for name, count in state["counts"].items():
        os.truncate(_file(folder, name), count * np.dtype(FILES[name]).itemsize)
    return state


def _append_to(folder, name, values, counts):
    with open(_file(folder, name), "ab") as file:
        file.write(np.ascontiguousarray(values, FILES[name]).tobytes())
    counts[name] += len(values)


def _append(folder: Path, rows: pa.Table, encode, topic_row: dict, state: dict):
    counts = state["counts"]
    if not len(rows):
        return
    author = rows["author"].to_numpy()
    if author[0] < state["last_author"] or (author[1:] < author[:-1]).any():
        raise ValueError("the posts table is not sorted by author")
    new = np.concatenate([author[:1] != state["last_author"], author[1:] != author[:-1]])
    _append_to(folder, "author_offsets", counts["hour"] + np.flatnonzero(new), counts)
    ids = encode(rows["text"].to_pylist())
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    _append_to(folder, "post_offsets", counts["tokens"] + lengths.cumsum(), counts)
    _append_to(folder, "tokens", np.concatenate(ids), counts)
    seconds = rows["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64()).to_numpy()
    _append_to(folder, "topic", [topic_row.get(name, len(topic_row)) for name in rows["topic"].to_pylist()], counts)
    _append_to(folder, "hour", seconds // 3600 % 24, counts)
    _append_to(folder, "time", seconds, counts)
    state["last_author"] = author[-1]
