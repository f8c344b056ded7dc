"""Bootstrap intervals: authors are resampled with replacement, each with all of its rows.

Texts of one author depend on each other, so an interval over texts would be too narrow. Metrics of
every protocol, and differences of two systems, come from :func:`resampled_metrics`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np
import pandas as pd

INTERVAL_ENDS = (0.025, 0.975)  # quantiles of resamples
WEIGHTS_AT_ONCE = 2**22  # of rows in resamples, 32 MB


def resample_weights(groups: np.ndarray, resamples: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Resample groups with replacement, one resample at a time, so that memory is bounded.

    Parameters
    ----------
    groups : (N,)
        the group of each of N rows; G groups differ.
    resamples : int
        number of resamples.
    seed : int
        seed of the resamples.

    Yields
    ------
    (G,) int, how often each group, in sorted order, is in the resample.
    """
    size = len(np.unique(groups))
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.bincount(rng.integers(0, size, size), minlength=size)


def resampled_metrics(
    names: Sequence[str],
    groups: np.ndarray,
    measure: Callable[..., np.ndarray],
    trainings: Sequence,
    base: Sequence = (),
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return metrics of a system, or their differences to those of another one, with intervals.

    Differences are paired: both systems are measured on the same resamples.

    Parameters
    ----------
    names : sequence of str
        C names of the metrics; those of differences get "_difference" behind.
    groups : (N,)
        the group of each of N rows, such as its author; G groups differ.
    measure : function
        from what was scored, and from how often each group, in sorted order, counts in R resamples,
        (R, G) int, to metrics (R, C). NaN ones of a resample are left out.
    trainings : sequence
        what was scored by each training of the system; metrics are averaged over these.
    base : sequence
        the same of the system that is subtracted; by default none is.
    seed, resamples : int
        of :func:`resample_weights`; without resamples ends of intervals are NaN.

    Returns
    -------
    A row for each metric, columns value, low and high.
    """
    everyone = np.ones(len(np.unique(groups)), int)
    remaining = chain([everyone], resample_weights(groups, resamples, seed))
    measured = []
    while part := list(islice(remaining, max(WEIGHTS_AT_ONCE // len(groups), 1))):
        weights = np.stack(part)
        metrics = np.mean([measure(scored, weights) for scored in trainings], 0)
        if base:
            metrics = metrics - np.mean([measure(scored, weights) for scored in base], 0)
        measured.extend(metrics)
    if base:
        names = [f"{name}_difference" for name in names]
    resampled = pd.DataFrame(measured[1:], columns=names, dtype=float)
    low, high = resampled.quantile(INTERVAL_ENDS).to_numpy()
    return metric_table(dict(zip(names, measured[0])), low, high)


def bootstrap_means(
    columns: Mapping[str, np.ndarray], groups: np.ndarray, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Return the means of named values with their intervals, as :func:`resampled_metrics` does.

    Parameters
    ----------
    columns : Mapping[str, array]
        values (N,) by name.
    groups : (N,)
        the group of each of the N values, such as its author.
    resamples : int
        number of resamples; 0 gives no intervals.
    seed : int
        seed of the resamples.
    """
    values = pd.DataFrame(np.column_stack(list(columns.values())), dtype=float)
    sums = values.assign(rows=1).groupby(np.asarray(groups)).sum().to_numpy()
    return resampled_metrics(list(columns), groups, _means, [sums], (), seed, resamples)


def _means(sums, weights):
    """Return means (R, C) from sums and numbers of rows (G, C + 1) of G groups."""
    *totals, rows = (weights @ sums).T
    return np.transpose(totals / rows)


def metric_table(values: Mapping[str, float], low=np.nan, high=np.nan) -> pd.DataFrame:
    """Make the table of every evaluation: a row for each metric, columns value, low and high.

    Parameters
    ----------
    values : Mapping[str, float]
        values by metric.
    low, high : array or float
        ends of the intervals, NaN for none.
    """
    frame = pd.DataFrame({"value": pd.Series(values, dtype=float), "low": low, "high": high})
    return frame.rename_axis("metric")
