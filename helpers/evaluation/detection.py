"""Detection: are these two samples by one account? (khan2021 section 4.3).

EER, DCF and error curves of scored trials. A trial is a pair of samples with a score; a higher
score means more alike. A trial is accepted if its score reaches the threshold, so equal scores are
accepted together. Exact error rates need only the number of different-account trials between each
two neighbouring scores of same-account trials. Trials are therefore counted in blocks and never
sorted. The counts are kept by account, for the bootstrap.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import ndtri

from helpers.core.config import Config
from helpers.evaluation.bootstrap import metric_table, percentile_interval, resample_weights

BLOCK_TRIALS = 2**20  # counted at a time
PRECISIONS = {"R@P90": 0.9, "R@P99": 0.99}
METRICS = ("EER", "minDCF", "minDCF_released", *PRECISIONS)


class DetectionCosts(Config):
    """Costs of errors.

    Parameters
    ----------
    prior : float
        share of same-account trials, pi.
    miss : float
        C_miss, the cost of rejecting one.
    false_accept : float
        C_fa, the cost of accepting a different-account trial.
    """

    prior: float = Field(0.05, gt=0, lt=1)
    miss: float = Field(1, gt=0)
    false_accept: float = Field(2, gt=0)

    def dcf(self, p_fa, p_miss):
        """Return pi C_miss P_miss + (1 - pi) C_fa P_fa, over the cheaper of accepting all and none.

        Parameters
        ----------
        p_fa, p_miss : float or array
            rates of accepted different-account and rejected same-account trials.
        """
        miss = self.prior * self.miss
        false_accept = (1 - self.prior) * self.false_accept
        return (miss * p_miss + false_accept * p_fa) / min(miss, false_accept)

    @property
    def threshold(self) -> float:
        """The log-likelihood ratio above which accepting is expected to cost less (Bayes)."""
        return float(np.log(self.false_accept * (1 - self.prior) / (self.miss * self.prior)))

    @property
    def min_probability(self) -> float:
        """The probability from which on accepting is expected to cost less (Bayes)."""
        return self.false_accept / (self.false_accept + self.miss)


# of the printed tables, which can only be normalised: raw costs are at most 0.05
PAPER = DetectionCosts()
RELEASED = DetectionCosts(prior=0.01, miss=1, false_accept=1)  # of the released code


@dataclass(frozen=True)
class ScoreCounts:
    """Count the trials of G accounts by where they lie among the U scores of same-account trials.

    Bin 2i + 1 holds scores equal to values[i], bin 2i those between values[i - 1] and values[i]. It
    takes 32 bytes per account and value.

    Parameters
    ----------
    values : (U,)
        distinct scores of same-account trials, ascending.
    accounts : (G,)
        whose queries the trials are.
    same, different : (G, 2U + 1) float64
        trials of one and of two accounts in each bin.
    """

    values: np.ndarray
    accounts: np.ndarray
    same: np.ndarray
    different: np.ndarray


def count_scores(
    scores: np.ndarray, same: np.ndarray, accounts: np.ndarray | None = None
) -> ScoreCounts:
    """Count trials.

    Beside the result and the accounts' numbers (8 bytes a trial) it needs a few blocks of
    BLOCK_TRIALS.

    Parameters
    ----------
    scores : (N,)
        of the trials.
    same : (N,) bool
        whether a trial is of one account.
    accounts : (N,)
        whose query a trial is, by default all of one.

    Raises
    ------
    ValueError
        For lengths that do not fit, scores that are not finite, or trials of one kind only.
    """
    scores = np.asarray(scores)
    same = np.asarray(same, bool)
    if accounts is None:
        row = np.zeros(len(scores), np.int64)
        accounts = np.zeros(1, int)
    else:
        row, accounts = pd.factorize(np.asarray(accounts))
    _check_trials(scores, same, row)

    values = np.unique(scores[same])
    bins = 2 * len(values) + 1
    of_one = np.zeros(len(accounts) * bins)
    of_two = np.zeros(len(accounts) * bins)
    for begin in range(0, len(scores), BLOCK_TRIALS):
        block = slice(begin, begin + BLOCK_TRIALS)
        below = np.searchsorted(values, scores[block])
        is_value = values[np.minimum(below, len(values) - 1)] == scores[block]
        place = row[block] * bins + np.where(is_value, 2 * below + 1, 2 * below)
        np.add.at(of_one, place[same[block]], 1)
        np.add.at(of_two, place[~same[block]], 1)
    shape = (len(accounts), bins)
    return ScoreCounts(values, np.asarray(accounts), of_one.reshape(shape), of_two.reshape(shape))


def _check_trials(scores, same, row):
    if not len(scores) == len(same) == len(row):
        raise ValueError(
            f"{len(scores)} scores, {len(same)} labels and {len(row)} accounts do not fit together"
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"{(~np.isfinite(scores)).sum()} scores are not finite")
    if same.all() or not same.any():
        raise ValueError(
            f"{same.sum()} of {len(same)} trials are of one account: error rates need both kinds"
        )


def error_rates(
    counts: ScoreCounts, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return P_fa and P_miss at every corner of the curve, from rejecting all to accepting all.

    Parameters
    ----------
    counts : ScoreCounts
        of the trials.
    weights : (G,)
        how often each account counts, by default once.

    Returns
    -------
    Two arrays (2U + 2,), all NaN where no trial of either kind is left.
    """
    if weights is None:
        weights = np.ones(len(counts.accounts))
    with np.errstate(invalid="ignore"):
        p_fa = _accepted_share(weights @ counts.different)
        return p_fa, 1 - _accepted_share(weights @ counts.same)


def _accepted_share(trials):
    """Return the share of trials that are accepted, as the threshold falls from bin to bin."""
    accepted = np.concatenate([[0], np.cumsum(trials[::-1])])
    return accepted / accepted[-1]


def eer(p_fa: np.ndarray, p_miss: np.ndarray) -> float:
    """Return the equal error rate: P_fa = P_miss on the straight lines between corners.

    Parameters
    ----------
    p_fa, p_miss : (K,)
        of :func:`error_rates`.
    """
    return float(np.interp(0, p_fa - p_miss, p_fa))


def min_dcf(p_fa: np.ndarray, p_miss: np.ndarray, costs: DetectionCosts = PAPER) -> float:
    """Return the lowest normalised detection cost of any threshold, at most 1.

    Parameters
    ----------
    p_fa, p_miss : (K,)
        of :func:`error_rates`.
    costs : DetectionCosts
        of errors.
    """
    return float(costs.dcf(p_fa, p_miss).min())


def recall_at(p_fa: np.ndarray, p_miss: np.ndarray, precision: float, prior: float) -> float:
    """Return the largest share of same-account trials accepted at a precision, 0 if there is none.

    Parameters
    ----------
    p_fa, p_miss : (K,)
        of :func:`error_rates`.
    precision : float
        share of same-account trials among the accepted ones, at the prior.
    prior : float
        share of same-account trials where the threshold is used, which may differ from the share in
        a test.
    """
    right = prior * (1 - p_miss)
    wrong = (1 - prior) * p_fa
    return float((1 - p_miss)[right >= precision * (right + wrong)].max())


def detection_metrics(
    tallies: list[ScoreCounts], costs: DetectionCosts = PAPER, seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """Return METRICS: EER, minDCF by given and by released costs, recall at PRECISIONS.

    They are means over topics. Accounts are resampled with all their trials in all topics, because
    trials of one query depend on each other. A topic without an account in a resample is left out
    of it.

    Parameters
    ----------
    tallies : list[ScoreCounts]
        of each topic the counts of its trials.
    costs : DetectionCosts
        of errors.
    seed : int
        of the resamples.
    resamples : int
        number of them.

    Returns
    -------
    A row a metric, columns value, low and high.
    """
    accounts = np.concatenate([counts.accounts for counts in tallies])
    row = np.unique(accounts, return_inverse=True)[1]
    ends = np.cumsum([len(counts.accounts) for counts in tallies])
    rows_of_tally = np.split(row, ends[:-1])
    resampled = []
    for weights in resample_weights(accounts, resamples, seed):
        weights_of_tally = [weights[rows] for rows in rows_of_tally]
        resampled.append(_mean_metrics(tallies, weights_of_tally, costs))
    values = _mean_metrics(tallies, [None] * len(tallies), costs)
    low, high = percentile_interval(resampled, len(METRICS))
    return metric_table(dict(zip(METRICS, values)), low, high)


def _mean_metrics(tallies, weights_of_tally, costs):
    """Return METRICS (5,), means over the topics that have trials of both kinds."""
    metrics = []
    for counts, weights in zip(tallies, weights_of_tally):
        rates = error_rates(counts, weights)
        if not np.isfinite(rates).all():
            continue
        recalls = [recall_at(*rates, share, costs.prior) for share in PRECISIONS.values()]
        metrics.append([eer(*rates), min_dcf(*rates, costs), min_dcf(*rates, RELEASED), *recalls])
    return np.mean(metrics, axis=0)


def det_curve(counts: ScoreCounts) -> pd.DataFrame:
    """Return the error curve from rejecting all to accepting all.

    Corners that lie closer together than 1/500 of a rate and 1/50 of its probit are left out, since
    nobody sees them. At most some thousand corners remain, and every line stays within that
    distance.

    Returns
    -------
    Columns ``threshold``, ``P_fa``, ``P_miss``.
    """
    p_fa, p_miss = error_rates(counts)
    corners = np.column_stack([counts.values, np.nextafter(counts.values, np.inf)]).ravel()
    threshold = np.concatenate([[-np.inf], corners, [np.inf]])[::-1]
    rates = np.column_stack([p_fa, p_miss])
    cell = np.hstack([500 * rates, 50 * ndtri(rates).clip(-5, 5)]).astype(int)
    is_new = (cell[1:] != cell[:-1]).any(1)
    is_kept = np.append(True, is_new) | np.append(is_new, True)  # both ends of each cell
    curve = pd.DataFrame({"threshold": threshold, "P_fa": p_fa, "P_miss": p_miss})
    return curve[is_kept].reset_index(drop=True)


def mean_det_curve(curves: list[pd.DataFrame], points: int = 500) -> pd.DataFrame:
    """Return the mean P_miss of several curves at each P_fa (khan2021 Figure 7).

    Parameters
    ----------
    curves : list[frame]
        of :func:`det_curve`.
    points : int
        on a linear, and again on a logarithmic scale of P_fa.

    Returns
    -------
    Columns ``P_fa``, ``P_miss``.
    """
    logarithmic = np.geomspace(1e-6, 1, points)
    p_fa = np.unique(np.concatenate([[0], logarithmic, np.linspace(0, 1, points)]))
    # where a curve falls at once, interp takes the lower end: the better of the thresholds
    p_miss = [np.interp(p_fa, curve.P_fa, curve.P_miss) for curve in curves]
    return pd.DataFrame({"P_fa": p_fa, "P_miss": np.mean(p_miss, axis=0)})
