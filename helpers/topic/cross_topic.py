"""Retrieval among the documents of a split by topic, across topics and in distribution, put into the results table."""

import numpy as np
import pandas as pd

from helpers.core import results
from helpers.core.names import label, system_of
from helpers.core.paths import Run
from helpers.encoders.base import Encoder
from helpers.encoders.baselines import fit_baseline, zero_shot
from helpers.encoders.stream import StreamConfig
from helpers.evaluation import ranking, retrieval
from helpers.topic.topic_corpus import TopicCorpus, open_corpus
from helpers.training.experiment import Trained, load_trained

ZERO_SHOT = "zero_shot"


def protocol_name(kind: str) -> str:
    """Return the name that retrieval on a kind of split has in the results table."""
    return f"retrieval, {kind}"


def system_names(bases: list[str], students: list[str], baselines: list[str], name: str,
                 encoder: StreamConfig) -> dict[str, str]:  # fmt: skip
    """Return the names of all models of a notebook by their identifiers: "supcon_arr" is "SupCon + ARR".

    name : of a second encoder, part of its identifiers: "minilm-supcon_arr" is "MiniLM SupCon + ARR".
    """
    prefix = f"{name}-" if name else ""
    trained = [*bases, *(f"{base}_{student}" for base in bases for student in students)]
    names = {prefix + model: f"{label(name)} {label(model)}".strip() for model in trained}
    names |= {prefix + model: label(model) for model in baselines}
    own_name = system_of(encoder)
    names[prefix + ZERO_SHOT] = own_name if encoder.is_pretrained else f"{own_name}, untrained"
    return names


def fit_topic_baseline(
    name: str, corpus: TopicCorpus, encoder: StreamConfig, max_tokens: int
) -> Encoder:
    """One of :data:`helpers.encoders.baselines.BASELINES`, or "zero_shot": an encoder's pretrained model as it is."""
    if name == ZERO_SHOT:
        return zero_shot(encoder.model, corpus.tokenizer)
    return fit_baseline(name, corpus.stores["train"], corpus.tokenizer, max_tokens, posts=1)


def measure_retrieval(
    files: Run, corpus: TopicCorpus, encoder: Encoder, max_tokens: int, **about
) -> dict[str, pd.Series]:
    """Retrieval on the tests, recorded; about: fields of :func:`results.record`. Returns the ranks."""
    ranks = {}
    for part in corpus.tests:
        store = corpus.stores[part]
        trials = retrieval.retrieval_trials(store)
        table, ranks[part] = retrieval.evaluate_retrieval(
            encoder, trials, max_tokens, topics=corpus.topics(part)
        )
        results.record(files, table, protocol=protocol_name(corpus.kind), split=part, data=store.meta["fingerprint"],
                       queries=len(trials.queries), targets=len(trials.targets), **about)  # fmt: skip
    return ranks


def compare_systems(files: Run, corpus: TopicCorpus, ranks: list[dict[str, pd.Series]],
            base_ranks: list[dict[str, pd.Series]], **about) -> pd.DataFrame:  # fmt: skip
    """Paired differences between two models on the tests, recorded; ranks: of :func:`measure_retrieval`, one each a seed.

    Returns: Rows ``model, base, label, kind, split, metric, value, low, high``, intervals over authors.
    """
    rows = []
    for part in corpus.tests:
        # no sign test: the queries of one author depend on each other
        table = ranking.ranking_differences(
            *([one[part] for one in side] for side in (ranks, base_ranks))
        )
        results.record(files, table, protocol=protocol_name(corpus.kind), split=part,
                       data=corpus.stores[part].meta["fingerprint"], **about)  # fmt: skip
        rows.append(table.reset_index().assign(kind=corpus.kind, split=part, **about))
    return pd.concat(rows, ignore_index=True)


def chance_level(corpus: TopicCorpus, part: str) -> dict[str, float]:
    """``R@8 by chance``, and ``targets on query's topic``: the share of the targets that are on a query's topic."""
    trials, topics = retrieval.retrieval_trials(corpus.stores[part]), corpus.topics(part)
    asking, answering = (pd.Series(topics[side.first]) for side in (trials.queries, trials.targets))
    size = np.bincount(trials.targets.authors)[trials.queries.authors]
    missed = [
        (1 - size / (len(trials.targets) - drawn)).clip(0) for drawn in range(8)
    ]  # one target after the other
    share = asking.map(answering.value_counts(normalize=True)).fillna(0)
    return {
        "R@8 by chance": float(1 - np.prod(missed, 0).mean()),
        "targets on query's topic": float(share.mean()),
    }


def with_chance_level(corpora: dict[str, TopicCorpus], rows: pd.DataFrame) -> pd.DataFrame:
    """Put R@8 and the share of errors that fall on the query's topic beside what chance gives.

    rows : of :func:`helpers.core.results.wide`, indexed by the key of their corpus.
    Returns: The four columns, indexed by key, split and system.
    """
    chance = {
        (key, part): chance_level(corpus, part)
        for key, corpus in corpora.items()
        for part in corpus.tests
    }
    on_topic = rows["same_topic_error"] / (1 - rows["right"])
    measured = rows.assign(**{"errors on query's topic": on_topic}).rename_axis("kind of split")
    measured = measured.set_index(["split", "model"], append=True)[
        ["R@8", "errors on query's topic"]
    ]
    chance = pd.DataFrame(chance).T.rename_axis(["kind of split", "split"])
    return measured.join(chance).rename_axis(index={"model": "system"})


def open_trained(
    files: Run, kind: str, models: list[str], seed: int = 0
) -> tuple[TopicCorpus, dict[str, Trained]]:
    """Open what notebook 05 made: the documents of a kind of split, and trained models by their names in the results.

    Raises ValueError: where the results of the run hold no such model, or the models do not read the same tokens.
    """
    rows = results.read(files).query(
        "protocol == @protocol_name(@kind) and base == '' and experiment != ''"
    )
    rows = (
        rows[(rows.split == "test_cross") & (rows.seed == seed)]
        .drop_duplicates("model")
        .set_index("model")
    )
    if missing := [model for model in models if model not in rows.index]:
        raise ValueError(f"notebook 05 has no model {missing[0]!r} of the split {kind!r}, seed {seed}; "
                         f"it has: {', '.join(rows.index) or 'none'}")  # fmt: skip
    rows = rows.loc[models]
    if rows.data.nunique() > 1:
        raise ValueError(
            f"{', '.join(models)} do not read the same tokens: choose models of one encoder"
        )
    corpus = open_corpus(files, kind, rows.data.iloc[0])
    folder = files.models / "arr"
    return corpus, {
        model: load_trained(folder / name, corpus.stores["train"])
        for model, name in rows.experiment.items()
    }
