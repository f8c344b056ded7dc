"""Retrieval among the documents of a split by topic, put into the results table.

One test is across topics: no topic of it was in the training. The other is in distribution.
"""

import time
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from ..core import results
from ..core.names import label, system_of
from ..core.paths import Run
from ..encoders.base import Encoder
from ..encoders.stream import StreamConfig
from ..evaluation import ranking
from ..tokens.document_sets import Documents


def system_names(
    bases: list[str], students: list[str], baselines: list[str], name: str, encoder: StreamConfig
) -> dict[str, str]:
    """Return the readable name of each model of a notebook, by the model's identifier.

    For example "supcon_arr" is "SupCon + ARR", and with the second encoder "minilm"
    "minilm-supcon_arr" is "MiniLM SupCon + ARR". The encoder itself without training is included,
    as "zero_shot".

    Parameters
    ----------
    bases, students, baselines : list of str
        identifiers of models
    name : str
        name of a second encoder, with which its identifiers begin; empty for the first encoder
    encoder : StreamConfig
        settings of the encoder of bases and students
    """
    prefix = f"{name}-" if name else ""
    names = {prefix + model: label(model) for model in baselines}
    for base, student in product(bases, ["", *students]):
        model = f"{base}_{student}".removesuffix("_")
        names[prefix + model] = f"{label(name)} {label(model)}".strip()
    return names | {f"{prefix}zero_shot": system_of(encoder)}


def measure_retrieval(
    files: Run, documents: Documents, encoder: Encoder, max_tokens: int, **about
) -> tuple[dict[str, pd.Series], dict[str, float]]:
    """Measure an encoder's retrieval on the tests by topic, and record its metrics.

    The time is returned and not recorded: it differs from one execution to the next, and equal runs
    have equal results.

    Parameters
    ----------
    files : Run
        the run whose results table gets the metrics
    documents : Documents
        the documents that are ranked
    encoder : Encoder
        the encoder to measure
    max_tokens : int
        L, tokens read of each document
    **about : Any
        further fields of :func:`helpers.core.results.record`

    Returns
    -------
    By test the rank (1 = best) of each of its queries; and ``seconds`` of ``about``, and the means
    over tests of ``test_seconds``, in which documents were embedded and ranked, and
    ``test_documents``, the number of queries and targets.
    """
    ranks = {}
    costs = []
    for test in documents.tests:
        trials = ranking.retrieval_trials(documents.stores[test])
        topics = documents.topics(test)
        start = time.perf_counter()
        table, ranks[test] = ranking.evaluate_retrieval(encoder, trials, max_tokens, topics=topics)
        sizes = {"queries": len(trials.queries), "targets": len(trials.targets)}
        costs.append([time.perf_counter() - start, sum(sizes.values())])
        results.record(files, table, **_measured_on(documents, test), **sizes, **about)
    seconds, n_documents = np.mean(costs, axis=0)
    training = about.get("seconds", np.nan)
    return ranks, {"seconds": training, "test_seconds": seconds, "test_documents": n_documents}


def compare_systems(
    files: Run,
    documents: Documents,
    ranks: list[dict[str, pd.Series]],
    base_ranks: list[dict[str, pd.Series]],
    **about,
) -> pd.DataFrame:
    """Compare two models on the tests by topic, and record their paired differences.

    Parameters
    ----------
    files : Run
        the run whose results table gets the differences
    documents : Documents
        the documents that were ranked
    ranks, base_ranks : list of dict
        ranks of :func:`measure_retrieval` of both models, one for each seed
    **about : Any
        further fields of :func:`helpers.core.results.record`

    Returns
    -------
    A row for each test and metric: ``metric, value, low, high`` (intervals over authors), ``kind``
    and ``split``, and a column for each of ``about``, such as ``model`` and ``base``.
    """
    tables = []
    for test in documents.tests:
        # no sign test: the queries of one author depend on each other
        sides = [[of_seed[test] for of_seed in side] for side in (ranks, base_ranks)]
        table = ranking.ranking_differences(*sides)
        results.record(files, table, **_measured_on(documents, test), **about)
        tables.append(table.reset_index().assign(kind=documents.kind, split=test, **about))
    return pd.concat(tables, ignore_index=True)


# the fields of a result that tell the protocol and the documents
def _measured_on(documents, test):
    data = documents.stores[test].meta["fingerprint"]
    return {"protocol": f"retrieval, {documents.kind}", "split": test, "data": data}


def chance_level(documents: Documents, test: str) -> dict[str, float]:
    """Return the R@8 of targets in random order, and how many targets are on a query's topic.

    Parameters
    ----------
    documents : Documents
        the documents that are ranked
    test : str
        a test by topic

    Returns
    -------
    ``R@8 by chance``, and ``targets on query's topic``: the share of targets on the topic of a
    query. Both are means over queries.
    """
    trials = ranking.retrieval_trials(documents.stores[test])
    topics = pd.Series(documents.topics(test))
    share_of_topic = topics[trials.targets.first].value_counts(normalize=True)
    on_topic = topics[trials.queries.first].map(share_of_topic).fillna(0)

    n_targets = len(trials.targets)
    own_targets = np.bincount(trials.targets.authors)[trials.queries.authors]
    # the chance that none of the first eight targets is of the query's author
    missed = hypergeom.pmf(0, n_targets, own_targets, min(8, n_targets))
    return {"R@8 by chance": 1 - missed.mean(), "targets on query's topic": on_topic.mean()}
