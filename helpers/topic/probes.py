"""Linear probes: what a frozen embedding encodes of a document's topic and of its author's habits.

A probe is fitted on the vectors of some authors and scored on those of others. What it finds is
information that a linear map can read from the embedding; it does not tell whether the scores of
the embedding depend on it. The controls are the majority class, and a probe of shuffled targets,
whose score is chance. Habits are known of the invented authors of :mod:`helpers.sources.demo` only.

Letters: N rows, D dimensions of a vector, V target variables, each a number.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..core.paths import Run
from ..encoders.base import embed
from ..evaluation.bootstrap import bootstrap_means, metric_table, resampled_metrics
from ..sources.demo_writer import PAIRS, TRAITS
from ..tokens.batch import Samples
from .cross_topic import DocumentSystem

# penalties of the ridge, of which each target variable gets the best by leave-one-out on its rows
RIDGE_ALPHAS = np.logspace(0, 5, 11)

Rows = tuple[np.ndarray, np.ndarray]  # vectors (N, D), and N classes or (N, V) target variables


def fit_class_probe(
    train: Rows, test: Rows, authors: np.ndarray, control: int | None = None
) -> pd.DataFrame:
    """Fit a multinomial logistic regression on some rows, and score it on others.

    Parameters
    ----------
    train, test : (N, D) vectors and (N,) classes
        rows to fit on, whose mean and deviation standardise all vectors, and rows to score
    authors : (N,)
        author of each test row; for the accuracy's 95% interval they are resampled with all their
        rows
    control : int or None
        seed of a shuffle of the fitted classes, which gives the score where nothing can be learned;
        None for no shuffle

    Returns
    -------
    Columns ``value``, ``low``, ``high`` (NaN without an interval). Rows ``accuracy``, and
    ``majority``: the accuracy of always answering the most frequent class of the fitted rows.
    """
    vectors, classes = _shuffled(train, control)
    test_vectors, test_classes = test
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    right = probe.fit(vectors, classes).predict(test_vectors) == test_classes
    majority = DummyClassifier().fit(vectors, classes).score(*test)
    accuracy = bootstrap_means({"accuracy": right}, authors)
    return pd.concat([accuracy, metric_table({"majority": majority})])


def fit_value_probe(train: Rows, test: Rows, control: int | None = None) -> pd.DataFrame:
    """Fit a ridge regression of each target variable on some rows, and score it on others.

    Parameters
    ----------
    train, test : (N, D) vectors and (N, V) target variables
        rows to fit on, whose mean and deviation standardise all vectors, and rows to score
    control : int or None
        seed of a shuffle of the fitted rows' targets, which gives the score where nothing can be
        learned; None for no shuffle

    Returns
    -------
    Columns ``value``, ``low``, ``high``. The row ``correlation`` is the mean over the V target
    variables, of which one that is predicted as a constant has correlation 0. For its 95% interval
    test rows are resampled.
    """
    test_vectors, values = test
    probe = make_pipeline(StandardScaler(), RidgeCV(RIDGE_ALPHAS, alpha_per_target=True))
    predicted = probe.fit(*_shuffled(train, control)).predict(test_vectors).reshape(values.shape)
    pairs = (predicted - predicted.mean(0), values - values.mean(0))
    return resampled_metrics(["correlation"], np.arange(len(values)), _mean_correlation, [pairs])


# the rows with their targets in random order, or as they are without a seed
def _shuffled(rows, seed):
    vectors, targets = rows
    if seed is not None:
        targets = np.random.default_rng(seed).permutation(targets)
    return vectors, targets


def _mean_correlation(pairs, weights):
    """Return the mean correlation of the V columns of two (N, V), (R, 1), by row weights (R, N)."""
    predicted, values = pairs
    share = weights / weights.sum(1, keepdims=True)
    predicted_mean = share @ predicted
    mean = share @ values
    covariance = share @ (predicted * values) - predicted_mean * mean
    variances = (share @ predicted**2 - predicted_mean**2) * (share @ values**2 - mean**2)
    spread = np.sqrt(variances.clip(0))
    return (covariance / np.where(spread > 1e-12, spread, np.inf)).mean(1, keepdims=True)


def habit_targets(truth: pd.DataFrame, authors: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the known habits of N authors of the demo as target variables, in the given order.

    Parameters
    ----------
    truth : DataFrame
        table of :func:`helpers.sources.demo.style_truth`, with a row for each author
    authors : (N,) str
        names of the authors

    Returns
    -------
    ``style`` (N, V): the log odds of V traits and word choices. ``hour`` (N, 2): the two peaks of
    an author's day as directions on the clock, averaged with their shares as weights, given as
    cosine and sine.
    """
    rows = truth.set_index("author").loc[list(authors)]
    share = rows[[name.lower() for name in (*TRAITS, *PAIRS)]].clip(1e-6, 1 - 1e-6)
    first_peak = (1 - rows["hour_share2"]) * _on_clock(rows["hour_peak"])
    direction = first_peak + rows["hour_share2"] * _on_clock(rows["hour_peak2"])
    return {
        "style": logit(share.to_numpy()),
        "hour": np.column_stack([direction.to_numpy().real, direction.to_numpy().imag]),
    }


def _on_clock(hours):
    """Return hours of the day (N,) as complex numbers on the unit circle."""
    return np.exp(2j * np.pi / 24 * hours)


def probe_systems(
    files: Run,
    systems: Sequence[DocumentSystem],
    rows: np.ndarray,
    max_tokens: int = 32,
    truth: pd.DataFrame | None = None,
    control: int | None = None,
) -> pd.DataFrame:
    """Fit probes on each system's vectors of training documents, and score them on unseen authors.

    The scores are recorded.

    Parameters
    ----------
    files : Run
        the run whose results table gets the scores
    systems : sequence of DocumentSystem
        systems with dense encoders, and documents with the splits ``train``, ``test_in`` and
        ``test_cross``
    rows : (N,) int
        numbers of the documents of ``train`` to fit on
    max_tokens : int
        L, tokens read of each document
    truth : DataFrame or None
        known habits as of :func:`habit_targets`; None for the probe of topic alone
    control : int or None
        seed of shuffled targets, see :func:`fit_class_probe`

    Returns
    -------
    A row for each system and metric: ``metric, value, low, high``, ``model``, ``label``, ``split``.
    ``topic_accuracy`` and ``topic_majority`` are on the documents of ``test_in``. With truth there
    are also ``style_correlation`` and ``hour_correlation``, from the mean vectors of the authors of
    ``test_cross``.
    """
    tables = []
    for system in systems:
        table = _probe(system, rows, max_tokens, truth, control)
        data = system.documents.stores["test_in"].meta["fingerprint"]
        protocol = f"probe, {system.documents.kind}"
        system.record(files, table, protocol=protocol, split="test", data=data)
        about = {"model": system.model, "label": system.label, "split": "test"}
        tables.append(table.reset_index().assign(**about))
    return pd.concat(tables, ignore_index=True)


def _probe(system, rows, max_tokens, truth, control):
    """Return the scores of one system as a table, indexed by metric."""
    documents = system.documents
    samples = {split: Samples.of_posts(store) for split, store in documents.stores.items()}
    samples["train"] = samples["train"][rows]
    vectors = {
        split: embed(system.scorer, samples[split], max_tokens)
        for split in ("train", "test_in", "test_cross")
    }
    train = (vectors["train"], documents.topics("train")[rows])
    test = (vectors["test_in"], documents.topics("test_in"))
    scores = fit_class_probe(train, test, samples["test_in"].authors, control)
    tables = [scores.add_prefix("topic_", axis=0)]
    if truth is not None:
        means = [_author_means(vectors[part], samples[part]) for part in ("train", "test_cross")]
        habits = [habit_targets(truth, side.index) for side in means]
        for habit in ("style", "hour"):
            sides = [(side.to_numpy(), known[habit]) for side, known in zip(means, habits)]
            tables.append(fit_value_probe(*sides, control).add_prefix(f"{habit}_", axis=0))
    return pd.concat(tables).rename_axis("metric")


def _author_means(vectors, samples):
    """Return the mean vector of each author, as a row under the author's name."""
    names = np.array(samples.store.author_names())[samples.authors]
    return pd.DataFrame(vectors).groupby(names).mean()
