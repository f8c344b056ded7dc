"""Verification as PAN scores it: are these two texts by one author? A score in [0, 1] per pair (tyo2021 section 3).

Above 0.5 the answer is "same", below it "different". A score of exactly 0.5 leaves the pair unanswered: scores are
compared as float64 and never rounded, so 0.5000001 is an answer. Published tables round the results to 3 decimals.
"""

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from helpers.evaluation.calibration import Calibration, fit, probability
from helpers.losses.registry import DISTANCES

DEFINITIONS = ("pan21", "pan20")
PUBLISHED_THRESHOLDS = (0.470, 0.553)  # lower, upper of tyo2021 Figure 2b, found on the test set
GRID = np.linspace(0.02, 0.98, 49)


def pan_metrics(scores: np.ndarray, same: np.ndarray, definition: str = "pan21") -> dict[str, float]:
    """AUC, F1, c@1, F_0.5u, Brier (1 - mean squared error), ``overall``, and ``n_unanswered``.

    scores (N,) in [0, 1], same (N,) bool. Of N pairs c are answered rightly and u not at all::

        c@1 = (c + u c / N) / N          F_0.5u = 1.25 TP / (1.25 TP + 0.25 (FN + u) + FP)

    AUC (under the ROC curve) and Brier count unanswered pairs as scores of 0.5. F1 leaves them out, and is 0 where no
    pair of one author is accepted. "pan21": overall is the mean of all five (tyo2021 Table 1). "pan20": F_0.5u takes
    an unanswered pair for "same", as that year's evaluator did, and overall is the mean of the four without Brier
    (Tables 2 and 3). Raises ValueError for another definition, lengths that do not fit, scores outside [0, 1], or
    pairs of one kind only.
    """
    if definition not in DEFINITIONS:
        raise ValueError(f"definition {definition!r}: one of {', '.join(DEFINITIONS)}")
    scores, same = _checked(scores, same)
    skipped, yes = scores == 0.5, scores > 0.5
    right, unanswered = ((yes == same) & ~skipped).sum(), skipped.sum()
    hit, wrong = (yes & same).sum(), ((yes != same) & ~skipped).sum()
    # as the evaluator of 2020 had it, nothing is unanswered here
    accepted, left_out = (yes, skipped) if definition == "pan21" else (yes | skipped, np.zeros_like(skipped))
    result = {
        "AUC": _auc(scores, same),
        "F1": float(2 * hit / max(2 * hit + wrong, 1)),
        "c@1": float(right * (1 + unanswered / len(same)) / len(same)),
        "F_0.5u": _f_05_u(accepted, left_out, same),
        "Brier": float(1 - np.square(scores - same).mean()),
    }
    averaged = [value for name, value in result.items() if definition == "pan21" or name != "Brier"]
    return result | {"overall": float(np.mean(averaged)), "n_unanswered": int(unanswered)}


def _auc(scores, same):
    """By ranks, ties in the middle: a surface of thresholds needs more than a thousand, and checks cost more."""
    rank, positives = rankdata(scores), same.sum()
    return float((rank[same].sum() - positives * (positives + 1) / 2) / (positives * (len(same) - positives)))


def _f_05_u(yes, skipped, same):
    hit = 1.25 * (yes & same).sum()
    return float(hit / (hit + 0.25 * ((~yes & ~skipped & same).sum() + skipped.sum()) + (yes & ~same).sum()))


def _checked(scores, same):
    scores, same = np.asarray(scores, np.float64), np.asarray(same, bool)
    if scores.ndim != 1 or scores.shape != same.shape:
        raise ValueError(f"scores {scores.shape} and truth {same.shape} do not fit together")
    if wrong := int((~((0 <= scores) & (scores <= 1))).sum()):
        raise ValueError(f"{wrong} of {len(scores)} scores are not in [0, 1]")
    if same.all() or not same.any():
        raise ValueError(f"{same.sum()} of {len(same)} pairs are of one author: the metrics need both kinds")
    return scores, same


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


def threshold_surface(
    scores: np.ndarray, same: np.ndarray, definition: str = "pan21", grid: np.ndarray = GRID
) -> pd.DataFrame:
    """:func:`pan_metrics` of dev pairs for every lower <= upper of the grid (tyo2021 Figure 2b).

    Columns ``lower``, ``upper`` and the metrics; one row per combination: 1,225 by default, at
    a millisecond each for 14,000 pairs.
    """
    return pd.DataFrame([
        {"lower": lower, "upper": upper, **pan_metrics(apply_thresholds(scores, lower, upper), same, definition)}
        for i, lower in enumerate(grid) for upper in grid[i:]
    ])  # fmt: skip


def best_thresholds(surface: pd.DataFrame) -> tuple[float, float]:
    """(lower, upper) of the highest overall; of equal ones that with the fewest unanswered, then the lowest."""
    order = surface.assign(overall=-surface.overall.round(12)).sort_values(["overall", "n_unanswered", "lower"])
    return float(order.lower.iloc[0]), float(order.upper.iloc[0])


def pair_distances(vectors: np.ndarray, pairs: pd.DataFrame, distance: str = "cosine") -> np.ndarray:
    """Distance of each pair, (N,) float64, the names being those of :func:`helpers.losses.registry.distances`.

    vectors (documents, D); pairs: columns ``first`` and ``second``, rows of vectors. A zero vector is at cosine
    distance 1 of every other. Raises ValueError for another distance.
    """
    if distance not in DISTANCES:
        raise ValueError(f"distance {distance!r}: one of {', '.join(DISTANCES)}")
    one, other = (np.asarray(vectors, np.float64)[pairs[side]] for side in ("first", "second"))
    if distance == "raw":
        return np.linalg.norm(one - other, axis=1)
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosine = 1 - np.clip((one * other).sum(1) / np.maximum(lengths, 1e-12), -1, 1)
    return cosine if distance == "cosine" else np.sqrt(2 * cosine)


def fit_decision(distances: np.ndarray, same: np.ndarray, definition: str = "pan21", grid: np.ndarray = GRID):
    """From distances (N,) of dev pairs to the final scores of any others: a function of distances, and both thresholds.

    :func:`fit_scores`, then the :func:`best_thresholds` of the dev pairs' scores.
    """
    fitted = fit_scores(distances, same)
    lower, upper = best_thresholds(threshold_surface(to_scores(fitted, distances), same, definition, grid))
    return lambda others: apply_thresholds(to_scores(fitted, others), lower, upper), (lower, upper)


def fit_scores(distances: np.ndarray, same: np.ndarray, prior: float = 0.5) -> Calibration:
    """A logistic map from distance (N,) to score, fitted on dev pairs; see :func:`helpers.evaluation.calibration.fit`.

    It is monotone, and falls with the distance where pairs of one author are the closer ones on dev.
    """
    return fit(-np.asarray(distances, np.float64), same, prior=prior)


def to_scores(fitted: Calibration, distances: np.ndarray, prior: float = 0.5) -> np.ndarray:
    """Scores (N,) in [0, 1]: the probability of one author, given the share of such pairs. Each pair is scored alone,
    as PAN demands."""
    return probability(fitted.llr(-np.asarray(distances, np.float64)), prior)


def legacy_min_max(distances: np.ndarray) -> np.ndarray:
    """The published scaling (max(d) - d) / max(max(d) - d) over all pairs that are evaluated, for comparison only.

    A pair's score depends on the other pairs, so it cannot be used on a pair alone. Raises ValueError where the
    distances are not finite or all equal.
    """
    near = np.max(distances) - np.asarray(distances, np.float64)
    if not (np.isfinite(near).all() and near.max() > 0):
        raise ValueError("min-max scaling needs finite distances that are not all equal")
    return near / near.max()


def auc_by_topic(scores: np.ndarray, same: np.ndarray, same_topic: np.ndarray) -> pd.DataFrame:
    """AUC of same-author pairs against different-author pairs, each within a topic, across topics, or all.

    In PAN 2020 no two texts of one author share a fandom, but some of two authors do: an AUC over all pairs rewards
    who tells topics apart. Columns ``same_author``, ``different_author`` ("all", "same topic", "different topic"),
    ``positives``, ``negatives`` (pairs) and ``AUC``, NaN where there are none of either. Raises as
    :func:`pan_metrics`, and for lengths that do not fit.
    """
    scores, same = _checked(scores, same)
    same_topic = np.asarray(same_topic, bool)
    if same_topic.shape != same.shape:
        raise ValueError(f"{len(same_topic)} topic labels for {len(same)} pairs")
    kinds = {"all": np.ones(len(same), bool), "same topic": same_topic, "different topic": ~same_topic}
    rows = []
    for mine, those in kinds.items():
        for others, these in kinds.items():
            positive, negative = same & those, ~same & these
            chosen = positive | negative
            both = positive.any() and negative.any()
            rows.append((mine, others, int(positive.sum()), int(negative.sum()),
                         float(roc_auc_score(same[chosen], scores[chosen])) if both else np.nan))  # fmt: skip
    return pd.DataFrame(rows, columns=["same_author", "different_author", "positives", "negatives", "AUC"])
