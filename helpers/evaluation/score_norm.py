r"""Normalisation of scores with statistics of a gallery or a cohort, which needs no labels.

The same score is strong evidence for a query that resembles nobody, and weak evidence for one that
resembles everybody. *s-norm* (symmetric normalisation, from speaker recognition) compares it with
other scores of the same query and target,

.. math:: s'(q, t) = (s(q, t) - \mu_q) / \sigma_q + (s(q, t) - \mu_t) / \sigma_t

The statistics are those of the gallery's targets, or of a cohort of training authors. *AS-norm*
(adaptive s-norm, Matejka et al. 2017) takes them from the nearest samples only: from NEAREST of a
cohort, or from NEIGHBOURS of the gallery, after s-norm by the whole gallery. So a score counts as
far as it stands out among those of colleagues who write about the same things.
Statistics are arrays (2, N): for each of N samples the mean of its scores, and the scale 1 / their
standard deviation. The scale is 0 where the scores do not spread.
"""

from collections.abc import Iterable

import numpy as np
import torch

from .scores import TILE, Rows, SplitRows, round_in_place, score_blocks, score_moments

# rows, and their scores with all references; perhaps many times
Blocks = Iterable[tuple[slice, np.ndarray]]

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


def s_norm(scores: np.ndarray, of_queries: np.ndarray, of_targets: np.ndarray) -> np.ndarray:
    """Normalise every score by the statistics of its query and of its target.

    Parameters
    ----------
    scores : (Q, T) float32, Q queries and T targets; overwritten
    of_queries, of_targets : (2, Q) and (2, T) float64, statistics of queries and targets

    Returns
    -------
    (Q, T) float32, the same array
    """
    mean_q, scale_q = torch.from_numpy(of_queries)[:, :, None]
    tiles = torch.from_numpy(scores).split(TILE, 1)
    for tile, (mean_t, scale_t) in zip(tiles, torch.from_numpy(of_targets).split(TILE, 1)):
        tile.copy_(_normalised(tile, mean_q, scale_q, mean_t, scale_t))
    return scores


def s_norm_pairs(
    scores: np.ndarray, of_queries: np.ndarray, of_targets: np.ndarray, pairs: np.ndarray
) -> np.ndarray:
    """Normalise the scores of listed pairs.

    Parameters
    ----------
    scores : (N,) float32, scores of N pairs
    of_queries, of_targets : (2, Q) and (2, T) float64, statistics of queries and targets
    pairs : (N, 2), row of the query and row of the target

    Returns
    -------
    (N,) float32
    """
    mean_q, scale_q = torch.from_numpy(of_queries[:, pairs[:, 0]])
    mean_t, scale_t = torch.from_numpy(of_targets[:, pairs[:, 1]])
    normalised = _normalised(torch.from_numpy(scores), mean_q, scale_q, mean_t, scale_t)
    return normalised.float().numpy()


# s' of the module's docstring, with the terms of s collected, and rounded for the rule of ties
def _normalised(scores, mean_q, scale_q, mean_t, scale_t):
    scale = scale_q + scale_t
    return round_in_place(scores.double().mul_(scale).sub_(mean_q * scale_q + mean_t * scale_t))


def as_norm(
    scores: np.ndarray, query_cohort: np.ndarray, target_cohort: np.ndarray, nearest: int = NEAREST
) -> np.ndarray:
    """Normalise every score by the scores of its query and target with the nearest of a cohort.

    Parameters
    ----------
    scores : (Q, T) float32, Q queries and T targets; overwritten
    query_cohort, target_cohort : (Q, C) and (T, C) float32, scores of queries and targets with C
        other samples, of a cohort or of the gallery
    nearest : number of highest scores that count

    Returns
    -------
    (Q, T) float32, the same array
    """
    of_queries = statistics(query_cohort, nearest)
    return s_norm(scores, of_queries, statistics(target_cohort, nearest))


def statistics(scores: np.ndarray, nearest: int | None = None) -> np.ndarray:
    """Return mean and 1 / standard deviation of each row of scores.

    Parameters
    ----------
    scores : (N, T) float32, scores of N samples with T others
    nearest : number of highest scores of a row that count; all by default

    Returns
    -------
    (2, N) float64: the means, and the scales as in the module's docstring
    """
    if nearest is not None:
        last = min(nearest, scores.shape[1]) - 1
        scores = -np.partition(-scores, last, axis=1)[:, :nearest]
    mean, square = score_moments(scores, 1) / scores.shape[1]
    return _mean_and_scale(mean, square)


def neighbour_statistics(
    scores: np.ndarray, own_column: np.ndarray | None = None, neighbours: int | None = None
) -> np.ndarray:
    """Return the statistics of each row's nearest targets, which spread at least by LEAST_SPREAD.

    Parameters
    ----------
    scores : (N, T) float32, scores of N samples with the T targets of a gallery
    own_column : (N,), for each sample its index among the targets, whose score is left out; -1 if
        it is none of them, as all are by default
    neighbours : number of nearest targets; by default NEIGHBOURS, at most NEIGHBOUR_SHARE of T

    Returns
    -------
    (2, N) float64
    """
    targets = scores.shape[1]
    if neighbours is None:
        neighbours = max(min(NEIGHBOURS, round(NEIGHBOUR_SHARE * targets)), 1)
    if own_column is None:
        own_column = np.full(len(scores), -1)
    row = np.flatnonzero(own_column >= 0)
    compared = targets - (own_column >= 0)
    largest_scale = statistics_of_others(scores, own_column)[1] / LEAST_SPREAD

    scores_of_others = scores.copy()
    scores_of_others[row, own_column[row]] = -np.inf  # is none of the nearest
    fewest = max(compared.min(initial=targets), 1)
    mean, scale = statistics(scores_of_others, min(neighbours, fewest))
    # nearest ones that do not spread at all have the scale 0
    scale = np.where(scale > 0, np.minimum(scale, largest_scale), largest_scale)
    return np.stack([mean, scale])


def statistics_of_others(scores: np.ndarray, own_column: np.ndarray) -> np.ndarray:
    """Return the statistics of each row's targets, without the row's own score.

    Parameters
    ----------
    scores, own_column : as in :func:`neighbour_statistics`

    Returns
    -------
    (2, N) float64
    """
    row = np.flatnonzero(own_column >= 0)
    compared = scores.shape[1] - (own_column >= 0)
    if len(row):
        scores = scores.copy()
        scores[row, own_column[row]] = 0  # adds nothing to the sums
    mean, square = score_moments(scores, 1) / np.maximum(compared, 1)
    return _mean_and_scale(mean, square)


def neighbour_norm(scores: np.ndarray, neighbours: int | None = None) -> np.ndarray:
    """Normalise the scores of a list of accounts with itself by AS-norm, the list as cohort.

    Every account is query and target at once, so each knows its nearest neighbours.

    Parameters
    ----------
    scores : (N, N) float32, symmetric; the diagonal is not read
    neighbours : number of nearest accounts, see :func:`neighbour_statistics`

    Returns
    -------
    (N, N) float32, a new array
    """
    of_accounts = neighbour_statistics(scores, np.arange(len(scores)), neighbours)
    return s_norm(scores.copy(), of_accounts, of_accounts)


def list_norm(scores: np.ndarray, neighbours: int | None = None) -> np.ndarray:
    """Normalise the scores of two lists by AS-norm, each list being the cohort of the other.

    A query knows its nearest targets, and a target knows its nearest queries: all of the list that
    is asked about, where a single query knows the gallery alone.

    Parameters
    ----------
    scores : (Q, T) float32, Q queries and T targets
    neighbours : number of nearest accounts, see :func:`neighbour_statistics`

    Returns
    -------
    (Q, T) float32, a new array
    """
    of_queries = neighbour_statistics(scores, neighbours=neighbours)
    of_targets = neighbour_statistics(np.ascontiguousarray(scores.T), neighbours=neighbours)
    return s_norm(scores.copy(), of_queries, of_targets)


def cohort_statistics(rows: Rows, cohort: Rows, unit: bool = True) -> np.ndarray:
    """Return the statistics of each row's scores with its NEAREST nearest rows of a cohort.

    Parameters
    ----------
    rows, cohort : (N, D) and (C, D), rows of :func:`helpers.evaluation.scores.as_rows`
    unit : whether rows are compared by product, else by minus the Euclidean distance

    Returns
    -------
    (2, N) float64
    """
    blocks = score_blocks(rows, cohort, unit)
    return np.hstack([statistics(scores, NEAREST) for _, scores in blocks])


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


def gallery_statistics(
    targets: Rows,
    unit: bool = True,
    split: SplitRows | None = None,
    blocks: Blocks | None = None,
) -> np.ndarray:
    """Return the statistics of each target's scores with all other targets.

    Parameters
    ----------
    targets : (T, D), rows of :func:`helpers.evaluation.scores.as_rows`
    unit : whether rows are compared by product, else by minus the Euclidean distance
    split : the same targets, to multiply sparse ones in less time
    blocks : the targets' scores with each other, where they were computed before

    Returns
    -------
    (2, T) float64
    """
    count = targets.shape[0]
    compared = targets if split is None else split
    if blocks is None:
        blocks = score_blocks(targets, compared, unit)
    sums = np.zeros((2, count))
    for part, block in blocks:
        # leaves out a target's score with itself
        scores = block.copy()
        np.fill_diagonal(scores[:, part], 0)
        sums += score_moments(scores, 0)
    mean, square = sums / max(count - 1, 1)
    return _mean_and_scale(mean, square)


def reference_statistics(
    rows: Rows,
    references: Rows | SplitRows,
    of_references: np.ndarray,
    own_column: np.ndarray | None = None,
    unit: bool = True,
    near: bool = True,
    blocks: Blocks | None = None,
    neighbours: int | None = None,
) -> list[np.ndarray]:
    """Return the statistics of rows' scores with R reference targets, for s-norm and for AS-norm.

    Parameters
    ----------
    rows : (N, D), of queries or of targets
    references : (R, D), rows of the reference targets
    of_references : (2, R), result of :func:`gallery_statistics` for these
    own_column : (N,), for each row its index among the references, whose score is left out; -1 if
        it is none of them, as all are by default
    unit : whether rows are compared by product, else by minus the Euclidean distance
    near : whether the statistics for AS-norm are returned, too
    blocks : the rows' scores with the references, where they were computed before; they are
        overwritten
    neighbours : number of nearest references, see :func:`neighbour_statistics`

    Returns
    -------
    (2, N) float64 of all references, and (2, N) of the nearest ones after s-norm
    """
    if own_column is None:
        own_column = np.full(rows.shape[0], -1)
    if blocks is None:
        blocks = score_blocks(rows, references, unit)
    of_rows = []
    near_rows = []
    for part, scores in blocks:
        of_rows.append(statistics_of_others(scores, own_column[part]))
        if near:
            s_norm(scores, of_rows[-1], of_references)
            near_rows.append(neighbour_statistics(scores, own_column[part], neighbours))
    if near:
        return [np.hstack(of_rows), np.hstack(near_rows)]
    return [np.hstack(of_rows)]


def _mean_and_scale(mean, square):
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    scale = np.where(spread > MIN_SPREAD, 1 / np.maximum(spread, MIN_SPREAD), 0)
    return np.stack([mean, scale])
