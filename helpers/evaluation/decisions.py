"""From a distance to an answer: maps and thresholds fitted on dev pairs, and those of tyo2021."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from .calibration import Calibration, fit_calibration, probability
from .pan_metrics import auc, check_answers, named_pan_metrics

# lower and upper threshold of tyo2021 Figure 2b, which were chosen on the test set
PUBLISHED_THRESHOLDS = (0.470, 0.553)
GRID = np.linspace(0.02, 0.98, 49)  # thresholds that are tried

# a function from distances to final scores, and the lower and upper threshold
Decision = tuple[Callable[[np.ndarray], np.ndarray], tuple[float, float]]


def apply_thresholds(scores: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Set scores between the thresholds to 0.5, and scale those below and above.

    [0, lower) becomes [0, 0.5) and (upper, 1] becomes (0.5, 1]. Scores outside of the thresholds
    keep their order, and none of them becomes 0.5 by rounding. With lower = upper = 0.5 no score
    changes. NaN stays NaN.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    lower, upper : float
        thresholds, 0 <= lower <= upper <= 1.

    Raises
    ------
    ValueError
        If the thresholds are others.
    """
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"thresholds {lower}, {upper}: need 0 <= lower <= upper <= 1")
    scores = np.asarray(scores, np.float64)
    answers = np.where(np.isnan(scores), np.nan, 0.5)
    below = scores < lower
    above = scores > upper
    answers[below] = np.minimum(0.5 * scores[below] / lower, np.nextafter(0.5, 0))
    answers[above] = np.maximum(1 - 0.5 * (1 - scores[above]) / (1 - upper), np.nextafter(0.5, 1))
    return answers


def threshold_surface(
    scores: np.ndarray, same: np.ndarray, definition: str = "pan21", grid: np.ndarray = GRID
) -> pd.DataFrame:
    """Compute PAN's metrics of dev pairs for every lower <= upper of the grid (tyo2021 Figure 2b).

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,) bool
        whether a pair is of one author.
    definition : str
        "pan21" or "pan20", see :func:`helpers.evaluation.pan_metrics.pan_metrics`.
    grid : array
        thresholds, ascending.

    Returns
    -------
    Columns ``lower``, ``upper`` and the metrics, a row for each combination: 1,225 by default.
    """
    scores, same = check_answers(scores, same)
    level = np.unique(scores, return_inverse=True)[1]
    once = np.ones(len(same))
    rows = []
    for i, lower in enumerate(grid):
        for upper in grid[i:]:
            answers = apply_thresholds(scores, lower, upper)
            # thresholds change no order but that of the unanswered pairs, which become equal
            unanswered = answers == 0.5
            level_of_answer = np.where(unanswered, level[unanswered].min(initial=len(level)), level)
            area = auc(level_of_answer, same, once)
            metrics = named_pan_metrics(area, answers, same, definition, once)
            rows.append({"lower": lower, "upper": upper} | metrics)
    return pd.DataFrame(rows)


def best_thresholds(surface: pd.DataFrame) -> tuple[float, float]:
    """Return the thresholds (lower, upper) of a surface that give the highest "overall".

    Of equal ones (to 12 decimals) those with the fewest unanswered pairs are taken, then those with
    the lowest ``lower``.
    """
    ranked = surface.assign(loss=-surface.overall.round(12))
    best = ranked.sort_values(["loss", "n_unanswered", "lower"]).iloc[0]
    return float(best.lower), float(best.upper)


def fit_decision(distances: np.ndarray, same: np.ndarray, definition: str = "pan21") -> Decision:
    """Fit the decision on dev pairs: :func:`fit_scores`, then their :func:`best_thresholds`.

    Parameters
    ----------
    distances : (N,)
        distance of each dev pair.
    same : (N,) bool
        whether a pair is of one author.
    definition : str
        "pan21" or "pan20", see :func:`helpers.evaluation.pan_metrics.pan_metrics`.

    Returns
    -------
    A function from distances (N,) of any pairs to final scores, and both thresholds.
    """
    score = partial(to_scores, fit_scores(distances, same))
    return _with_best_thresholds(score, distances, same, definition)


def fit_shift(distances: np.ndarray, same: np.ndarray, definition: str = "pan21") -> Decision:
    """Fit the decision of PAN's naive baseline: cosines between two thresholds become 0.5.

    tyo2021 chose both thresholds on its test set, which raises its numbers.

    Parameters
    ----------
    distances, same, definition : array
        arguments as in :func:`fit_decision`; distances are 1 - cosine of character 4-grams.

    Returns
    -------
    What :func:`fit_decision` returns.
    """
    return _with_best_thresholds(_clipped_cosines, distances, same, definition)


# the scores of fit_shift: cosines, in [0, 1]
def _clipped_cosines(distances):
    return np.clip(1 - np.asarray(distances, np.float64), 0, 1)


# the decision of a fitted map from distances to scores, with the best thresholds of the same pairs
def _with_best_thresholds(score, distances, same, definition):
    thresholds = best_thresholds(threshold_surface(score(distances), same, definition))
    return partial(_decide, score, thresholds), thresholds


def _decide(score, thresholds, distances):
    return apply_thresholds(score(distances), *thresholds)


DECISIONS = {"calibrated": fit_decision, "shift": fit_shift}


def fit_scores(distances: np.ndarray, same: np.ndarray, prior: float = 0.5) -> Calibration:
    """Fit a logistic map from distance to score on dev pairs.

    The map is monotone. Scores fall with the distance if pairs of one author are closer on dev.

    Parameters
    ----------
    distances : (N,)
        distance of each dev pair.
    same : (N,) bool
        whether a pair is of one author.
    prior : float
        the weight of all pairs of one author together, out of 1.
    """
    return fit_calibration(-distances, same, prior=prior)


def to_scores(fitted: Calibration, distances: np.ndarray, prior: float = 0.5) -> np.ndarray:
    """Return scores (N,) in [0, 1]: the probability that a pair is of one author.

    Parameters
    ----------
    fitted : Calibration
        map of :func:`fit_scores`.
    distances : (N,)
        distance of each pair.
    prior : float
        the share of pairs of one author.
    """
    return probability(fitted.llr(-distances), prior)


def legacy_min_max(distances: np.ndarray) -> np.ndarray:
    """Scale distances as the paper does, for comparison only.

    The score of a distance d is (max(d) - d) / max(max(d) - d), with maxima over all pairs. It
    depends on all other pairs, so one pair alone has no score. Raises ValueError if all distances
    are equal or one is not finite.
    """
    closeness = np.max(distances) - np.asarray(distances, np.float64)
    if not (np.isfinite(closeness).all() and closeness.max() > 0):
        raise ValueError("min-max scaling needs finite distances that are not all equal")
    return closeness / closeness.max()
