"""The embedded targets of one member, with the statistics that normalise their scores."""

from dataclasses import dataclass, replace

import numpy as np

from ..encoders.base import Encoder
from .scores import (
    NEAREST,
    Blocks,
    Rows,
    neighbour_statistics,
    pair_scores,
    reference_targets,
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
    references: Rows | None = None
    place: np.ndarray | None = None
    neighbours: int | None = None
    of_targets: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        rows: Rows,
        steps: int,
        cohort: Rows | None = None,
        reference: np.ndarray | None = None,
        neighbours: int | None = None,
    ) -> "Gallery":
        """Make a gallery with the statistics of its targets.

        Parameters
        ----------
        encoder, rows, neighbours : see the class
        steps : how often scores are normalised; with a cohort once at most
        cohort : (C, D) rows of other samples, from whose scores the statistics are computed
        reference : (T,) bool, targets from whose scores they are computed; all by default; ignored
            with a cohort
        """
        gallery = cls(encoder, rows, neighbours=neighbours)
        if steps and cohort is not None:
            gallery = replace(gallery, references=cohort)
        elif steps:
            chosen = reference_targets(rows.shape[0], reference)
            place = np.full(rows.shape[0], -1)
            place[chosen] = np.arange(len(chosen))
            gallery = replace(gallery, references=rows[chosen], place=place)
        for step in range(steps):
            of_targets = gallery._statistics(rows, gallery.place, step + 1)
            gallery = replace(gallery, of_targets=of_targets)
        return gallery

    @property
    def unit(self) -> bool:
        """Whether rows are compared by product, else by Euclidean distance."""
        return getattr(self.encoder, "unit", True)

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
        A slice of q queries, and their scores (q, T) float32, which the next block may overwrite
        """
        of_queries = self.query_statistics(queries, own_column)
        for part, scores in score_blocks(queries, self.rows, self.unit):
            for of_query, of_target in zip(of_queries, self.of_targets):
                scores = s_norm(scores, of_query[:, part], of_target)
            yield part, scores

    def pair_scores(self, queries: Rows, pairs: np.ndarray) -> np.ndarray:
        """Return the normalised scores (N,) of listed pairs.

        Queries are compared with the references only.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        pairs : (N, 2), row of the query and row of the target
        """
        scores = pair_scores(queries, self.rows, pairs, self.unit)
        query, target = pairs.T
        of_queries = self.query_statistics(queries)
        for of_query, of_target in zip(of_queries, self.of_targets):
            scores = s_norm(scores, of_query[:, query], of_target[:, target])
        return scores

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
        of_queries = self._statistics(queries, None, len(self.of_targets))
        if own_column is None or self.place is None:
            return of_queries
        return tuple(
            np.where(own_column < 0, of_query, of_target[:, own_column])
            for of_query, of_target in zip(of_queries, self.of_targets)
        )

    def _statistics(self, rows, own_column, steps):
        """Return the statistics (2, N) of rows at so many steps.

        ``own_column`` is their own number among the references, whose score is left out.
        """
        if not steps:
            return ()
        blocks = []
        for part, scores in score_blocks(rows, self.references, self.unit):
            if self.place is None:
                blocks.append([statistics(scores, nearest=NEAREST)])
                continue
            own = None if own_column is None else own_column[part]
            of_rows = [statistics(scores, own)]
            if steps > 1:
                scores = s_norm(scores, of_rows[0], self.of_targets[0][:, self.place >= 0])
                of_rows.append(neighbour_statistics(scores, own, self.neighbours))
            blocks.append(of_rows)
        return tuple(np.hstack(of_step) for of_step in zip(*blocks))
