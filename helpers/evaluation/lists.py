"""Lists: how well accounts of one list are found in another, each asked alone or all matched.

Each account of one list is a query: its answer is its best target. What the values of a pair know
of other queries depends on who made them: scores of a model know none, a matching knows all.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd

from .bootstrap import metric_table, percentile_interval, resample_weights
from .candidates import Candidates
from .scores import refuse_nan

PRECISIONS = {"A@P90": 0.9, "A@P99": 0.99}
METRICS = ("MRR", "R@1", *PRECISIONS)
BLOCK_NUMBERS = 2**18  # weights of resamples that are held at a time: they stay in the cache


@dataclass(frozen=True, eq=False)
class Answers:
    """The best target of each of Q queries, and where its partner stands.

    Attributes
    ----------
    target : (Q,) int, row of the best target; -1 of a query without candidates
    value : (Q,) of the best target; -inf without candidates
    rank : (Q,) of the partner, from 1 on; targets with its value stand before it; NaN of a query
        without a partner
    partner : (Q,) int, row of the partner, or -1
    """

    target: np.ndarray
    value: np.ndarray
    rank: np.ndarray
    partner: np.ndarray

    @property
    def has_partner(self) -> np.ndarray:
        """Whether a query has a partner, (Q,) bool."""
        return self.partner >= 0

    @property
    def right(self) -> np.ndarray:
        """Whether the best target is the partner and no other target has its value, (Q,) bool."""
        # of one target a partner that is no candidate has the rank 1, too
        return (self.rank == 1) & (self.target == self.partner)


def best_answers(candidates: Candidates, values: np.ndarray, same: np.ndarray) -> Answers:
    """Find the best target of each query, and the rank of its partner.

    Parameters
    ----------
    candidates : N pairs of Q queries and T targets; a partner that is no candidate has the rank T
    values : (N,), scores or probabilities of the pairs
    same : (Q, T) bool, the true pairs, at most one of each query

    Raises
    ------
    ValueError
        If a query has several partners, or a value is NaN.
    """
    refuse_nan(values, "values")
    if (same.sum(1) > 1).any():
        raise ValueError("a query of two lists has one partner at most")
    row, column = candidates.pairs.T
    partner = np.where(same.any(1), same.argmax(1), -1)
    order = np.lexsort((column, -values, row))
    queries, first = np.unique(row[order], return_index=True)
    target = np.full(candidates.queries, -1)
    value = np.full(candidates.queries, -np.inf)
    target[queries] = column[order[first]]
    value[queries] = values[order[first]]

    own_value = np.full(candidates.queries, -np.inf)
    is_partner = column == partner[row]
    own_value[row[is_partner]] = values[is_partner]
    rank = np.bincount(row[values >= own_value[row]], minlength=candidates.queries).astype(float)
    rank[own_value == -np.inf] = candidates.targets
    rank[partner < 0] = np.nan
    return Answers(target, value, rank, partner)


def precision_at_mean(answers: Answers, mean: float) -> float:
    """Return the precision of the likeliest answers whose mean probability is ``mean``.

    If the probabilities hold, it is about ``mean``.

    Parameters
    ----------
    answers : whose values are probabilities
    mean : the least mean probability of the answers that are taken, likeliest first

    Returns
    -------
    The share of right ones; NaN if the likeliest answer is less likely than ``mean``
    """
    order = np.argsort(-answers.value, kind="stable")
    means = np.cumsum(answers.value[order]) / np.arange(1, 1 + len(order))
    likeliest = order[: (means >= mean - 1e-9).sum()]  # sums of floats are not exact
    if not len(likeliest):
        return np.nan
    return answers.right[likeliest].mean()


def list_metrics(
    answers: Answers,
    accounts: np.ndarray,
    base: Answers | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Measure answers: MRR and R@1 of the queries with a partner, and A@P90 and A@P99.

    A@P90 is the share of queries with a partner that are answered rightly, by the lowest threshold
    of the values above which 90% of all answers are right; answers to queries without a partner are
    wrong.

    Parameters
    ----------
    answers : answers of Q queries, of one list or of several
    accounts : (Q,) account of each query; accounts are resampled
    base : other answers to the same queries; if given, what is returned is the difference to them
    seed, resamples : seed and number of bootstrap resamples of accounts

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each of METRICS, or for "MRR_difference" and
    so on

    Raises
    ------
    ValueError
        If the queries of both have not the same partners.
    """
    sides = [answers] if base is None else [answers, base]
    names = METRICS
    if base is not None:
        if not np.array_equal(answers.partner, base.partner):
            raise ValueError("answers to compare are not to the same queries")
        names = [f"{name}_difference" for name in METRICS]
    account = np.unique(accounts, return_inverse=True)[1]
    orders = [np.argsort(-side.value, kind="stable") for side in sides]
    (values,) = _difference(sides, orders, np.ones((1, len(account))))
    resampled = []
    resample = resample_weights(account, resamples, seed)
    rows = max(BLOCK_NUMBERS // len(account), 1)
    while block := list(islice(resample, rows)):
        weights = np.take(block, account, axis=1)
        has_any = np.compress(answers.has_partner, weights, axis=1).any(1)
        resampled.extend(_difference(sides, orders, weights[has_any]))
    low, high = percentile_interval(resampled, len(METRICS))
    return metric_table(dict(zip(names, values)), low, high)


def _difference(sides, orders, weights):
    """Return METRICS of the first answers, less those of the second where there are any.

    A row (R, metrics) for each row of ``weights`` (R, Q).
    """
    values = [_values(side, order, weights) for side, order in zip(sides, orders)]
    if len(values) == 1:
        return values[0]
    return values[0] - values[1]


def _values(answers, order, weights):
    """Return METRICS (R, metrics), each of Q queries counted ``weights`` (R, Q) times.

    ``order`` has the best answer first.
    """
    # compress and take, unlike brackets, keep the rows contiguous: sums are those of each row alone
    weight = np.compress(answers.has_partner, weights, axis=1)
    total = weight.sum(1)
    of_queries = (1 / answers.rank[answers.has_partner], answers.right[answers.has_partner])
    metrics = [(weight * values).sum(1) / total for values in of_queries]
    right, answered, is_last = cumulative_answers(answers, order, weights)
    for precision in PRECISIONS.values():
        enough = is_last & (right >= precision * answered)
        metrics.append(np.where(enough, right, 0).max(1) / total)
    return np.stack(metrics, 1)


def cumulative_answers(
    answers: Answers, order: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count right answers and all answers from the best value down, as curves of precision do.

    Parameters
    ----------
    answers : answers of Q queries
    order : (Q,) the queries, the highest value first
    weights : (Q,) how often each query counts; or (R, Q), R such weights

    Returns
    -------
    (Q,) or (R, Q) right answers, the same of all answers, and (Q,) bool, whether a threshold can
    stand here, because the next value is another one
    """
    weight = np.take(weights, order, axis=-1)
    value = answers.value[order]
    right = np.cumsum(weight * answers.right[order], axis=-1)
    return right, np.cumsum(weight, axis=-1), np.append(value[:-1] != value[1:], True)


def join_answers(parts: list[Answers]) -> Answers:
    """Return the answers of several lists as one, to be counted together."""
    names = ("target", "value", "rank", "partner")
    return Answers(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def precision_curve(answers: Answers) -> pd.DataFrame:
    """Return precision and recall of the answers above each threshold, the highest one first.

    Parameters
    ----------
    answers : answers of Q queries, of one list or of several; queries without a candidate have no
        answer

    Returns
    -------
    Columns ``recall``, the share of the queries with a partner that are answered rightly, and
    ``precision``, the share of the answers that are right; a row for each different value
    """
    order = np.argsort(-answers.value, kind="stable")
    right, answered, is_last = cumulative_answers(answers, order, np.ones(len(order)))
    curve = pd.DataFrame(
        {"recall": right / answers.has_partner.sum(), "precision": right / answered}
    )
    is_answer = answers.value[order] > -np.inf
    return curve[is_last & is_answer].reset_index(drop=True)
