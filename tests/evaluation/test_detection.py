"""Error rates against scikit-learn, a sweep over thresholds, cases by hand; the bootstrap."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.interpolate import interp1d
from scipy.optimize import brentq
from sklearn.metrics import roc_curve

from helpers.evaluation import detection
from helpers.evaluation.bootstrap import resample_weights, resampled_metrics
from helpers.evaluation.detection import (
    METRICS,
    PAPER,
    RELEASED,
    DetectionCosts,
    count_scores,
    eer,
    error_rates,
    min_dcf,
    topic_means,
)

EVEN = DetectionCosts(prior=0.5, miss=1, false_accept=1)


def metrics_of(trainings, costs=PAPER, base=(), seed=0, resamples=200):
    """The table of METRICS of some trainings, each the counts of its topics."""
    accounts = np.unique(np.concatenate([counts.accounts for counts in trainings[0]]))
    measure = partial(topic_means, accounts, costs)
    return resampled_metrics(METRICS, accounts, measure, trainings, base, seed, resamples)


def trials(seed=0, size=400, levels=None, apart=1.0):
    """Float32 scores of which ``levels`` differ (None: all), and labels, a third of one account."""
    rng = np.random.default_rng(seed)
    same = rng.random(size) < 0.3
    scores = rng.standard_normal(size) + apart * same
    if levels:
        scores = np.clip(np.round(scores * levels / 6), -levels // 2, levels // 2)
    return scores.astype(np.float32), same


def sweep(scores, same, costs):
    """Every threshold there is, with accepting all and rejecting all."""
    best = math.inf
    for threshold in [-math.inf, *np.unique(scores), math.inf]:
        accepted = scores >= threshold
        miss, false_accept = (~accepted[same]).mean(), accepted[~same].mean()
        cost = (
            costs.prior * costs.miss * miss + (1 - costs.prior) * costs.false_accept * false_accept
        )
        best = min(best, cost)
    return best / min(costs.prior * costs.miss, (1 - costs.prior) * costs.false_accept)


CASES = [
    trials(seed, levels=levels, apart=apart)
    for seed, (levels, apart) in enumerate(
        [(None, 1), (None, 0), (None, -1), (12, 1), (3, 1), (2, 0.3), (1, 0), (40, 4)]
    )
]
each_case = pytest.mark.parametrize("scores, same", CASES)


class TestCurve:
    @each_case
    def test_it_is_that_of_scikit_learn(self, scores, same):
        """Every point of one lies on the lines between the points of the other."""
        p_fa, p_miss = error_rates(count_scores(scores, same))
        wanted_fa, wanted_hit, _ = roc_curve(same, scores, drop_intermediate=False)
        # rotated by 45 degrees a curve that never falls is a function
        mine, wanted = (
            (p_fa + 1 - p_miss, p_fa - 1 + p_miss),
            (wanted_fa + wanted_hit, wanted_fa - wanted_hit),
        )
        np.testing.assert_allclose(np.interp(wanted[0], *mine), wanted[1], atol=1e-12)
        np.testing.assert_allclose(np.interp(mine[0], *wanted), mine[1], atol=1e-12)


class TestEqualErrorRate:
    @each_case
    def test_it_is_where_scikit_learns_curve_crosses_the_diagonal(self, scores, same):
        p_fa, hit, _ = roc_curve(same, scores, drop_intermediate=False)
        wanted = brentq(lambda x: 1 - x - interp1d(p_fa, hit)(x), 0, 1)
        mine = eer(*error_rates(count_scores(scores, same)))
        if (
            1 - hit == p_fa
        ).any():  # else a vertical step, which interp1d cannot cross, may hide the root
            assert mine == pytest.approx(p_fa[(1 - hit == p_fa).argmax()])
        else:
            after = (p_fa >= 1 - hit).argmax()
            assert mine == pytest.approx(wanted, abs=1e-9) or p_fa[after] == p_fa[
                after - 1
            ] == pytest.approx(mine)

    def test_constant_scores_say_nothing(self):
        scores, same = np.full(50, 0.7), np.arange(50) < 3
        rates = error_rates(count_scores(scores, same))
        assert eer(*rates) == 0.5
        assert min_dcf(*rates) == 1


class TestCost:
    @pytest.mark.parametrize(
        "costs", [PAPER, RELEASED, EVEN, DetectionCosts(prior=0.9, miss=10, false_accept=1)]
    )
    @each_case
    def test_minimum_of_a_sweep(self, scores, same, costs):
        cost = min_dcf(*error_rates(count_scores(scores, same)), costs)
        assert cost == pytest.approx(sweep(scores, same, costs))
        assert cost <= 1

    def test_costs_without_sense(self):
        for wrong in (
            {"prior": 0},
            {"prior": 1},
            {"miss": 0},
            {"false_accept": -1},
            {"prior": math.nan},
            {"cost": 1},
        ):
            with pytest.raises(
                ValueError, match=f"costs: '{next(iter(wrong))}' is|unknown setting 'cost'"
            ):
                DetectionCosts.of(wrong, "costs")


class TestTally:
    def test_errors(self):
        scores, same = trials()
        with pytest.raises(ValueError, match="1 scores are not finite"):
            count_scores(np.where(np.arange(400) == 3, np.nan, scores), same)
        for one_kind in (same & False, same | True):
            with pytest.raises(ValueError, match="need finite scores and both kinds"):
                count_scores(scores, one_kind)


class TestIntervals:
    @staticmethod
    def linking(accounts, impostors, seed=0, spread=1.0):
        """One trial of the own account and some of impostors for each, whose level varies."""
        rng = np.random.default_rng(seed)
        account = np.repeat(np.arange(accounts), impostors + 1)
        same = np.arange(len(account)) % (impostors + 1) == 0
        return (
            rng.standard_normal(len(account))
            + same
            + spread * rng.standard_normal(accounts)[account],
            same,
            account,
        )

    def test_the_mean_over_topics(self):
        tallies = [count_scores(*self.linking(20, 30, seed)) for seed in (0, 1, 2)]
        tables_of_parts = [metrics_of([[result]]) for result in tallies]
        table = metrics_of([tallies])
        np.testing.assert_allclose(
            table.value, np.mean([result.value for result in tables_of_parts], 0)
        )
        width = [result.high["EER"] - result.low["EER"] for result in (table, *tables_of_parts)]
        assert width[0] < min(width[1:])

    def test_a_paired_difference_is_that_of_copied_trials(self):
        """scikit-learn's curve of the trials of the drawn accounts, by both models."""
        scores, same, account = self.linking(15, 20)
        base = scores + np.random.default_rng(5).standard_normal(len(scores))
        ours, theirs = [[[count_scores(part, same, account)]] for part in (scores, base)]
        table = metrics_of(ours, base=theirs, seed=3, resamples=25)

        def crossing(part, rows):
            p_fa, hit, _ = roc_curve(same[rows], part[rows], drop_intermediate=False)
            return np.interp(0, p_fa + hit - 1, p_fa)

        drawn = []
        for times in resample_weights(np.arange(15), 25, seed=3):
            rows = np.repeat(np.arange(len(account)), times[account])
            drawn.append(crossing(scores, rows) - crossing(base, rows))
        every = np.arange(len(account))
        wanted = crossing(scores, every) - crossing(base, every)
        assert table.value["EER_difference"] == pytest.approx(wanted)
        ends = table.loc["EER_difference", ["low", "high"]].tolist()
        np.testing.assert_allclose(ends, np.percentile(drawn, [2.5, 97.5]))

    def test_both_costs_and_no_resamples(self):
        scores, same, account = self.linking(40, 30)
        table = metrics_of([[count_scores(scores, same, account)]], EVEN, resamples=0)
        assert table.value["minDCF"] == pytest.approx(sweep(scores, same, EVEN))
        assert table.value["minDCF_released"] == pytest.approx(sweep(scores, same, RELEASED))
        assert table[["low", "high"]].isna().all(axis=None)


def test_recall_at_a_precision_is_that_of_a_loop_over_thresholds():
    rng = np.random.default_rng(3)
    same = rng.random(400) < 0.2
    scores = np.round(rng.normal(size=400) + 2 * same, 1)  # with ties
    rates = detection.error_rates(detection.count_scores(scores, same))
    for precision, prior in ((0.9, 0.05), (0.99, 0.05), (0.9, 0.5)):
        best_recall = 0.0
        for threshold in np.unique(scores):
            hit, false = (np.mean(scores[kind] >= threshold) for kind in (same, ~same))
            if prior * hit / (prior * hit + (1 - prior) * false) >= precision:
                best_recall = max(best_recall, hit)
        assert (
            detection.recall_at(*rates, precision, prior) == pytest.approx(best_recall)
            and 0 < best_recall < 1
        )
    worthless = detection.error_rates(
        detection.count_scores(np.zeros(4), np.array([True, False, True, False]))
    )
    assert detection.recall_at(*worthless, 0.9, 0.05) == 0
    assert detection.recall_at(*worthless, 0.5, 0.5) == 1, "exactly the precision is enough"


def test_a_resample_without_trials_of_both_kinds_counts_for_nothing():
    """Only account a has a same-account trial: a resample without a has no error rate."""
    scores = [0.9, 0.4, 0.5, 0.3]
    counts = detection.count_scores(scores, [True, True, False, False], ["a", "a", "b", "c"])
    table = metrics_of([[counts]], resamples=40)
    assert table.notna().all(axis=None)
    assert (table.low <= table.high).all()
