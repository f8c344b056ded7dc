"""Error rates against scikit-learn, a sweep over thresholds, cases by hand; the bootstrap."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from helpers.evaluation.bootstrap import resampled_metrics
from helpers.evaluation.detection import (
    METRICS,
    PAPER,
    RELEASED,
    DetectionCosts,
    count_scores,
    eer,
    error_rates,
    min_dcf,
    recall_at,
    topic_means,
)

EVEN = DetectionCosts(prior=0.5, miss=1, false_accept=1)


def metrics_of(trainings, base=(), seed=0, resamples=200):
    """The table of METRICS of some trainings, each the counts of its topics."""
    accounts = trainings[0][0].accounts
    measure = partial(topic_means, accounts, PAPER)
    return resampled_metrics(METRICS, accounts, measure, trainings, base, seed, resamples)


def trials(seed, levels, apart):
    """Float32 scores of which ``levels`` differ (None: all), and labels, a third of one account."""
    rng = np.random.default_rng(seed)
    same = rng.random(400) < 0.3
    scores = rng.standard_normal(400) + apart * same
    if levels:
        scores = np.clip(np.round(scores * levels / 6), -levels // 2, levels // 2)
    return scores.astype(np.float32), same


def sweep(scores, same, costs):
    """Every threshold there is, with accepting all and rejecting all."""
    miss_cost = costs.prior * costs.miss
    false_cost = (1 - costs.prior) * costs.false_accept
    best = math.inf
    for threshold in [-math.inf, *np.unique(scores), math.inf]:
        accepted = scores >= threshold
        cost = miss_cost * (~accepted[same]).mean() + false_cost * accepted[~same].mean()
        best = min(best, cost)
    return best / min(miss_cost, false_cost)


def crossing(scores, same):
    """The equal error rate on scikit-learn's curve."""
    p_fa, hit, _ = roc_curve(same, scores, drop_intermediate=False)
    return np.interp(0, p_fa + hit - 1, p_fa)


@pytest.mark.parametrize(
    "scores, same",
    [
        trials(seed, levels, apart)
        for seed, (levels, apart) in enumerate([(None, 1), (None, -1), (12, 1), (2, 0.3), (1, 0)])
    ],
)
def test_rates_and_costs_are_those_of_scikit_learn_and_of_a_sweep(scores, same):
    """Every point of one curve lies on the lines between the points of the other."""
    p_fa, p_miss = error_rates(count_scores(scores, same))
    wanted_fa, wanted_hit, _ = roc_curve(same, scores, drop_intermediate=False)
    # rotated by 45 degrees a curve that never falls is a function
    curve = (p_fa + 1 - p_miss, p_fa - 1 + p_miss)
    wanted = (wanted_fa + wanted_hit, wanted_fa - wanted_hit)
    np.testing.assert_allclose(np.interp(wanted[0], *curve), wanted[1], atol=1e-12)
    np.testing.assert_allclose(np.interp(curve[0], *wanted), curve[1], atol=1e-12)
    assert eer(p_fa, p_miss) == pytest.approx(crossing(scores, same))
    for costs in (PAPER, RELEASED, EVEN, DetectionCosts(prior=0.9, miss=10, false_accept=1)):
        assert min_dcf(p_fa, p_miss, costs) == pytest.approx(sweep(scores, same, costs))
        assert min_dcf(p_fa, p_miss, costs) <= 1


def test_constant_scores_say_nothing():
    rates = error_rates(count_scores(np.full(50, 0.7), np.arange(50) < 3))
    assert eer(*rates) == 0.5 and min_dcf(*rates) == 1
    assert recall_at(*rates, 0.5, 0.5) == 1, "exactly the precision is enough"


def test_recall_at_a_precision_is_that_of_a_loop_over_thresholds():
    rng = np.random.default_rng(3)
    same = rng.random(400) < 0.2
    scores = np.round(rng.normal(size=400) + 2 * same, 1)  # with ties
    rates = error_rates(count_scores(scores, same))
    for precision, prior in ((0.9, 0.05), (0.99, 0.05), (0.9, 0.5)):
        best_recall = 0.0
        for threshold in np.unique(scores):
            hit, false = (np.mean(scores[kind] >= threshold) for kind in (same, ~same))
            if prior * hit / (prior * hit + (1 - prior) * false) >= precision:
                best_recall = max(best_recall, hit)
        assert recall_at(*rates, precision, prior) == pytest.approx(best_recall)
        assert 0 < best_recall < 1


def test_a_resample_without_trials_of_both_kinds_counts_for_nothing():
    """Only account a has a same-account trial: a resample without a has no error rate."""
    scores = [0.9, 0.4, 0.5, 0.3]
    counts = count_scores(scores, [True, True, False, False], ["a", "a", "b", "c"])
    table = metrics_of([[counts]], resamples=40)
    assert table.notna().all(axis=None)
    assert (table.low <= table.high).all()
