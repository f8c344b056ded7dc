"""The embedded targets of one member, with the statistics that normalise their scores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from scipy import sparse

from ..encoders.base import Encoder
from .score_norm import (
    MAX_REFERENCES,
    cohort_statistics,
    gallery_statistics,
    neighbour_statistics,
    reference_statistics,
    s_norm,
    s_norm_pairs,
    statistics,
)
from .scores import Rows, SplitRows, pair_scores, score_blocks

# slices of queries, each with the scores of these queries
Blocks = Iterator[tuple[slice, np.ndarray]]
MAX_KEPT_TARGETS = 2048  # of a gallery whose scores with itself are kept for a moment


@dataclass(frozen=True, eq=False)
class Gallery:
    """The embedded targets of one member, with their statistics, to score queries against.

    Attributes
    ----------
    encoder : the member's encoder; where each gallery fits its own, the one fitted on these targets
    rows : (T, D) rows of the targets
    statistics : (2, T) statistics of the targets, see :mod:`helpers.evaluation.score_norm`; None
        for raw scores
    neighbours : (2, T) statistics of the targets' nearest targets after s-norm, for AS-norm by the
        gallery; else None
    cohort : (C, D) rows of the cohort, for AS-norm by a cohort; else None
    reference : (R,) numbers of the targets from whose scores statistics are computed; None for raw
        scores and with a cohort
    nearest : number of nearest targets whose scores give ``neighbours``; None where the gallery's
        size decides
    """

    encoder: Encoder
    rows: Rows
    statistics: np.ndarray | None = None
    neighbours: np.ndarray | None = None
    cohort: Rows | None = None
    reference: np.ndarray | None = None
    nearest: int | None = None

    @property
    def unit(self) -> bool:
        """Whether rows are compared by product, else by Euclidean distance."""
        return getattr(self.encoder, "unit", True)

    @property
    def statistics_key(self) -> tuple[bytes, int | None]:
        """What is equal for galleries with the same reference and nearest targets, hashable."""
        reference = b"" if self.reference is None else self.reference.tobytes()
        return reference, self.nearest

    @property
    def is_large(self) -> bool:
        """Whether time counts more than the last bit of a score, see SplitRows."""
        return self.rows.shape[0] > MAX_REFERENCES

    @cached_property
    def reference_rows(self) -> Rows | SplitRows:
        """Rows (R, D) of the targets from whose scores statistics are computed."""
        if len(self.reference) == self.rows.shape[0]:
            return self.rows
        rows = self.rows[self.reference]
        if self.is_large and sparse.issparse(rows):
            return SplitRows.of(rows)
        return rows

    def scores(self, queries: Rows, own_column: np.ndarray | None = None) -> Blocks:
        """Yield blocks of normalised scores.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        own_column : (Q,), for each query its index among the targets, or -1 if it is none. Such a
            query is normalised by that target's statistics, which leave out its score with itself.
            Ignored with a cohort and without s-norm.

        Yields
        ------
        A slice of q queries, and their scores (q, T) float32; the next block overwrites this array.
        """
        blocks = score_blocks(queries, self.rows, self.unit)
        if self.statistics is None:
            yield from blocks
            return
        if self.cohort is not None:
            of_queries = cohort_statistics(queries, self.cohort, self.unit)
            for part, scores in blocks:
                yield part, s_norm(scores, of_queries[:, part], self.statistics)
            return
        if own_column is None:
            own_column = np.full(queries.shape[0], -1)
        for part, scores in blocks:
            column = own_column[part]
            of_block = self._of_queries(self._reference_scores(scores), column)
            s_norm(scores, of_block, self.statistics)
            if self.neighbours is not None:
                near_block = self._of_neighbours(self._reference_scores(scores), column)
                s_norm(scores, near_block, self.neighbours)
            yield part, scores

    def raw_pair_scores(self, queries: Rows, pairs: np.ndarray) -> np.ndarray:
        """Return the scores (N,) of listed pairs before they are normalised.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        pairs : (N, 2), row of the query and row of the target
        """
        return pair_scores(queries, self.rows, pairs, self.unit, by_query=self.is_large)

    def normalised_pairs(
        self, scores: np.ndarray, of_queries: list[np.ndarray], pairs: np.ndarray
    ) -> np.ndarray:
        """Normalise the scores (N,) of listed pairs.

        Parameters
        ----------
        scores, pairs : as in :meth:`raw_pair_scores`
        of_queries : result of :meth:`query_statistics`, perhaps of a gallery with ``neighbours``
            where this one has none
        """
        if self.statistics is None:
            return scores
        scores = s_norm_pairs(scores, of_queries[0], self.statistics, pairs)
        if self.neighbours is None:
            return scores
        return s_norm_pairs(scores, of_queries[1], self.neighbours, pairs)

    def line(self, query: Rows, column: int, own_column: int) -> tuple[float, float]:
        """Return slope and offset that turn the raw score of a pair into its normalised one.

        Without a normalisation they are 1 and 0.

        Parameters
        ----------
        query : (1, D) row of the query
        column : index of the target
        own_column : index of the query among the targets, or -1 if it is none; ignored with a
            cohort
        """
        if self.statistics is None:
            return 1.0, 0.0
        of_query = self.query_statistics(query, np.array([own_column]))
        slope, offset = _line(of_query[0][:, 0], self.statistics[:, column])
        if self.neighbours is None:
            return slope, offset
        near_slope, near_offset = _line(of_query[1][:, 0], self.neighbours[:, column])
        return slope * near_slope, offset * near_slope + near_offset

    def query_statistics(
        self, queries: Rows, own_column: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """Return the statistics (2, Q) of queries, and for AS-norm those of their nearest targets.

        Queries are compared with the reference targets only, or with the cohort. Without a
        normalisation there are no statistics.

        Parameters
        ----------
        queries, own_column : as in :meth:`scores`
        """
        if self.statistics is None:
            return []
        if self.cohort is not None:
            return [cohort_statistics(queries, self.cohort, self.unit)]
        of_references = self.statistics[:, self.reference]
        sides = (queries, self.reference_rows, of_references)
        near = self.neighbours is not None
        of_queries = reference_statistics(
            *sides, unit=self.unit, near=near, neighbours=self.nearest
        )
        if own_column is None:
            return of_queries
        of_targets = [self.statistics, self.neighbours]
        return [
            np.where(own_column < 0, values, values_of_targets[:, own_column])
            for values, values_of_targets in zip(of_queries, of_targets)
        ]

    def with_statistics(self, near: bool) -> "Gallery":
        """Return the gallery with the statistics of its targets.

        Parameters
        ----------
        near : whether those of the nearest targets are needed, too
        """
        count = self.rows.shape[0]
        split = None
        if isinstance(self.reference_rows, SplitRows):
            split = self.reference_rows
        blocks = None
        if near and len(self.reference) == count <= MAX_KEPT_TARGETS:
            blocks = score_blocks(self.rows, self.rows, self.unit)
            blocks = [(part, scores.copy()) for part, scores in blocks]
        of_references = gallery_statistics(self.rows[self.reference], self.unit, split, blocks)
        if len(self.reference) == count and not near:
            return replace(self, statistics=of_references)
        own_column = np.full(count, -1)
        own_column[self.reference] = np.arange(len(self.reference))
        sides = (self.rows, self.reference_rows, of_references)
        of_targets = reference_statistics(*sides, own_column, self.unit, near, blocks, self.nearest)
        of_targets[0][:, self.reference] = of_references
        return replace(self, **dict(zip(("statistics", "neighbours"), of_targets)))

    def exchanged(self, columns: np.ndarray, new_rows: Rows) -> "Gallery":
        """Return a gallery in which new rows, at the end, replace those of some targets.

        The statistics of all other targets stay. They would change by the scores of N of T targets;
        to compute them again takes T / N times as long.

        Parameters
        ----------
        columns : (N,) indices of the targets that are replaced
        new_rows : (N, D) rows of those that replace them, in the same order
        """
        kept = np.setdiff1d(np.arange(self.rows.shape[0]), columns)
        order = np.append(kept, columns)
        gallery = replace(self, rows=_stacked(self.rows[kept], new_rows))
        if self.statistics is None:
            return gallery
        if self.cohort is not None:
            of_new = cohort_statistics(new_rows, self.cohort, self.unit)
            of_targets = np.hstack([self.statistics[:, kept], of_new])
            return replace(gallery, statistics=of_targets)

        reference = np.flatnonzero(np.isin(order, self.reference))
        gallery = replace(gallery, reference=reference)
        new_columns = np.arange(len(kept), len(order))
        own_column = np.where(
            np.isin(new_columns, reference), np.searchsorted(reference, new_columns), -1
        )
        sides = (new_rows, gallery.reference_rows)
        of_targets = self.statistics[:, order]
        (of_new,) = reference_statistics(
            *sides, of_targets[:, reference], own_column, self.unit, near=False
        )
        of_targets[:, new_columns] = of_new
        gallery = replace(gallery, statistics=of_targets)
        if self.neighbours is None:
            return gallery
        _, near_new = reference_statistics(
            *sides, of_targets[:, reference], own_column, self.unit, True, neighbours=self.nearest
        )
        near_targets = np.hstack([self.neighbours[:, kept], near_new])
        return replace(gallery, neighbours=near_targets)

    # statistics of queries, from their scores with the reference targets or, of targets, as the
    # gallery has them
    def _of_queries(self, scores, own_column):
        of_queries = statistics(scores)
        return np.where(own_column < 0, of_queries, self.statistics[:, own_column])

    # the same of their nearest targets, from s-normed scores
    def _of_neighbours(self, scores, own_column):
        of_queries = neighbour_statistics(scores, neighbours=self.nearest)
        return np.where(own_column < 0, of_queries, self.neighbours[:, own_column])

    def _reference_scores(self, scores):
        if len(self.reference) == scores.shape[1]:
            return scores
        return np.take(scores, self.reference, 1)


def _stacked(rows, more_rows):
    """Return rows (N, D) and (M, D), dense or sparse, as (N + M, D)."""
    if sparse.issparse(rows):
        return sparse.vstack([rows, more_rows], format="csr")
    return torch.cat([rows, more_rows])


# slope and offset of s-norm for the statistics (2,) of a query and of a target
def _line(of_query, of_target):
    mean_q, scale_q = of_query
    mean_t, scale_t = of_target
    return scale_q + scale_t, -(mean_q * scale_q + mean_t * scale_t)
