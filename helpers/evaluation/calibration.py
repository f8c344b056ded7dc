"""Calibration: from a score to a log-likelihood ratio (khan2021 section 5).

The ratio compares the probability of a score if both samples are of one account with that if they are of two. Its
natural logarithm does not depend on the prior. With a prior it gives a probability, with costs as well the threshold
that costs least. A calibration is fitted on dev trials and then applied to each pair on its own.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from helpers.evaluation.bootstrap import metric_table
from helpers.evaluation.detection import (
    PAPER,
    DetectionCosts,
    actual_dcf,
    count_scores,
    error_rates,
    min_dcf,
)


@dataclass(frozen=True)
class Calibration:
    """LLR = intercept + weights . features: [s], or [s, log q, log t, s log q, s log t] of score and sizes in posts."""

    weights: list[float]
    intercept: float

    def llr(self, scores: np.ndarray, query_posts=None, target_posts=None) -> np.ndarray:
        """Log-likelihood ratios (N,). Raises ValueError where sizes are missing, or given and not fitted with."""
        features = _features(scores, query_posts, target_posts)
        if features.shape[1] != len(self.weights):
            raise ValueError(
                f"fitted {'with' if len(self.weights) > 1 else 'without'} the sizes of query and target"
            )
        return (features * self.weights).sum(1) + self.intercept  # @ rounds by the number of rows


def fit_calibration(
    scores, same, query_posts=None, target_posts=None, prior: float = PAPER.prior
) -> Calibration:
    """Fit a logistic regression on dev trials (N,), weighted as if a share ``prior`` of them were of one account.

    With the sizes of both samples, its features are the score, both sizes and their products. Features are
    standardised and have scikit-learn's default penalty, so dev trials without an error still give a finite slope.
    Raises ValueError for trials of one kind only, or for values that are not finite.
    """
    from sklearn.linear_model import (
        LogisticRegression,  # here: a map that is only used need not wait for it
    )
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    same = np.asarray(same, bool)
    features = _features(scores, query_posts, target_posts)
    if not np.isfinite(features).all() or same.all() or not same.any():
        raise ValueError(f"calibration needs finite values and both kinds of trials: {same.sum()} of {len(same)} "
                         f"are of one account, {(~np.isfinite(features)).any(1).sum()} are not finite")  # fmt: skip
    weight = np.where(same, prior / same.mean(), (1 - prior) / (~same).mean())
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(features, same, logisticregression__sample_weight=weight)
    scaler, regression = model[0], model[-1]
    slope = regression.coef_[0] / scaler.scale_
    return Calibration(
        slope.tolist(), float(regression.intercept_[0] - slope @ scaler.mean_ - logit(prior))
    )


def _features(scores, query_posts, target_posts):
    scores = np.asarray(scores, np.float64)
    if (query_posts is None) != (target_posts is None):
        raise ValueError("give the sizes of both, query and target, or of neither")
    if query_posts is None:
        return scores[:, None]
    query, target = (np.log(np.asarray(size, np.float64)) for size in (query_posts, target_posts))
    return np.column_stack([scores, query, target, scores * query, scores * target])


def probability(llr: np.ndarray, prior: float) -> np.ndarray:
    """Return the probability of a same-account pair, given the share of such pairs before any score was seen."""
    return expit(np.asarray(llr) + logit(prior))


def cllr(llr: np.ndarray, same: np.ndarray) -> float:
    """Return the cost of log-likelihood ratios in bits (Brummer, du Preez 2006): 0 perfect, 1 useless, no upper end."""
    llr, same = np.asarray(llr), np.asarray(same, bool)
    of_one, of_two = np.logaddexp(0, -llr[same]).mean(), np.logaddexp(0, llr[~same]).mean()
    return float((of_one + of_two) / 2 / np.log(2))


def min_cllr(scores: np.ndarray, same: np.ndarray) -> float:
    """Return Cllr after the best monotone recalibration of the same trials (pool adjacent violators)."""
    from sklearn.isotonic import IsotonicRegression

    scores, same = np.asarray(scores, np.float64), np.asarray(same, bool)
    weight = np.where(same, 0.5 / same.mean(), 0.5 / (~same).mean())
    best = IsotonicRegression(y_min=0, y_max=1).fit(scores, same, weight).predict(scores)
    return cllr(logit(best), same)


def reliability_bins(
    llr: np.ndarray, same: np.ndarray, prior: float = 0.5, bins: int = 10
) -> pd.DataFrame:
    """Return the share of same-account pairs by the probability that they were given; empty bins are left out.

    Trials of both kinds are weighted to the given prior, since most pairs of linking are different-account pairs.
    Columns: ``low``, ``high``, ``predicted`` (mean), ``observed`` (share), ``observed_low``, ``observed_high``
    (95%, Wilson's, as if pairs did not depend on each other), ``same``, ``different`` (counts).
    """
    from scipy.stats import binomtest

    same, predicted = np.asarray(same, bool), probability(llr, prior)
    weight = np.where(same, prior / same.sum(), (1 - prior) / (~same).sum())
    row = np.minimum((predicted * bins).astype(int), bins - 1)
    trials = pd.DataFrame({"row": row, "predicted": predicted * weight, "observed": same * weight, "weight": weight,
                           "same": same.astype(int), "different": (~same).astype(int)})  # fmt: skip
    sums = trials.groupby("row").sum()
    ends = np.array([binomtest(int(one), int(one + two)).proportion_ci(method="wilson")
                     for one, two in zip(sums.same, sums.different)])  # fmt: skip
    odds = prior / (1 - prior) * (~same).sum() / same.sum()  # as the counts are weighted
    ends = ends * odds / (ends * odds + 1 - ends)
    return pd.DataFrame(
        {
            "low": sums.index / bins,
            "high": (sums.index + 1) / bins,
            "predicted": sums.predicted / sums.weight,
            "observed": sums.observed / sums.weight,
            "observed_low": ends[:, 0],
            "observed_high": ends[:, 1],
            "same": sums.same,
            "different": sums.different,
        }
    ).reset_index(drop=True)


def calibration_metrics(
    llr: np.ndarray, same: np.ndarray, costs: DetectionCosts = PAPER
) -> pd.DataFrame:
    """Return Cllr, minCllr and minDCF, and P_miss, P_fa and normalised DCF at the Bayes threshold of the costs.

    DCF - minDCF is the loss of the Bayes threshold against the best one in hindsight. Columns value, low and high.
    """
    llr, same = np.asarray(llr), np.asarray(same, bool)
    accepted = llr >= costs.threshold
    return metric_table(
        {
            "Cllr": cllr(llr, same),
            "minCllr": min_cllr(llr, same),
            "threshold": costs.threshold,
            "P_miss": 1 - accepted[same].mean(),
            "P_fa": accepted[~same].mean(),
            "DCF": actual_dcf(llr, same, costs.threshold, costs),
            "minDCF": min_dcf(*error_rates(count_scores(llr, same)), costs),
        }
    )
