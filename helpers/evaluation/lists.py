"""Lists: how well accounts of one list are found in another, each asked alone or all matched.

Each account of one list is a query: its answer is its best target. The ways to answer differ in
what a query knows of the others, see WAYS. All read the same scores, of lists with a known overlap
that are drawn from known accounts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..core import results
from ..core.names import short_name
from ..core.paths import Run
from .bootstrap import resampled_metrics
from .calibration import cllr, min_cllr
from .matching import MatchConfig, draw_lists, estimate_overlap, mutual_best, sinkhorn
from .scores import list_norm, refuse_nan

PRECISIONS = {"A@P90": 0.9, "A@P99": 0.99}
METRICS = ("MRR", "R@1", *PRECISIONS)
ALONE = "alone"  # each query knows the gallery of targets, and no other query
AS_LIST = "AS list"  # the other queries are the cohort of AS-norm
MATCHED = "matched"  # all scores are turned into probabilities together
ASSIGNED = "assigned"  # the optimal assignment (Jonker and Volgenant 1987, by SciPy)
MUTUAL = "mutual"  # only pairs of which each is the other's best
WAYS = (ALONE, AS_LIST, MATCHED, ASSIGNED, MUTUAL)
WITHOUT_RANKS = (ASSIGNED, MUTUAL)  # one answer a query, so no MRR
LIKELY = (0.5, 0.9)  # probabilities from which on answers are counted by DrawnLists.calibration


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


def best_answers(values: np.ndarray, same: np.ndarray) -> Answers:
    """Find the best target of each query, and the rank of its partner.

    Parameters
    ----------
    values : (Q, T), scores or probabilities of Q queries with T targets; -inf of a pair that is no
        candidate. A partner that is none has the rank T
    same : (Q, T) bool, the true pairs, at most one of each query

    Raises
    ------
    ValueError
        If a query has several partners, or a value is NaN.
    """
    refuse_nan(values, "values")
    if (same.sum(1) > 1).any():
        raise ValueError("a query of two lists has one partner at most")
    value = values.max(1)
    target = np.where(value > -np.inf, values.argmax(1), -1)
    partner = np.where(same.any(1), same.argmax(1), -1)
    own_value = np.where(same, values, -np.inf).max(1)
    rank = (values >= own_value[:, None]).sum(1).astype(float)  # T where it is no candidate
    rank[partner < 0] = np.nan
    return Answers(target, value, rank, partner)


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
    sides = [answers]
    if base is not None:
        sides.append(base)
        if not np.array_equal(answers.partner, base.partner):
            raise ValueError("answers to compare are not to the same queries")
    account = np.unique(accounts, return_inverse=True)[1]
    measures = [_metrics_of(side, account) for side in sides]
    return resampled_metrics(measures, METRICS, accounts, seed, resamples)


def _metrics_of(answers, account):
    """Return a function that measures answers, each account counted ``weights`` (A,) times."""
    has_partner = answers.has_partner
    of_queries = np.stack([1 / answers.rank[has_partner], answers.right[has_partner]], 1)
    order = np.argsort(-answers.value, kind="stable")

    def measure(weights):
        weight = weights[account]
        total = weight[has_partner].sum()
        if not total:  # a resample without any partner counts for nothing
            return np.full(len(METRICS), np.nan)
        right, answered, is_last = _cumulative(answers, order, weight)
        at_precisions = [
            right[is_last & (right >= precision * answered)].max(initial=0)
            for precision in PRECISIONS.values()
        ]
        return np.array([*(weight[has_partner] @ of_queries), *at_precisions]) / total

    return measure


def _cumulative(answers, order, weight):
    """Count right answers and all answers from the best value down, as curves of precision do.

    The last array tells whether a threshold can stand there, because the next value is another one.
    """
    value = answers.value[order]
    right = np.cumsum((weight * answers.right)[order])
    return right, np.cumsum(weight[order]), np.append(value[:-1] != value[1:], True)


def join_answers(parts: Iterable[Answers]) -> Answers:
    """Return the answers of several lists as one, to be counted together."""
    return Answers(*map(np.concatenate, zip(*(vars(part).values() for part in parts))))


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
    right, answered, is_last = _cumulative(answers, order, np.ones(len(order)))
    curve = pd.DataFrame(
        {"recall": right / answers.has_partner.sum(), "precision": right / answered}
    )
    is_answer = answers.value[order] > -np.inf
    return curve[is_last & is_answer].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class DrawnLists:
    """The answers of several pairs of lists, counted together.

    Attributes
    ----------
    accounts : (N,) account of each query of all lists
    nobody : (N,) probability that a query has no partner, as matched
    llr : (M,) log-likelihood ratio of each pair of all lists, as matched
    same : (M,) bool, whether a pair are partners
    overlaps : (L,) of each pair of lists the overlap that the matching assumed
    answers : way -> answers of the N queries
    """

    accounts: np.ndarray
    nobody: np.ndarray
    llr: np.ndarray
    same: np.ndarray
    overlaps: np.ndarray
    answers: dict[str, Answers]

    def calibration(self) -> dict[str, float]:
        """Return MRR, Cllr and minCllr, and how often likely answers, and nobody, are right."""
        best = self.answers[MATCHED]
        row = {
            "overlap assumed": self.overlaps.mean(),
            "MRR, alone": np.nanmean(1 / self.answers[ALONE].rank),
            "MRR, matched": np.nanmean(1 / best.rank),
            "Cllr": cllr(self.llr, self.same),
            "minCllr": min_cllr(self.llr, self.same),
        }
        called = {f"{least:.0%}": (best.value >= least, best.right) for least in LIKELY}
        called["nobody"] = (self.nobody >= 0.5, ~best.has_partner)
        for name, (is_called, right) in called.items():
            row[f"called {name}"] = is_called.mean()
            row[f"right, {name}"] = right[is_called].mean() if is_called.any() else np.nan
        return row


def record_lists(
    files: Run, lists: DrawnLists, system: str, protocol: str, ways: tuple = WAYS, **about: object
) -> None:
    """Record the metrics of ways to answer, each as a system of its own, and their differences.

    Parameters
    ----------
    files : the run whose table of results takes the rows
    lists : the answers to several pairs of lists
    system : name of the system whose scores were matched
    protocol : name of the protocol, such as "matched, overlap 0.5"
    ways : the ways that are recorded
    **about : more fields of :class:`helpers.core.results.Measured`, and ``seed`` of the bootstrap
    """
    size = len(lists.accounts) // len(lists.overlaps)
    of_ways = [(way, "") for way in ways]
    if MATCHED in ways:
        of_ways += [(MATCHED, ALONE), (MATCHED, AS_LIST)]
    for way, base_way in of_ways:
        sides = (lists.answers[way], lists.accounts, lists.answers.get(base_way))
        measured = list_metrics(*sides, seed=about.get("seed", 0))
        if way in WITHOUT_RANKS:
            measured = measured.drop("MRR")
        name = name_of_way(system, way)
        base = name_of_way(system, base_way) if base_way else ""
        row = {"model": name, "label": name, "base": base, "protocol": protocol}
        results.record(files, measured, **row, queries=size, targets=size, **about)


def name_of_way(system: str, way: str) -> str:
    """Name a system with a way to answer: "open-small, matched"; ALONE has the system's name.

    Parameters
    ----------
    system : name of the system
    way : one of WAYS
    """
    if way == ALONE:
        return system
    return short_name(system.removesuffix(", AS-norm"), note=way)


def match_drawn_lists(
    scores: np.ndarray,
    config: MatchConfig,
    overlap: float,
    lists: int = 1,
    seed: int = 0,
    rounds: int | None = None,
    estimated: bool = False,
    reverse_scores: np.ndarray | None = None,
) -> DrawnLists:
    """Draw pairs of lists, and answer the queries of each pair in all WAYS.

    Parameters
    ----------
    scores : (N, N), scores of N queries with N targets, in the same order of accounts
    config : line of the log-weights
    overlap : share of a list that has a partner in the other; 1 for all accounts
    lists : number of pairs of lists
    seed : seed of the lists; the lists of one seed and overlap are the same
    rounds : number of times that rows and columns are scaled; by default as many as needed
    estimated : whether the matching estimates the overlap, in place of knowing it
    reverse_scores : (N, N), scores of the same pairs where the targets are asked in the gallery of
        queries. If given, all WAYS but ALONE read the mean of both, as the command ``match`` does
    """
    rng = np.random.default_rng(seed)
    of_lists = scores.astype(np.float64)
    if reverse_scores is not None:
        of_lists = (of_lists + reverse_scores) / 2
    parts = []
    answers = []
    for _ in range(lists):
        queries, targets = draw_lists(len(scores), overlap, rng)
        same = queries[:, None] == targets
        rows = np.ix_(queries, targets)
        assumed = estimate_overlap(of_lists[rows], config) if estimated else overlap
        matched = sinkhorn(of_lists[rows], config, assumed, rounds)
        llr = config.llr(matched, assumed, len(queries)).ravel()
        parts.append((queries, 1 - matched.sum(1), llr, same.ravel(), [assumed]))
        values = _values_of_ways(scores[rows], of_lists[rows])
        values[MATCHED] = matched
        answers.append({way: best_answers(values[way], same) for way in WAYS})
    joined = {way: join_answers(part[way] for part in answers) for way in WAYS}
    return DrawnLists(*map(np.concatenate, zip(*parts)), joined)


def _values_of_ways(scores_alone, scores):
    """Return the values (Q, T) of pairs by each way but MATCHED; -inf of those that are none."""
    from scipy import optimize  # imported here: who only embeds need not wait for it

    is_assigned = np.zeros(scores.shape, bool)
    is_assigned[optimize.linear_sum_assignment(scores, maximize=True)] = True
    return {
        ALONE: scores_alone,
        AS_LIST: list_norm(scores.astype(np.float32)),
        ASSIGNED: np.where(is_assigned, scores, -np.inf),
        MUTUAL: np.where(mutual_best(scores), scores, -np.inf),
    }
