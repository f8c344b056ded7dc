"""Bootstrap intervals: authors are drawn with replacement, each with all of its rows.

Texts of one author depend on each other, so an interval over texts would be too narrow.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

ENDS = (2.5, 97.5)


def resample_weights(groups: np.ndarray, resamples: int, seed: int = 0) -> Iterator[np.ndarray]:
    """How often each of the G sorted distinct groups is drawn, (G,), one resample at a time: bounded memory."""
    size, rng = len(np.unique(groups)), np.random.default_rng(seed)
    return (np.bincount(rng.integers(0, size, size), minlength=size) for _ in range(resamples))


def bootstrap_interval(
    values: np.ndarray, groups: np.ndarray, resamples: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The 95% interval of the mean of each column of values (N, C): low, high (C,). groups (N,): whose each row is."""
    row = np.unique(groups, return_inverse=True)[1]
    count = np.bincount(row)
    sums = np.stack([np.bincount(row, column) for column in np.asarray(values, np.float64).T], 1)
    return percentile_interval(
        [times @ sums / (times @ count) for times in resample_weights(groups, resamples, seed)],
        sums.shape[1],
    )


def percentile_interval(statistics: list, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the 95% interval of each statistic, of its values in all resamples but NaN; NaN without any."""
    if not len(statistics):
        return np.full(columns, np.nan), np.full(columns, np.nan)
    low, high = np.nanpercentile(statistics, ENDS, axis=0)
    return low, high


def bootstrap_means(
    columns: Mapping[str, np.ndarray], groups: np.ndarray, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Means of named values (N,) with their intervals: :func:`metric_table`."""
    values = np.column_stack(list(columns.values()))
    return metric_table(
        dict(zip(columns, values.mean(0))), *bootstrap_interval(values, groups, resamples, seed)
    )


def metric_table(values: Mapping[str, float], low=np.nan, high=np.nan) -> pd.DataFrame:
    """What every evaluation returns: a row a metric, columns ``value``, ``low``, ``high`` (NaN: no interval)."""
    frame = pd.DataFrame({"value": pd.Series(values, dtype=float), "low": low, "high": high})
    return frame.rename_axis("metric")
