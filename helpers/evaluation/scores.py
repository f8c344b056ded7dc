r"""Scores as functions of arrays: products of rows, one rule for ties, and their normalisation.

A :class:`Gallery` holds the rows of targets, and the statistics that normalise their scores.

The score of two unit rows is their product. Rows of an encoder with ``unit = False`` score minus
their distance.

**Ties.** Scores are rounded to multiples of 2**-20, because smaller differences in float32 depend
only on the order in which a product was summed. Targets with equal scores are tied, and their
positions never decide. A target of another author that scores as high as the right one is ranked
before it (:func:`helpers.evaluation.ranking.best_ranks`), and no threshold separates them.

**Normalisation** needs no labels. The same score is strong evidence for a query that resembles
nobody, and weak evidence for one that resembles everybody. *s-norm* (symmetric normalisation, from
speaker recognition) compares it with other scores of the same query and target,

.. math:: s'(q, t) = (s(q, t) - \mu_q) / \sigma_q + (s(q, t) - \mu_t) / \sigma_t

The statistics are those of the gallery's targets, or of a cohort of training authors. *AS-norm*
(adaptive s-norm, Matejka et al. 2017) takes them from the nearest samples only: from NEAREST of a
cohort, or from NEIGHBOURS of the gallery, after s-norm by the whole gallery. So a score counts as
far as it stands out among those of colleagues who write about the same things.
Statistics are arrays (2, N): for each of N samples the mean of its scores, and the scale 1 / their
standard deviation. The scale is 0 where the scores do not spread.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..encoders.base import Encoder
from .trials import as_bool

GRID = 2.0**20  # scores are multiples of 1 / GRID
BLOCK = 2**22  # scores that are held at a time, 16 MB; of a fusion, for each of its encoders
MIN_BLOCK_ROWS = 160  # queries of a block at least: products of fewer rows take longer
FREQUENT = 0.1  # share of the targets that have a column which is multiplied as a dense one
PAIRS = 2**14  # listed pairs multiplied at a time

# Targets at most from whose scores statistics are computed. So they cost as much as the accounts
# times MAX_REFERENCES, and not the square of the accounts, where only some pairs are scored.
MAX_REFERENCES = 4096
NEAREST = 300  # members of a cohort that give the statistics of a sample
NEIGHBOURS = 30  # accounts of a gallery that give the statistics of a sample,
NEIGHBOUR_SHARE = 0.1  # and at most this share of the gallery
# The nearest scores spread at least by this share of the spread of all. Those of a system of few
# values, such as the hour profile, are nearly equal, and would make every difference a large one.
LEAST_SPREAD = 0.5
MIN_SPREAD = 1e-5  # if a sample's scores spread less, their scale is 0

Rows = Tensor | sparse.csr_matrix
Blocks = Iterator[tuple[slice, np.ndarray]]  # slices of queries, each with the scores of these


def round_scores(scores: np.ndarray) -> np.ndarray:
    """Return scores as float32, rounded to multiples of 2**-20, as they are compared."""
    return (np.rint(scores * GRID) / GRID).astype(np.float32, copy=False)


def refuse_nan(values: np.ndarray, kind: str = "scores") -> None:
    """Raise ValueError where a value is NaN: it is neither higher nor lower than any other.

    Parameters
    ----------
    values : array of any shape
    kind : what the values are, for the message
    """
    count = np.isnan(values).sum()
    if count:
        raise ValueError(f"{count} of {np.size(values)} {kind} are no numbers (NaN)")


def best_ranks(scores: np.ndarray, is_own: np.ndarray) -> np.ndarray:
    """Return the rank of each query's best target of its own author.

    It is 1 + the number of other authors' targets with the same score or a higher one.

    Parameters
    ----------
    scores : (Q, T), Q queries and T targets
    is_own : (Q, T) bool, whether a target is of the query's author; one with a target that is not
        compared (-inf) and no other has the last rank of all

    Returns
    -------
    (Q,) int, from 1 on; T + 1 of a query without a target of its author

    Raises
    ------
    ValueError
        If a score is NaN, or as :func:`helpers.evaluation.trials.as_bool`.
    """
    refuse_nan(scores)
    is_own = as_bool(is_own, scores.shape)
    best = scores.max(1, keepdims=True, where=is_own, initial=-np.inf)
    return 1 + ((scores >= best) & ~is_own).sum(1)


def as_rows(rows: np.ndarray | Tensor | sparse.spmatrix) -> Rows:
    """Return vectors (N, D) as a float32 tensor, or as a CSR matrix if they are sparse."""
    if sparse.issparse(rows):
        return rows.tocsr().astype(np.float32, copy=False)
    return torch.as_tensor(rows).float()


def cosine(queries: Rows, targets: Rows, unit: bool = True) -> np.ndarray:
    """Score every query with every target by product or distance, rounded for the rule of ties.

    Parameters
    ----------
    queries, targets : (Q, D) and (T, D), rows of :func:`as_rows`
    unit : whether rows are compared by product, else by minus the Euclidean distance, in double
        precision; sparse rows are always compared by product

    Returns
    -------
    (Q, T) float32
    """
    if sparse.issparse(targets):
        queries = queries.astype(np.float64)
        if min(queries.shape[0], targets.shape[0]) < MIN_BLOCK_ROWS:
            return round_scores((queries @ targets.T).toarray())
        return round_scores(_product_of_many(queries, targets))
    if unit:
        scores = queries @ targets.T
    else:
        scores = -torch.cdist(queries.double(), targets.double())
    return scores.mul_(GRID).round_().div_(GRID).float().numpy()  # in place: less memory to pass


def _product_of_many(queries, targets):
    """Return the products (Q, T) of many sparse rows.

    Columns that many targets have are multiplied as dense ones, which takes a third of the time.
    """
    count, width = targets.shape
    is_frequent = np.bincount(targets.indices, minlength=width) > FREQUENT * count
    product = (queries[:, ~is_frequent] @ targets[:, ~is_frequent].T).toarray()
    frequent = np.flatnonzero(is_frequent)
    for columns in np.array_split(frequent, len(frequent) * count // BLOCK + 1):
        product += queries[:, columns].toarray() @ targets[:, columns].toarray().T
    return product


def score_blocks(queries: Rows, targets: Rows, unit: bool = True) -> Blocks:
    """Score every query with every target by :func:`cosine`, about BLOCK scores at a time.

    Parameters
    ----------
    queries, targets : (Q, D) and (T, D), rows of :func:`as_rows`
    unit : how rows are compared, see :func:`cosine`

    Yields
    ------
    A slice of q queries, and their scores (q, T) float32
    """
    count = queries.shape[0]
    step = max(MIN_BLOCK_ROWS, BLOCK // max(targets.shape[0], 1))
    for begin in range(0, count, step):
        part = slice(begin, min(begin + step, count))
        yield part, cosine(queries[part], targets, unit)


def pair_scores(queries: Rows, targets: Rows, pairs: np.ndarray, unit: bool = True) -> np.ndarray:
    """Score listed pairs only, and round for the rule of ties.

    Parameters
    ----------
    queries, targets : (Q, D) and (T, D), rows of :func:`as_rows`
    pairs : (N, 2), row of the query and row of the target of N pairs
    unit : how rows are compared, see :func:`cosine`

    Returns
    -------
    (N,) float32
    """
    scores = []
    for part in np.array_split(pairs, len(pairs) // PAIRS + 1):
        left = queries[part[:, 0]]
        right = targets[part[:, 1]]
        if sparse.issparse(left):
            scores.append(np.asarray(left.multiply(right).sum(1)).ravel())
        elif unit:
            scores.append((left.double() * right).sum(1))
        else:
            scores.append(-(left.double() - right).norm(dim=1))
    return round_scores(np.concatenate(scores))


def fuse(scores: Sequence[np.ndarray], weights: Sequence[float]) -> np.ndarray:
    """Add the scores of several systems with weights, and round for the rule of ties.

    Parameters
    ----------
    scores : an array of one shape, float32, for each system
    weights : a weight for each system; they are not scaled to sum to 1

    Returns
    -------
    float32, of the shape of each
    """
    total = np.zeros_like(scores[0])
    for system_scores, weight in zip(scores, weights, strict=True):
        total += np.float32(weight) * system_scores
    return round_scores(total)


def s_norm(scores: np.ndarray, of_queries: np.ndarray, of_targets: np.ndarray) -> np.ndarray:
    """Normalise every score by the statistics of its query and of its target.

    Parameters
    ----------
    scores : (Q, T) float32, Q queries and T targets; or (N,), scores of N pairs
    of_queries, of_targets : (2, Q) and (2, T) float64, statistics of queries and targets; or both
        (2, N), those of the query and of the target of each pair

    Returns
    -------
    (Q, T) or (N,) float32, rounded for the rule of ties
    """
    mean_q, scale_q = of_queries
    if scores.ndim == 2:
        mean_q, scale_q = of_queries[:, :, None]
    mean_t, scale_t = of_targets
    return round_scores(scores * (scale_q + scale_t) - (mean_q * scale_q + mean_t * scale_t))


def statistics(
    scores: np.ndarray, own_column: np.ndarray | None = None, nearest: int | None = None
) -> np.ndarray:
    """Return mean and 1 / standard deviation of each row of scores.

    Parameters
    ----------
    scores : (N, T) float32, scores of N samples with T targets
    own_column : (N,), for each sample its index among the targets, whose score is left out; -1 if
        it is none of them, as all are by default
    nearest : number of highest scores of a row that count; all by default

    Returns
    -------
    (2, N) float64: the means, and the scales as in the module's docstring
    """
    compared = np.full(len(scores), scores.shape[1])
    if own_column is not None:
        row = np.flatnonzero(own_column >= 0)
        compared[row] = max(scores.shape[1] - 1, 1)
        scores = scores.copy()
        scores[row, own_column[row]] = 0 if nearest is None else -np.inf  # adds nothing, is last
    if nearest is not None:
        compared = min(nearest, *compared)
        scores = np.partition(scores, -compared, 1)[:, -compared:]
    mean = scores.sum(1, dtype=np.float64) / compared
    square = np.einsum("nt,nt->n", scores, scores, dtype=np.float64) / compared
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    scale = np.where(spread > MIN_SPREAD, 1 / np.maximum(spread, MIN_SPREAD), 0)
    return np.stack([mean, scale])


def neighbour_statistics(
    scores: np.ndarray, own_column: np.ndarray | None = None, neighbours: int | None = None
) -> np.ndarray:
    """Return the statistics of each row's nearest targets, which spread at least by LEAST_SPREAD.

    Parameters
    ----------
    scores, own_column : as in :func:`statistics`, of the T targets of a gallery
    neighbours : number of nearest targets; by default NEIGHBOURS, at most NEIGHBOUR_SHARE of T

    Returns
    -------
    (2, N) float64
    """
    if neighbours is None:
        neighbours = max(min(NEIGHBOURS, round(NEIGHBOUR_SHARE * scores.shape[1])), 1)
    largest_scale = statistics(scores, own_column)[1] / LEAST_SPREAD
    mean, scale = statistics(scores, own_column, neighbours)
    # nearest ones that do not spread at all have the scale 0
    scale = np.where(scale > 0, np.minimum(scale, largest_scale), largest_scale)
    return np.stack([mean, scale])


def neighbour_norm(scores: np.ndarray, neighbours: int | None = None) -> np.ndarray:
    """Normalise the scores of a list of accounts with itself by AS-norm, the list as cohort.

    Every account is query and target at once, so each knows its nearest neighbours.

    Parameters
    ----------
    scores : (N, N) float32, symmetric; the diagonal is not read
    neighbours : number of nearest accounts, see :func:`neighbour_statistics`

    Returns
    -------
    (N, N) float32
    """
    of_accounts = neighbour_statistics(scores, np.arange(len(scores)), neighbours)
    return s_norm(scores, of_accounts, of_accounts)


def reference_targets(
    count: int,
    reference: np.ndarray | None = None,
    max_references: int = MAX_REFERENCES,
    seed: int = 0,
) -> np.ndarray:
    """Choose the targets from whose scores statistics are computed, of queries and of targets.

    They are all targets of a gallery of up to ``max_references``; of a larger one, so many are
    drawn.

    Parameters
    ----------
    count : number of targets
    reference : (T,) bool, the targets to choose from; all by default
    max_references : number of targets to choose at most
    seed : seed of the draw

    Returns
    -------
    Their numbers, ascending
    """
    chosen = np.arange(count)
    if reference is not None:
        chosen = np.flatnonzero(reference)
    if len(chosen) <= max_references:
        return chosen
    return np.sort(np.random.default_rng(seed).permutation(chosen)[:max_references])


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
    nearest : number of references that give the statistics of s-norm; None for all
    neighbours : number of nearest references for AS-norm by the gallery; None where the gallery's
        size decides
    of_targets : (S, 2, T) statistics of the targets at each of S steps of normalising: none for raw
        scores, one for s-norm and for a cohort, two for AS-norm by the gallery
    """

    encoder: Encoder
    rows: Rows
    references: Rows | None = None
    place: np.ndarray | None = None
    nearest: int | None = None
    neighbours: int | None = None
    of_targets: np.ndarray | None = None

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
        place = np.full(rows.shape[0], -1)
        if cohort is None:
            chosen = reference_targets(len(place), reference)
            place[chosen] = np.arange(len(chosen))
            gallery = cls(encoder, rows, rows[chosen], place, None, neighbours)
        else:
            gallery = cls(encoder, rows, cohort, place, NEAREST)
        for step in range(steps + 1):
            gallery = replace(gallery, of_targets=gallery._statistics(rows, place, step))
        return gallery

    def step_scores(
        self, queries: Rows, own_column: np.ndarray
    ) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Yield blocks of scores at each step: raw ones, s-norm, AS-norm.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        own_column : (Q,), for each query its index among the targets, or -1 if it is none. Such a
            query is normalised by that target's statistics, which leave out its score with itself.

        Yields
        ------
        A slice of q queries, and their scores (q, T) float32 at each step
        """
        of_queries = self.query_statistics(queries, own_column)
        for part, scores in score_blocks(queries, self.rows, self.encoder.unit):
            yield part, normalise(scores, of_queries[:, :, part], self.of_targets)

    def pair_scores(self, queries: Rows, pairs: np.ndarray) -> list[np.ndarray]:
        """Return the scores (N,) of listed pairs at each step: raw ones, s-norm, AS-norm.

        Queries are compared with the references only.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        pairs : (N, 2), row of the query and row of the target
        """
        query, target = pairs.T
        of_queries = self.query_statistics(queries, np.full(queries.shape[0], -1))
        scores = pair_scores(queries, self.rows, pairs, self.encoder.unit)
        return normalise(scores, of_queries[:, :, query], self.of_targets[:, :, target])

    def line(
        self, query: Rows, column: int, own_column: int, steps: int = -1
    ) -> tuple[float, float]:
        """Return slope and offset that turn the raw score of a pair into its normalised one.

        Without a normalisation they are 1 and 0.

        Parameters
        ----------
        query : (1, D) row of the query
        column : index of the target
        own_column : index of the query among the targets, or -1 if it is none
        steps : how often scores are normalised; by default as often as the gallery can
        """
        of_query = self.query_statistics(query, np.array([own_column]))
        of_target = self.of_targets[:, :, [column]]
        ends = normalise(np.array([[0.0, 1.0]]), of_query, of_target)[steps]
        at_0, at_1 = ends.ravel().tolist()
        return at_1 - at_0, at_0

    def query_statistics(self, queries: Rows, own_column: np.ndarray) -> np.ndarray:
        """Return the statistics (S, 2, Q) of queries at each step.

        Parameters
        ----------
        queries, own_column : as in :meth:`step_scores`
        """
        if (own_column >= 0).all():
            return self.of_targets[:, :, own_column]
        nowhere = np.full(queries.shape[0], -1)
        of_queries = self._statistics(queries, nowhere, len(self.of_targets))
        return np.where(own_column < 0, of_queries, self.of_targets[:, :, own_column])

    def _statistics(self, rows, place, steps):
        """Return the statistics (S, 2, N) of rows at so many steps.

        ``place`` is their own number among the references, whose score is left out, or -1.
        """
        if not steps:
            return np.empty((0, 2, rows.shape[0]))
        blocks = []
        for part, scores in score_blocks(rows, self.references, self.encoder.unit):
            of_rows = [statistics(scores, place[part], self.nearest)]
            if steps > 1:
                scores = s_norm(scores, of_rows[0], self.of_targets[0][:, self.place >= 0])
                of_rows.append(neighbour_statistics(scores, place[part], self.neighbours))
            blocks.append(of_rows)
        return np.concatenate(blocks, -1)


def normalise(
    scores: np.ndarray, of_queries: np.ndarray, of_targets: np.ndarray
) -> list[np.ndarray]:
    """Return scores at each of S steps of :func:`s_norm`: raw ones, s-norm, AS-norm.

    Parameters
    ----------
    scores : (Q, T) or (N,) float32
    of_queries, of_targets : (S, 2, Q) and (S, 2, T), or both (S, 2, N), see :func:`s_norm`
    """
    steps = [scores]
    for of_query, of_target in zip(of_queries, of_targets, strict=True):
        steps.append(s_norm(steps[-1], of_query, of_target))
    return steps
