"""Detection: are these two samples by one account? (khan2021 section 4.3).

The module computes EER, DCF and error curves of scored trials. A trial is a pair of samples with a
score; a higher score means more alike. A trial is accepted if its score reaches the threshold, so
equal scores are accepted together. Exact error rates need only the number of different-account
trials between each two neighbouring scores of same-account trials. The counts are kept by account,
for the bootstrap.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import Field

from ..core.parameters import Config
from .trials import as_trials

# recall metrics, and the precision at which each is measured
PRECISIONS = {"R@P90": 0.9, "R@P99": 0.99}
METRICS = ("EER", "minDCF", "minDCF_released", *PRECISIONS)


class DetectionCosts(Config):
    """Costs of errors, and the prior, for the detection cost function (DCF).

    Parameters
    ----------
    prior : float
        pi, the share of same-account trials.
    miss : float
        C_miss, the cost of rejecting a same-account trial.
    false_accept : float
        C_fa, the cost of accepting a different-account trial.
    """

    prior: float = Field(0.05, gt=0, lt=1)
    miss: float = Field(1, gt=0, le=1e9)
    false_accept: float = Field(2, gt=0, le=1e9)

    def dcf(self, p_fa, p_miss):
        """Return the normalised cost of errors.

        It is pi C_miss P_miss + (1 - pi) C_fa P_fa, divided by the cost of accepting all trials or
        of rejecting all, whichever is lower.

        Parameters
        ----------
        p_fa, p_miss : float or array
            share of different-account trials that are accepted, and of same-account trials that are
            rejected.
        """
        miss = self.prior * self.miss
        false_accept = (1 - self.prior) * self.false_accept
        return (miss * p_miss + false_accept * p_fa) / min(miss, false_accept)

    @property
    def threshold(self) -> float:
        """The log-likelihood ratio from which on accepting is expected to cost less (Bayes)."""
        return float(np.log(self.false_accept * (1 - self.prior) / (self.miss * self.prior)))

    @property
    def min_probability(self) -> float:
        """The probability from which on accepting is expected to cost less (Bayes)."""
        return self.false_accept / (self.false_accept + self.miss)


# costs of the paper's tables; their values must be normalised ones, as raw costs are at most 0.05
PAPER = DetectionCosts()
RELEASED = DetectionCosts(prior=0.01, miss=1, false_accept=1)  # costs of the released code


@dataclass(frozen=True)
class ScoreCounts:
    """Count the trials of G accounts by where they lie among the U scores of same-account trials.

    Bin 2i + 1 holds scores equal to the i-th of the distinct scores, in ascending order, bin 2i
    those between it and the one before; the first and the last bin hold those below and above all
    of them. The counts take 32 bytes per account and score.

    Parameters
    ----------
    accounts : (G,)
        the account whose queries each row of counts is for.
    same, different : (G, 2U + 1) float64
        number of same-account and of different-account trials in each bin.
    """

    accounts: np.ndarray
    same: np.ndarray
    different: np.ndarray


def count_scores(
    scores: np.ndarray, same: np.ndarray, accounts: np.ndarray | None = None
) -> ScoreCounts:
    """Count trials by account, and by their place among the scores of same-account trials.

    Parameters
    ----------
    scores : (N,)
        score of each trial.
    same : (N,) bool
        whether a trial is of one account.
    accounts : (N,)
        the account of each trial's query; by default all trials count for one account.

    Raises
    ------
    ValueError
        If a score is not finite, or all trials are of one kind, or as
        :func:`helpers.evaluation.trials.as_trials`.
    """
    scores, same = as_trials(scores, same)
    if accounts is None:
        accounts = np.zeros(len(scores), int)
    row, accounts = pd.factorize(np.asarray(accounts))
    missing = (~np.isfinite(scores)).sum()
    if missing or same.all() or not same.any():
        raise ValueError(
            f"error rates need finite scores and both kinds of trials: {missing} scores are not "
            f"finite, {same.sum()} of {len(same)} trials are of one account"
        )
    values = np.unique(scores[same])
    shape = (len(accounts), 2 * len(values) + 1)
    place = np.searchsorted(values, scores) + np.searchsorted(values, scores, "right")
    counts = np.zeros((2, *shape))
    np.add.at(counts, (same.astype(int), row, place), 1)
    different, of_one = counts
    return ScoreCounts(accounts, of_one, different)


def error_rates(
    counts: ScoreCounts, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return P_fa and P_miss at every corner of the curve, from rejecting all to accepting all.

    Parameters
    ----------
    counts : ScoreCounts
        counts of the trials.
    weights : (..., G)
        how often each account counts; by default once.

    Returns
    -------
    Two arrays (..., 2U + 2). P_fa is NaN if no different-account trial counts, P_miss if no
    same-account trial does.
    """
    if weights is None:
        weights = np.ones(len(counts.accounts))
    rates = []
    for trials in (counts.different, counts.same):
        # as the threshold falls from bin to bin, from none to all
        accepted = np.insert(np.cumsum((weights @ trials)[..., ::-1], -1), 0, 0, -1)
        with np.errstate(invalid="ignore"):
            rates.append(accepted / accepted[..., -1:])
    p_fa, p_hit = rates
    return p_fa, 1 - p_hit


def eer(p_fa: np.ndarray, p_miss: np.ndarray) -> np.ndarray:
    """Return the equal error rate: P_fa = P_miss on the straight lines between corners.

    Parameters
    ----------
    p_fa, p_miss : (..., K)
        rates at K corners, of :func:`error_rates`.

    Returns
    -------
    (...), one rate for each curve.
    """
    return np.vectorize(_crossing, signature="(k),(k)->()")(p_fa, p_miss)


def _crossing(p_fa, p_miss):
    return np.interp(0, p_fa - p_miss, p_fa)


def min_dcf(p_fa: np.ndarray, p_miss: np.ndarray, costs: DetectionCosts = PAPER) -> np.ndarray:
    """Return the lowest normalised detection cost of any threshold, at most 1.

    Parameters
    ----------
    p_fa, p_miss : (..., K)
        rates at K corners, of :func:`error_rates`.
    costs : DetectionCosts
        costs of errors, and the prior.

    Returns
    -------
    (...), one cost for each curve.
    """
    return costs.dcf(p_fa, p_miss).min(-1)


def recall_at(p_fa: np.ndarray, p_miss: np.ndarray, precision: float, prior: float) -> np.ndarray:
    """Return the largest share of same-account trials accepted at a precision, 0 if none can be.

    Parameters
    ----------
    p_fa, p_miss : (..., K)
        rates at K corners, of :func:`error_rates`.
    precision : float
        least share of same-account trials among the accepted ones, at the prior.
    prior : float
        share of same-account trials where the threshold is used, which may differ from the share in
        a test.

    Returns
    -------
    (...), one share for each curve.
    """
    right = prior * (1 - p_miss)
    accepted = right + (1 - prior) * p_fa
    return np.where(right >= precision * accepted, 1 - p_miss, 0).max(-1)


def auc(scores: np.ndarray, same: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the area under the ROC curve, NaN where all pairs that count are of one kind.

    Parameters
    ----------
    scores : (N,)
        score of each pair.
    same : (N,) bool
        whether a pair is of one author.
    weights : (..., N)
        how often each pair counts; by default once.

    Returns
    -------
    (...)

    Raises
    ------
    ValueError
        If a score is not finite, or as :func:`helpers.evaluation.trials.as_trials`.
    """
    scores, same = as_trials(scores, same)
    if not np.isfinite(scores).all():
        raise ValueError("the area under the ROC curve needs finite scores")
    if weights is None:
        weights = np.ones(len(same))
    order = np.argsort(scores)
    first_of_score = np.unique(scores[order], return_index=True)[1]
    positives, negatives = [
        np.add.reduceat((weights * kind)[..., order], first_of_score, -1) for kind in (same, ~same)
    ]
    below = np.cumsum(negatives, -1) - negatives / 2  # ties count half
    with np.errstate(invalid="ignore"):
        return (positives * below).sum(-1) / (positives.sum(-1) * negatives.sum(-1))


def topic_means(
    accounts: np.ndarray, costs: DetectionCosts, tallies: list[ScoreCounts], weights: np.ndarray
) -> np.ndarray:
    """Return METRICS: EER, minDCF by given and by released costs, recall at PRECISIONS.

    They are means over topics. A topic in which no trial of one of both kinds counts is left out;
    NaN without any other.

    Parameters
    ----------
    accounts : (G,)
        all accounts of the counts, sorted.
    costs : DetectionCosts
        costs of ``minDCF``, and the prior of the recalls.
    tallies : list[ScoreCounts]
        counts of the trials of each topic.
    weights : (R, G)
        how often each account counts.

    Returns
    -------
    (R, 5)
    """
    metrics = []
    for counts in tallies:
        rates = error_rates(counts, weights[:, np.searchsorted(accounts, counts.accounts)])
        recalls = [recall_at(*rates, share, costs.prior) for share in PRECISIONS.values()]
        values = [eer(*rates), min_dcf(*rates, costs), min_dcf(*rates, RELEASED), *recalls]
        is_known = np.isfinite(rates).all((0, -1))
        metrics.append(np.where(is_known, values, np.nan))
    with np.errstate(invalid="ignore"):
        return (np.nansum(metrics, 0) / np.isfinite(metrics).sum(0)).T
