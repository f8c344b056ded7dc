"""The nearest of many accounts: every product up to some hundred thousand, codes of two bits a dimension beyond.

Both read all accounts, roughly, and rank the best anew by the true score, so that they give the same scores. Products
are of float16, and as many of them ranked anew as rounding may have misplaced: that is exact. Codes are those of RaBitQ
(Gao and Long 2024, with more bits Gao et al. 2025), the sign and one further bit of each turned coordinate, 84 bytes
for 256 of them. A million accounts of 256 dimensions take one core 34 ms a query exactly, and 16 ms with codes at a
recall of 0.999 of the exact top 100 (``benchmarks/index.py``); codes take 22 s to make. Inverted lists (IVF) would read
fewer codes, but how many suffice depends on the archive: of a million posts half, which saves a sixth of the time.
"""

import warnings

import numpy as np
import torch

from helpers.evaluation.scores import round_scores

EXACT = 500_000  # rows, up to which codes are not worth their memory: a query takes 17 ms without
CHUNK = 2**14  # rows that are encoded at a time
CANDIDATES = (
    2048  # estimates that are ranked by the true score, or 20 for each place that is asked for
)
ROUGH = 0.0025  # by how much float16 may misplace two products, each off by 2**-11 for the query and for itself
INSTALL = "pip install faiss-cpu"


class VectorIndex:
    """Accounts as unit vectors.

    vectors : (N, D), kept as float16, which changes a score by some 1e-5 and at most 2**-11. coded : False compares
    with every row, True reads codes and ranks the best of them by the true score; by default codes are read from EXACT
    rows on, but where FAISS is missing it warns and does without. ``codes`` are None where there are none.
    Raises ValueError for no vectors, for vectors that are not finite or not of unit length, and for True without FAISS.
    """

    def __init__(self, vectors: np.ndarray, coded: bool | None = None):
        vectors = _checked(vectors)
        if not len(vectors):
            raise ValueError("the index is empty: there are no vectors to compare with")
        self.vectors, self.codes = vectors.astype(np.float16), None
        if coded or (coded is None and len(vectors) > EXACT):
            self._encode(coded)

    def search(self, queries: np.ndarray, k: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """The k best rows of each query (Q, D): scores (Q, k) float32, best first, and rows (Q, k) int64.

        Fewer where the index has fewer. Scores are rounded as all scores are (:mod:`helpers.evaluation.scores`); of
        equal ones the first row comes first. Raises ValueError for queries of another width, or that are not finite
        or not of unit length, and for k below 1.
        """
        queries = torch.from_numpy(_checked(queries, self.vectors.shape[1]))
        if k < 1:
            raise ValueError(f"k = {k}: at least one row is asked for")
        k = min(k, len(self.vectors))
        scores, rows = (
            np.empty((len(queries), k), np.float32),
            np.empty((len(queries), k), np.int64),
        )
        for number, near in enumerate(self._near(queries, k) if len(queries) else ()):
            targets = torch.from_numpy(
                self.vectors[near]
            ).double()  # in which no digit depends on the other rows
            true = round_scores(targets @ queries[number].double())
            order = np.lexsort((near, -true))[:k]
            scores[number], rows[number] = true[order], near[order]
        return scores, rows

    def _encode(self, needed):
        count, width = self.vectors.shape
        try:
            import faiss
        except ImportError:
            if needed:
                raise ValueError(f"codes need FAISS: {INSTALL}") from None
            warnings.warn(f"{count:,} accounts are compared one by one, about {count / 3e4:.0f} ms a query on "
                          f"one core; half of that with FAISS: {INSTALL}", stacklevel=3)  # fmt: skip
            return
        self.codes = faiss.index_factory(width, f"RR{width},RaBitQfs2", faiss.METRIC_INNER_PRODUCT)
        self.codes.train(
            self.vectors[:: count // 2**16 + 1].astype(np.float32)
        )  # only the centre is learned
        for begin in range(0, count, CHUNK):
            self.codes.add(self.vectors[begin : begin + CHUNK].astype(np.float32))

    def _near(self, queries, k):
        """Of each query the rows (C,) among which its k best are: for certain without codes, most likely with them."""
        vectors = torch.from_numpy(self.vectors)
        if self.codes is not None:
            yield from self.codes.search(
                queries.numpy(), min(len(vectors), max(CANDIDATES, 20 * k))
            )[1]
            return
        for query in queries:
            rough = (
                vectors @ query.half()
            )  # summed in float32, read in half the time that float32 takes
            yield (rough >= rough.topk(k).values[-1] - ROUGH).nonzero()[:, 0].numpy()


def _checked(vectors: np.ndarray, width: int | None = None) -> np.ndarray:
    """Vectors (N, D) as float32, where they are finite, of unit length and ``width`` wide."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        raise ValueError(f"vectors of shape {vectors.shape}: (N, {width or 'D'}) is needed")
    if not (
        abs(np.einsum("nd,nd->n", vectors, vectors) - 1) <= 2e-3
    ).all():  # false of what is not finite, too
        raise ValueError("vectors must be finite and have unit length")
    return vectors
