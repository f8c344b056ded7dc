"""Candidates: the pairs of two lists of accounts that may be partners, all or the best of each.

Of two lists with 100,000 accounts no matrix of scores fits into memory. So a list of pairs stands
for it, and whatever matches or ranks reads this list.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from .scores import refuse_nan


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of a query and a target that may be partners; all other pairs are none.

    Attributes
    ----------
    pairs : (N, 2) int, row of the query and row of the target, in this order
    scores : (N,) float64, higher ones for likelier partners; NaN is a ValueError
    queries, targets : Q and T, numbers of accounts of both lists
    """

    pairs: np.ndarray
    scores: np.ndarray
    queries: int
    targets: int

    def __post_init__(self):
        refuse_nan(self.scores)

    def __len__(self) -> int:
        return len(self.pairs)

    def with_scores(self, scores: np.ndarray) -> "Candidates":
        """Return the same pairs with other scores (N,)."""
        return replace(self, scores=np.asarray(scores, np.float64))

    def without(self, forbidden: np.ndarray) -> "Candidates":
        """Return the candidates without some pairs.

        Parameters
        ----------
        forbidden : (K, 2) int, pairs that cannot be partners; others than candidates are ignored
        """
        kept = ~np.isin(_keys(self.pairs), _keys(np.reshape(forbidden, (-1, 2))))
        return replace(self, pairs=self.pairs[kept], scores=self.scores[kept])


def _keys(pairs):
    """Return one number (N,) for each pair, another one for every other pair."""
    return np.asarray(pairs, np.int64) @ [2**32, 1]


def all_candidates(scores: np.ndarray) -> Candidates:
    """Return all pairs of a matrix (Q, T) of scores but those of -inf."""
    scores = np.asarray(scores)
    pairs = np.argwhere(scores != -np.inf)
    return Candidates(pairs, scores[tuple(pairs.T)].astype(np.float64), *scores.shape)


def best_candidates(
    blocks: Iterable[tuple[slice, np.ndarray]], queries: int, targets: int, best: int
) -> Candidates:
    """Keep the best targets of each query and the best queries of each target.

    All pairs with the score of the last of the best are kept, so that the order of accounts never
    decides. Memory holds one block of scores and a few times ``best`` pairs for every account.

    Parameters
    ----------
    blocks : slices of q queries with their scores (q, T), all queries in order; -inf for pairs that
        are none
    queries, targets : Q and T, numbers of accounts of both lists
    best : number of pairs that are kept of each account

    Raises
    ------
    ValueError
        If a score is NaN.
    """
    best_of_targets = np.full((targets, best), -np.inf, np.float32)
    columns = []
    for part, scores in blocks:
        refuse_nan(scores)
        lowest_of_query = _best_of_rows(scores, best).min(1)
        best_of_targets = _best_of_rows(np.hstack([best_of_targets, scores.T]), best)
        lowest = np.minimum(lowest_of_query[:, None], best_of_targets.min(1))
        query, target = np.nonzero((scores >= lowest) & (scores > -np.inf))
        kept = (query + part.start, target, scores[query, target], lowest_of_query[query])
        columns.append(kept)

    query, target, score, lowest_of_query = [np.concatenate(parts) for parts in zip(*columns)]
    # a target kept pairs that later queries surpassed
    kept = score >= np.minimum(lowest_of_query, best_of_targets.min(1)[target])
    pairs = np.stack([query[kept], target[kept]], 1)
    return Candidates(pairs, score[kept].astype(np.float64), queries, targets)


def _best_of_rows(scores, best):
    """Return the best scores of each row in any order, -inf where a row has fewer."""
    missing = best - scores.shape[1]
    if missing > 0:
        return np.pad(scores, ((0, 0), (0, missing)), constant_values=-np.inf)
    return np.partition(scores, -best, axis=1)[:, -best:]
