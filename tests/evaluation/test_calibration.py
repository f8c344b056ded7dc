"""Calibration against known ratios, Cllr by hand, PAV and reliability against scikit-learn."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.calibration import calibration_curve
from sklearn.isotonic import isotonic_regression

from helpers.evaluation.calibration import (
    Calibration,
    calibration_metrics,
    cllr,
    fit_calibration,
    min_cllr,
    reliability_bins,
    score_pieces,
)
from helpers.evaluation.detection import PAPER, DetectionCosts

EVEN = DetectionCosts(prior=0.5, miss=1, false_accept=1)


def gaussian(size, share=0.1, apart=1.0, deviation=0.5, seed=0):
    """Scores of two normal laws and the true LLR of each."""
    rng = np.random.default_rng(seed)
    same = rng.random(size) < share
    scores = deviation * rng.standard_normal(size) + np.where(same, apart, 0)
    return scores, same, apart / deviation**2 * (scores - apart / 2)


@pytest.mark.parametrize(("prior", "share"), [(0.05, 0.4), (0.5, 0.02)])
def test_a_fit_recovers_the_true_ratio_whatever_the_shares(prior, share):
    scores, same, true = gaussian(200_000, share)
    fitted = fit_calibration(scores, same, prior=prior)
    assert fitted.weights == pytest.approx([4.0], rel=0.05)
    assert fitted.intercept == pytest.approx(-2.0, rel=0.1)
    assert np.abs(fitted.llr(scores) - true).max() < 0.5


def test_with_the_sizes_it_knows_how_much_a_score_is_worth():
    """The score's deviation falls with the number of posts; one slope for all sizes loses."""
    rng = np.random.default_rng(0)
    size = rng.choice([1, 4, 16, 64], 60_000)
    target_size = np.full(len(size), 100)
    same = rng.random(len(size)) < 0.3
    # slope 1 + log size in the score, and -log size / 2 - 1 without it: within the family
    slope, level = 1 + np.log(size), -1 - np.log(size) / 2
    mean = np.where(same, 0.5, -0.5) - level / slope
    scores = mean + rng.standard_normal(len(size)) / np.sqrt(slope)
    true = slope * scores + level
    plain = fit_calibration(scores, same).llr(scores)
    fitted = fit_calibration(scores, same, size, target_size)
    aware = fitted.llr(scores, size, target_size)
    assert np.abs(aware - true).mean() < 0.1
    assert cllr(aware, same) < cllr(plain, same) - 0.02
    for rows in (slice(0, 1), slice(5, 9)):
        alone = fitted.llr(scores[rows], size[rows], target_size[rows])
        np.testing.assert_array_equal(alone, aware[rows], "each pair alone")


def test_a_calibration_with_a_knot_bends_there_and_is_a_sum_of_pieces():
    scores = np.linspace(-5, 5, 11)
    pieces = score_pieces(scores, [-1.0, 2.0])
    np.testing.assert_allclose(pieces.sum(1), scores)
    assert (np.diff(pieces, axis=0) >= 0).all()
    bent = Calibration([0.5, 2.0], 1.0, [1.0])
    expected = [1 + 0.5 * min(score, 1) + 2 * max(score - 1, 0) for score in scores]
    np.testing.assert_allclose(bent.llr(scores), expected)
    sized = Calibration([0.5, 2.0, 0.1, 0.2, 0.0, 1.0, 0.0, 0.0], 1.0, [1.0])
    posts = np.full(11, np.e)
    more = [0.3 + max(score - 1, 0) for score in scores]
    np.testing.assert_allclose(sized.llr(scores, posts, posts), np.add(expected, more))


def test_cllr_by_hand():
    llr, same = np.log([3, 1, 1 / 3, 1 / 7]), np.array([True, True, False, False])
    wanted = (math.log2(4 / 3) + math.log2(2)) / 4 + (math.log2(4 / 3) + math.log2(8 / 7)) / 4
    assert cllr(llr, same) == pytest.approx(wanted)
    assert cllr(np.array([-5000.0, -np.inf]), same[1:3]) > 1000, "no overflow"


def test_the_minimum_is_that_of_pav():
    """Scores in order, so that ties aside isotonic regression of the labels is PAV."""
    scores, same, _ = gaussian(300, 0.2, apart=0.7)
    order = np.argsort(scores)
    posterior = isotonic_regression(same[order].astype(float), y_min=0, y_max=1)
    llr = np.empty(300)
    with np.errstate(divide="ignore"):
        llr[order] = logit(posterior) - logit(same.mean())
    assert min_cllr(scores, same) == pytest.approx(cllr(llr, same))


@pytest.mark.parametrize("unit", [1, 1e-9])
def test_equal_scores_get_one_ratio(unit):
    scores, same = np.array([1, 1, 1, 2, 2, 2], np.float32), np.array([1, 0, 0, 1, 1, 0])
    wanted = cllr(np.log([1 / 2] * 3 + [2] * 3), same.astype(bool))  # at equal classes
    assert min_cllr(scores * np.float32(unit), same) == pytest.approx(wanted)


def test_reliability_is_that_of_scikit_learn_at_the_trials_own_prior():
    scores, same, true = gaussian(5000, 0.3, apart=2.0)
    prior = same.mean()
    table = reliability_bins(true, same, prior, bins=7)
    observed, predicted = calibration_curve(same, expit(true + logit(prior)), n_bins=7)
    np.testing.assert_allclose(table.observed, observed)
    np.testing.assert_allclose(table.predicted, predicted)
    assert table.same.sum() == same.sum() and table.different.sum() == (~same).sum()
    certain = reliability_bins(np.array([-np.inf, np.inf]), np.array([False, True]))
    assert certain[["predicted", "observed"]].to_numpy().tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("costs", [PAPER, EVEN])
def test_true_ratios_reach_the_minimum_without_looking(costs):
    _, same, true = gaussian(200_000, 0.3)
    metrics = calibration_metrics(true, same, costs).value
    odds = (1 - costs.prior) / costs.prior
    assert metrics["threshold"] == pytest.approx(math.log(odds * costs.false_accept))
    assert metrics["minDCF"] <= metrics["DCF"] < metrics["minDCF"] + 0.01
    wanted = metrics["P_miss"] + odds * costs.false_accept * metrics["P_fa"]
    assert metrics["DCF"] == pytest.approx(wanted)
    assert metrics["minCllr"] == pytest.approx(metrics["Cllr"], abs=0.003)
    shifted = calibration_metrics(true + 2, same, costs).value
    assert shifted["DCF"] > metrics["DCF"] + 0.05 and shifted["Cllr"] > metrics["Cllr"] + 0.05
    for name in ("minDCF", "minCllr"):
        assert shifted[name] == pytest.approx(metrics[name])
