"""Linear probes: what a frozen embedding encodes of a document's topic and of its author's habits.

A probe is fitted on the vectors of some authors and read on those of others: what it finds is
information that a linear map can take out of the embedding. It says nothing of what the embedding
uses it for. The controls are the majority class, and a probe of shuffled targets, whose score is
chance. The habits are known of invented authors only (:mod:`helpers.sources.demo`).

Letters: N rows, D dimensions of a vector, V values of a target.
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

RESAMPLES = 1000
# of the ridge, chosen for each value by leave-one-out on the fitted rows
RIDGE_ALPHAS = np.logspace(0, 5, 11)

Rows = tuple[np.ndarray, np.ndarray]  # vectors (N, D) and their targets


def fit_class_probe(
    train: Rows, test: Rows, control: int | None = None, authors: np.ndarray | None = None
) -> pd.DataFrame:
    """Fit a multinomial logistic regression on some rows, and score it on others.

    Parameters
    ----------
    train, test : (N, D) vectors and (N,) classes
        rows to fit on, by which vectors are standardised, and rows to score
    control : int or None
        a seed that shuffles the classes of the fitted rows: the score where nothing can be learned
    authors : (N,)
        of the test rows; the accuracy then has its 95% interval over authors, drawn with all their
        rows

    Returns
    -------
    Columns ``value``, ``low``, ``high``; rows ``accuracy`` and ``majority``, the accuracy of the
    most frequent class of the fitted rows.
    """
    vectors, classes = train
    test_vectors, test_classes = test
    classes = _shuffled(classes, control)
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    probe.fit(vectors, classes)

    right = (probe.predict(test_vectors) == test_classes).astype(float)
    names, counts = np.unique(classes, return_counts=True)
    majority = np.mean(test_classes == names[counts.argmax()])
    low = high = [np.nan]
    if authors is not None:
        low, high = bootstrap_interval(right[:, None], authors)
    scores = {"accuracy": right.mean(), "majority": majority}
    return metric_table(scores, [*low, np.nan], [*high, np.nan])


def fit_value_probe(train: Rows, test: Rows, control: int | None = None) -> pd.DataFrame:
    """Fit a ridge regression of each value on some rows, and score them on others.

    Parameters
    ----------
    train, test : (N, D) vectors and (N, V) values
        rows to fit on, by which vectors are standardised, and rows to score
    control : int or None
        a seed that shuffles the values of the fitted rows: the score where nothing can be learned

    Returns
    -------
    Columns ``value``, ``low``, ``high``; rows ``correlation`` and ``R2``, means over V. A constant
    prediction correlates as 0. The correlation has its 95% interval over rows.

    Raises
    ------
    ValueError
        Where a value is not finite, or the same in every row of the test.
    """
    vectors, values = train
    test_vectors, test_values = test
    spread = test_values.std(0)
    if not (spread > 0).all():
        raise ValueError("values must be finite and differ among the rows of the test")
    probe = make_pipeline(StandardScaler(), RidgeCV(RIDGE_ALPHAS, alpha_per_target=True))
    probe.fit(vectors, _shuffled(values, control))

    predicted = probe.predict(test_vectors).reshape(test_values.shape)
    R2 = 1 - ((predicted - test_values) ** 2).mean(0) / spread**2
    n_rows = len(predicted)
    correlation = _correlation(predicted, test_values, np.ones(n_rows))
    resampled = [
        [_correlation(predicted, test_values, weights)]
        for weights in resample_weights(np.arange(n_rows), RESAMPLES)
    ]
    low, high = percentile_interval(resampled, 1)
    scores = {"correlation": correlation, "R2": R2.mean()}
    return metric_table(scores, [*low, np.nan], [*high, np.nan])


def _shuffled(targets, seed):
    if seed is None:
        return targets
    return np.random.default_rng(seed).permutation(targets)


def _correlation(predicted, values, weights):
    """Return the mean over V of the correlation of (N, V) with (N, V), rows weighted (N,)."""
    share = weights / weights.sum()
    predicted = predicted - share @ predicted
    values = values - share @ values
    spread = np.sqrt((share @ predicted**2) * (share @ values**2))
    return ((share @ (predicted * values)) / np.where(spread > 1e-12, spread, np.inf)).mean()


def disjoint_samples(rows: int, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two disjoint samples of as many row numbers, each ascending.

    One is for a probe, the other for what is done to the vectors before it: an erasure would be
    perfect on its own rows.

    Parameters
    ----------
    rows : int
        number of rows
    max_rows : int
        of a sample, which has at most half of the rows
    """
    order = np.random.default_rng(0).permutation(rows)
    count = min(max_rows, rows // 2)
    return np.sort(order[:count]), np.sort(order[count : 2 * count])


def habit_targets(truth: pd.DataFrame, authors: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the known habits of N authors of the demo, in the given order.

    Parameters
    ----------
    truth : DataFrame
        of :func:`helpers.sources.demo.style_truth`
    authors : (N,) str
        names

    Returns
    -------
    ``style`` (N, V), the log odds of all traits and pairs of words; ``hour`` (N, 2), cosine and
    sine of the mean direction of the two peaks on the clock, weighted by their shares.
    """
    rows = truth.set_index("author").loc[list(authors)]
    names = [name.lower() for name in (*TRAITS, *PAIRS)]
    share = rows[names].to_numpy().clip(1e-6, 1 - 1e-6)
    second_share = rows["hour_share2"].to_numpy()
    first_peak = (1 - second_share) * _on_clock(rows["hour_peak"])
    direction = first_peak + second_share * _on_clock(rows["hour_peak2"])
    return {
        "style": np.log(share / (1 - share)),
        "hour": np.column_stack([direction.real, direction.imag]),
    }


def _on_clock(hours):
    """Return hours of the day (N,) as complex numbers on the unit circle."""
    return np.exp(2j * np.pi / 24 * hours.to_numpy())


def probe_encoder(
    encoder: Encoder,
    corpus: TopicCorpus,
    rows: np.ndarray,
    max_tokens: int = 32,
    truth: pd.DataFrame | None = None,
    control: int | None = None,
) -> pd.DataFrame:
    """Fit probes on an encoder's vectors of training documents, and read them on unseen authors.

    Parameters
    ----------
    encoder : Encoder
        a dense one
    corpus : TopicCorpus
        with parts ``train``, ``test_in`` and ``test_cross``
    rows : (N,) int
        documents of ``train`` to fit on
    max_tokens : int
        L, tokens read of each document
    truth : DataFrame or None
        the known authors of the demo
    control : int or None
        a seed, as of :func:`fit_class_probe`

    Returns
    -------
    Columns ``value``, ``low``, ``high``. ``topic_accuracy`` and ``topic_majority`` on the documents
    of ``test_in``; with truth ``style_correlation`` and ``hour_correlation``, from the mean vectors
    of the authors of ``test_cross``.
    """
    train_samples = Samples.of_posts(corpus.stores["train"])[rows]
    test_samples = Samples.of_posts(corpus.stores["test_in"])
    train_vectors = embed(encoder, train_samples, max_tokens)
    train = (train_vectors, corpus.topics("train")[rows])
    test = (embed(encoder, test_samples, max_tokens), corpus.topics("test_in"))
    scores = fit_class_probe(train, test, control, test_samples.authors)
    tables = [scores.add_prefix("topic_", axis=0)]

    if truth is not None:
        cross_samples = Samples.of_posts(corpus.stores["test_cross"])
        cross_vectors = embed(encoder, cross_samples, max_tokens)
        train_means = _author_means(train_vectors, train_samples)
        test_means = _author_means(cross_vectors, cross_samples)
        train_habits = habit_targets(truth, train_means.index)
        test_habits = habit_targets(truth, test_means.index)
        for habit in ("style", "hour"):
            train = (train_means.to_numpy(), train_habits[habit])
            test = (test_means.to_numpy(), test_habits[habit])
            scores = fit_value_probe(train, test, control).loc[["correlation"]]
            tables.append(scores.add_prefix(f"{habit}_", axis=0))
    return pd.concat(tables).rename_axis("metric")


def _author_means(vectors, samples):
    """Return the mean vector of each author, a row by name."""
    names = np.array(samples.store.author_names())[samples.authors]
    return pd.DataFrame(vectors).groupby(names).mean()
