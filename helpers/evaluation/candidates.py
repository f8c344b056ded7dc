"""Candidates: the pairs of two lists of accounts that may be partners, all or the best of each.

Of two lists with 100,000 accounts no matrix of scores fits into memory. So a list of pairs stands
for it, and whatever matches or ranks reads this list.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of a query and a target that may be partners; all other pairs are none.

    Attributes
    ----------
    pairs : (N, 2) int, row of the query and row of the target, in this order
    scores : (N,) float64, higher ones for likelier partners
    queries, targets : Q and T, numbers of accounts of both lists
    """

    pairs: np.ndarray
    scores: np.ndarray
    queries: int
    targets: int

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
        kept = ~np.isin(self._keys(self.pairs), self._keys(np.reshape(forbidden, (-1, 2))))
        return replace(self, pairs=self.pairs[kept], scores=self.scores[kept])

    def _keys(self, pairs):
        return np.asarray(pairs, np.int64) @ [self.targets, 1]


def all_candidates(scores: np.ndarray) -> Candidates:
    """Return all pairs of a matrix (Q, T) of scores that are above -inf."""
    scores = np.asarray(scores)
    pairs = np.argwhere(scores > -np.inf)
    return Candidates(pairs, scores[tuple(pairs.T)].astype(np.float64), *scores.shape)


def best_candidates(
    blocks: Iterable[tuple[slice, np.ndarray]], queries: int, targets: int, best: int
) -> Candidates:
    """Keep the best targets of each query and the best queries of each target.

    Memory holds one block of scores and about ``best`` pairs for every account.

    Parameters
    ----------
    blocks : slices of q queries with their scores (q, T), all queries in order; -inf for pairs that
        are none
    queries, targets : Q and T, numbers of accounts of both lists
    best : number of pairs that are kept of each account
    """
    of_queries = []
    of_targets = _Kept.none()
    lowest_kept = np.full(targets, -np.inf)  # score of the last pair that a target keeps
    for part, scores in blocks:
        of_queries.append(_above(scores, _best_of_rows(scores, best)[:, None], part.start))
        enough_for_target = np.maximum(_best_of_rows(scores.T, best), lowest_kept)
        of_targets = of_targets.joined(_above(scores, enough_for_target, part.start))
        of_targets, lowest_kept = of_targets.best_of_targets(best, targets)
    kept = of_targets
    for block in of_queries:
        kept = kept.joined(block)
    key, first = np.unique(kept.query * targets + kept.target, return_index=True)
    pairs = np.stack([key // targets, key % targets], 1)
    return Candidates(pairs, kept.score[first].astype(np.float64), queries, targets)


@dataclass(frozen=True, eq=False)
class _Kept:
    """Pairs that are kept so far, (N,) each."""

    query: np.ndarray
    target: np.ndarray
    score: np.ndarray

    @classmethod
    def none(cls):
        empty = np.empty(0, np.int64)
        return cls(empty, empty, np.empty(0, np.float32))

    def joined(self, other):
        names = ("query", "target", "score")
        columns = [np.append(getattr(self, name), getattr(other, name)) for name in names]
        return _Kept(*columns)

    def best_of_targets(self, best, targets):
        """Keep the best of each target; return them and the last kept score of each, or -inf."""
        order = np.lexsort((self.query, -self.score, self.target))
        target = self.target[order]
        first_of_target = np.searchsorted(target, np.arange(targets))
        rank = np.arange(len(target)) - first_of_target[target]
        lowest = np.full(targets, -np.inf)
        is_last = rank == best - 1
        lowest[target[is_last]] = self.score[order[is_last]]
        order = order[rank < best]
        return _Kept(self.query[order], self.target[order], self.score[order]), lowest


def _best_of_rows(scores, best):
    """Return the score of the last of the best of each row, or -inf of a shorter row."""
    count = scores.shape[1]
    if count <= best:
        return np.full(len(scores), -np.inf)
    return np.partition(scores, count - best, axis=1)[:, count - best]


def _above(scores, lowest, first_query):
    """Return the pairs of a block whose scores are at least the lowest, and above -inf."""
    query, target = np.nonzero((scores >= lowest) & (scores > -np.inf))
    return _Kept(query + first_query, target, scores[query, target])
