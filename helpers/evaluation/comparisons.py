"""Comparisons of systems: one call evaluates a list of systems and records the results of each.

The systems of a list are asked the same trials. What one gains over another is measured on the
same trials, too, and recorded beside the results of the first one.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pandas as pd

from ..core.paths import Run
from ..tokens.document_sets import Documents
from .detection import DetectionCosts
from .linking import linking_metrics, score_linking
from .ranking import compare_rankings, evaluate_ranking, trials_by_community
from .systems import RowSystem, System
from .trials import Trials
from .verification import evaluate_documents, verification_metrics

SEED = "-seed"  # before the number of another training of the same settings, in an identifier


def rank_rows(
    files: Run, systems: Sequence[RowSystem], seed: int = 0
) -> dict[RowSystem, pd.Series]:
    """Rank the accounts of each system's own trials, and record the metrics.

    Parameters
    ----------
    files : the run
    systems : the systems, each with its trials
    seed : seed of the bootstrap

    Returns
    -------
    The ranks of each system, see :func:`helpers.evaluation.ranking.positive_ranks`.
    """
    ranks = {}
    for system in systems:
        trials = system.trials
        max_tokens = system.trained.experiment.sampler.max_tokens
        table, ranks[system] = evaluate_ranking(system.scorer, trials, max_tokens, seed)
        system.record(files, table, queries=len(trials.queries), targets=len(trials.targets))
    return ranks


def rank_systems(
    files: Run,
    systems: Sequence[System],
    split: str,
    trials: Trials,
    max_tokens: int = 32,
    seed: int = 0,
    protocol: str = "ranking",
) -> dict[System, pd.Series]:
    """Rank the accounts of a split by each system, and record the metrics.

    Under the protocol "ranking", where accounts come from several communities, each is ranked a
    second time, among those of its own community.

    Parameters
    ----------
    files : the run
    systems : the systems
    split : the name of the split
    trials : its trials, see :func:`helpers.evaluation.ranking.ranking_trials`
    max_tokens : tokens read of each post
    seed : seed of the bootstrap
    protocol : the name under which the metrics are recorded

    Returns
    -------
    The ranks of each system, see :func:`helpers.evaluation.ranking.positive_ranks`.
    """
    queries = trials.queries
    measured = {
        "split": split,
        "queries": len(queries),
        "sample_size": queries.count.max(),
        "max_tokens": max_tokens,
        "data": queries.store.meta["fingerprint"],
    }
    communities = trials_by_community(trials)
    ranks = {}
    for system in systems:
        table, ranks[system] = evaluate_ranking(system.scorer, trials, max_tokens, seed)
        system.record(files, table, protocol=protocol, targets=len(trials.targets), **measured)
        if protocol == "ranking" and len(communities) > 1:
            table, _ = evaluate_ranking(system.scorer, communities, max_tokens, seed)
            system.record(files, table, protocol="ranking within communities", **measured)
    return ranks


def compare_ranks(
    files: Run,
    pairs: Sequence[tuple[System, System]],
    ranks: dict[System, pd.Series],
    seed: int = 0,
    **measured: Any,
) -> pd.DataFrame:
    """Subtract the metrics of other systems from those of systems, query by query, and record it.

    Parameters
    ----------
    files : the run
    pairs : systems, each with the one that is subtracted
    ranks : result of :func:`rank_systems` or :func:`rank_rows`
    seed : seed of the bootstrap
    **measured : fields of the results: ``split``, ``max_tokens``, ``data``; ``protocol``, by
        default "ranking"

    Returns
    -------
    A row per pair: ``model``, ``label``, ``base`` (the label of the other system) and ``split``,
    with ``value, low, high`` of the difference in MRR, and ``better, worse, sign_p`` of
    :func:`helpers.evaluation.ranking.compare_rankings`.
    """
    measured = {"protocol": "ranking"} | measured
    rows = []
    for system, base in pairs:
        table = compare_rankings(ranks[system], ranks[base], seed)
        row = _record_difference(files, system, base, table, **measured)
        rows.append(row | table.value["better":].to_dict())
    return pd.DataFrame(rows)


def _record_difference(files, system, base, table, **measured):
    """Record the differences of two systems; return that of the first metric as a tidy row."""
    system.record(files, table, base=base.model, **measured)
    row = {"model": system.model, "label": system.label, "base": base.label, **measured}
    return row | table.iloc[0].to_dict()


def link_systems(
    files: Run,
    systems: Sequence[System],
    trials: list[Trials],
    costs: DetectionCosts,
    seed: int = 0,
    **measured: Any,
) -> dict[str, pd.DataFrame]:
    """Score the linking trials of a split by each system, and record the error rates.

    These are of the targets that have as many posts as those of the first trials.

    Parameters
    ----------
    files : the run
    systems : the systems
    trials : result of :func:`helpers.evaluation.linking.linking_trials`
    costs : costs of a miss and of a false link, and the prior
    seed : seed of the bootstrap
    **measured : fields of the results: ``split``, ``max_tokens``, ``data``

    Returns
    -------
    The scored trials of each system, see :func:`helpers.evaluation.linking.score_linking`.
    """
    targets = trials[0].targets
    measured |= {"sample_size": targets.count.max(), "targets": len(targets)}
    scored = {}
    for system in systems:
        scored[system.model] = score_linking(system.scorer, trials, measured["max_tokens"])
        part = scored[system.model].query("target_posts == @measured['sample_size']")
        table = linking_metrics(part, costs, seed)
        system.record(files, table, protocol="linking", queries=part.same.sum(), **measured)
    return scored


def compare_links(
    files: Run,
    systems: Sequence[System],
    bases: Sequence[System],
    scored: dict[str, pd.DataFrame],
    costs: DetectionCosts,
    seed: int = 0,
    **measured: Any,
) -> pd.DataFrame:
    """Subtract the error rates of some systems from those of all others, and record it.

    Of several trainings of one system, whose identifiers end in "-seed1" and so on, the error rates
    are averaged, and the difference has no seed.

    Parameters
    ----------
    files : the run
    systems : the systems
    bases : those that are subtracted
    scored : the trials of each system, with targets of one size
    costs : costs of a miss and of a false link, and the prior
    seed : seed of the bootstrap
    **measured : fields of the results: ``split``, ``max_tokens``, ``data``

    Returns
    -------
    A row per pair: ``model``, ``label``, ``base`` (the label of the other system) and ``split``,
    with ``value, low, high`` of the difference in EER.
    """
    trainings = {}
    for system in systems:
        trainings.setdefault(system.model.partition(SEED)[0], []).append(system)
    rows = []
    for name, of_system in trainings.items():
        for base in dict.fromkeys(base.model.partition(SEED)[0] for base in bases):
            if base == name:
                continue
            sides = [of_system, trainings[base]]
            parts = [[scored[system.model] for system in side] for side in sides]
            table = linking_metrics(parts[0], costs, seed, base=parts[1])
            # the first in the alphabet has no seed in its identifier, where there is such a one
            pair = [min(side, key=attrgetter("model")) for side in sides]
            about = {"protocol": "linking", "seed": None, **measured}
            rows.append(_record_difference(files, *pair, table, **about))
    return pd.DataFrame(rows)


def verify_systems(
    files: Run,
    systems: Sequence[System],
    documents: Documents,
    pairs: dict[str, pd.DataFrame],
    max_tokens: int = 32,
    definition: str = "pan21",
    seed: int = 0,
    decision: str = "calibrated",
    **measured: Any,
) -> dict[System, dict[str, pd.DataFrame]]:
    """Judge pairs of documents by each system, and record the metrics of the test pairs.

    Parameters
    ----------
    files : the run
    systems : the systems
    documents : documents with the splits "dev" and "test"
    pairs : pairs of both splits, see :func:`helpers.evaluation.document_pairs.make_pairs`
    max_tokens : tokens read of each document
    definition : "pan21" or "pan20", see :func:`helpers.evaluation.verification.pan_metrics`
    seed : seed of the bootstrap
    decision : see :func:`helpers.evaluation.verification.evaluate_documents`
    **measured : fields of the results: ``protocol``, ``split``, ``data``

    Returns
    -------
    The pairs of "dev" and of "test" with the scores of each system, see
    :func:`helpers.evaluation.verification.evaluate_documents`.
    """
    rule = {"definition": definition, "decision": decision, "seed": seed}
    scored = {}
    for system in systems:
        table, scored[system] = evaluate_documents(
            system.scorer, documents, pairs, max_tokens, **rule
        )
        system.record(files, table, queries=len(pairs["test"]), **measured)
    return scored


def compare_verified(
    files: Run,
    pairs: Sequence[tuple[System, System]],
    scored: dict[System, dict[str, pd.DataFrame]],
    definition: str = "pan21",
    seed: int = 0,
    **measured: Any,
) -> pd.DataFrame:
    """Subtract the metrics of other systems from those of systems, on the same test pairs.

    The differences are recorded.

    Parameters
    ----------
    files : the run
    pairs : systems, each with the one that is subtracted
    scored : result of :func:`verify_systems`
    definition : "pan21" or "pan20", see :func:`helpers.evaluation.verification.pan_metrics`
    seed : seed of the bootstrap
    **measured : fields of the results: ``protocol``, ``split``, ``data``

    Returns
    -------
    A row per pair: ``model``, ``label``, ``base`` (the label of the other system) and ``split``,
    with ``value, low, high`` of the difference in AUC.
    """
    rows = []
    for system, base in pairs:
        test = scored[system]["test"]
        table = verification_metrics(test, scored[base]["test"], definition, seed)
        rows.append(_record_difference(files, system, base, table, queries=len(test), **measured))
    return pd.DataFrame(rows)
