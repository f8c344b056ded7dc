"""Thresholds and maps against every combination tried, and each pair judged alone."""

import numpy as np
import pandas as pd
import pytest

from helpers.evaluation.decisions import (
    GRID,
    PUBLISHED_THRESHOLDS,
    apply_thresholds,
    best_thresholds,
    fit_decision,
    fit_scores,
    fit_shift,
    legacy_min_max,
    threshold_surface,
    to_scores,
)
from helpers.evaluation.pan_metrics import DEFINITIONS, pan_metrics
from tests.oracles import slow_pan_metrics


def trials(size=200, seed=0):
    """Scores with many ties, some of them unanswered."""
    rng = np.random.default_rng(seed)
    same = rng.random(size) < 0.4
    return np.round((rng.random(size) + 0.5 * same) / 1.5, 1), same


class TestThresholds:
    def test_by_hand(self):
        answers = apply_thresholds([0, 0.2, 0.4, 0.5, 0.6, 0.8, 1], 0.4, 0.6)
        assert answers == pytest.approx([0, 0.25, 0.5, 0.5, 0.5, 0.75, 1])

    @pytest.mark.parametrize(
        "lower, upper", [PUBLISHED_THRESHOLDS, (0.1, 0.3), (0.7, 0.7), (0, 1), (0, 0), (1, 1)]
    )
    def test_only_what_lies_between_is_unanswered_and_order_stays(self, lower, upper):
        near = [np.nextafter(edge, side) for edge in (lower, upper) for side in (0, 1)]
        scores = np.sort(
            np.concatenate(
                [np.random.default_rng(0).random(1000), near, [lower, upper, 0, 1, 1e-300]]
            )
        )
        answers = apply_thresholds(scores, lower, upper)
        np.testing.assert_array_equal(answers == 0.5, (lower <= scores) & (scores <= upper))
        np.testing.assert_array_equal(answers < 0.5, scores < lower)
        assert (np.diff(answers) >= 0).all() and answers.min() >= 0 and answers.max() <= 1

    def test_in_the_middle_nothing_changes(self):
        scores = np.random.default_rng(0).random(1000)
        np.testing.assert_allclose(apply_thresholds(scores, 0.5, 0.5), scores, atol=1e-15)

    def test_errors(self):
        for lower, upper in ((0.6, 0.4), (-0.1, 0.5), (0.5, 1.1), (np.nan, 0.5)):
            with pytest.raises(ValueError, match="0 <= lower <= upper <= 1"):
                apply_thresholds([0.3], lower, upper)

    def test_the_surface_finds_a_known_best(self):
        """Below 0.3 all are different, above 0.6 all the same, and between it is a toss-up."""
        scores = np.linspace(0.005, 0.995, 120)
        same = np.where(scores < 0.6, (np.arange(120) % 2 == 0) & (scores > 0.3), True)
        grid = np.round(np.arange(0.1, 1, 0.1), 1)
        surface = threshold_surface(scores, same, grid=grid)
        assert len(surface) == 45 and (surface.lower <= surface.upper).all()
        lower, upper = best_thresholds(surface)
        scored = {
            (low, high): slow_pan_metrics(apply_thresholds(scores, low, high), same, "pan21")[
                "overall"
            ]
            for low in grid
            for high in grid
            if low <= high
        }
        assert scored[lower, upper] == pytest.approx(max(scored.values())) == surface.overall.max()
        assert (lower, upper) == max(scored, key=scored.get) and lower >= 0.3

    @pytest.mark.parametrize("definition", DEFINITIONS)
    def test_the_surface_is_that_of_every_combination_alone(self, definition):
        scores, same = trials()
        grid = np.array([0.1, 0.3, 0.35, 0.5, 0.8])
        for row in threshold_surface(scores, same, definition, grid).to_dict("records"):
            alone = pan_metrics(
                apply_thresholds(scores, row.pop("lower"), row.pop("upper")), same, definition
            )
            assert row == pytest.approx(alone)

    def test_of_equal_ones_the_fewest_unanswered(self):
        surface = pd.DataFrame(
            {
                "lower": [0.2, 0.3, 0.1],
                "upper": [0.6, 0.5, 0.5],
                "overall": [0.8, 0.8, 0.7],
                "n_unanswered": [4, 2, 0],
            }
        )
        assert best_thresholds(surface) == (0.3, 0.5)


class TestMaps:
    def dev(self, size=2000):
        rng = np.random.default_rng(0)
        same = rng.random(size) < 0.5
        return 5 + rng.standard_normal(size) + 1.5 * ~same, same

    def test_a_score_is_monotone_and_right(self):
        distances, same = self.dev(40_000)
        scores = to_scores(fit_scores(distances, same), np.linspace(0, 20, 200))
        assert (np.diff(scores) < 0).all() and scores.min() >= 0 and scores.max() <= 1
        given = to_scores(fit_scores(distances, same), distances)
        for low in (0.1, 0.4, 0.7):
            chosen = (low <= given) & (given < low + 0.2)
            assert same[chosen].mean() == pytest.approx(given[chosen].mean(), abs=0.05)

    def test_each_pair_is_scored_alone(self):
        distances, same = self.dev()
        fitted = fit_scores(distances, same)
        alone = np.array([to_scores(fitted, distances[[row]])[0] for row in range(50)])
        np.testing.assert_array_equal(
            to_scores(fitted, np.append(distances[:50], [1e6, -1e6]))[:50], alone
        )
        assert (
            legacy_min_max(np.append(distances[:50], 1e3))[:50] != legacy_min_max(distances[:50])
        ).any()

    def test_the_legacy_scaling(self):
        assert legacy_min_max([1, 2, 5]).tolist() == [1, 0.75, 0]
        for wrong in ([2, 2], [1, np.nan]):
            with pytest.raises(ValueError, match="finite distances that are not all equal"):
                legacy_min_max(wrong)


class TestDecision:
    same = np.random.default_rng(1).random(400) < 0.5
    apart = np.random.default_rng(2).normal(1.0 - 0.4 * same, 0.3)

    @pytest.mark.parametrize("fit", [fit_decision, fit_shift])
    def test_it_is_learned_on_dev_and_judges_each_pair_alone(self, fit):
        dev, test = slice(0, 200), slice(200, 400)
        decide, (lower, upper) = fit(self.apart[dev], self.same[dev])
        scores = decide(self.apart[test])
        assert 0 < lower <= upper < 1 and ((0 <= scores) & (scores <= 1)).all()
        assert np.array_equal(
            np.concatenate([decide(self.apart[[number]]) for number in range(200, 400)]), scores
        )
        plain = np.clip(1 - self.apart[dev], 0, 1)
        if fit is fit_decision:
            plain = to_scores(fit_scores(self.apart[dev], self.same[dev]), self.apart[dev])
        surface = threshold_surface(plain, self.same[dev])
        best = pan_metrics(decide(self.apart[dev]), self.same[dev])["overall"]
        assert best == pytest.approx(surface.overall.max())
        assert best >= pan_metrics(plain, self.same[dev])["overall"]
        assert pan_metrics(scores, self.same[test])["AUC"] > 0.75


def test_the_grid_holds_the_identity():
    assert 0.5 in GRID and len(GRID) == 49
