"""Detection: are these two samples by one account? (khan2021 section 4.3).

The module computes EER, DCF and error curves of scored trials. A trial is a pair of samples with a
score; a higher score means more alike. A trial is accepted if its score reaches the threshold, so
equal scores are accepted together. Exact error rates need only the number of different-account
trials between each two neighbouring scores of same-account trials. Trials are therefore counted in
blocks and never sorted. The counts are kept by account, for the bootstrap.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import ndtri

from ..core.parameters import Config
from .bootstrap import metric_table, percentile_interval, resample_weights

BLOCK_TRIALS = 2**20  # trials that are counted at a time
RESAMPLES_AT_ONCE = 100  # resamples whose curves are in memory at a time
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

    Bin 2i + 1 holds scores equal to values[i], bin 2i those between values[i - 1] and values[i];
    the first and the last bin hold those below and above all values. The counts take 32 bytes per
    account and value.

    Parameters
    ----------
    values : (U,)
        distinct scores of same-account trials, ascending.
    accounts : (G,)
        the account whose queries each row of counts is for.
    same, different : (G, 2U + 1) float64
        number of same-account and of different-account trials in each bin.
    """

    values: np.ndarray
    accounts: np.ndarray
    same: np.ndarray
    different: np.ndarray


def count_scores(
    scores: np.ndarray, same: np.ndarray, accounts: np.ndarray | None = None
) -> ScoreCounts:
    """Count trials by account, and by their place among the scores of same-account trials.

    Beside the result it needs memory for 8 bytes a trial and a few blocks of BLOCK_TRIALS.

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
        If lengths differ, a score is not finite, or all trials are of one kind.
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
    with np.errstate(invalid="ignore"):
        p_fa = _accepted_share(weights @ counts.different)
        return p_fa, 1 - _accepted_share(weights @ counts.same)


def _accepted_share(trials):
    """Return the share of trials that are accepted, as the threshold falls from bin to bin."""
    accepted = np.cumsum(trials[..., ::-1], axis=-1)
    none = np.zeros_like(accepted[..., :1])
    return np.concatenate([none, accepted], axis=-1) / accepted[..., -1:]


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
    apart = p_fa - p_miss  # rises from -1 to 1
    corner = (apart <= 0).sum(-1, keepdims=True) - 1  # the last one before they are equal
    gap = np.take_along_axis(apart, corner, -1)
    rate = np.take_along_axis(p_fa, corner, -1)
    slope = np.take_along_axis(p_fa, corner + 1, -1) - rate
    slope = slope / (np.take_along_axis(apart, corner + 1, -1) - gap)
    return (rate - gap * slope)[..., 0]


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
    (...), one share for each curve; NaN where a rate is.
    """
    right = prior * (1 - p_miss)
    accepted = right + (1 - prior) * p_fa
    recall = np.where(right >= precision * accepted, 1 - p_miss, 0)
    return np.where(np.isnan(accepted), np.nan, recall).max(-1)


def detection_metrics(
    tallies: list[ScoreCounts], costs: DetectionCosts = PAPER, seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """Return METRICS: EER, minDCF by given and by released costs, recall at PRECISIONS.

    They are means over topics. For the intervals accounts are resampled with all their trials in
    all topics, because trials of one query depend on each other. A topic without trials of both
    kinds in a resample is left out of it, and a resample without any such topic counts for nothing.

    Parameters
    ----------
    tallies : list[ScoreCounts]
        counts of the trials of each topic.
    costs : DetectionCosts
        costs of ``minDCF``, and the prior of the recalls.
    seed : int
        seed of the resamples.
    resamples : int
        number of resamples; 0 for no intervals.

    Returns
    -------
    A row for each metric, columns value, low and high.
    """
    values = _mean_metrics(tallies, [None] * len(tallies), costs)
    low, high = percentile_interval(_resampled(tallies, costs, seed, resamples), len(METRICS))
    return metric_table(dict(zip(METRICS, values)), low, high)


def detection_differences(
    tallies: list[list[ScoreCounts]],
    base: list[list[ScoreCounts]],
    costs: DetectionCosts = PAPER,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return the differences of METRICS between two models on the same trials.

    Intervals are paired: both models are measured on the same resamples of accounts. Of several
    trainings the metrics are averaged within each resample.

    Parameters
    ----------
    tallies, base : list[list[ScoreCounts]]
        for each training of the model, and of the one that is subtracted, the counts of the trials
        of each topic.
    costs, seed, resamples
        as in :func:`detection_metrics`.

    Returns
    -------
    A row for each metric, named ``EER_difference`` and so on; columns value, low and high.

    Raises
    ------
    ValueError
        If the trials differ in their accounts or numbers.
    """
    if not all(_are_same_trials(counts, base[0]) for counts in [*tallies, *base]):
        raise ValueError("scores to compare are not of the same trials")
    of_model = _mean_over_trainings(tallies, costs)
    of_base = _mean_over_trainings(base, costs)
    metrics = np.mean([_resampled(counts, costs, seed, resamples) for counts in tallies], 0)
    base_metrics = np.mean([_resampled(counts, costs, seed, resamples) for counts in base], 0)
    low, high = percentile_interval(metrics - base_metrics, len(METRICS))
    return metric_table((of_model - of_base).add_suffix("_difference"), low, high)


def _mean_over_trainings(tallies, costs):
    """Return METRICS, means over trainings, as a Series."""
    tables = [detection_metrics(counts, costs, resamples=0).value for counts in tallies]
    return sum(tables) / len(tables)


def _are_same_trials(tallies, base):
    """Return whether two lists of counts are of as many trials of the same accounts."""
    if len(tallies) != len(base):
        return False
    for counts, base_counts in zip(tallies, base):
        if not np.array_equal(counts.accounts, base_counts.accounts):
            return False
        for kind in ("same", "different"):
            trials = getattr(counts, kind).sum(1)
            if not np.array_equal(trials, getattr(base_counts, kind).sum(1)):
                return False
    return True


def _resampled(tallies, costs, seed, resamples):
    """Return METRICS (R, 5) of each resample of the accounts, means over topics."""
    accounts = np.concatenate([counts.accounts for counts in tallies])
    row = np.unique(accounts, return_inverse=True)[1]
    ends = np.cumsum([len(counts.accounts) for counts in tallies])
    rows_of_tally = np.split(row, ends[:-1])
    weights = np.array(list(resample_weights(accounts, resamples, seed)))
    metrics = [np.empty((0, len(METRICS)))]
    for begin in range(0, resamples, RESAMPLES_AT_ONCE):
        part = weights[begin : begin + RESAMPLES_AT_ONCE]
        metrics.append(_mean_metrics(tallies, [part[:, rows] for rows in rows_of_tally], costs))
    return np.concatenate(metrics)


def _mean_metrics(tallies, weights_of_tally, costs):
    """Return METRICS (..., 5), means over the topics that have trials of both kinds; else NaN.

    Of each topic ``weights_of_tally`` holds the weights (..., G) of its accounts, or None.
    """
    metrics = []
    for counts, weights in zip(tallies, weights_of_tally):
        rates = error_rates(counts, weights)
        recalls = [recall_at(*rates, share, costs.prior) for share in PRECISIONS.values()]
        values = [eer(*rates), min_dcf(*rates, costs), min_dcf(*rates, RELEASED), *recalls]
        is_known = np.isfinite(rates).all((0, -1))
        metrics.append(np.where(is_known, values, np.nan))
    topics = np.isfinite(metrics).sum(0)
    with np.errstate(invalid="ignore"):
        return np.moveaxis(np.nansum(metrics, axis=0) / topics, 0, -1)


def det_curve(counts: ScoreCounts) -> pd.DataFrame:
    """Return the error curve from rejecting all to accepting all.

    Corners that lie closer together than 1/500 of a rate and 1/50 of its probit are left out, since
    a plot does not show them. At most a few thousand corners remain, and every line stays within
    that distance.

    Parameters
    ----------
    counts : ScoreCounts
        counts of the trials.

    Returns
    -------
    Columns ``threshold`` (descending), ``P_fa``, ``P_miss``.
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
        curves of :func:`det_curve`.
    points : int
        number of values of P_fa on a linear scale, and again on a logarithmic one.

    Returns
    -------
    Columns ``P_fa``, ``P_miss``.
    """
    logarithmic = np.geomspace(1e-6, 1, points)
    p_fa = np.unique(np.concatenate([[0], logarithmic, np.linspace(0, 1, points)]))
    # where a curve falls vertically, np.interp takes the lower end, that of the better threshold
    p_miss = [np.interp(p_fa, curve.P_fa, curve.P_miss) for curve in curves]
    return pd.DataFrame({"P_fa": p_fa, "P_miss": np.mean(p_miss, axis=0)})
