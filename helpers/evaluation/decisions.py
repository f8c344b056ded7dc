"""From a distance to an answer: maps and thresholds that are learned on dev pairs, and the published shortcuts."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from helpers.evaluation.calibration import Calibration, fit, probability
from helpers.evaluation.pan_metrics import auc, checked, metrics

PUBLISHED_THRESHOLDS = (0.470, 0.553)  # lower, upper of tyo2021 Figure 2b, which the test set chose
GRID = np.linspace(0.02, 0.98, 49)


def apply_thresholds(scores: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Scores (N,) with those in [lower, upper] set to 0.5: [0, lower) becomes [0, 0.5), (upper, 1] becomes (0.5, 1].

    Both sides keep their order, and none of their scores becomes 0.5 by rounding. With lower = upper = 0.5 nothing
    changes. Raises ValueError unless 0 <= lower <= upper <= 1.
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
    """PAN's metrics of dev pairs for every lower <= upper of the grid (tyo2021 Figure 2b), 1,225 by default.

    Columns ``lower``, ``upper`` and the metrics, a row a combination.
    """
    scores, same = checked(scores, same)
    level, once, rows = np.unique(scores, return_inverse=True)[1], np.ones(len(same)), []
    for i, lower in enumerate(grid):
        for upper in grid[i:]:
            cut = apply_thresholds(scores, lower, upper)
            level_of_cut = np.where(cut == 0.5, level[cut == 0.5].min(initial=len(level)), level)
            area = auc(level_of_cut, same, once)
            rows.append({"lower": lower, "upper": upper} | metrics(area, cut, same, definition, once))
    return pd.DataFrame(rows)


def best_thresholds(surface: pd.DataFrame) -> tuple[float, float]:
    """(lower, upper) of the highest overall; of equal ones that with the fewest unanswered, then the lowest."""
    order = surface.assign(overall=-surface.overall.round(12)).sort_values(["overall", "n_unanswered", "lower"])
    return float(order.lower.iloc[0]), float(order.upper.iloc[0])


Decision = tuple[Callable[[np.ndarray], np.ndarray], tuple[float, float]]


def fit_decision(distances: np.ndarray, same: np.ndarray, definition: str = "pan21") -> Decision:
    """From distances (N,) of dev pairs to final scores of any others: a function of distances, and both thresholds.

    :func:`fit_scores`, then the :func:`best_thresholds` of the dev pairs' scores.
    """
    fitted = fit_scores(distances, same)
    return _cut(lambda others: to_scores(fitted, others), distances, same, definition)


def fit_shift(distances: np.ndarray, same: np.ndarray, definition: str = "pan21") -> Decision:
    """As :func:`fit_decision` for the naive baseline of PAN: cosines between two thresholds become 0.5.

    Made for cosines of character 4-grams. tyo2021 tuned both thresholds on its test set, which shows in its numbers.
    """
    return _cut(lambda others: np.clip(1 - np.asarray(others, np.float64), 0, 1), distances, same, definition)


def _cut(score, distances, same, definition):
    lower, upper = best_thresholds(threshold_surface(score(distances), same, definition))
    return lambda others: apply_thresholds(score(others), lower, upper), (lower, upper)


DECISIONS = {"calibrated": fit_decision, "shift": fit_shift}


def fit_scores(distances: np.ndarray, same: np.ndarray, prior: float = 0.5) -> Calibration:
    """A logistic map from distance (N,) to score, fitted on dev pairs: :func:`helpers.evaluation.calibration.fit`.

    It is monotone, and falls with the distance where pairs of one author are the closer ones on dev.
    """
    return fit(-np.asarray(distances, np.float64), same, prior=prior)


def to_scores(fitted: Calibration, distances: np.ndarray, prior: float = 0.5) -> np.ndarray:
    """Scores (N,) in [0, 1]: the probability of one author, given the share of such pairs, of each pair alone."""
    return probability(fitted.llr(-np.asarray(distances, np.float64)), prior)


def legacy_min_max(distances: np.ndarray) -> np.ndarray:
    """The published scaling (max(d) - d) / max(max(d) - d) over all pairs that are evaluated, for comparison only.

    A pair's score depends on the other pairs, so no pair can be alone. Raises ValueError for equal distances.
    """
    near = np.max(distances) - np.asarray(distances, np.float64)
    if not (np.isfinite(near).all() and near.max() > 0):
        raise ValueError("min-max scaling needs finite distances that are not all equal")
    return near / near.max()
