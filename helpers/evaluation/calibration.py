"""Calibration: from a score to a log-likelihood ratio (khan2021 section 5).

The likelihood ratio is the probability of a score if both samples are of one account, divided by
that if they are of two. Its natural logarithm does not depend on the prior. Together with a prior
it gives a probability, and together with a prior and costs the threshold that costs least. A
calibration is fitted on dev trials and then applied to each pair on its own.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from .bootstrap import metric_table
from .detection import PAPER, DetectionCosts, count_scores, error_rates, min_dcf
from .scores import refuse_nan
from .trials import as_trials

# Bounds of an estimated prior: no list is without second accounts for certain, and where scores
# are higher than in calibration, every account would seem to have one.
MIN_PRIOR = 0.01
MAX_PRIOR = 0.5
USUAL_PRIOR = 0.05  # the share that is expected before anything is read, as strong as
BELIEVED_QUERIES = 20  # so many queries
PRIOR_STEPS = 300  # of expectation maximisation


@dataclass(frozen=True)
class Calibration:
    """Map a score, and perhaps the sizes of both samples, to a log-likelihood ratio.

    LLR = intercept + weights . features, where the features are the score s, or with sizes of q and
    t posts [s, log q, log t, s log q, s log t]. With knots the map bends: s is cut at each of them
    into pieces, as :func:`score_pieces` does, and each piece p stands in place of s.

    Parameters
    ----------
    weights : list[float]
        weights of the features: of P pieces P, or with sizes 3 P + 2.
    intercept : float
        added to the weighted sum.
    knots : list[float]
        scores at which the map bends, in ascending order; P is their number plus one.
    """

    weights: list[float]
    intercept: float
    knots: list[float] = field(default_factory=list)

    def llr(self, scores: np.ndarray, query_posts=None, target_posts=None) -> np.ndarray:
        """Return log-likelihood ratios (N,).

        Parameters
        ----------
        scores : (N,)
            score of each of N pairs.
        query_posts, target_posts : (N,)
            sizes of both samples, if and only if the calibration was fitted with them.

        Raises
        ------
        ValueError
            If sizes are missing, or given to a calibration that was fitted without.
        """
        features = _features(scores, query_posts, target_posts, self.knots)
        if features.shape[1] != len(self.weights):
            raise ValueError(f"{features.shape[1]} features, fitted on {len(self.weights)}: sizes?")
        return (features * self.weights).sum(1) + self.intercept  # the rounding of @ depends on N


def fit_calibration(
    scores, same, query_posts=None, target_posts=None, prior: float = PAPER.prior
) -> Calibration:
    """Fit a calibration on dev trials by logistic regression, with trials weighted to a prior.

    With the sizes of both samples, the features are the score, the logarithms of both sizes and the
    products of the score with these. Features are standardised, and scikit-learn's default penalty
    keeps the slope finite even if the scores separate the dev trials without an error.

    Parameters
    ----------
    scores : (N,)
        score of each trial.
    same : (N,) bool
        whether a trial is of one account.
    query_posts, target_posts : (N,)
        sizes of both samples, or neither.
    prior : float
        the weight of all same-account trials together, out of 1.

    Raises
    ------
    ValueError
        If all trials are of one kind, or if a score or a size's logarithm is not finite, or as
        :func:`helpers.evaluation.trials.as_trials`.
    """
    # imported here: a calibration that is only applied need not wait for it
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scores, same = as_trials(scores, same)
    features = _features(scores, query_posts, target_posts)
    is_finite = np.isfinite(features).all(1)
    if not is_finite.all() or same.all() or not same.any():
        raise ValueError(
            "calibration needs finite values and both kinds of trials: "
            f"{same.sum()} of {len(same)} are of one account, {(~is_finite).sum()} are not finite"
        )
    weight = np.where(same, prior / same.mean(), (1 - prior) / (~same).mean())
    scaler = StandardScaler()
    regression = LogisticRegression(max_iter=1000)
    regression.fit(scaler.fit_transform(features), same, weight)
    slope = regression.coef_[0] / scaler.scale_
    intercept = regression.intercept_[0] - slope @ scaler.mean_ - logit(prior)
    return Calibration(slope.tolist(), float(intercept))


def estimate_prior(log_odds: np.ndarray) -> float:
    """Estimate the share of queries whose author has a target, from their likelihood ratios.

    Expectation maximisation: the share is the mean of the probabilities that it gives itself. It
    starts from what is usual: BELIEVED_QUERIES more queries count, of which USUAL_PRIOR have a
    target, so that few queries move it little. It is at least MIN_PRIOR and at most MAX_PRIOR.

    Parameters
    ----------
    log_odds : (Q,) of each query the logarithm of the mean likelihood ratio of all targets

    Raises
    ------
    ValueError
        If a ratio is NaN.

    References
    ----------
    Saerens, Latinne and Decaestecker 2002.
    """
    refuse_nan(log_odds, "likelihood ratios")
    share = MIN_PRIOR
    for _ in range(PRIOR_STEPS):
        with_target = expit(log_odds + logit(share)).sum() + BELIEVED_QUERIES * USUAL_PRIOR
        share = with_target / (len(log_odds) + BELIEVED_QUERIES)
        share = float(np.clip(share, MIN_PRIOR, MAX_PRIOR))
    return share


def score_pieces(scores: np.ndarray, knots: list[float]) -> np.ndarray:
    """Cut scores at knots into pieces that sum to the score, each between two knots.

    A sum of pieces with weights of 0 or more is a map that bends at the knots and never falls.

    Parameters
    ----------
    scores : (N,)
        one score of each pair.
    knots : list[float]
        K scores in ascending order.

    Returns
    -------
    (N, K + 1)
    """
    ends = zip([-np.inf, *knots], [*knots, np.inf], [0.0, *knots], strict=True)
    return np.column_stack([np.clip(scores, low, high) - begin for low, high, begin in ends])


def _features(scores, query_posts, target_posts, knots=()):
    """Return the features of :class:`Calibration`: (N, P) of P pieces, with sizes (N, 3 P + 2)."""
    pieces = score_pieces(np.asarray(scores, np.float64), knots)
    if query_posts is None:
        return pieces
    sizes = np.log(np.column_stack([query_posts, target_posts]).astype(np.float64))
    return np.hstack([pieces, sizes, pieces * sizes[:, :1], pieces * sizes[:, 1:]])


def cllr(llr: np.ndarray, same: np.ndarray) -> float:
    """Return Cllr, the cost of log-likelihood ratios in bits; 0 is perfect, 1 is uninformative.

    Misleading ratios can cost any number of bits. Trials of both kinds are needed.

    Parameters
    ----------
    llr : (N,)
        log-likelihood ratios.
    same : (N,) bool
        whether a trial is of one account.

    Raises
    ------
    ValueError
        If a ratio is NaN, or as :func:`helpers.evaluation.trials.as_trials`.

    References
    ----------
    Brummer and du Preez 2006.
    """
    llr, same = as_trials(llr, same)
    refuse_nan(llr, "likelihood ratios")
    of_one = np.logaddexp(0, -llr[same]).mean()
    of_two = np.logaddexp(0, llr[~same]).mean()
    return float((of_one + of_two) / 2 / np.log(2))


def min_cllr(scores: np.ndarray, same: np.ndarray) -> float:
    """Return Cllr after the best monotone recalibration of the same trials.

    The recalibration is found by pooling adjacent violators. Trials of both kinds are needed.

    Parameters
    ----------
    scores : (N,)
        score of each trial.
    same : (N,) bool
        whether a trial is of one account.

    Raises
    ------
    ValueError
        If a score is NaN, or as :func:`helpers.evaluation.trials.as_trials`.
    """
    from sklearn.isotonic import IsotonicRegression

    scores, same = as_trials(scores, same)
    refuse_nan(scores)
    level = np.unique(scores, return_inverse=True)[1]  # equal scores have one ratio
    weight = np.where(same, 0.5 / same.mean(), 0.5 / (~same).mean())
    share = IsotonicRegression(y_min=0, y_max=1).fit(level, same, weight).predict(level)
    return cllr(logit(share), same)


def reliability_bins(
    llr: np.ndarray, same: np.ndarray, prior: float = 0.5, bins: int = 10
) -> pd.DataFrame:
    """Return the share of same-account pairs by the probability that they were given.

    Trials of both kinds are weighted to the given prior, since most pairs of linking are
    different-account pairs.

    Parameters
    ----------
    llr : (N,)
        log-likelihood ratios.
    same : (N,) bool
        whether a trial is of one account.
    prior : float
        the share of same-account pairs.
    bins : int
        number of equally wide bins of probability; empty ones are left out.

    Returns
    -------
    Columns ``predicted`` (mean), ``observed`` (share), ``observed_low``, ``observed_high`` (95%,
    Wilson's, as if pairs did not depend on each other), ``same``, ``different`` (counts).

    Raises
    ------
    ValueError
        If a ratio is NaN, or as :func:`helpers.evaluation.trials.as_trials`.
    """
    from scipy.stats import binomtest

    llr, same = as_trials(llr, same)
    refuse_nan(llr, "likelihood ratios")
    predicted = expit(llr + logit(prior))
    weight = np.where(same, prior / same.sum(), (1 - prior) / (~same).sum())
    trials = {
        "bin": np.minimum((predicted * bins).astype(int), bins - 1),
        "weight": weight,
        "predicted": predicted * weight,
        "same": same,
        "different": ~same,
    }
    table = pd.DataFrame(trials).groupby("bin").sum()
    table["predicted"] /= table.pop("weight")
    shares = []
    for test in map(binomtest, table.same, table.same + table.different):
        shares.append([test.statistic, *test.proportion_ci(method="wilson")])
    odds = prior / (1 - prior) * (~same).sum() / same.sum()  # turns raw odds into odds at the prior
    shares = np.array(shares)
    shares = shares * odds / (shares * odds + 1 - shares)
    table[["observed", "observed_low", "observed_high"]] = shares
    return table.reset_index(drop=True)


def calibration_metrics(
    llr: np.ndarray, same: np.ndarray, costs: DetectionCosts = PAPER
) -> pd.DataFrame:
    """Return Cllr, minCllr, minDCF, the Bayes threshold, and P_miss, P_fa and DCF at it.

    DCF - minDCF is the loss of the Bayes threshold against the best one in hindsight; both are
    normalised.

    Parameters
    ----------
    llr : (N,)
        log-likelihood ratios.
    same : (N,) bool
        whether a trial is of one account.
    costs : DetectionCosts
        costs of errors, and the prior, which give the Bayes threshold.

    Returns
    -------
    A row for each metric, columns value, low and high (NaN).

    Raises
    ------
    ValueError
        As :func:`helpers.evaluation.detection.count_scores`.
    """
    llr, same = as_trials(llr, same)
    accepted = llr >= costs.threshold
    p_miss = 1 - accepted[same].mean()
    p_fa = accepted[~same].mean()
    metrics = {
        "Cllr": cllr(llr, same),
        "minCllr": min_cllr(llr, same),
        "threshold": costs.threshold,
        "P_miss": p_miss,
        "P_fa": p_fa,
        "DCF": costs.dcf(p_fa, p_miss),
        "minDCF": min_dcf(*error_rates(count_scores(llr, same)), costs),
    }
    return metric_table(metrics)
