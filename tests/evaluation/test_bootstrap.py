"""Intervals against SciPy, the normal law, and copying the rows of the authors that were drawn."""

import math

import numpy as np
import pytest
from scipy import stats

from helpers.evaluation.bootstrap import bootstrap_means, resample_weights, resampled_metrics


def interval(values, groups, resamples=1000, seed=0):
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


def test_resamples_without_a_value_count_for_nothing():
    def measure(values, weights):
        means = weights @ values / weights.sum(1)
        return np.stack([means, np.where(weights[:, 0] > 0, means, np.nan), np.nan * means], 1)

    values = np.random.default_rng(0).random(10)
    table = resampled_metrics(["all", "some", "none"], np.arange(10), measure, [values])
    drawn = [weights for weights in resample_weights(np.arange(10), 1000) if weights[0]]
    ends = np.percentile([weights @ values / 10 for weights in drawn], [2.5, 97.5])
    assert table.loc["some", ["low", "high"]].tolist() == pytest.approx(ends.tolist())
    assert table.notna().all(axis=1).tolist() == [True, True, False]
