"""The token store: every post of a split as token ids, ragged and memory-mapped.

======================  ======================================================
``tokens.u16``          all tokens of all posts, one after the other
``post_offsets.i64``    (posts + 1): where each post's tokens begin
``hour.u8``             (posts): hour of publication, 0..23, UTC
``time.i64``            (posts): seconds since 1970, UTC
``topic.u16``           (posts): row of the topic list, the last row = other
``author_offsets.i64``  (authors + 1): where each author's posts begin
``store.json``          topics, fingerprint of its sources, checksums
``authors.parquet``     the authors' names, in order
======================  ======================================================

Opening a store maps its files into memory and compares their checksums. The checksum of a file
beyond 256 MB covers only its size and 16 parts of it, so that no store takes long to open. A batch
reads only its own posts, however large the store is.

To build a store, the texts of each row group of the posts table are encoded into a part with a
checksum, by several workers at once if wanted, and then the parts are joined. A build that was
interrupted reuses the parts that are finished.
"""

import hashlib
import mmap
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    folder_lock,
    is_current,
    make_folder,
    note,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from ..core.messages import file_error, readable_file
from ..corpus.workers import run_jobs

FILES = {
    "tokens": "u2",
    "post_offsets": "i8",
    "hour": "u1",
    "time": "i8",
    "topic": "u2",
    "author_offsets": "i8",
}
SUFFIX = {"u1": "u8", "u2": "u16", "i8": "i64"}
VERSION = 1  # raised when the same posts and settings give other files
# Files up to this size are checked byte by byte and read ahead, as they soon are in memory anyway
MAX_WHOLE_BYTES = 2**28
PART_BYTES = 2**20  # size of each of the 16 parts of a larger file that its checksum covers


def _paths(folder):
    """Return the path of each file of a store but ``store.json``, by the name of its array."""
    paths = {name: folder / f"{name}.{SUFFIX[dtype]}" for name, dtype in FILES.items()}
    return paths | {"authors": folder / "authors.parquet"}


@dataclass(frozen=True)
class TokenStore:
    """An opened store. Posts and authors are numbered from 0 in the order of the posts table.

    Attributes
    ----------
    folder : the folder of its files
    meta : the content of ``store.json``
    tokens, post_offsets, hour, time, topic, author_offsets : the arrays listed at the top of this
        module, as memory maps
    """

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
        """Return the number of posts."""
        return len(self.hour)

    @property
    def authors(self) -> int:
        """Return the number of authors."""
        return len(self.author_offsets) - 1

    def posts_per_author(self) -> np.ndarray:
        """Return the number of posts of each author, (authors,) int64."""
        return np.diff(self.author_offsets)

    def author_names(self) -> list[str]:
        """Read the authors' names, in the order of the author numbers."""
        return pq.read_table(self.folder / "authors.parquet")["author"].to_pylist()


def file_checksum(path: Path) -> str:
    """Hash all bytes of a file, or for a large one its size and 16 MB from its start to its end."""
    size = path.stat().st_size
    if size <= MAX_WHOLE_BYTES:
        return file_fingerprint(path)
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        for begin in np.linspace(0, size - PART_BYTES, 16).astype(int):
            file.seek(begin)
            digest.update(file.read(PART_BYTES))
    return digest.hexdigest()[:16]


def open_store(folder: str | Path) -> TokenStore:
    """Open a store: map its files into memory and compare their checksums.

    Raises
    ------
    ValueError
        a file is missing or damaged, or the store was not finished
    """
    folder = Path(folder)
    meta = read_json(folder / "store.json")
    paths = _paths(folder)
    for path in paths.values():
        with readable_file(path):
            if file_checksum(path) != meta["sha256"][path.name]:
                raise file_error(path, "is not the file that store.json describes")
    arrays = {name: _map_array(paths[name], dtype) for name, dtype in FILES.items()}
    return TokenStore(folder, meta, **arrays)


def _map_array(path, dtype):
    size = path.stat().st_size
    if size == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype)
    array = np.memmap(path, dtype, "r")
    if size > MAX_WHOLE_BYTES and hasattr(mmap, "MADV_RANDOM"):
        # else each page that is read brings about 30 neighbours, which a batch does not need
        array._mmap.madvise(mmap.MADV_RANDOM)
    return array


def concat_ranges(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate N ranges of consecutive numbers into one array.

    Parameters
    ----------
    first : (N,), the first number of each range
    count : (N,), how many numbers each range has; 0 is allowed

    Returns
    -------
    numbers : (sum of count,), first[0] .. first[0] + count[0] - 1, then first[1] and so on
    offsets : (N + 1,), range n is ``numbers[offsets[n] : offsets[n + 1]]``
    """
    offsets = np.concatenate([[0], np.cumsum(count)])
    return np.repeat(first - offsets[:-1], count) + np.arange(offsets[-1]), offsets


def with_arrays(
    store: TokenStore, name: str, posts: np.ndarray, **arrays: np.ndarray
) -> TokenStore:
    """Return a store of chosen posts that exists in memory only; its "authors" have no names.

    Parameters
    ----------
    store : the store from which hour, time and topic of the posts are copied
    name : name of the new store, for messages; no folder of this name is made
    posts : numbers of the posts in ``store``, in the order of the new store
    **arrays : ``tokens``, ``post_offsets`` and ``author_offsets`` of the new store; an array that
        is left out is that of ``store``
    """
    for key in ("hour", "time", "topic"):
        arrays[key] = getattr(store, key)[posts]
    meta = {key: store.meta.get(key) for key in ("topics", "vocabulary")}
    return replace(store, folder=store.folder / name, meta=meta, **arrays)


def subset(store: TokenStore, posts: np.ndarray, offsets: np.ndarray) -> TokenStore:
    """Return a store in memory that holds only chosen posts, in the given order.

    So any list of posts becomes consecutive posts of a store, as samples need them. Copying takes
    10 bytes of memory per token, the new store 2.

    Parameters
    ----------
    store : the store from which posts are copied
    posts : numbers of the posts, in any order
    offsets : (N + 1,), where the N "authors" of the new store begin: "author" n, who has no name,
        has the posts ``posts[offsets[n] : offsets[n + 1]]``
    """
    begin = store.post_offsets[posts]
    source, post_offsets = concat_ranges(begin, store.post_offsets[posts + 1] - begin)
    arrays = {"post_offsets": post_offsets, "author_offsets": offsets}
    return with_arrays(store, "taken", posts, tokens=store.tokens[source], **arrays)


def with_tokens(store: TokenStore, is_kept: np.ndarray) -> TokenStore:
    """Return a store with some of its tokens; posts may become empty.

    Parameters
    ----------
    store : the posts
    is_kept : (tokens,) bool, which tokens stay
    """
    kept_before = np.append(0, is_kept.cumsum())
    return replace(
        store,
        tokens=np.asarray(store.tokens)[is_kept],
        post_offsets=kept_before[store.post_offsets],
    )


def join_stores(stores: Sequence[TokenStore]) -> TokenStore:
    """Return a store in memory with the authors of several stores, such as those of two corpora.

    Its authors have no names. The first store gives the topic list; a topic that is not on it
    becomes "other". All tokens are copied, 2 bytes each.

    Parameters
    ----------
    stores : stores whose tokens one tokenizer made; a single one is returned as it is

    Raises
    ------
    ValueError
        the vocabularies differ in size
    """
    first = stores[0]
    if len(stores) == 1:
        return first
    vocabularies = sorted({store.meta["vocabulary"] for store in stores})
    if len(vocabularies) > 1:
        raise ValueError(f"stores with vocabularies of {vocabularies} tokens cannot be joined")
    arrays = {}
    for name in FILES:
        parts = [getattr(store, name) for store in stores]
        if name.endswith("offsets"):
            counts = np.concatenate([np.diff(part) for part in parts])
            arrays[name] = np.append(0, counts.cumsum())
        else:
            arrays[name] = np.concatenate(parts)
    last_topic = len(first.meta["topics"])  # the row of "other"
    arrays["topic"] = np.minimum(arrays["topic"], last_topic)
    fingerprint = fingerprint_of(*(store.meta["fingerprint"] for store in stores))
    meta = first.meta | {"fingerprint": fingerprint}
    return replace(first, folder=first.folder / "joined", meta=meta, **arrays)


def list_topics(posts: str | Path, max_topics: int = 2048, known: Sequence[str] = ()) -> list[str]:
    """List the most frequent topics of a posts table, equally frequent ones by name.

    Parameters
    ----------
    posts : path of the posts table
    max_topics : how many topics of the table to list at most (khan2021: 2048)
    known : topics of an earlier list, which come first and so keep their rows; they do not count
        towards ``max_topics``
    """
    query = "select topic from read_parquet(?) group by topic order by count(*) desc, topic limit ?"
    rows = duckdb.execute(query, [str(posts), max_topics]).fetchall()
    return list(dict.fromkeys([*known, *(topic for (topic,) in rows)]))


def build_store(
    posts: str | Path,
    folder: str | Path,
    encode: Callable[[list[str]], list[np.ndarray]],
    topics: list[str],
    encoding: str,
    vocabulary: int = 2**16,
    run_jobs: Callable[[Callable, list[tuple]], object] = partial(run_jobs, workers=1),
) -> TokenStore:
    """Encode a posts table into a store, or open the store where it is up to date and undamaged.

    Parameters
    ----------
    posts : path of the posts table, sorted by author, then time
    folder : the folder of the store
    encode : function from a list of texts to one array of token ids below 2^16 per text
    topics : the topic list, of training posts; a post on any other topic gets the row after the
        last, "other"
    encoding : fingerprint of the tokenizer. Hashed with topics and vocabulary it becomes the
        ``encoding`` in ``store.json``, by which a model recognises the tokens it was trained on
    vocabulary : number of token ids, stored for models that embed them
    run_jobs : function that calls its first argument with the arguments of every job in its second,
        such as :func:`helpers.corpus.workers.run_by_daft` with a number of workers; by default this
        process does all jobs

    Raises
    ------
    ValueError
        the table is empty or damaged, or its authors are not in order
    """
    folder = Path(folder)
    encoding = fingerprint_of(VERSION, encoding, vocabulary, topics)
    fingerprint = fingerprint_of(encoding, file_fingerprint(posts))
    with folder_lock(folder):
        if is_current(folder / "store.json", fingerprint):
            with suppress(ValueError):  # a damaged store is built again
                store = open_store(folder)
                note(folder)
                return store
        (folder / "store.json").unlink(missing_ok=True)
        parts = folder / "parts" / fingerprint
        make_folder(parts)
        paths = [
            parts / f"{group:06d}.npz" for group in range(pq.ParquetFile(posts).num_row_groups)
        ]
        run_jobs(partial(_encode_part, posts, encode), list(enumerate(paths)))
        _join_parts(posts, folder, paths, topics)
        # removed before store.json is written: once it is there, no later run would remove them
        shutil.rmtree(parts.parent)
        meta = {
            "fingerprint": fingerprint,
            "encoding": encoding,
            "vocabulary": vocabulary,
            "topics": topics,
            "sha256": {path.name: file_checksum(path) for path in _paths(folder).values()},
        }
        write_json(folder / "store.json", meta)
        note(folder)
        return open_store(folder)


def _encode_part(posts, encode, group, path):
    """Encode the texts of one row group and write their ids, unless this has been done before."""
    if verify_checksum(path):
        return
    texts = pq.ParquetFile(posts).read_row_group(group, ["text"])["text"].to_pylist()
    ids = encode(texts)
    tokens = np.concatenate([np.empty(0, "u2"), *ids]).astype("u2")
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, tokens=tokens, length=[len(post) for post in ids])
    write_checksum(path)


def _join_parts(posts, folder, paths, topics):
    """Write the files of a store from a posts table and the ids of its row groups."""
    rows = pq.read_table(posts, columns=["author", "time", "topic"])
    author = rows["author"].to_pandas()
    if author.empty:
        raise ValueError(f"{posts} holds no posts")
    if not author.is_monotonic_increasing:
        raise ValueError("the posts table is not sorted by author")
    files = _paths(folder)
    for path in files.values():  # not overwritten: another process may have mapped them
        path.unlink(missing_ok=True)

    lengths = []
    with open(files["tokens"], "wb") as file:
        for path in paths:
            with readable_file(path), np.load(path) as part:
                file.write(part["tokens"].tobytes())
                lengths.append(part["length"])
    seconds = rows["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64()).to_numpy()
    topic_row = {topic: row for row, topic in enumerate(topics)}
    is_first = (author != author.shift()).to_numpy()
    arrays = {
        "post_offsets": np.append(0, np.concatenate(lengths).cumsum()),
        "hour": seconds // 3600 % 24,
        "time": seconds,
        "topic": rows["topic"].to_pandas().map(topic_row).fillna(len(topics)),
        "author_offsets": np.append(np.flatnonzero(is_first), len(author)),
    }
    for name, values in arrays.items():
        np.asarray(values, FILES[name]).tofile(files[name])
    names = pa.array(author[is_first], pa.string())
    with atomic_write(files["authors"]) as temporary:
        pq.write_table(pa.table({"author": names}), temporary)
