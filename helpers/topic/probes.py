"""What does a frozen embedding encode? Linear probes for a document's topic and for habits of its author.

A probe is fitted on the vectors of some authors and read on those of others: what it finds is information that a
linear map can take out of the embedding. It says nothing of what the embedding uses it for. The controls are the
majority class, and a probe of shuffled targets, whose score is chance. The habits are known of invented authors only
(:mod:`helpers.sources.demo`).

Letters: N rows, D dimensions, V values per row, C classes.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.evaluation.retrieval import resampled_means
from helpers.sources.demo_lexicon import PAIRS, TRAITS

KINDS = ("classes", "values")
ALPHAS = np.logspace(0, 5, 11)  # of the ridge, chosen for each value by leave-one-out on the fitted rows


def probe(
    train_vectors, train_targets, test_vectors, test_targets, kind: str, control: int | None = None, authors=None
) -> dict:
    """Fit a linear probe on vectors (N, D), standardised by those, and score it on others.

    kind "classes": targets (N,) of any names; multinomial logistic regression. Returns ``accuracy``, ``majority``
    (that of the most frequent class of the fitted rows), ``classes`` and ``rows``, of the test.
    kind "values": targets (N, V); ridge regressions. Returns ``correlation`` and ``R2``, means over the V values (a
    prediction that is constant correlates as 0), ``values`` and ``rows``.
    authors: of the test rows; "classes" then returns also ``accuracy_low`` and ``accuracy_high``, the 95% interval over
    authors drawn with all their rows, which are not independent.
    control: a seed that shuffles the targets of the fitted rows: what the score is where nothing can be learned.
    Raises ValueError for another kind, rows that do not fit together, fewer than two classes or test rows, values
    that are not finite, or a value that is the same in every row of the test.
    """
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}: one of {', '.join(KINDS)}")
    train, test = np.asarray(train_vectors), np.asarray(test_vectors)
    train_targets, test_targets = np.asarray(train_targets), np.asarray(test_targets)
    sides = [(len(train), len(train_targets)), (len(test), len(test_targets))]
    if any(vectors != targets for vectors, targets in sides) or len(test) < 2:
        raise ValueError(f"vectors and targets of {sides[0]} rows to fit on, {sides[1]} to test on: "
                         "need as many of both, two at least")  # fmt: skip
    if control is not None:
        train_targets = np.random.default_rng(control).permutation(train_targets)
    if kind == "values":
        return _values(train, train_targets, test, test_targets)
    return _classes(train, train_targets, test, test_targets, authors)


def _classes(train, train_targets, test, test_targets, authors):
    names, counts = np.unique(train_targets, return_counts=True)
    if len(names) < 2:
        raise ValueError(f"{len(names)} class to fit on: need 2")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)).fit(train, train_targets)
    right = (model.predict(test) == test_targets).astype(float)
    interval = {}
    if authors is not None:
        ends = np.percentile(resampled_means(right[:, None], np.asarray(authors), 0, 1000), [2.5, 97.5])
        interval = dict(zip(("accuracy_low", "accuracy_high"), map(float, ends), strict=True))
    return interval | {
        "accuracy": float(right.mean()),
        "majority": float(np.mean(test_targets == names[counts.argmax()])),
        "classes": len(names), "rows": len(test),
    }  # fmt: skip


def _values(train, train_targets, test, test_targets):
    if train_targets.ndim != 2 or train_targets.shape[1:] != test_targets.shape[1:]:
        raise ValueError(f"values {train_targets.shape} to fit on, {test_targets.shape} to test on: "
                         "need (N, V), the same V")  # fmt: skip
    spread = test_targets.std(0)
    if not (np.isfinite(train_targets).all() and np.isfinite(test_targets).all() and spread.all()):
        raise ValueError("values must be finite and differ among the rows of the test")
    model = make_pipeline(StandardScaler(), RidgeCV(ALPHAS, alpha_per_target=True)).fit(train, train_targets)
    found = np.asarray(model.predict(test)).reshape(test_targets.shape)
    centred, wanted = found - found.mean(0), test_targets - test_targets.mean(0)
    width = found.std(0)
    correlation = (centred * wanted).mean(0) / np.where(width > 1e-12, width * spread, np.inf)
    R2 = 1 - ((found - test_targets) ** 2).mean(0) / spread**2
    return {"correlation": float(correlation.mean()), "R2": float(R2.mean()), "values": len(R2), "rows": len(test)}


def two_samples(rows: int, most: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of as many row numbers, without a common one, at most ``most`` and half of the rows each, ascending.

    One for a probe, the other for what is done to the vectors before it: an erasure would be perfect on its own rows.
    """
    order = np.random.default_rng(seed).permutation(rows)
    count = min(most, rows // 2)
    return np.sort(order[:count]), np.sort(order[count : 2 * count])


def author_means(vectors, authors) -> pd.DataFrame:
    """Vectors (N, D) of documents -> one mean vector per author, index: the authors, sorted."""
    return pd.DataFrame(np.asarray(vectors)).groupby(np.asarray(authors)).mean()


def habits(truth: pd.DataFrame, authors) -> dict[str, np.ndarray]:
    """Known habits of authors in the given order: ``style`` (N, V) and ``hour`` (N, 2).

    truth: of :func:`helpers.sources.demo.truth`, whose authors keep their names: invented ones get no pseudonyms.
    style: the log odds of all traits and pairs of words. hour: cosine and sine of the mean direction of the author's
    two peaks on the clock, weighted by their shares. Raises ValueError where an author is not in the table.
    """
    rows = truth.set_index("author")
    if unknown := sorted(set(authors) - set(rows.index)):
        raise ValueError(f"{len(unknown)} authors are not in the truth table, {unknown[0]!r} among them")
    rows = rows.loc[list(authors)]
    share = rows[[name.lower() for name in (*TRAITS, *PAIRS)]].to_numpy().clip(1e-6, 1 - 1e-6)
    angles = [rows[name].to_numpy() * 2 * np.pi / 24 for name in ("hour_peak", "hour_peak2")]
    second = rows["hour_share2"].to_numpy()
    hour = [(1 - second) * wave(angles[0]) + second * wave(angles[1]) for wave in (np.cos, np.sin)]
    return {"style": np.log(share / (1 - share)), "hour": np.column_stack(hour)}
