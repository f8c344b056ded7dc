"""What does a frozen embedding encode? Linear probes for a document's topic and for habits of its author.

A probe is fitted on the vectors of some authors and read on those of others: what it finds is information that a
linear map can take out of the embedding. It says nothing of what the embedding uses it for. The controls are the
majority class, and a probe of shuffled targets, whose score is chance. The habits are known of invented authors only
(:mod:`helpers.sources.demo`).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.encoders.base import Encoder, embed
from helpers.evaluation.bootstrap import (
    bootstrap_interval,
    metric_table,
    percentile_interval,
    resample_weights,
)
from helpers.sources.demo_lexicon import PAIRS, TRAITS
from helpers.tokens.batch import Samples
from helpers.topic.topic_corpus import TopicCorpus

KINDS = ("classes", "values")
RESAMPLES = 1000
ALPHAS = np.logspace(
    0, 5, 11
)  # of the ridge, chosen for each value by leave-one-out on the fitted rows


def fit_probe(train: tuple[np.ndarray, Sequence], test: tuple[np.ndarray, Sequence], kind: str, control: int | None = None,
          authors: Sequence | None = None) -> pd.DataFrame:  # fmt: skip
    """Fit a linear probe on the vectors and targets of some rows, standardised by those, and score it on others.

    train, test : vectors (N, D) and targets.
    kind : "classes", targets (N,), for a multinomial logistic regression; "values", targets (N, V), for ridges.
    control : a seed that shuffles the targets of the fitted rows: the score where nothing can be learned.
    authors : (N,) of the test rows; an accuracy then has its 95% interval over authors, drawn with all their rows.

    Returns
    -------
    Columns ``value``, ``low``, ``high``. "classes": ``accuracy`` and ``majority``, that of the most frequent class of
    the fitted rows. "values": ``correlation`` and ``R2``, means over V (a constant prediction correlates as 0), the
    former with its 95% interval over rows.

    Raises ValueError for another kind, rows that do not fit together, fewer than two classes or test rows, values that
    are not finite, or a value that is the same in every row of the test.
    """
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}: one of {', '.join(KINDS)}")
    train, test = ([np.asarray(side) for side in rows] for rows in (train, test))
    sizes = [tuple(map(len, side)) for side in (train, test)]
    if any(vectors != targets for vectors, targets in sizes) or len(test[0]) < 2:
        raise ValueError(
            f"(vectors, targets) {sizes[0]} to fit on, {sizes[1]} to test on: need as many, two at least"
        )
    if control is not None:
        train[1] = np.random.default_rng(control).permutation(train[1])
    if kind == "values":
        return _values(*train, *test)
    names, counts = np.unique(train[1], return_counts=True)
    if len(names) < 2:
        raise ValueError(f"{len(names)} class to fit on: need 2")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)).fit(*train)
    right = (model.predict(test[0]) == test[1]).astype(float)
    scores = metric_table(
        {"accuracy": right.mean(), "majority": np.mean(test[1] == names[counts.argmax()])}
    )
    if authors is not None:
        (low,), (high,) = bootstrap_interval(right[:, None], np.asarray(authors))
        scores.loc["accuracy", ["low", "high"]] = low, high
    return scores


def _values(train_vectors, train_targets, test_vectors, test_targets):
    if train_targets.ndim != 2 or train_targets.shape[1:] != test_targets.shape[1:]:
        raise ValueError(
            f"values {train_targets.shape} to fit, {test_targets.shape} to test: need (N, V), the same V"
        )
    spread = test_targets.std(0)
    if not (np.isfinite(train_targets).all() and np.isfinite(test_targets).all() and spread.all()):
        raise ValueError("values must be finite and differ among the rows of the test")
    model = make_pipeline(StandardScaler(), RidgeCV(ALPHAS, alpha_per_target=True)).fit(
        train_vectors, train_targets
    )
    predicted = np.asarray(model.predict(test_vectors)).reshape(test_targets.shape)
    R2 = 1 - ((predicted - test_targets) ** 2).mean(0) / spread**2
    rows = np.arange(len(predicted))
    resampled = [
        [_correlation(predicted, test_targets, times)]
        for times in resample_weights(rows, RESAMPLES)
    ]
    (low,), (high,) = percentile_interval(resampled, 1)
    scores = metric_table(
        {"correlation": _correlation(predicted, test_targets, np.ones(len(rows))), "R2": R2.mean()}
    )
    scores.loc["correlation", ["low", "high"]] = low, high
    return scores


def _correlation(one, other, times):
    """The mean over columns of the correlation of (N, V) and (N, V), row n counted ``times[n]`` times."""
    share = times / times.sum()
    one, other = one - share @ one, other - share @ other
    spread = np.sqrt((share @ one**2) * (share @ other**2))
    return ((share @ (one * other)) / np.where(spread > 1e-12, spread, np.inf)).mean()


def disjoint_samples(rows: int, max_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of as many row numbers, ascending and disjoint, of at most ``max_rows`` and half of the rows each.

    One for a probe, the other for what is done to the vectors before it: an erasure would be perfect on its own rows.
    """
    order = np.random.default_rng(seed).permutation(rows)
    count = min(max_rows, rows // 2)
    return np.sort(order[:count]), np.sort(order[count : 2 * count])


def habit_targets(truth: pd.DataFrame, authors: Sequence[str]) -> dict[str, np.ndarray]:
    """Known habits of N authors of the demo, in the given order; truth: of :func:`helpers.sources.demo.style_truth`.

    ``style`` (N, V) is the log odds of all traits and pairs of words, ``hour`` (N, 2) cosine and sine of the mean
    direction of the two peaks on the clock, weighted by their shares. Raises ValueError for an author not in the table.
    """
    rows = truth.set_index("author")
    if unknown := sorted(set(authors) - set(rows.index)):
        raise ValueError(
            f"{len(unknown)} authors are not in the truth table, {unknown[0]!r} among them"
        )
    rows = rows.loc[list(authors)]
    share = rows[[name.lower() for name in (*TRAITS, *PAIRS)]].to_numpy().clip(1e-6, 1 - 1e-6)
    first, second = (
        np.exp(2j * np.pi / 24 * rows[name].to_numpy()) for name in ("hour_peak", "hour_peak2")
    )
    weight = rows["hour_share2"].to_numpy()
    hour = (1 - weight) * first + weight * second
    return {"style": np.log(share / (1 - share)), "hour": np.column_stack([hour.real, hour.imag])}


def probe_encoder(encoder: Encoder, corpus: TopicCorpus, rows: np.ndarray, max_tokens: int = 32,
                  truth: pd.DataFrame | None = None, control: int | None = None) -> pd.DataFrame:  # fmt: skip
    """Fit probes on an encoder's vectors of training documents, and read them on unseen authors.

    rows : documents of ``train`` to fit on. truth : the known authors of the demo. control : as of :func:`fit_probe`.

    Returns
    -------
    Columns ``value``, ``low``, ``high``. ``topic_accuracy`` and ``topic_majority`` on the documents of ``test_in``;
    with truth ``style_correlation`` and ``hour_correlation``, from the mean vectors of the authors of ``test_cross``.
    """
    samples = {
        part: Samples.of_posts(corpus.stores[part]) for part in ("train", "test_in", "test_cross")
    }
    samples["train"] = samples["train"][rows]
    vectors = {part: embed(encoder, each, max_tokens) for part, each in samples.items()}
    sides = [
        (vectors["train"], corpus.topics("train")[rows]),
        (vectors["test_in"], corpus.topics("test_in")),
    ]
    tables = [
        fit_probe(*sides, "classes", control, samples["test_in"].authors).add_prefix(
            "topic_", axis=0
        )
    ]
    if truth is not None:
        authors = {
            part: np.array(corpus.stores[part].author_names())[samples[part].authors]
            for part in vectors
        }
        means = {
            part: pd.DataFrame(vectors[part]).groupby(authors[part]).mean()
            for part in ("train", "test_cross")
        }
        known = {part: habit_targets(truth, mean.index) for part, mean in means.items()}
        for habit in ("style", "hour"):
            sides = [(means[part], known[part][habit]) for part in means]
            tables.append(
                fit_probe(*sides, "values", control)
                .loc[["correlation"]]
                .add_prefix(f"{habit}_", axis=0)
            )
    return pd.concat(tables).rename_axis("metric")
