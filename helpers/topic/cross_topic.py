"""Training and retrieval on documents that are split by topic (sawatphol2022 section 2).

ARR trains base encoders first, then their students. One test is across topics: no topic of it was
in the training. The other is in distribution. Its measurements go into the results table.
"""

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from ..core import results
from ..core.names import label, system_of
from ..core.paths import Run
from ..encoders.base import Encoder
from ..encoders.stream import StreamConfig
from ..evaluation import ranking
from ..losses.arr import ARR
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
from ..training.experiment import Experiment, Trained, run_experiment


def train_with_students(
    bases: dict[str, list[Experiment]],
    students: dict[str, list[Experiment]],
    documents: Documents,
    topic_bias: Encoder,
    models: Path,
    seed: int = 0,
) -> dict[str, Trained]:
    """Train every base, then each kind of student with the base as its teacher.

    Of each list of experiments the one with the highest R@8 on dev is kept. Only that base teaches.

    Parameters
    ----------
    bases, students : dict of str to list of Experiment
        by name a list of experiments, of which the best on dev is kept
    documents : Documents
        documents with the splits ``train`` and ``dev``
    topic_bias : Encoder
        H, the frozen model that knows topics only
    models : Path
        folder in which all models are saved
    seed : int
        seed of every training

    Returns
    -------
    The trained encoders by the names ``<base>`` and ``<base>_<student>``.
    """
    stores = (documents.stores["train"], documents.stores["dev"], models)
    trained = {}
    for base, experiments in bases.items():
        teachers = [
            run_experiment(_seeded(experiment, seed), *stores) for experiment in experiments
        ]
        teacher = best_on_dev(teachers, documents.stores["dev"])
        trained[base] = teacher
        for student, lessons in students.items():
            pupils = [
                _distil(_seeded(lesson, seed), teacher, topic_bias, *stores) for lesson in lessons
            ]
            trained[f"{base}_{student}"] = best_on_dev(pupils, documents.stores["dev"])
    return trained


def _seeded(experiment, seed):
    return experiment.model_copy(update={"seed": seed})


def best_on_dev(trainings: Sequence[Trained], dev: TokenStore) -> Trained:
    """Return the training with the highest R@8 on dev; the first wins a tie.

    Parameters
    ----------
    trainings : sequence of Trained
        one or more trainings; a single one is not scored
    dev : TokenStore
        store in which each post is a document

    References
    ----------
    sawatphol2022 Appendix A.4.
    """
    if len(trainings) == 1:
        return trainings[0]
    trials = ranking.retrieval_trials(dev)
    recalls = []
    for trained in trainings:
        max_tokens = trained.experiment.sampler.max_tokens
        metrics, *_ = ranking.evaluate_retrieval(trained.encoder, trials, max_tokens, resamples=0)
        recalls.append(metrics.value["R@8"])
    return trainings[np.argmax(recalls)]


def _distil(experiment, teacher, topic_bias, train, dev, models):
    """Train, resume or load a student; the settings of its loss are those of ARR.

    A pretrained encoder begins with its pretrained weights, as in the paper. One that began at
    random has no such start, so its student begins with the teacher's weights.
    """
    loss = ARR(teacher.encoder, topic_bias, **experiment.loss.settings)
    experiment = experiment.model_copy(update={"teacher": teacher.fingerprint})
    start = None if experiment.encoder.is_pretrained else teacher
    return run_experiment(experiment, train, dev, models, loss=loss, start=start)


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
