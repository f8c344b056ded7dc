"""Find the nearest of many accounts: by all products of vectors, or by compressed codes.

Both ways estimate the scores of all accounts, and rank the best of these again by the true score,
so that both return the same scores. The first way multiplies in float16, and ranks every account
again that rounding may have misplaced, so that its result is exact. The second way reads RaBitQ
codes (Gao and Long 2024; with more bits Gao et al. 2025): the sign and one more bit of each
coordinate after a random rotation, 84 bytes for 256 coordinates. It may miss an account. With a
million accounts of 256 dimensions, one core takes 34 ms per query by products, and 16 ms by codes,
which find 0.999 of the exact top 100; making the codes takes 22 s. With
the 1,028 dimensions of the encoder that ships, and vectors of a million accounts with four short
posts, it is 109 ms by products and 35 ms by codes, which find 0.9999; the codes take 118 s.
Inverted lists (IVF) would read fewer codes, but how many they must read depends on the archive: of
a million posts it is half, which saves a sixth of the time.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import torch

from ..evaluation.scores import round_scores

# up to so many rows, codes are not worth their memory: a query takes 17 ms without them (of 256
# dimensions; of the 1,028 of the encoder that ships 54 ms)
EXACT_ROWS = 500_000
CHUNK_ROWS = 2**14  # rows that are checked, or turned into codes, at a time
CANDIDATES = 2048  # best estimates that are ranked again by the true score; 20 k if that is more
# Two products of float16 may be wrongly ordered if they differ by less. Each is off by at most
# 2**-11 for the rounded query and 2**-11 for its own rounding, so two differ by up to 0.002.
FLOAT16_ERROR = 0.0025
INSTALL = "pip install faiss-cpu"


class VectorIndex:
    """An index of accounts, given as unit vectors, that finds the nearest ones to a query.

    Parameters
    ----------
    vectors : (N, D)
        N accounts, D dimensions. They are kept as float16, which changes a score by about 1e-5 and
        at most 2**-11; an array that is float16 already is not copied.
    coded : bool, optional
        False multiplies every row, True reads codes. By default codes are read for more than
        EXACT_ROWS rows; if FAISS is not installed, a warning is given and every row is multiplied.

    Attributes
    ----------
    codes : faiss.Index, optional
        the FAISS index of the codes, None where there are none.

    Raises
    ------
    ValueError
        For no vectors, for vectors that are not finite or not of unit length, and where ``coded``
        is True and FAISS is not installed.
    """

    def __init__(self, vectors: np.ndarray, coded: bool | None = None):
        _check_vectors(vectors)
        if not len(vectors):
            raise ValueError("the index is empty: there are no vectors to compare with")
        self.vectors = np.ascontiguousarray(vectors, np.float16)
        self.codes = None
        if coded or (coded is None and len(vectors) > EXACT_ROWS):
            self._encode(coded)

    def search(self, queries: np.ndarray, k: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """Find the k rows with the highest scores for each query.

        Scores are rounded as in :mod:`helpers.evaluation.scores`; of equal scores the row with the
        lower number comes first.

        Parameters
        ----------
        queries : (Q, D)
            Q unit vectors; Q may be 0.
        k : int
            number of rows per query; cut to the number of rows of the index.

        Returns
        -------
        Scores (Q, k) float32, best first, and the numbers of their rows (Q, k) int64.

        Raises
        ------
        ValueError
            For queries of another width, not finite or not of unit length, and for k below 1.
        """
        _check_vectors(queries, self.vectors.shape[1])
        queries = torch.from_numpy(np.ascontiguousarray(queries, np.float32))
        if k < 1:
            raise ValueError(f"k = {k}: at least one row is asked for")
        k = min(k, len(self.vectors))
        scores = np.empty((len(queries), k), np.float32)
        rows = np.empty((len(queries), k), np.int64)
        if not len(queries):
            return scores, rows
        for number, near in enumerate(self._candidates(queries, k)):
            # in double precision, the rounded score does not depend on which rows are multiplied
            targets = torch.from_numpy(self.vectors[near]).double()
            true_scores = round_scores(targets @ queries[number].double())
            order = np.lexsort((near, -true_scores))[:k]
            scores[number] = true_scores[order]
            rows[number] = near[order]
        return scores, rows

    # Make the codes; without FAISS raise ValueError if ``is_needed``, else warn.
    def _encode(self, is_needed):
        count, width = self.vectors.shape
        try:
            import faiss
        except ImportError:
            if is_needed:
                raise ValueError(f"codes need FAISS: {INSTALL}") from None
            warnings.warn(
                f"{count:,} accounts are compared one by one, about {count * width / 9e6:.0f} ms a "
                f"query on one core; less than half of that with FAISS: {INSTALL}",
                stacklevel=3,
            )
            return
        self.codes = faiss.index_factory(width, f"RR{width},RaBitQfs2", faiss.METRIC_INNER_PRODUCT)
        sample = self.vectors[:: count // 2**16 + 1]  # only the centre is learned
        self.codes.train(sample.astype(np.float32))
        for begin in range(0, count, CHUNK_ROWS):
            self.codes.add(self.vectors[begin : begin + CHUNK_ROWS].astype(np.float32))

    def _candidates(self, queries, k) -> Iterator[np.ndarray]:
        """Yield, for each query, the numbers (C,) of C rows to rank by the true score.

        They include the k best, with codes in nearly all cases.
        """
        if self.codes is not None:
            candidates = min(len(self.vectors), max(CANDIDATES, 20 * k))
            yield from self.codes.search(queries.numpy(), candidates)[1]
            return
        vectors = torch.from_numpy(self.vectors)
        for query in queries:
            # float16 is read in half the time of float32; the sums are float32
            products = vectors @ query.half()
            least = products.topk(k).values[-1] - FLOAT16_ERROR
            yield (products >= least).nonzero()[:, 0].numpy()


def _check_vectors(vectors: np.ndarray, width: int | None = None) -> None:
    """Raise ValueError for vectors of another width, not finite or not of unit length."""
    if vectors.ndim != 2 or width not in (None, vectors.shape[1]):
        raise ValueError(f"vectors of shape {vectors.shape}: (N, {width or 'D'}) is needed")
    for begin in range(0, len(vectors), CHUNK_ROWS):
        chunk = vectors[begin : begin + CHUNK_ROWS].astype(np.float32)
        squares = np.einsum("nd,nd->n", chunk, chunk)
        if not (abs(squares - 1) <= 2e-3).all():  # NaN and infinity fail this comparison, too
            raise ValueError("vectors must be finite and have unit length")
