"""The nearest of many accounts: every product up to some hundred thousand, codes of two bits a dimension beyond.

Both read all accounts, roughly, and rank the best anew by the true score, so that they give the same scores. The
products are those of float16, so many more of them being ranked anew as rounding may have misplaced: that is exact.
The codes are those of RaBitQ (Gao and Long 2024, with more bits Gao et al. 2025), the sign and one further bit of each
turned coordinate, 84 bytes for 256 of them, whose products FAISS estimates 32 at a time. A million accounts of 256
dimensions take one core 34 ms a query exactly, and 16 ms with codes at a recall of 0.999 of the exact top 100
(``benchmarks/index.py``). Inverted lists (IVF) would read fewer codes, but how many suffice depends on the archive: of
a million posts half, which saves a sixth of the time. Without them nothing is clustered, and codes take 22 s.
"""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from helpers.evaluation.scores import rounded
from helpers.runs.artifacts import atomic_write, file_fingerprint, read_json, write_json

EXACT = 500_000  # rows, up to which codes are not worth their memory: a query takes 17 ms without
CHUNK = 2**14  # rows that are encoded at a time
CANDIDATES = 2048  # estimates that are ranked by the true score, or 20 for each place that is asked for
ROUGH = 0.0025  # by how much float16 may misplace two products, each off by 2**-11 for the query and for itself
KINDS = ("auto", "exact", "coded")
INSTALL = "pip install faiss-cpu"


class VectorIndex:
    """Accounts as unit vectors, each with one name; the row of an account is its place in ``names``.

    vectors : (N, D), kept as float16, which changes a score by some 1e-5 and at most 2**-11. names : N, each once.
    kind : "exact" compares with every row. "coded" reads codes and ranks the best of them by the true score. "auto" is
    coded from EXACT rows on; where FAISS is missing it warns and is exact.
    Raises ValueError for no vectors, for vectors that are not finite or not of unit length, for names that do not fit
    or repeat, for an unknown kind, and for "coded" without FAISS.
    """

    def __init__(self, vectors: np.ndarray, names: Sequence[str], kind: str = "auto"):
        if kind not in KINDS:
            raise ValueError(f"index of kind {kind!r}: one of {', '.join(KINDS)}")
        vectors = _checked(vectors)
        if not len(vectors):
            raise ValueError("the index is empty: there are no vectors to compare with")
        self.kind, self.names, self.vectors = kind, named(names, len(vectors)), vectors.astype(np.float16)
        self._encode()

    def __len__(self) -> int:
        return len(self.names)

    def search(self, queries: np.ndarray, k: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """The k best rows of each query (Q, D): scores (Q, k) float32, best first, and rows (Q, k) int64.

        Fewer where the index has fewer. Scores are rounded as all scores are (:mod:`helpers.evaluation.scores`); of
        equal ones the first row comes first. Raises ValueError for queries of another width, or that are not finite
        or not of unit length, and for k below 1.
        """
        queries = torch.from_numpy(_checked(queries, self.vectors.shape[1]))
        if k < 1:
            raise ValueError(f"k = {k}: at least one row is asked for")
        k = min(k, len(self))
        scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        for number, near in enumerate(self._near(queries, k) if len(queries) else ()):
            targets = torch.from_numpy(self.vectors[near]).double()  # in which no digit depends on the other rows
            true = rounded(targets @ queries[number].double())
            order = np.lexsort((near, -true))[:k]
            scores[number], rows[number] = true[order], near[order]
        return scores, rows

    def add(self, vectors: np.ndarray, names: Sequence[str]) -> None:
        """Append accounts. Raises what the class raises, and ValueError for names that are there already."""
        vectors = _checked(vectors, self.vectors.shape[1])
        self.names = named([*self.names, *names], len(self) + len(vectors))
        self.vectors = np.concatenate([self.vectors, vectors.astype(np.float16)])
        if self.codes is not None and len(self) <= 2 * self.centred:
            if len(vectors):  # FAISS ends the process over none
                self.codes.add(vectors)
        else:  # there were no codes yet, or those about a centre that half of the rows did not make
            self._encode()

    def remove(self, names: Sequence[str]) -> None:
        """Drop accounts; the rows after them move up. Raises ValueError for a name that is not there, or if all go."""
        gone = set(names)
        if unknown := gone - set(self.names):
            raise ValueError(f"no account {min(unknown, key=str)!r} in the index")
        if len(gone) == len(self):
            raise ValueError("nobody would be left in the index")
        kept = np.array([name not in gone for name in self.names])
        self.names, self.vectors = self.names[kept], self.vectors[kept]
        if self.codes is not None:
            self.codes.remove_ids(np.flatnonzero(~kept))

    def save(self, folder: str | Path) -> None:
        """Write a folder for :meth:`load` in one step: vectors, codes where there are any, names and checksums."""
        with atomic_write(folder) as partial:
            partial.mkdir()
            np.save(partial / "vectors.npy", self.vectors)
            if self.codes is not None:
                _faiss().write_index(self.codes, str(partial / "codes.faiss"))
            marks = {path.name: file_fingerprint(path) for path in sorted(partial.iterdir())}
            about = {"kind": self.kind, "centred": self.centred, "sha256": marks, "names": self.names.tolist()}
            write_json(partial / "index.json", about)

    @classmethod
    def load(cls, folder: str | Path) -> "VectorIndex":
        """What :meth:`save` wrote, the vectors mapped from the disk. Raises ValueError where it is missing or damaged.

        Codes of another FAISS are made anew; where it is missing, "auto" does without and "coded" raises ValueError.
        """
        folder, index = Path(folder), cls.__new__(cls)
        try:
            about = read_json(folder / "index.json")
            damaged = [name for name, mark in about["sha256"].items() if file_fingerprint(folder / name) != mark]
        except (ValueError, OSError, KeyError, AttributeError, TypeError):
            damaged = ["index.json or what it lists"]
        if damaged:
            raise ValueError(f"{folder}: {damaged[0]} is missing or damaged: delete {folder} and make the index anew")
        index.kind, index.names, index.codes = about["kind"], named(about["names"], len(about["names"])), None
        index.vectors, index.centred = np.load(folder / "vectors.npy", mmap_mode="c"), about["centred"]
        if "codes.faiss" in about["sha256"] and (faiss := _faiss()):
            with suppress(RuntimeError):
                index.codes = faiss.read_index(str(folder / "codes.faiss"))
        if index.codes is None:
            index._encode()
        return index

    def _encode(self):
        """Make the codes, or none."""
        self.codes, self.centred = None, len(self)
        if self.kind == "exact" or (self.kind == "auto" and len(self) <= EXACT):
            return
        if not (faiss := _faiss()):
            if self.kind == "coded":
                raise ValueError(f"an index of kind 'coded' needs FAISS: {INSTALL}")
            warnings.warn(f"{len(self):,} accounts are compared one by one, about {len(self) / 3e4:.0f} ms a query on "
                          f"one core; half of that with FAISS: {INSTALL}", stacklevel=3)  # fmt: skip
            return
        width = self.vectors.shape[1]
        self.codes = faiss.index_factory(width, f"RR{width},RaBitQfs2", faiss.METRIC_INNER_PRODUCT)
        self.codes.train(self.vectors[:: len(self) // 2**16 + 1].astype(np.float32))  # only the centre is learned
        for begin in range(0, len(self), CHUNK):
            self.codes.add(self.vectors[begin : begin + CHUNK].astype(np.float32))

    def _near(self, queries, k):
        """Of each query the rows (C,) among which its k best are: for certain without codes, most likely with them."""
        if self.codes is not None:
            yield from self.codes.search(queries.numpy(), min(len(self), max(CANDIDATES, 20 * k)))[1]
            return
        vectors = torch.from_numpy(self.vectors)
        for query in queries:
            rough = vectors @ query.half()  # summed in float32, read in half the time that float32 takes
            yield (rough >= rough.topk(k).values[-1] - ROUGH).nonzero()[:, 0].numpy()


def _faiss():
    """The library, or None where it is not installed: only the large index needs it."""
    try:
        import faiss
    except ImportError:
        return None
    return faiss


def _checked(vectors: np.ndarray, width: int | None = None) -> np.ndarray:
    """Vectors (N, D) as float32, where they are finite, of unit length and ``width`` wide."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        raise ValueError(f"vectors of shape {vectors.shape}: (N, {width or 'D'}) is needed")
    squares = np.einsum("nd,nd->n", vectors, vectors)
    if not np.isfinite(squares).all():
        raise ValueError("vectors hold values that are not finite")
    if (abs(squares - 1) > 2e-3).any():
        raise ValueError("vectors must have unit length")
    return vectors


def named(names: Sequence[str], count: int) -> np.ndarray:
    """Names (N,) as objects, where there are as many as vectors and each is there once."""
    if len(names) != count or len(set(names)) != count:
        raise ValueError(f"{count} accounts have {len(names)} names, {len(set(names))} of them different")
    return np.asarray(names, object)
