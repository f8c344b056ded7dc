"""Detection: are these two samples by one account? EER, DCF and error curves of scored trials (khan2021 section 4.3).

A trial is a pair of samples with a score; a higher score means more alike. A trial is accepted if its score reaches the
threshold, so equal scores are accepted together. Exact error rates need only the number of different-account trials
between each two neighbouring scores of same-account trials. Trials are therefore counted in blocks and never sorted.
The counts are kept by account, for the bootstrap.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import ndtri

from helpers.core.config import Config
from helpers.evaluation.bootstrap import metric_table, percentile_interval, resample_weights

BLOCK = 2**20  # trials counted at a time
PRECISIONS = {"R@P90": 0.9, "R@P99": 0.99}


class DetectionCosts(Config):
    """Costs of errors: prior = share of same-account trials (pi), miss = C_miss, false_accept = C_fa."""

    prior: float = Field(0.05, gt=0, lt=1)
    miss: float = Field(1, gt=0)
    false_accept: float = Field(2, gt=0)

    def dcf(self, p_fa, p_miss):
        """Return pi C_miss P_miss + (1 - pi) C_fa P_fa, over the cheaper of accepting all and none."""
        miss, false_accept = self.prior * self.miss, (1 - self.prior) * self.false_accept
        return (miss * p_miss + false_accept * p_fa) / min(miss, false_accept)

    @property
    def threshold(self) -> float:
        """The log-likelihood ratio above which accepting is expected to cost less (Bayes)."""
        return float(np.log(self.false_accept * (1 - self.prior) / (self.miss * self.prior)))

    @property
    def min_probability(self) -> float:
        """The probability from which on accepting is expected to cost less (Bayes)."""
        return self.false_accept / (self.false_accept + self.miss)


PAPER = (
    DetectionCosts()
)  # of the printed tables, which can only be normalised: raw costs are at most 0.05
RELEASED = DetectionCosts(prior=0.01, miss=1, false_accept=1)  # of the released code


@dataclass(frozen=True)
class ScoreCounts:
    """How the trials of G accounts lie among the U distinct scores of same-account trials.

    values (U,), ascending; accounts (G,); same, other (G, 2U + 1): trials in each bin, as float64. Bin 2i + 1 holds
    scores equal to values[i], bin 2i those between values[i - 1] and values[i]. 32 bytes per account and value.
    """

    values: np.ndarray
    accounts: np.ndarray
    same: np.ndarray
    other: np.ndarray


def count_scores(
    scores: np.ndarray, same: np.ndarray, accounts: np.ndarray | None = None
) -> ScoreCounts:
    """Count trials. scores (N,), same (N,) bool, accounts (N,): whose query a trial is, by default all of one.

    Beside the result and the accounts' numbers (8 bytes a trial) it needs a few BLOCKs. Raises ValueError for lengths
    that do not fit, scores that are not finite, or trials of one kind only.
    """
    scores, same = np.asarray(scores), np.asarray(same, bool)
    row, accounts = (
        (np.zeros(len(scores), np.int64), [0])
        if accounts is None
        else pd.factorize(np.asarray(accounts))
    )
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
    values = np.unique(scores[same])
    bins = 2 * len(values) + 1
    counts = np.zeros((2, len(accounts) * bins))
    for begin in range(0, len(scores), BLOCK):
        part = slice(begin, begin + BLOCK)
        below = np.searchsorted(values, scores[part])
        place = (
            2 * below
            + (values[np.minimum(below, len(values) - 1)] == scores[part])
            + row[part] * bins
        )
        for kind in (0, 1):
            np.add.at(counts[kind], place[same[part] == kind], 1)
    of_two, of_one = counts.reshape(2, len(accounts), bins)
    return ScoreCounts(values, np.asarray(accounts), of_one, of_two)


def error_rates(
    counted: ScoreCounts, times: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return P_fa and P_miss (2U + 2,) at every corner of the curve, from rejecting all to accepting all.

    times (G,): how often each account counts. All NaN where no trial of either kind is left.
    """
    times = np.ones(len(counted.accounts)) if times is None else times
    accepted = [
        np.concatenate([[0], np.cumsum((times @ side)[::-1])])
        for side in (counted.other, counted.same)
    ]
    with np.errstate(invalid="ignore"):
        return accepted[0] / accepted[0][-1], 1 - accepted[1] / accepted[1][-1]


def eer(p_fa: np.ndarray, p_miss: np.ndarray) -> float:
    """Return the equal error rate: P_fa = P_miss on the straight lines between corners."""
    return float(np.interp(0, p_fa - p_miss, p_fa))


def min_dcf(p_fa: np.ndarray, p_miss: np.ndarray, costs: DetectionCosts = PAPER) -> float:
    """Return the lowest normalised detection cost of any threshold; at most 1, since a threshold may reject all."""
    return float(costs.dcf(p_fa, p_miss).min())


def recall_at(p_fa: np.ndarray, p_miss: np.ndarray, precision: float, prior: float) -> float:
    """Return the largest share of same-account trials that a threshold accepts at a precision, 0 if there is none.

    precision : share of same-account trials among the accepted ones, at the prior.
    prior : share of same-account trials where the threshold is used, which may differ from the share in a test.
    """
    right, wrong = prior * (1 - p_miss), (1 - prior) * p_fa
    return float((1 - p_miss)[right >= precision * (right + wrong)].max())


def actual_dcf(
    scores: np.ndarray, same: np.ndarray, threshold: float, costs: DetectionCosts = PAPER
) -> float:
    """Return the normalised detection cost of a given threshold."""
    accepted, same = np.asarray(scores) >= threshold, np.asarray(same, bool)
    return float(costs.dcf(accepted[~same].mean(), 1 - accepted[same].mean()))


def detection_metrics(
    tallies: list[ScoreCounts], costs: DetectionCosts = PAPER, seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """Return EER, minDCF, minDCF_released (costs of the released code) and recall at PRECISIONS: means over topics.

    Accounts are resampled with all their trials in all topics, because trials of one query depend on each other. A
    topic without an account in a resample is left out of it. The table has the columns value, low and high.
    """

    def measure(drawn):
        rates = [error_rates(one, each) for one, each in zip(tallies, drawn)]
        rates = [pair for pair in rates if np.isfinite(pair).all()]
        return np.mean([[eer(*pair), min_dcf(*pair, costs), min_dcf(*pair, RELEASED),
                         *(recall_at(*pair, share, costs.prior) for share in PRECISIONS.values())]
                        for pair in rates], axis=0)  # fmt: skip

    everyone = np.concatenate([one.accounts for one in tallies])
    row = np.unique(everyone, return_inverse=True)[1]
    row = np.split(row, np.cumsum([len(one.accounts) for one in tallies])[:-1])
    resampled = [
        measure([times[rows] for rows in row])
        for times in resample_weights(everyone, resamples, seed)
    ]
    values = dict(
        zip(("EER", "minDCF", "minDCF_released", *PRECISIONS), measure([None] * len(tallies)))
    )
    return metric_table(values, *percentile_interval(resampled, len(values)))


def det_curve(counted: ScoreCounts) -> pd.DataFrame:
    """Return the error curve from rejecting all to accepting all: columns ``threshold``, ``P_fa``, ``P_miss``.

    Corners that lie closer together than 1/500 of a rate and 1/50 of its probit are left out, since nobody sees them.
    At most some thousand corners remain, and every line stays within that distance.
    """
    p_fa, p_miss = error_rates(counted)
    at = np.column_stack([counted.values, np.nextafter(counted.values, np.inf)]).ravel()
    threshold = np.concatenate([[-np.inf], at, [np.inf]])[::-1]
    rates = np.column_stack([p_fa, p_miss])
    seen = np.hstack([500 * rates, 50 * ndtri(rates).clip(-5, 5)]).astype(int)
    new = (seen[1:] != seen[:-1]).any(1)
    keep = np.append(True, new) | np.append(new, True)  # the first and the last corner of each cell
    return pd.DataFrame({"threshold": threshold, "P_fa": p_fa, "P_miss": p_miss})[keep].reset_index(
        drop=True
    )


def mean_det_curve(curves: list[pd.DataFrame], points: int = 500) -> pd.DataFrame:
    """Return the mean P_miss of several curves at each P_fa (khan2021 Figure 7): columns ``P_fa``, ``P_miss``."""
    p_fa = np.unique(
        np.concatenate([[0], np.geomspace(1e-6, 1, points), np.linspace(0, 1, points)])
    )
    # where a curve falls at once, interp takes the lower end: the better of the thresholds with that P_fa
    return pd.DataFrame(
        {
            "P_fa": p_fa,
            "P_miss": np.mean([np.interp(p_fa, c.P_fa, c.P_miss) for c in curves], axis=0),
        }
    )
