"""Verification as PAN scores it: are these two texts by one author? A score in [0, 1] per pair (tyo2021 section 3).

Above 0.5 the answer is "same", below it "different". A score of exactly 0.5 leaves the pair unanswered: it is
compared as float64, so 0.5000001 is an answer. Published tables round the results to 3 decimals.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.metrics import roc_auc_score

from helpers.evaluation.bootstrap import ends, table, weights
from helpers.evaluation.calibration import Calibration, fit, probability
from helpers.evaluation.gallery import open_gallery
from helpers.evaluation.trials import Trials
from helpers.runs.config import Config
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore

DEFINITIONS = ("pan21", "pan20")
METRICS = ("AUC", "F1", "c@1", "F_0.5u", "Brier", "overall")
PUBLISHED_THRESHOLDS = (0.470, 0.553)  # lower, upper of tyo2021 Figure 2b, which the test set chose
GRID = np.linspace(0.02, 0.98, 49)


class VerificationConfig(Config):
    """How distances become scores and metrics.

    Attributes
    ----------
    definition : of the metrics, see :func:`pan_metrics`.
    decision : "calibrated" (:func:`fit_decision`), or "shift" (:func:`fit_shift`), PAN's naive baseline.
    resamples : of the bootstrap over authors.
    """

    definition: Literal["pan21", "pan20"] = "pan21"
    decision: Literal["calibrated", "shift"] = "calibrated"
    seed: int = Field(0, ge=0)
    resamples: int = Field(1000, ge=0)


def verification_trials(documents: TokenStore | Samples, pairs: pd.DataFrame) -> Trials:
    """Listed pairs of documents: posts of a store, or samples; only those in a pair are kept.

    pairs: columns ``first`` and ``second``, numbers of documents, as of :func:`helpers.evaluation.pairs.make_pairs`.
    """
    samples = documents if isinstance(documents, Samples) else Samples.of_posts(documents)
    rows, places = np.unique(pairs[["first", "second"]].to_numpy(), return_inverse=True)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < len(samples):
        raise ValueError(f"pairs name documents {rows[0]} to {rows[-1]}, there are {len(samples)}")
    samples = samples[rows]
    return Trials(samples, samples, places.reshape(-1, 2), "verification")


def distances(model, trials: Trials, max_tokens: int = 32) -> np.ndarray:
    """Distance of each listed pair, (N,) float64: 1 - cosine, or Euclidean for an encoder with ``unit = False``.

    A text that says nothing (a zero row) is at cosine distance 1 of every other.
    """
    scores = open_gallery(model, trials.targets, max_tokens).pair_scores(trials.queries, trials.pairs)
    return (1.0 if getattr(model, "unit", True) else 0.0) - scores.astype(np.float64)


def evaluate(
    model, dev: Trials, test: Trials, max_tokens: int = 32, config: VerificationConfig = VerificationConfig(),
    same_topic: np.ndarray | None = None,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:  # fmt: skip
    """Learn the decision on dev pairs, then judge each test pair alone.

    Parameters
    ----------
    model : an encoder or a fusion.
    dev, test : of :func:`verification_trials`.
    same_topic : (N,) of the test pairs, for the metric ``hardest_AUC``: same-author pairs across topics against
        different-author pairs within one.

    Returns
    -------
    Table (value, low, high) of METRICS, n_unanswered, dev_overall and, with topics, hardest_AUC; and the pairs, by
    "dev" and "test": columns ``same``, ``distance``, ``score``. Intervals resample authors; a pair counts as often as
    both of its authors are drawn, multiplied.
    """
    apart = {name: distances(model, trials, max_tokens) for name, trials in (("dev", dev), ("test", test))}
    decide, _ = DECISIONS[config.decision](apart["dev"], dev.same, config.definition)
    scored = {name: pd.DataFrame({"same": trials.same, "distance": apart[name], "score": decide(apart[name])})
              for name, trials in (("dev", dev), ("test", test))}  # fmt: skip
    scores, same = _checked(scored["test"].score, test.same)
    level = np.unique(scores, return_inverse=True)[1]
    hard = None if same_topic is None else same != np.asarray(same_topic, bool)

    def measure(times):
        values = _metrics(_auc(level, same, times), scores, same, config.definition, times)
        return values if hard is None else values | {"hardest_AUC": _auc(level, same, times * hard)}

    values = measure(np.ones(len(same)))
    low, high = ends([list(measure(times).values()) for times in _pair_weights(test, config)], len(values))
    result = table(values, low, high)
    result.loc["n_unanswered", ["low", "high"]] = np.nan
    overall = pan_metrics(scored["dev"].score.to_numpy(), dev.same, config.definition)["overall"]
    return pd.concat([result, table({"dev_overall": overall})]), scored


def _pair_weights(trials, config):
    """How often each pair counts, where authors are drawn: resamples that leave pairs of both kinds."""
    authors = trials.queries.authors[trials.pairs[:, 0]], trials.targets.authors[trials.pairs[:, 1]]
    everyone, row = np.unique(np.concatenate(authors), return_inverse=True)
    one, other = np.split(row, 2)
    for drawn in weights(everyone, config.resamples, config.seed):
        times = drawn[one] * np.where(trials.same, 1, drawn[other])
        if times[trials.same].any() and times[~trials.same].any():
            yield times


def _auc(level, same, times):
    """AUC of pairs that count several times, without scikit-learn's costly checks; level: rank of a score."""
    positives, negatives = np.bincount(level, times * same), np.bincount(level, times * ~same)
    total = positives.sum() * negatives.sum()
    return float(positives @ (np.cumsum(negatives) - negatives / 2) / total) if total else np.nan


def pan_metrics(scores: np.ndarray, same: np.ndarray, definition: str = "pan21") -> dict[str, float]:
    """AUC, F1, c@1, F_0.5u, Brier (1 - mean squared error), ``overall``, and ``n_unanswered``.

    Of N pairs c are answered rightly and u not at all::

        c@1 = (c + u c / N) / N          F_0.5u = 1.25 TP / (1.25 TP + 0.25 (FN + u) + FP)

    AUC (under the ROC curve) and Brier count unanswered pairs as scores of 0.5. F1 leaves them out, and is 0 where no
    pair of one author is accepted.

    Parameters
    ----------
    scores, same : (N,) in [0, 1]; (N,) bool.
    definition : "pan21": overall is the mean of all five (tyo2021 Table 1). "pan20": F_0.5u takes an unanswered pair
        for "same", as that year's evaluator did, and overall is the mean of the four without Brier (Tables 2 and 3).
    """
    if definition not in DEFINITIONS:
        raise ValueError(f"definition {definition!r}: one of {', '.join(DEFINITIONS)}")
    scores, same = _checked(scores, same)
    return _metrics(float(roc_auc_score(same, scores)), scores, same, definition, np.ones(len(same)))


def _metrics(auc, scores, same, definition, times):
    yes, skipped = scores > 0.5, scores == 0.5
    count = lambda chosen: float(times @ chosen)  # noqa: E731
    right, wrong = count((yes == same) & ~skipped), count((yes != same) & ~skipped)
    hits, total, unanswered = count(yes & same), times.sum(), count(skipped)
    # as the evaluator of 2020 had it, nothing is unanswered here
    accepted, left_out = (yes, skipped) if definition == "pan21" else (yes | skipped, np.zeros_like(skipped))
    found = 1.25 * count(accepted & same)
    missed, accused = count(~accepted & (same | left_out)), count(accepted & ~same)
    result = {
        "AUC": auc,
        "F1": 2 * hits / max(2 * hits + wrong, 1),
        "c@1": right * (1 + unanswered / total) / total,
        "F_0.5u": found / (found + 0.25 * missed + accused),
        "Brier": 1 - float(times @ np.square(scores - same)) / total,
    }
    averaged = [value for name, value in result.items() if definition == "pan21" or name != "Brier"]
    return result | {"overall": float(np.mean(averaged)), "n_unanswered": int(unanswered)}


def _checked(scores, same):
    scores, same = np.asarray(scores, np.float64), np.asarray(same, bool)
    if scores.ndim != 1 or scores.shape != same.shape:
        raise ValueError(f"scores {scores.shape} and truth {same.shape} do not fit together")
    if outside := int((~((0 <= scores) & (scores <= 1))).sum()):
        raise ValueError(f"{outside} of {len(scores)} scores are not in [0, 1]")
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
    """:func:`pan_metrics` of dev pairs for every lower <= upper of the grid (tyo2021 Figure 2b), 1,225 by default.

    Columns ``lower``, ``upper`` and the metrics, a row a combination.
    """
    scores, same = _checked(scores, same)
    level, once, rows = np.unique(scores, return_inverse=True)[1], np.ones(len(same)), []
    for i, lower in enumerate(grid):
        for upper in grid[i:]:
            cut = apply_thresholds(scores, lower, upper)
            level_of_cut = np.where(cut == 0.5, level[cut == 0.5].min(initial=len(level)), level)
            auc = _auc(level_of_cut, same, once)
            rows.append({"lower": lower, "upper": upper} | _metrics(auc, cut, same, definition, once))
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
    for same_author, those in kinds.items():
        for different_author, these in kinds.items():
            positive, negative = same & those, ~same & these
            chosen = positive | negative
            auc = roc_auc_score(same[chosen], scores[chosen]) if positive.any() and negative.any() else np.nan
            rows.append((same_author, different_author, int(positive.sum()), int(negative.sum()), float(auc)))
    return pd.DataFrame(rows, columns=["same_author", "different_author", "positives", "negatives", "AUC"])
