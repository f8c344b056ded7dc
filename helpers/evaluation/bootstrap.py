"""Bootstrap intervals: authors are resampled with replacement, each with all of its rows.

Texts of one author depend on each other, so an interval over texts would be too narrow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

INTERVAL_ENDS = (2.5, 97.5)  # percentiles


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


def percentile_interval(statistics: list, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of the 95% interval of each statistic, (C,) each; NaN without any value.

    Parameters
    ----------
    statistics : list
        the C statistics of each resample; NaN ones are left out.
    columns : int
        C, which is needed where there is no resample.
    """
    resampled = pd.DataFrame(statistics, columns=range(columns), dtype=float)
    low, high = resampled.quantile([end / 100 for end in INTERVAL_ENDS]).to_numpy()
    return low, high


def bootstrap_means(
    columns: Mapping[str, np.ndarray], groups: np.ndarray, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Return the means of named values with their intervals, as :func:`metric_table` does.

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
    row = np.unique(groups, return_inverse=True)[1]
    count = np.bincount(row)
    values = pd.DataFrame(np.column_stack(list(columns.values())), dtype=float)
    sums = values.groupby(row).sum().to_numpy()
    means = [lambda weights: weights @ sums / (weights @ count)]
    return resampled_metrics(means, list(columns), groups, seed, resamples)


def resampled_metrics(
    measures: Sequence[Callable[[np.ndarray], np.ndarray]],
    names: Sequence[str],
    groups: np.ndarray,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return named metrics of a system, or their differences to another one, with intervals.

    Parameters
    ----------
    measures : sequence of functions
        of the system, and perhaps of the one that is subtracted: from the number of times (G,) that
        each of G sorted groups counts to metrics (C,).
    names : sequence of str
        C names of the metrics; those of differences get "_difference" behind.
    groups : (N,)
        the group of each of N rows.
    seed, resamples : int
        of :func:`resample_weights`.
    """
    if len(measures) > 1:
        names = [f"{name}_difference" for name in names]
    resampled = resample_weights(groups, resamples, seed)
    rows = []
    for weights in [np.ones(len(np.unique(groups)), int), *resampled]:
        of_systems = [measure(weights) for measure in measures]
        rows.append(of_systems[0] - sum(of_systems[1:]))
    low, high = percentile_interval(rows[1:], len(names))
    return metric_table(dict(zip(names, rows[0])), low, high)


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
