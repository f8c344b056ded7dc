"""Retrieval among the documents of a split by topic, put into the results table.

One test is across topics: no topic of it was in the training. The other is in distribution.
"""

import time
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from ..core import results
from ..core.names import label, system_of
from ..core.paths import Run
from ..encoders.base import Encoder
from ..encoders.baselines import fit_baseline, zero_shot
from ..encoders.stream import StreamConfig
from ..evaluation import ranking
from ..training.experiment import Trained, load_trained
from .topic_corpus import TopicCorpus, open_corpus

ZERO_SHOT = "zero_shot"  # identifier of a pretrained model without training


@dataclass(frozen=True, eq=False)
class RetrievalTest:
    """What a test of a corpus gave for one encoder.

    Attributes
    ----------
    ranks : Series
        the rank (1 = best) of each of its Q queries, (Q,)
    seconds : float
        time in which queries and targets were embedded and ranked, the intervals of the metrics
        included
    documents : int
        number of queries and targets
    """

    ranks: pd.Series
    seconds: float
    documents: int


def protocol_name(kind: str) -> str:
    """Return the name of the protocol, retrieval on a kind of split, in the results table."""
    return f"retrieval, {kind}"


def system_names(
    bases: list[str], students: list[str], baselines: list[str], name: str, encoder: StreamConfig
) -> dict[str, str]:
    """Return the readable name of each model of a notebook, by the model's identifier.

    For example "supcon_arr" is "SupCon + ARR", and with the second encoder "minilm"
    "minilm-supcon_arr" is "MiniLM SupCon + ARR". The encoder itself without training is included.

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
    encoder_name = system_of(encoder)
    if not encoder.is_pretrained:
        encoder_name += ", untrained"
    return names | {prefix + ZERO_SHOT: encoder_name}


def fit_topic_baseline(
    name: str, corpus: TopicCorpus, encoder: StreamConfig, max_tokens: int
) -> Encoder:
    """Fit a baseline on the training documents of a corpus.

    Parameters
    ----------
    name : str
        one of :data:`helpers.encoders.baselines.BASELINES`, or "zero_shot": the pretrained model of
        ``encoder`` as it is
    corpus : TopicCorpus
        one with a part ``train``
    encoder : StreamConfig
        settings whose ``model`` is read for "zero_shot"; else not used
    max_tokens : int
        L, tokens read of each document
    """
    if name == ZERO_SHOT:
        return zero_shot(encoder.model, corpus.tokenizer)
    return fit_baseline(name, corpus.stores["train"], corpus.tokenizer, max_tokens, posts=1)


def measure_retrieval(
    files: Run, corpus: TopicCorpus, encoder: Encoder, max_tokens: int, **about
) -> dict[str, RetrievalTest]:
    """Measure an encoder's retrieval on the tests of a corpus, and record its metrics.

    The time of a test is returned and not recorded: it differs from one execution to the next, and
    equal runs have equal results.

    Parameters
    ----------
    files : Run
        the run whose results table gets the metrics
    corpus : TopicCorpus
        the corpus whose documents are ranked
    encoder : Encoder
        the encoder to measure
    max_tokens : int
        L, tokens read of each document
    **about : Any
        further fields of :func:`helpers.core.results.record`

    Returns
    -------
    The ranks, the time and the size of each test, by its name.
    """
    tests = {}
    for part in corpus.tests:
        trials = ranking.retrieval_trials(corpus.stores[part])
        topics = corpus.topics(part)
        start = time.perf_counter()
        table, ranks = ranking.evaluate_retrieval(encoder, trials, max_tokens, topics=topics)
        seconds = time.perf_counter() - start
        sizes = {"queries": len(trials.queries), "targets": len(trials.targets)}
        results.record(files, table, **_measured_on(corpus, part), **sizes, **about)
        tests[part] = RetrievalTest(ranks, seconds, sum(sizes.values()))
    return tests


def compare_systems(
    files: Run,
    corpus: TopicCorpus,
    tests: list[dict[str, RetrievalTest]],
    base_tests: list[dict[str, RetrievalTest]],
    **about,
) -> pd.DataFrame:
    """Compare two models on the tests of a corpus, and record their paired differences.

    Parameters
    ----------
    files : Run
        the run whose results table gets the differences
    corpus : TopicCorpus
        the corpus whose documents were ranked
    tests, base_tests : list of dict
        results of :func:`measure_retrieval` of both models, one for each seed
    **about : Any
        further fields of :func:`helpers.core.results.record`

    Returns
    -------
    A row for each test and metric: ``metric, value, low, high`` (intervals over authors), ``kind``
    and ``split``, and a column for each of ``about``, such as ``model`` and ``base``.
    """
    tables = []
    for part in corpus.tests:
        # no sign test: the queries of one author depend on each other
        table = ranking.ranking_differences(
            [tests_of_seed[part].ranks for tests_of_seed in tests],
            [tests_of_seed[part].ranks for tests_of_seed in base_tests],
        )
        results.record(files, table, **_measured_on(corpus, part), **about)
        tables.append(table.reset_index().assign(kind=corpus.kind, split=part, **about))
    return pd.concat(tables, ignore_index=True)


def compared_pairs(bases: list[str], students: list[str]) -> list[tuple[str, str]]:
    """List which model is compared with which: a student with its base, ARR with blind ARR.

    Parameters
    ----------
    bases : list of str
        identifiers of the bases
    students : list of str
        identifiers of the kinds of students that every base teaches

    Returns
    -------
    Pairs of a model and the one that is subtracted; all pairs with a base come first.
    """
    pairs = []
    for base in bases:
        pairs += [(f"{base}_{student}", base) for student in students]
    if "arr" in students and "blind" in students:
        pairs += [(f"{base}_arr", f"{base}_blind") for base in bases]
    return pairs


def gains_over_base(differences: pd.DataFrame) -> pd.DataFrame:
    """Return how much ARR raises each metric, in the form of ``helpers.published.arr_gains``.

    Parameters
    ----------
    differences : DataFrame
        rows of :func:`compare_systems`; only those of a base's ARR minus this base are used

    Returns
    -------
    A column for each metric. Index ``split``, ``base``, ``kind`` (of split).
    """
    is_arr = differences["model"] == differences["base"] + "_arr"
    gains = differences[is_arr].pivot(
        index=["split", "base", "kind"], columns="metric", values="value"
    )
    gains.columns = gains.columns.str.removesuffix("_difference")
    return gains


def mean_costs(
    tests: dict[tuple[str, str, int], dict[str, RetrievalTest]],
    trained: dict[tuple[str, str, int], Trained],
) -> pd.DataFrame:
    """Average the seconds of each system's trainings and tests, over kinds of split and seeds.

    Parameters
    ----------
    tests : dict
        results of :func:`measure_retrieval`, by kind of split, model and seed
    trained : dict
        the trainings of those models that were trained, by the same keys

    Returns
    -------
    Columns ``seconds``, of a training (NaN for a system without one; that of a student does not
    include its teacher's); ``test_seconds`` and ``test_documents``, of a test. Indexed by system.
    """
    rows = []
    for key, tests_of_model in tests.items():
        training = trained[key].summary["seconds"] if key in trained else np.nan
        for test in tests_of_model.values():
            rows.append((key[1], training, test.seconds, test.documents))
    columns = ["system", "seconds", "test_seconds", "test_documents"]
    return pd.DataFrame(rows, columns=columns).groupby("system", sort=False).mean()


# the fields of a result that tell the protocol and the documents
def _measured_on(corpus, part):
    data = corpus.stores[part].meta["fingerprint"]
    return {"protocol": protocol_name(corpus.kind), "split": part, "data": data}


def chance_level(corpus: TopicCorpus, part: str) -> dict[str, float]:
    """Return the R@8 of targets in random order, and how many targets are on a query's topic.

    Parameters
    ----------
    corpus : TopicCorpus
        the corpus whose documents are ranked
    part : str
        one of the corpus's tests

    Returns
    -------
    ``R@8 by chance``, and ``targets on query's topic``: the share of targets on the topic of a
    query. Both are means over queries.
    """
    trials = ranking.retrieval_trials(corpus.stores[part])
    topics = pd.Series(corpus.topics(part))
    share_of_topic = topics[trials.targets.first].value_counts(normalize=True)
    on_topic = topics[trials.queries.first].map(share_of_topic).fillna(0)

    n_targets = len(trials.targets)
    own_targets = np.bincount(trials.targets.authors)[trials.queries.authors]
    # the chance that none of the first eight targets is of the query's author
    missed = hypergeom.pmf(0, n_targets, own_targets, min(8, n_targets))
    return {
        "R@8 by chance": float(1 - missed.mean()),
        "targets on query's topic": float(on_topic.mean()),
    }


def with_chance_level(corpora: dict[str, TopicCorpus], rows: pd.DataFrame) -> pd.DataFrame:
    """Tabulate R@8 and the share of errors on the query's topic beside what chance gives.

    Parameters
    ----------
    corpora : dict of str to TopicCorpus
        corpora by kind of split
    rows : DataFrame
        metrics of :func:`helpers.core.results.wide_results`, indexed by kind of split

    Returns
    -------
    Columns ``R@8``, ``errors on query's topic`` (among the queries that are wrong), and those of
    :func:`chance_level`, indexed by kind of split, split and system.
    """
    chance = {}
    for kind, corpus in corpora.items():
        chance |= {(kind, part): chance_level(corpus, part) for part in corpus.tests}
    chance = pd.DataFrame(chance).T.rename_axis(["kind of split", "split"])

    errors = "errors on query's topic"
    measured = rows.assign(**{errors: rows["same_topic_error"] / (1 - rows["right"])})
    measured = measured.rename_axis("kind of split").set_index(["split", "model"], append=True)
    return measured[["R@8", errors]].join(chance).rename_axis(index={"model": "system"})


def open_trained(
    files: Run, kind: str, models: list[str], seed: int = 0
) -> tuple[TopicCorpus, dict[str, Trained]]:
    """Open what notebook 05 made: the documents of a kind of split, and trained models.

    Parameters
    ----------
    files : Run
        the run
    kind : str
        kind of the split
    models : list of str
        names of the models in the results table
    seed : int
        seed of the models' training

    Returns
    -------
    The documents, and the models by name.

    Raises
    ------
    ValueError
        If the run's results hold no such model, or if the models do not read the same tokens.
    """
    rows = results.read_results(files).query(
        "split == 'test_cross' and seed == @seed and base == '' and experiment != ''"
    )
    rows = rows[rows.protocol == protocol_name(kind)].drop_duplicates("model").set_index("model")
    missing = [model for model in models if model not in rows.index]
    if missing:
        raise ValueError(
            f"notebook 05 has no model {missing[0]!r} of the split {kind!r}, seed {seed}; "
            f"it has: {', '.join(rows.index) or 'none'}"
        )
    if rows.data[models].nunique() > 1:
        raise ValueError(
            f"{', '.join(models)} do not read the same tokens: choose models of one encoder"
        )
    corpus = open_corpus(files, kind, rows.data[models[0]])
    folder = files.models / "arr"
    trained = {
        model: load_trained(folder / rows.experiment[model], corpus.stores["train"])
        for model in models
    }
    return corpus, trained
