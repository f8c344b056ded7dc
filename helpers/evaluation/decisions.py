"""From a distance to an answer: maps and thresholds that are fitted on dev pairs, and the paper's own scaling."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from helpers.evaluation.calibration import Calibration, fit_calibration, probability
from helpers.evaluation.pan_metrics import auc, check_answers, named_pan_metrics

PUBLISHED_THRESHOLDS = (0.470, 0.553)  # lower, upper of tyo2021 Figure 2b, chosen on the test set
GRID = np.linspace(0.02, 0.98, 49)


def apply_thresholds(scores: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Set scores (N,) in [lower, upper] to 0.5, and map [0, lower) to [0, 0.5) and (upper, 1] to (0.5, 1].

    Scores outside of the thresholds keep their order, and none of them becomes 0.5 by rounding. With lower = upper =
    0.5 nothing changes. Raises ValueError unless 0 <= lower <= upper <= 1.
    """
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"thresholds {lower}, {upper}: need 0 <= lower <= upper <= 1")
    scores = np.asarray(scores, np.float64)
    result = np.where(np.isnan(scores), np.nan, 0.5)
    below, above = scores < lower, scores > upper
    result[below] = np.minimum(0.5 * scores[below] / lower, np.nextafter(0.5, 0))
    result[above] = np.maximum(1 - 0.5 * (1 - scores[above]) / (1 - upper), np.nextafter(0.5, 1))
    return result


def threshold_surface(scores: np.ndarray, same: np.ndarray, definition: str = "pan21",
                      grid: np.ndarray = GRID) -> pd.DataFrame:  # fmt: skip
    """Compute PAN's metrics of dev pairs for every lower <= upper of the grid (tyo2021 Figure 2b).

    Returns columns ``lower``, ``upper`` and the metrics, one row a combination: 1,225 by default.
    """
    scores, same = check_answers(scores, same)
    level, once, rows = np.unique(scores, return_inverse=True)[1], np.ones(len(same)), []
    for i, lower in enumerate(grid):
        for upper in grid[i:]:
            cut = apply_thresholds(scores, lower, upper)
            level_of_cut = np.where(cut == 0.5, level[cut == 0.5].min(initial=len(level)), level)
            area = auc(level_of_cut, same, once)
            rows.append(
                {"lower": lower, "upper": upper}
                | named_pan_metrics(area, cut, same, definition, once)
            )
    return pd.DataFrame(rows)


def best_thresholds(surface: pd.DataFrame) -> tuple[float, float]:
    """Return (lower, upper) of the highest overall; of equal ones those with the fewest unanswered, then the lowest."""
    order = surface.assign(overall=-surface.overall.round(12)).sort_values(
        ["overall", "n_unanswered", "lower"]
    )
    return float(order.lower.iloc[0]), float(order.upper.iloc[0])


Decision = tuple[Callable[[np.ndarray], np.ndarray], tuple[float, float]]


def fit_decision(distances: np.ndarray, same: np.ndarray, definition: str = "pan21") -> Decision:
    """Fit the decision on dev pairs: :func:`fit_scores`, then the :func:`best_thresholds` of their scores.

    Returns a function from distances (N,) of any pairs to final scores, and both thresholds.
    """
    fitted = fit_scores(distances, same)
    return _cut(lambda others: to_scores(fitted, others), distances, same, definition)


def fit_shift(distances: np.ndarray, same: np.ndarray, definition: str = "pan21") -> Decision:
    """Fit the decision of PAN's naive baseline: cosines between two thresholds become 0.5.

    As :func:`fit_decision`, for cosines of character 4-grams. tyo2021 chose both thresholds on its test set, which
    raises its numbers.
    """
    return _cut(
        lambda others: np.clip(1 - np.asarray(others, np.float64), 0, 1),
        distances,
        same,
        definition,
    )


def _cut(score, distances, same, definition):
    lower, upper = best_thresholds(threshold_surface(score(distances), same, definition))
    return lambda others: apply_thresholds(score(others), lower, upper), (lower, upper)


DECISIONS = {"calibrated": fit_decision, "shift": fit_shift}


def fit_scores(distances: np.ndarray, same: np.ndarray, prior: float = 0.5) -> Calibration:
    """Fit a logistic map from distance (N,) to score on dev pairs, by :func:`helpers.evaluation.calibration.fit_calibration`.

    The map is monotone. It falls with the distance if pairs of one author are closer on dev.
    """
    return fit_calibration(-np.asarray(distances, np.float64), same, prior=prior)


def to_scores(fitted: Calibration, distances: np.ndarray, prior: float = 0.5) -> np.ndarray:
    """Return scores (N,) in [0, 1]: the probability that a pair is of one author, at a prior share of such pairs."""
    return probability(fitted.llr(-np.asarray(distances, np.float64)), prior)


def legacy_min_max(distances: np.ndarray) -> np.ndarray:
    """Scale distances as the paper does, (max(d) - d) / max(max(d) - d) over all pairs; for comparison only.

    The score of a pair depends on all other pairs, so one pair alone has no score. Raises ValueError if all distances
    are equal.
    """
    near = np.max(distances) - np.asarray(distances, np.float64)
    if not (np.isfinite(near).all() and near.max() > 0):
        raise ValueError("min-max scaling needs finite distances that are not all equal")
    return near / near.max()
