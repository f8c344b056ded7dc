"""Scores of pairs of rows: the one product, and the one rule for ties.

The score of two unit rows is their product. Rows of an encoder with ``unit = False`` score minus their distance.

**Ties.** A score is rounded to 2**-20, below which float32 only tells in which order a product was summed. Equal
scores are equal: the position of a target never decides. A target of another author that scores as high as the own
one comes first (pessimistic, :meth:`helpers.evaluation.ranking.PositiveTargets.ranks`), and no threshold parts them.
"""

from collections.abc import Iterator

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

GRID = 2.0**20
BLOCK = 2**24  # scores held at a time, 64 MB
TILE = 1024  # targets multiplied at a time: their scores stay in the cache until they are rounded
PAIRS = 2**14  # listed pairs multiplied at a time

Rows = Tensor | sparse.csr_matrix


def round_scores(scores: np.ndarray) -> np.ndarray:
    """Scores as they are compared: float32, multiples of 2**-20."""
    return np.asarray(np.rint(np.asarray(scores) * GRID) / GRID, np.float32)


def round_in_place(scores: Tensor) -> Tensor:
    """The same of a tensor, which is overwritten."""
    return scores.mul_(GRID).round_().mul_(1 / GRID)


def score_moments(scores: np.ndarray, axis: int) -> np.ndarray:
    """Sums and sums of squares of scores (q, T) along an axis, (2, T) or (2, q) float64, tile by tile."""
    tiles = (tile.double() for tile in torch.from_numpy(scores).split(TILE, 1))
    parts = [torch.stack([tile.sum(axis), tile.square_().sum(axis)]) for tile in tiles]
    return (torch.cat(parts, 1) if axis == 0 else torch.stack(parts).sum(0)).numpy()


def as_rows(rows: np.ndarray | Tensor | sparse.spmatrix) -> Rows:
    """Embedded samples as float32 tensor or CSR matrix. Raises ValueError for values that are not finite."""
    rows = (
        rows.tocsr().astype(np.float32) if sparse.issparse(rows) else torch.as_tensor(rows).float()
    )
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows.numpy()).all():
        raise ValueError("embeddings hold values that are not finite")
    return rows


def score_blocks(
    queries: Rows, targets: Rows, unit: bool = True
) -> Iterator[tuple[slice, np.ndarray]]:
    """Rounded scores of every query (Q, D) with every target (T, D), both of :func:`as_rows`.

    Yields slices of the queries with their scores (q, T), float32, which the next block overwrites; as many at a time
    as BLOCK allows. unit: compare by product, else by Euclidean distance, in double precision.
    """
    if queries.shape[1] != targets.shape[1] or sparse.issparse(queries) != sparse.issparse(targets):
        raise ValueError(
            f"queries {tuple(queries.shape)} and targets {tuple(targets.shape)} do not fit together"
        )
    count = targets.shape[0]
    step = max(1, BLOCK // max(count, 1))
    scores = torch.empty(min(step, queries.shape[0]), count)
    columns = targets.T.tocsr() if sparse.issparse(targets) else targets
    for begin in range(0, queries.shape[0], step):
        block = queries[begin : begin + step]
        result = scores[: block.shape[0]]
        if sparse.issparse(block):
            _sparse_product(block, columns, result.numpy())
        else:
            _dense_product(block, columns, unit, result)
        yield slice(begin, begin + block.shape[0]), result.numpy()


def _dense_product(block, targets, unit, result):
    scaled = block * GRID  # a power of two: no digit changes
    for begin in range(0, len(targets), TILE):
        part = targets[begin : begin + TILE]
        tile = scaled @ part.T if unit else -GRID * torch.cdist(block.double(), part.double())
        torch.mul(tile.round_(), 1 / GRID, out=result[:, begin : begin + TILE])


def _sparse_product(block, columns, result):
    for begin in range(0, len(result), 64):
        (block[begin : begin + 64] @ columns).toarray(out=result[begin : begin + 64])
        round_in_place(torch.from_numpy(result[begin : begin + 64]))


def pair_scores(queries: Rows, targets: Rows, pairs: np.ndarray, unit: bool = True) -> np.ndarray:
    """Rounded scores of listed pairs only, (N,) float32; pairs (N, 2): row of the query, row of the target."""
    scores = np.empty(len(pairs))
    for begin in range(0, len(pairs), PAIRS):
        part = slice(begin, begin + PAIRS)
        one, other = queries[pairs[part, 0]], targets[pairs[part, 1]]
        if sparse.issparse(one):
            scores[part] = np.asarray(one.multiply(other).sum(1)).ravel()
        elif unit:
            scores[part] = (one.double() * other).sum(1)
        else:
            scores[part] = -(one.double() - other).norm(dim=1)
    return round_scores(scores)
