"""Drawn lists: two lists of accounts with a known overlap, answered in several ways.

The ways differ in what a query knows of the others, see WAYS. All read the same scores.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..core import results
from ..core.names import short_name
from ..core.paths import Run
from .calibration import cllr, min_cllr
from .candidates import Candidates, all_candidates
from .lists import Answers, best_answers, join_answers, list_metrics
from .match_fitting import draw_lists
from .matching import (
    MatchConfig,
    estimate_overlap,
    mutual_best,
    optimal_assignment,
    sinkhorn,
)
from .scores import list_norm

ALONE = "alone"  # each query knows the gallery of targets, and no other query
AS_LIST = "AS list"  # the other queries are the cohort of AS-norm
MATCHED = "matched"  # all scores are turned into probabilities together
ASSIGNED = "assigned"  # the optimal assignment
MUTUAL = "mutual"  # only pairs of which each is the other's best
WAYS = (ALONE, AS_LIST, MATCHED, ASSIGNED, MUTUAL)
WITHOUT_RANKS = (ASSIGNED, MUTUAL)  # one answer a query, so no MRR
LIKELY = (0.5, 0.9)  # probabilities from which on answers are counted by DrawnLists.calibration


@dataclass(frozen=True, eq=False)
class DrawnLists:
    """The answers of several pairs of lists, counted together.

    Attributes
    ----------
    accounts : (N,) account of each query of all lists
    answers : way -> answers of the N queries
    nobody : (N,) probability that a query has no partner, as matched
    llr : (M,) log-likelihood ratio of each pair of all lists, as matched
    same : (M,) bool, whether a pair are partners
    overlaps : (L,) of each pair of lists the overlap that the matching assumed
    """

    accounts: np.ndarray
    answers: dict[str, Answers]
    nobody: np.ndarray
    llr: np.ndarray
    same: np.ndarray
    overlaps: np.ndarray

    def metrics(self, seed: int = 0) -> dict[tuple[str, str], pd.DataFrame]:
        """Return the metrics of each way, and the differences of MATCHED to ALONE and AS_LIST.

        Keys are the way and the way that is subtracted, "" for none; ``seed`` is the bootstrap's.
        """
        tables = {}
        for way, answers in self.answers.items():
            table = list_metrics(answers, self.accounts, seed=seed)
            tables[way, ""] = table.drop("MRR") if way in WITHOUT_RANKS else table
        for base in (ALONE, AS_LIST):
            sides = (self.answers[MATCHED], self.accounts, self.answers[base])
            tables[MATCHED, base] = list_metrics(*sides, seed)
        return tables

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
        for least in LIKELY:
            likely = best.value >= least
            row[f"called {least:.0%}"] = likely.mean()
            row[f"right, {least:.0%}"] = _share(best.right[likely])
        nobody = self.nobody >= 0.5
        row["called nobody"] = nobody.mean()
        row["right, nobody"] = _share(~best.has_partner[nobody])
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
    for (way, base_way), measured in lists.metrics(about.get("seed", 0)).items():
        if way not in ways:
            continue
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


def _share(is_right):
    """Return the share of right ones, NaN of none."""
    return is_right.mean() if len(is_right) else np.nan


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
    of_lists = scores
    if reverse_scores is not None:
        of_lists = (scores.astype(np.float64) + reverse_scores) / 2
    parts = []
    for _ in range(lists):
        queries, targets = draw_lists(len(scores), overlap, rng)
        same = queries[:, None] == targets
        rows = np.ix_(queries, targets)
        pairs = all_candidates(of_lists[rows])
        assumed = estimate_overlap(pairs, config) if estimated else overlap
        matching = sinkhorn(pairs, config, assumed, rounds)
        parts.append(
            {
                "accounts": queries,
                "answers": _answers(scores[rows], pairs, matching.probability, same),
                "nobody": matching.nobody_of_queries,
                "llr": matching.llr(config.llr_scale, config.llr_shift),
                "same": same.ravel(),
                "overlaps": [assumed],
            }
        )
    answers = {way: join_answers([part["answers"][way] for part in parts]) for way in WAYS}
    names = ("accounts", "nobody", "llr", "same", "overlaps")
    joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return DrawnLists(answers=answers, **joined)


def _answers(scores_alone, pairs, probability, same):
    """Return the answers of one pair of lists by way; ``pairs`` are all pairs of both."""
    scores = pairs.scores.reshape(same.shape)
    normed = list_norm(scores.astype(np.float32))
    answers = {
        ALONE: best_answers(pairs, scores_alone.ravel(), same),
        AS_LIST: best_answers(pairs, normed.ravel(), same),
        MATCHED: best_answers(pairs, probability, same),
    }
    for way, choose in ((ASSIGNED, optimal_assignment), (MUTUAL, mutual_best)):
        chosen = choose(pairs)
        kept = Candidates(pairs.pairs[chosen], pairs.scores[chosen], *same.shape)
        answers[way] = best_answers(kept, kept.scores, same)
    return answers
