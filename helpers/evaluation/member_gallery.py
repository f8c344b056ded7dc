"""The embedded targets of one member, with the statistics that normalise their scores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from ..encoders.base import Encoder
from .scores import (
    FREQUENT_SHARE,
    MAX_REFERENCES,
    NEAREST,
    Rows,
    SplitRows,
    cosine,
    neighbour_statistics,
    pair_scores,
    s_norm,
    score_blocks,
    statistics,
)


@dataclass(frozen=True, eq=False)
class Gallery:
    """The embedded targets of one member, with what normalises the scores of queries.

    Attributes
    ----------
    encoder : the member's encoder; where each gallery fits its own, the one fitted on these targets
    rows : (T, D) rows of the targets
    references : (R, D) rows from whose scores statistics are computed, of targets or of a cohort;
        None for raw scores
    place : (T,) number of each target among the references, -1 if it is none; None for raw scores
        and with a cohort
    neighbours : number of nearest references for AS-norm by the gallery; None where the gallery's
        size decides
    of_targets : statistics (2, T) of the targets at each step of normalising, see
        :mod:`helpers.evaluation.scores`: none for raw scores, one for s-norm and for a cohort, two
        for AS-norm by the gallery
    """

    encoder: Encoder
    rows: Rows
    references: Rows | SplitRows | None = None
    place: np.ndarray | None = None
    neighbours: int | None = None
    of_targets: tuple[np.ndarray, ...] = ()

    @property
    def unit(self) -> bool:
        """Whether rows are compared by product, else by Euclidean distance."""
        return getattr(self.encoder, "unit", True)

    @cached_property
    def _targets(self):
        if sparse.issparse(self.rows):
            return SplitRows.of(self.rows)
        return self.rows

    @cached_property
    def _columns(self):
        """The targets that are references; all of them without a copy of the scores."""
        if (self.place >= 0).all():
            return slice(None)
        return np.flatnonzero(self.place >= 0)

    def with_statistics(self, steps: int) -> "Gallery":
        """Return the gallery with the statistics of its targets for so many steps."""
        gallery = self
        for step in range(steps):
            of_targets = gallery._statistics(self.rows, self.place, step + 1)
            gallery = replace(gallery, of_targets=of_targets)
        return gallery

    def scores(
        self, queries: Rows, own_column: np.ndarray | None = None
    ) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Yield blocks of scores at each step: raw ones, and those that each step has normalised.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        own_column : (Q,), for each query its index among the targets, or -1 if it is none. Such a
            query is normalised by that target's statistics, which leave out its score with itself.
            Ignored with a cohort and without s-norm.

        Yields
        ------
        A slice of q queries, and a list of their scores (q, T) float32
        """
        if own_column is None:
            own_column = np.full(queries.shape[0], -1)
        for part, scores in score_blocks(queries, self._targets, self.unit):
            steps = [scores]
            for step, of_targets in enumerate(self.of_targets):
                if self.place is None:
                    compared = cosine(queries[part], self.references, self.unit)
                else:
                    compared = steps[-1][:, self._columns]
                of_queries = self._statistics_of_scores(compared, step)
                of_queries = self._with_own(of_queries, step, own_column[part])
                steps.append(s_norm(steps[-1], of_queries, of_targets))
            yield part, steps

    def pair_scores(self, queries: Rows, pairs: np.ndarray) -> list[np.ndarray]:
        """Return the scores (N,) of listed pairs at each step, as :meth:`scores` does.

        Queries are compared with the references only.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        pairs : (N, 2), row of the query and row of the target
        """
        steps = [pair_scores(queries, self.rows, pairs, self.unit)]
        query, target = pairs.T
        of_queries = self.query_statistics(queries)
        for of_query, of_target in zip(of_queries, self.of_targets):
            steps.append(s_norm(steps[-1], of_query[:, query], of_target[:, target]))
        return steps

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
        slope = 1.0
        offset = 0.0
        of_queries = self.query_statistics(query, np.array([own_column]))
        for of_query, of_target in zip(of_queries, self.of_targets):
            mean_q, scale_q = of_query[:, 0]
            mean_t, scale_t = of_target[:, column]
            slope *= scale_q + scale_t
            offset = offset * (scale_q + scale_t) - (mean_q * scale_q + mean_t * scale_t)
        return slope, offset

    def query_statistics(
        self, queries: Rows, own_column: np.ndarray | None = None
    ) -> tuple[np.ndarray, ...]:
        """Return the statistics (2, Q) of queries at each step.

        Parameters
        ----------
        queries, own_column : as in :meth:`scores`
        """
        if own_column is None:
            own_column = np.full(queries.shape[0], -1)
        of_queries = self._statistics(queries, None, len(self.of_targets))
        return tuple(
            self._with_own(of_query, step, own_column) for step, of_query in enumerate(of_queries)
        )

    def _statistics(self, rows, own_column, steps):
        """Return the statistics (2, N) of rows at so many steps.

        ``own_column`` is their own number among the references, whose score is left out.
        """
        if not steps:
            return ()
        blocks = []
        for part, scores in score_blocks(rows, self.references, self.unit):
            own = None if own_column is None else own_column[part]
            of_rows = [self._statistics_of_scores(scores, 0, own)]
            if steps > 1:
                scores = s_norm(scores, of_rows[0], self.of_targets[0][:, self._columns])
                of_rows.append(self._statistics_of_scores(scores, 1, own))
            blocks.append(of_rows)
        return tuple(np.hstack(of_step) for of_step in zip(*blocks))

    def _statistics_of_scores(self, scores, step, own_column=None):
        if self.place is None:
            return statistics(scores, nearest=NEAREST)
        if step == 0:
            return statistics(scores, own_column)
        return neighbour_statistics(scores, own_column, self.neighbours)

    def _with_own(self, of_queries, step, own_column):
        """Return the statistics of queries, those of the target where a query is one."""
        if self.place is None:
            return of_queries
        return np.where(own_column < 0, of_queries, self.of_targets[step][:, own_column])


def references_of(rows, reference):
    """Return the fields ``references`` and ``place`` of a gallery.

    Parameters
    ----------
    rows : (T, D) rows of the targets
    reference : (R,) int, numbers of the targets from whose scores statistics are computed
    """
    place = np.full(rows.shape[0], -1)
    place[reference] = np.arange(len(reference))
    references = rows[reference]
    if sparse.issparse(rows) and rows.shape[0] > MAX_REFERENCES:
        references = SplitRows.of(references, FREQUENT_SHARE)
    return {"references": references, "place": place}
