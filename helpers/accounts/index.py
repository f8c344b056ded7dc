"""The nearest of many accounts: by every product, or beyond some hundred thousand by codes.

Both read all accounts, roughly, and rank the best anew by the true score, so that they give the
same scores. Products are of float16, and as many of them ranked anew as rounding may have
misplaced: that is exact. Codes are those of RaBitQ (Gao and Long 2024, with more bits Gao et al.
2025), the sign and one further bit of each turned coordinate, 84 bytes for 256 of them. A million
accounts of 256 dimensions take one core 34 ms a query exactly, and 16 ms with codes at a recall of
0.999 of the exact top 100 (``benchmarks/index.py``); codes take 22 s to make. Inverted lists (IVF)
would read fewer codes, but how many suffice depends on the archive: of a million posts half, which
saves a sixth of the time.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import torch

from helpers.evaluation.scores import round_scores

EXACT_ROWS = 500_000  # up to which codes are not worth their memory: a query takes 17 ms without
CHUNK_ROWS = 2**14  # encoded at a time
CANDIDATES = 2048  # estimates that are ranked by the true score, or 20 for each place asked for
# by how much float16 may misplace two products, each off by 2**-11 for the query and for itself
FLOAT16_ERROR = 0.0025
INSTALL = "pip install faiss-cpu"


class VectorIndex:
    """Search accounts, given as unit vectors.

    Parameters
    ----------
    vectors : (N, D)
        kept as float16, which changes a score by some 1e-5 and at most 2**-11.
    coded : bool, optional
        False compares with every row, True reads codes and ranks the best of them by the true
        score; by default codes are read from EXACT_ROWS on, but where FAISS is missing it warns and
        does without.

    Attributes
    ----------
    codes : faiss.Index, optional
        the FAISS index, None where there are no codes.

    Raises
    ------
    ValueError For no vectors, vectors that are not finite or not of unit length, and for codes
        without FAISS.
    """

    def __init__(self, vectors: np.ndarray, coded: bool | None = None):
        vectors = _check_vectors(vectors)
        if not len(vectors):
            raise ValueError("the index is empty: there are no vectors to compare with")
        self.vectors = vectors.astype(np.float16)
        self.codes = None
        if coded or (coded is None and len(vectors) > EXACT_ROWS):
            self._encode(coded)

    def search(self, queries: np.ndarray, k: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """Find the k best rows of each query, fewer where the index has fewer.

        Scores are rounded as all scores are (:mod:`helpers.evaluation.scores`); of equal ones the
        first row comes first.

        Parameters
        ----------
        queries : (Q, D)
            .
        k : int
            rows of each query.

        Returns
        -------
        Scores (Q, k) float32, best first, and rows (Q, k) int64.

        Raises
        ------
        ValueError
            For queries of another width, not finite or not of unit length, and for k below 1.
        """
        queries = torch.from_numpy(_check_vectors(queries, self.vectors.shape[1]))
        if k < 1:
            raise ValueError(f"k = {k}: at least one row is asked for")
        k = min(k, len(self.vectors))
        scores = np.empty((len(queries), k), np.float32)
        rows = np.empty((len(queries), k), np.int64)
        if not len(queries):
            return scores, rows
        for number, near in enumerate(self._candidates(queries, k)):
            # in double precision no digit depends on the other rows
            targets = torch.from_numpy(self.vectors[near]).double()
            true_scores = round_scores(targets @ queries[number].double())
            order = np.lexsort((near, -true_scores))[:k]
            scores[number] = true_scores[order]
            rows[number] = near[order]
        return scores, rows

    def _encode(self, is_needed):
        count, width = self.vectors.shape
        try:
            import faiss
        except ImportError:
            if is_needed:
                raise ValueError(f"codes need FAISS: {INSTALL}") from None
            warnings.warn(
                f"{count:,} accounts are compared one by one, about {count / 3e4:.0f} ms a query "
                f"on one core; half of that with FAISS: {INSTALL}",
                stacklevel=3,
            )
            return
        self.codes = faiss.index_factory(width, f"RR{width},RaBitQfs2", faiss.METRIC_INNER_PRODUCT)
        sample = self.vectors[:: count // 2**16 + 1]  # only the centre is learned
        self.codes.train(sample.astype(np.float32))
        for begin in range(0, count, CHUNK_ROWS):
            self.codes.add(self.vectors[begin : begin + CHUNK_ROWS].astype(np.float32))

    def _candidates(self, queries, k) -> Iterator[np.ndarray]:
        """Yield rows (C,) that hold the k best of each query, with codes most likely only."""
        if self.codes is not None:
            candidates = min(len(self.vectors), max(CANDIDATES, 20 * k))
            yield from self.codes.search(queries.numpy(), candidates)[1]
            return
        vectors = torch.from_numpy(self.vectors)
        for query in queries:
            # summed in float32, read in half the time that float32 takes
            products = vectors @ query.half()
            least = products.topk(k).values[-1] - FLOAT16_ERROR
            yield (products >= least).nonzero()[:, 0].numpy()


def _check_vectors(vectors: np.ndarray, width: int | None = None) -> np.ndarray:
    """Return vectors (N, D) as float32; they must be finite, of unit length, ``width`` wide."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        raise ValueError(f"vectors of shape {vectors.shape}: (N, {width or 'D'}) is needed")
    squares = np.einsum("nd,nd->n", vectors, vectors)
    if not (abs(squares - 1) <= 2e-3).all():  # false of what is not finite, too
        raise ValueError("vectors must be finite and have unit length")
    return vectors
