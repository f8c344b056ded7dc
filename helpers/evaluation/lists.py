"""Lists: how well accounts of one list are found in another, each asked alone or all matched.

Each account of one list is a query: its answer is its best target. The ways to answer differ in
what a query knows of the others, see WAYS. All read the same scores, of lists with a known overlap
that are drawn from known accounts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..core import results
from ..core.names import short_name
from ..core.paths import Run
from .bootstrap import resampled_metrics
from .calibration import cllr, min_cllr
from .matching import MatchConfig, draw_lists, estimate_overlap, mutual_best, sinkhorn
from .scores import best_ranks, neighbour_statistics, s_norm
from .systems import System

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


def best_answers(values: np.ndarray, same: np.ndarray) -> pd.DataFrame:
    """Find the best target of each query, and the rank of its partner.

    Parameters
    ----------
    values : (Q, T), scores or probabilities of Q queries with T targets; -inf of a pair that is no
        candidate. A partner that is none has the rank T
    same : (Q, T) bool, the true pairs, at most one of each query

    Returns
    -------
    A row for each query: ``target``, the row of the best target, and its ``value``, or -1 and -inf
    of a query without candidates; ``rank`` of the partner, from 1 on, where targets with its value
    stand before it, NaN of a query without a partner; and ``right``, whether the best target is
    the partner and no other target has its value.

    Raises
    ------
    ValueError
        If a value is NaN.
    """
    rank = best_ranks(values, same).astype(float)
    rank[~same.any(1)] = np.nan
    value = values.max(1)
    has_answer = value > -np.inf
    target = np.where(has_answer, values.argmax(1), -1)
    right = (rank == 1) & has_answer
    return pd.DataFrame({"target": target, "value": value, "rank": rank, "right": right})


def list_metrics(
    answers: pd.DataFrame, base: pd.DataFrame | None = None, seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """Measure answers: MRR and R@1 of the queries with a partner, and A@P90 and A@P99.

    A@P90 is the share of queries with a partner that are answered rightly, by the lowest threshold
    of the values above which 90% of all answers are right; answers to queries without a partner are
    wrong.

    Parameters
    ----------
    answers : answers of :func:`best_answers`, of one list or of several, with a column ``account``,
        the account of each query; accounts are resampled
    base : other answers to the same queries; if given, what is returned is the difference to them
    seed, resamples : seed and number of bootstrap resamples of accounts

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each of METRICS, or for "MRR_difference" and
    so on

    Raises
    ------
    ValueError
        If the queries of both are others, or do not all have a partner in both or in neither.
    """
    bases = [] if base is None else [base]
    queries = [part[["account"]].assign(known=part["rank"].notna()) for part in [answers, *bases]]
    if not queries[0].equals(queries[-1]):
        raise ValueError("answers to compare are not to the same queries")
    account = answers["account"]
    return resampled_metrics(METRICS, account, _metrics, [answers], bases, seed, resamples)


def _metrics(answers, weights):
    """Return METRICS (R, 4) of answers, each account counted ``weights`` (R, A) times."""
    answers = answers.sort_values("value", ascending=False, kind="stable")
    weight = weights[:, np.unique(answers["account"], return_inverse=True)[1]]
    has_partner = answers["rank"].notna().to_numpy()
    reciprocal = (1 / answers["rank"]).fillna(0).to_numpy()
    right = np.cumsum(weight * answers["right"].to_numpy(), 1)
    answered = np.cumsum(weight, 1)
    # a threshold can stand where the next value is another one
    is_last = answers["value"].ne(answers["value"].shift(-1)).to_numpy()
    metrics = [weight @ reciprocal, right[:, -1]]
    for precision in PRECISIONS.values():
        is_precise = is_last & (right >= precision * answered)
        metrics.append(np.where(is_precise, right, 0).max(1))
    with np.errstate(invalid="ignore"):  # NaN of a resample without any partner
        return np.stack(metrics, 1) / (weight @ has_partner)[:, None]


@dataclass(frozen=True, eq=False)
class DrawnLists:
    """The answers of several pairs of lists, counted together.

    Attributes
    ----------
    answers : way -> answers of :func:`best_answers` of the N queries of all lists, with columns
        ``account``, of the query, and ``nobody``, the probability that it has no partner, as
        matched
    llr : (M,) log-likelihood ratio of each pair of all lists, as matched
    same : (M,) bool, whether a pair are partners
    overlaps : of each pair of lists the overlap that the matching assumed
    """

    answers: dict[str, pd.DataFrame]
    llr: np.ndarray
    same: np.ndarray
    overlaps: list[float]

    def calibration(self) -> dict[str, float]:
        """Return MRR, Cllr and minCllr, and how often likely answers, and nobody, are right."""
        best = self.answers[MATCHED]
        row = {
            "overlap assumed": np.mean(self.overlaps),
            "MRR, alone": (1 / self.answers[ALONE]["rank"]).mean(),
            "MRR, matched": (1 / best["rank"]).mean(),
            "Cllr": cllr(self.llr, self.same),
            "minCllr": min_cllr(self.llr, self.same),
        }
        called = {f"{least:.0%}": (best["value"] >= least, best["right"]) for least in LIKELY}
        called["nobody"] = (best["nobody"] >= 0.5, best["rank"].isna())
        for name, (is_called, right) in called.items():
            row[f"called {name}"] = is_called.mean()
            row[f"right, {name}"] = right[is_called].mean()
        return row


def match_systems(
    files: Run,
    systems: Sequence[System],
    scores: dict[str, np.ndarray],
    lines: dict[str, MatchConfig],
    seed: int = 0,
    **measured: Any,
) -> None:
    """Answer the queries of closed lists, where everybody has a partner, and record the metrics.

    A system answers in all WAYS; one that has no line only ALONE.

    Parameters
    ----------
    files : the run
    systems : the systems
    scores : (N, N) of each system by its ``model``, partners on the diagonal
    lines : line of the log-weights, by ``model``
    seed : seed of the lists and of the bootstrap
    **measured : fields of the results, see :func:`record_lists`
    """
    for system in systems:
        line = lines.get(system.model)
        ways = WAYS if line else (ALONE,)
        # a slope of 0 costs no rounds, and nobody reads what it gives
        found = match_drawn_lists(scores[system.model], line or MatchConfig(0, 0), 1.0, seed=seed)
        record_lists(files, found, system.label, MATCHED, ways, seed=seed, **measured)


def record_lists(
    files: Run, lists: DrawnLists, system: str, protocol: str, ways: tuple = WAYS, **about: Any
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
    size = len(lists.answers[ALONE]) // len(lists.overlaps)
    about |= {"protocol": protocol, "queries": size, "targets": size}
    names = {way: name_of_way(system, way) for way in WAYS} | {"": ""}
    of_ways = [(way, "") for way in ways]
    if MATCHED in ways:
        of_ways += [(MATCHED, ALONE), (MATCHED, AS_LIST)]
    for way, base in of_ways:
        measured = list_metrics(lists.answers[way], lists.answers.get(base), about.get("seed", 0))
        if way in WITHOUT_RANKS:
            measured = measured.drop("MRR")
        about |= {"model": names[way], "label": names[way], "base": names[base]}
        results.record(files, measured, **about)


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
    list_scores: np.ndarray | None = None,
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
    list_scores : (N, N), scores that all WAYS but ALONE read, such as the mean of both directions,
        as the command ``match`` reads; by default ``scores``
    """
    rng = np.random.default_rng(seed)
    if list_scores is None:
        list_scores = scores.astype(np.float64)
    parts = []
    overlaps = []
    for _ in range(lists):
        queries, targets = draw_lists(len(scores), overlap, rng)
        rows = np.ix_(queries, targets)
        of_list = list_scores[rows]
        assumed = estimate_overlap(of_list, config) if estimated else overlap
        matched = sinkhorn(of_list, config, assumed, rounds)
        same = queries[:, None] == targets
        about = {"account": queries, "nobody": 1 - matched.sum(1)}
        values = _values_of_ways(scores[rows], of_list) | {MATCHED: matched}
        answers = {way: best_answers(values[way], same).assign(**about) for way in WAYS}
        llr = config.llr(matched, assumed, len(queries))
        parts.append((answers, llr.ravel(), same.ravel()))
        overlaps.append(assumed)
    answers, llr, same = zip(*parts)
    joined = {way: pd.concat([part[way] for part in answers], ignore_index=True) for way in WAYS}
    return DrawnLists(joined, np.concatenate(llr), np.concatenate(same), overlaps)


def _values_of_ways(scores_alone, scores):
    """Return the values (Q, T) of pairs by each way but MATCHED; -inf of those that are none."""
    from scipy import optimize  # imported here: who only embeds need not wait for it

    is_assigned = np.zeros(scores.shape, bool)
    is_assigned[optimize.linear_sum_assignment(scores, maximize=True)] = True
    single = scores.astype(np.float32)
    # the accounts of each list know those of the other as their cohort
    of_queries = neighbour_statistics(single)
    of_targets = neighbour_statistics(single.T)
    return {
        ALONE: scores_alone,
        AS_LIST: s_norm(single, of_queries, of_targets),
        ASSIGNED: np.where(is_assigned, scores, -np.inf),
        MUTUAL: np.where(mutual_best(scores), scores, -np.inf),
    }
