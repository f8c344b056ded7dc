"""Scores of rows: one product, one rule for ties, and the weighted mean of several systems' scores.

The score of two unit rows is their product. Rows of an encoder with ``unit = False`` score minus
their distance.

**Ties.** Scores are rounded to multiples of 2**-20, because smaller differences in float32 depend
only on the order in which a product was summed. Targets with equal scores are tied, and their
positions never decide. A target of another author that scores as high as the right one is ranked
before it (:func:`helpers.evaluation.ranking.best_ranks`), and no threshold separates them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

GRID = 2.0**20  # scores are multiples of 1 / GRID
BLOCK = 2**24  # scores that are held at a time, 64 MB
TILE = 1024  # targets multiplied at a time: their scores stay in the cache until they are rounded
SPARSE_ROWS = 64  # sparse queries multiplied at a time
PAIRS = 2**14  # listed pairs multiplied at a time
# Terms of a larger share of the targets are multiplied as dense numbers, see SplitRows: a dense
# product takes about 0.01 of the time of a sparse one for each pair that has the term.
FREQUENT_SHARE = 0.1

Rows = Tensor | sparse.csr_matrix | sparse.csc_matrix


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Sparse rows of T targets in two parts, to be multiplied with many queries.

    Nearly all the time of a sparse product goes into the few terms that most rows have. Sums are
    rounded otherwise than those of :func:`cosine`, so a score may differ by 2**-20.

    Attributes
    ----------
    frequent : (F,) columns of the frequent terms
    dense : (T, F) float32, the values of these
    rest : (D, T) float32, those of all other terms
    """

    frequent: np.ndarray
    dense: Tensor
    rest: sparse.csr_matrix

    @classmethod
    def of(cls, rows: sparse.csr_matrix) -> "SplitRows":
        """Split the rows (T, D) of targets."""
        rows_with_term = np.bincount(rows.indices, minlength=rows.shape[1])
        is_frequent = rows_with_term > FREQUENT_SHARE * rows.shape[0]
        frequent = np.flatnonzero(is_frequent)
        rest = rows.copy()
        rest.data[is_frequent[rows.indices]] = 0
        rest.eliminate_zeros()
        dense = torch.from_numpy(rows[:, frequent].toarray())
        return cls(frequent, dense, rest.T.tocsr())

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of targets and of terms."""
        return self.rest.shape[::-1]


def round_scores(scores: np.ndarray) -> np.ndarray:
    """Return scores as float32, rounded to multiples of 2**-20, as they are compared."""
    return np.asarray(np.rint(np.asarray(scores) * GRID) / GRID, np.float32)


def round_in_place(scores: Tensor) -> Tensor:
    """Round a tensor of scores as :func:`round_scores`, and overwrite it."""
    return scores.mul_(GRID).round_().mul_(1 / GRID)


def refuse_nan(values: np.ndarray, kind: str = "scores") -> None:
    """Raise ValueError where a value is NaN: it is neither higher nor lower than any other.

    Parameters
    ----------
    values : array of any shape
    kind : what the values are, for the message
    """
    is_nan = np.isnan(values)
    if is_nan.any():
        first = tuple(np.argwhere(is_nan)[0].tolist())
        raise ValueError(
            f"{is_nan.sum()} of {is_nan.size} {kind} are no numbers (NaN); the first stands at "
            f"{', '.join(map(str, first))}, counted from 0"
        )


def score_moments(scores: np.ndarray, axis: int) -> np.ndarray:
    """Sum scores and their squares along an axis, tile by tile.

    Parameters
    ----------
    scores : (Q, T) float32, Q queries and T targets
    axis : 0 for the sums of each target, 1 for those of each query

    Returns
    -------
    (2, T) or (2, Q) float64: sums, and sums of squares
    """
    parts = []
    for tile in torch.from_numpy(scores).split(TILE, 1):
        tile = tile.to(torch.float64, copy=True)  # squared in place below
        parts.append(torch.stack([tile.sum(axis), tile.square_().sum(axis)]))
    moments = torch.cat(parts, 1) if axis == 0 else torch.stack(parts).sum(0)
    return moments.numpy()


def as_rows(rows: np.ndarray | Tensor | sparse.spmatrix) -> Rows:
    """Return vectors (N, D) as a float32 tensor, or as a CSR matrix if they are sparse.

    Raises
    ------
    ValueError
        If a value is not finite.
    """
    if sparse.issparse(rows):
        rows = rows.tocsr().astype(np.float32, copy=False)
        values = rows.data
    else:
        rows = torch.as_tensor(rows).float()
        values = rows.numpy()
    if not np.isfinite(values).all():
        raise ValueError("embeddings hold values that are not finite")
    return rows


def cosine(
    queries: Rows, targets: Rows | SplitRows, unit: bool = True, out: np.ndarray | None = None
) -> np.ndarray:
    """Score every query with every target by product or distance, rounded for the rule of ties.

    Parameters
    ----------
    queries, targets : (Q, D) and (T, D), rows of :func:`as_rows`; sparse targets are fastest as a
        CSC matrix, and for many queries as SplitRows
    unit : whether rows are compared by product, else by minus the Euclidean distance, in double
        precision; sparse rows are always compared by product
    out : (Q, T) float32, overwritten with the scores; by default a new array

    Returns
    -------
    (Q, T) float32

    Raises
    ------
    ValueError
        If queries and targets differ in their dimensions, or only one of them is sparse.
    """
    is_split = isinstance(targets, SplitRows)
    is_sparse = is_split or sparse.issparse(targets)
    if queries.shape[1] != targets.shape[1] or sparse.issparse(queries) != is_sparse:
        raise ValueError(
            f"queries {tuple(queries.shape)} and targets {tuple(targets.shape)} do not fit together"
        )
    if out is None:
        out = np.empty((queries.shape[0], targets.shape[0]), np.float32)
    if is_split:
        _split_product(queries, targets, out)
    elif is_sparse:
        _sparse_product(queries, targets, out)
    else:
        _dense_product(queries, targets, unit, torch.from_numpy(out))
    return out


def _dense_product(queries, targets, unit, out):
    scaled = queries * GRID  # a power of two: no digit changes
    for begin in range(0, len(targets), TILE):
        part = targets[begin : begin + TILE]
        if unit:
            tile = scaled @ part.T
        else:
            tile = -GRID * torch.cdist(queries.double(), part.double())
        torch.mul(tile.round_(), 1 / GRID, out=out[:, begin : begin + TILE])


def _sparse_product(queries, targets, out):
    terms = targets.T.tocsr()
    for begin in range(0, len(out), SPARSE_ROWS):
        part = out[begin : begin + SPARSE_ROWS]
        (queries[begin : begin + SPARSE_ROWS] @ terms).toarray(out=part)
        round_in_place(torch.from_numpy(part))


def _split_product(queries, targets, out):
    frequent = torch.from_numpy(queries[:, targets.frequent].toarray())
    torch.matmul(frequent, targets.dense.T, out=torch.from_numpy(out))
    begins = range(0, len(out), SPARSE_ROWS)
    _run_side_by_side(partial(_add_rest, queries, targets.rest, out), begins)


def _add_rest(queries, rare_terms, out, begin):
    """Add the products with rare terms to the scores of SPARSE_ROWS queries, and round these."""
    part = out[begin : begin + SPARSE_ROWS]
    part += (queries[begin : begin + SPARSE_ROWS] @ rare_terms).toarray()
    round_in_place(torch.from_numpy(part))


def _run_side_by_side(compute: Callable, parts: Iterable) -> None:
    """Call a function with each part, in as many threads as PyTorch has: SciPy's have only one."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for _ in pool.map(compute, parts):
            pass  # a failed call raises its error here


def score_blocks(
    queries: Rows, targets: Rows | SplitRows, unit: bool = True
) -> Iterator[tuple[slice, np.ndarray]]:
    """Score every query with every target by :func:`cosine`, BLOCK scores at a time.

    Parameters
    ----------
    queries, targets : (Q, D) and (T, D), rows of :func:`as_rows`
    unit : how rows are compared, see :func:`cosine`

    Yields
    ------
    A slice of q queries, and their scores (q, T) float32; the next block overwrites this array.
    """
    count = targets.shape[0]
    step = max(1, BLOCK // max(count, 1))
    # NumPy's own arrays do not begin at a cache line, which costs a twentieth of the time
    scores = torch.empty(min(step, queries.shape[0]), count).numpy()
    if sparse.issparse(targets):
        targets = targets.tocsc()  # once for all blocks
    for begin in range(0, queries.shape[0], step):
        block = queries[begin : begin + step]
        part = slice(begin, begin + block.shape[0])
        yield part, cosine(block, targets, unit, scores[: block.shape[0]])


def pair_scores(
    queries: Rows, targets: Rows, pairs: np.ndarray, unit: bool = True, by_query: bool = False
) -> np.ndarray:
    """Score listed pairs only, and round for the rule of ties.

    Parameters
    ----------
    queries, targets : (Q, D) and (T, D), rows of :func:`as_rows`
    pairs : (N, 2), row of the query and row of the target of N pairs
    unit : how rows are compared, see :func:`cosine`
    by_query : multiply sparse rows query by query, which takes less time where queries have many
        pairs; sums are rounded otherwise, so a score may differ by 2**-20

    Returns
    -------
    (N,) float32
    """
    if by_query and sparse.issparse(queries):
        return _pair_scores_by_query(queries, targets, pairs)
    scores = np.empty(len(pairs))
    for begin in range(0, len(pairs), PAIRS):
        part = slice(begin, begin + PAIRS)
        left = queries[pairs[part, 0]]
        right = targets[pairs[part, 1]]
        if sparse.issparse(left):
            scores[part] = np.asarray(left.multiply(right).sum(1)).ravel()
        elif unit:
            scores[part] = (left.double() * right).sum(1)
        else:
            scores[part] = -(left.double() - right).norm(dim=1)
    return round_scores(scores)


def _pair_scores_by_query(queries, targets, pairs):
    """Score pairs of sparse rows: each query is made dense once, for all of its targets."""
    scores = np.empty(len(pairs), np.float32)
    order = np.argsort(pairs[:, 0], kind="stable")
    begins = np.flatnonzero(np.diff(pairs[order, 0], prepend=-1))
    compute = partial(_score_targets_of_query, queries, targets, pairs, scores)
    _run_side_by_side(compute, np.split(order, begins)[1:])
    return round_scores(scores)


def _score_targets_of_query(queries, targets, pairs, scores, part):
    """Score the pairs of one query, whose numbers are ``part``."""
    query = queries[[pairs[part[0], 0]]].toarray().ravel()
    scores[part] = targets[pairs[part, 1]] @ query


def fuse(scores: Sequence[np.ndarray], weights: Sequence[float]) -> np.ndarray:
    """Add the scores of several systems with weights, and round for the rule of ties.

    Parameters
    ----------
    scores : an array (Q, T) float32 for each system; the first one is overwritten
    weights : a weight for each system; they are not scaled to sum to 1

    Returns
    -------
    (Q, T) float32, the first array
    """
    total = torch.from_numpy(scores[0]).mul_(weights[0])
    for system_scores, weight in zip(scores[1:], weights[1:], strict=True):
        total.add_(torch.from_numpy(system_scores), alpha=weight)
    return round_in_place(total).numpy()
