"""Training and retrieval on documents that are split by topic (sawatphol2022 section 2).

ARR trains base encoders first, then their students. One test is across topics: no topic of it was
in the training. The other is in distribution. Its measurements go into the results table.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from ..core.names import label
from ..core.paths import Run
from ..encoders.base import Encoder
from ..evaluation import ranking
from ..evaluation.systems import System
from ..losses.arr import ARR
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
from ..training.experiment import Experiment, Trained, run_experiment


@dataclass(frozen=True, eq=False)
class DocumentSystem(System):
    """A system that compares single documents, and so an encoder is its scorer.

    Attributes
    ----------
    documents : the documents that it reads
    trained : the :class:`~helpers.training.experiment.Trained` of a network
    teacher : the system from which it was distilled; None for any other
    """

    documents: Documents | None = None
    trained: Trained | None = None
    teacher: "DocumentSystem | None" = None

    @classmethod
    def of(
        cls,
        member: str,
        trained: Trained,
        documents: Documents,
        name: str = "",
        teacher: "DocumentSystem | None" = None,
    ) -> "DocumentSystem":
        """Return the system of a trained network.

        Parameters
        ----------
        member : its identifier among the networks with the same encoder, such as "supcon_arr"
        trained : the network
        documents : the documents that it reads
        name : name of a second encoder of the run, with which identifier and readable name begin
        teacher : the system from which it was distilled
        """
        model = f"{name}-{member}" if name else member
        title = f"{label(name)} {label(member)}".strip()
        encoder = trained.encoder
        about = trained.about
        return cls(member, model, title, encoder, "", about, documents, trained, teacher)


def train_with_students(
    bases: dict[str, list[Experiment]],
    students: dict[str, list[Experiment]],
    documents: Documents,
    topic_bias: Encoder,
    models: Path,
    seed: int = 0,
    name: str = "",
) -> list[DocumentSystem]:
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
    name : str
        name of a second encoder of the run, see :meth:`DocumentSystem.of`

    Returns
    -------
    The trained systems, each base ``<base>`` before its students ``<base>_<student>``.
    """
    dev = documents.stores["dev"]
    stores = (documents.stores["train"], dev, models)
    systems = []
    for base, experiments in bases.items():
        trainings = [
            run_experiment(_seeded(experiment, seed), *stores) for experiment in experiments
        ]
        teacher = DocumentSystem.of(base, best_on_dev(trainings, dev), documents, name)
        systems.append(teacher)
        for student, lessons in students.items():
            trainings = [
                _distil(_seeded(lesson, seed), teacher.trained, topic_bias, *stores)
                for lesson in lessons
            ]
            best = best_on_dev(trainings, dev)
            member = f"{base}_{student}"
            systems.append(DocumentSystem.of(member, best, documents, name, teacher))
    return systems


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


def retrieve_systems(
    files: Run, systems: Sequence[DocumentSystem], max_tokens: int
) -> tuple[dict[DocumentSystem, dict[str, pd.Series]], pd.DataFrame]:
    """Retrieve the documents of the tests by topic with each system, and record the metrics.

    The time of a test is returned and not recorded: it differs from one execution to the next, and
    equal runs have equal results.

    Parameters
    ----------
    files : Run
        the run whose results table gets the metrics
    systems : sequence of DocumentSystem
        the systems
    max_tokens : int
        L, tokens read of each document

    Returns
    -------
    For each system, by test the rank (1 = best) of each query; and a row for each system and test:
    ``label``, ``seconds`` of the training, ``test_seconds``, in which documents were embedded and
    ranked, and ``test_documents``, the number of queries and targets.
    """
    ranks = {}
    costs = []
    for system in systems:
        ranks[system] = {}
        documents = system.documents
        for test in documents.tests:
            trials = ranking.retrieval_trials(documents.stores[test])
            start = time.perf_counter()
            table, ranks[system][test] = ranking.evaluate_retrieval(
                system.scorer, trials, max_tokens, topics=documents.topics(test)
            )
            cost = {"label": system.label, "seconds": system.training.get("seconds", np.nan)}
            cost["test_seconds"] = time.perf_counter() - start
            sizes = {"queries": len(trials.queries), "targets": len(trials.targets)}
            costs.append(cost | {"test_documents": sum(sizes.values())})
            system.record(files, table, **_measured_on(documents, test), **sizes)
    return ranks, pd.DataFrame(costs)


def compare_retrieved(
    files: Run,
    pairs: Sequence[tuple[DocumentSystem, DocumentSystem]],
    ranks: dict[DocumentSystem, dict[str, pd.Series]],
) -> pd.DataFrame:
    """Subtract the metrics of other systems from those of systems, query by query, and record it.

    Pairs of the same names on the same documents, which differ in their seed, are averaged.

    Parameters
    ----------
    files : Run
        the run whose results table gets the differences
    pairs : sequence of tuple
        systems, each with the one that is subtracted
    ranks : dict
        the ranks of :func:`retrieve_systems`

    Returns
    -------
    A row for each pair, test and metric: ``metric, value, low, high`` (intervals over authors),
    ``kind`` and ``split``, ``model`` and ``label`` of the system, and the label of the other one
    as ``base``.
    """
    comparisons = {}
    for system, base in pairs:
        names = (base.documents.kind, system.model, base.model)
        comparisons.setdefault(names, []).append((system, base))
    tables = []
    for trainings in comparisons.values():
        system, base = trainings[0]
        averaged = {"seed": None} if len(trainings) > 1 else {}
        for test in base.documents.tests:
            # no sign test: the queries of one author depend on each other
            sides = [[ranks[of_seed][test] for of_seed in side] for side in zip(*trainings)]
            table = ranking.ranking_differences(*sides)
            measured = _measured_on(base.documents, test) | averaged
            system.record(files, table, base=base.model, **measured)
            about = {"model": system.model, "label": system.label, "base": base.label}
            about |= {"kind": base.documents.kind, "split": test}
            tables.append(table.reset_index().assign(**about))
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
