"""Intervals against SciPy, the normal law, and copying the rows of the authors that were drawn."""

import math

import numpy as np
import pytest
from scipy import stats

from helpers.evaluation.bootstrap import (
    bootstrap_means,
    percentile_interval,
    resample_weights,
)


def interval(values, groups, resamples=1000, seed=0):
    """Both ends of the interval of each column's mean."""
    table = bootstrap_means(dict(enumerate(values.T)), groups, resamples, seed)
    return table.low.to_numpy(), table.high.to_numpy()


def test_a_resample_is_that_of_the_copied_rows():
    groups = np.array(["b", "a", "b", "c", "c", "c"])
    values = np.random.default_rng(0).random((6, 2))
    means = []
    for weights in resample_weights(groups, 300, seed=4):
        assert weights.sum() == len(weights) == 3
        drawn_groups = np.repeat(list("abc"), weights)
        rows = np.concatenate([np.flatnonzero(groups == name) for name in drawn_groups])
        means.append(values[rows].mean(0))
    np.testing.assert_allclose(
        interval(values, groups, 300, seed=4), np.percentile(means, [2.5, 97.5], axis=0)
    )


def test_it_is_that_of_scipy_and_of_the_normal_law_for_single_rows():
    values = np.random.default_rng(0).exponential(size=(500, 1))
    (low,), (high,) = interval(values, np.arange(500), 4000)
    wanted = stats.bootstrap(
        (values[:, 0],), np.mean, method="percentile", n_resamples=4000, random_state=1
    )
    assert low == pytest.approx(wanted.confidence_interval.low, abs=0.01)
    assert high == pytest.approx(wanted.confidence_interval.high, abs=0.01)
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / math.sqrt(500), rel=0.08)


def test_the_seed_draws_and_none_means_no_interval():
    values, groups = np.random.default_rng(0).random((40, 3)), np.arange(40)
    assert np.array_equal(interval(values, groups, 50, 1), interval(values, groups, 50, 1))
    assert not np.array_equal(interval(values, groups, 50, 1), interval(values, groups, 50, 2))
    assert np.isnan(interval(values, groups, 0)).all()
    low, high = percentile_interval([[0.0, np.nan], [1.0, 2.0]], 2)
    assert (low[1], high[1]) == (2, 2)


def test_a_statistic_without_any_value_has_no_interval():
    low, high = percentile_interval([[np.nan, 1.0], [np.nan, 3.0]], 2)
    assert np.isnan([low[0], high[0]]).all() and (low[1], high[1]) == (1.05, 2.95)
    assert np.isnan(percentile_interval([[np.nan], [np.nan]], 1)).all()
    assert np.isnan(percentile_interval([], 3)).all()
