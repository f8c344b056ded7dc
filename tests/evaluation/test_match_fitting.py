"""The fit of a matching: drawn lists, and lines of scores whose likelihood ratios are known."""

import numpy as np
import pytest

from helpers.evaluation.calibration import cllr, min_cllr
from helpers.evaluation.candidates import all_candidates
from helpers.evaluation.match_fitting import (
    FIT_LISTS,
    draw_lists,
    fit_match,
)
from helpers.evaluation.matching import MatchConfig, sinkhorn

DISTANCE = 3.0  # of the scores of true pairs from those of others, in standard deviations


def scores_of_known(accounts, seed):
    """Scores (N, N) with true pairs on the diagonal; their log ratio is DISTANCE * s - const."""
    scores = np.random.default_rng(seed).standard_normal((accounts, accounts))
    return scores + DISTANCE * np.eye(accounts)


@pytest.fixture(scope="module")
def line():
    return fit_match(scores_of_known(200, seed=1))


@pytest.mark.parametrize("overlap", [1.0, 0.5, 0.1, 0.01])
def test_drawn_lists_share_the_accounts_of_their_overlap(overlap):
    queries, targets = draw_lists(300, overlap, np.random.default_rng(0))
    shared = np.intersect1d(queries, targets)
    assert len(queries) == len(targets) == len({*queries}) == len({*targets})
    assert len(shared) / len(queries) == pytest.approx(overlap, abs=0.005)
    np.testing.assert_array_equal(queries[: len(shared)], targets[: len(shared)])
    assert len({*queries} | {*targets}) >= 299 and max(queries.max(), targets.max()) < 300


def test_the_slope_is_that_of_the_likelihood_ratio(line):
    assert line.slope == pytest.approx(DISTANCE, rel=0.25)
    assert line.accounts == 200 and 0.5 < line.llr_scale < 1.5


@pytest.mark.parametrize("overlap", [0.5, 0.1])
def test_probabilities_of_other_lists_are_cautious(line, overlap):
    rng = np.random.default_rng(3)
    probabilities, llrs, trues = [], [], []
    for seed in range(2, 22):
        scores = scores_of_known(200, seed)
        queries, targets = draw_lists(200, overlap, rng)
        result = sinkhorn(all_candidates(scores[np.ix_(queries, targets)]), line, overlap)
        probabilities.append(result.probability)
        llrs.append(result.llr(line.llr_scale, line.llr_shift))
        trues.append((queries[:, None] == targets).ravel())
    probability, llr, same = [np.concatenate(parts) for parts in (probabilities, llrs, trues)]
    assert cllr(llr, same) < 1.2 * min_cllr(llr, same)  # 1.27 without a shift
    likely = probability > 0.2
    assert likely.sum() > 90
    too_cautious = same[likely].mean() - probability[likely].mean()
    assert 0 < too_cautious < 0.3


def test_a_line_is_the_likeliest_of_those_near_it(line):
    """The mean log-probability of the truth, in the fitted lists, falls to all sides."""
    scores = scores_of_known(200, seed=1)

    def likelihood(candidate):
        rng = np.random.default_rng(0)
        means = []
        for overlap, count in FIT_LISTS.items():
            values = []
            for _ in range(count):
                queries, targets = draw_lists(200, overlap, rng)
                candidates = all_candidates(scores[np.ix_(queries, targets)])
                matching = sinkhorn(candidates, candidate, overlap)
                same = queries[:, None] == targets
                truth = [*matching.probability.reshape(same.shape)[same]]
                truth += [*matching.nobody_of_queries[~same.any(1)]]
                truth += [*matching.nobody_of_targets[~same.any(0)]]
                values.append(np.log(np.maximum(truth, 1e-12)).mean())
            means.append(np.mean(values))
        return np.mean(means)

    best = likelihood(line)
    for slope, shift in ((0.7, 0), (1.4, 0), (1, -1.5), (1, 1.5)):
        assert likelihood(MatchConfig(slope * line.slope, line.intercept + shift)) < best


def test_a_prior_bounds_the_slope_of_few_accounts_that_are_all_told_apart():
    scores = scores_of_known(15, seed=5) + 10 * np.eye(15)
    told_apart = scores.diagonal().min() > (scores - 20 * np.eye(15)).max()
    assert told_apart, "so the likeliest slope is infinite"
    assert fit_match(scores).slope > 3
    assert 0.5 < fit_match(scores, expected_slope=1.0).slope < 2


def test_a_prior_hardly_moves_the_slope_of_many_accounts(line):
    with_prior = fit_match(scores_of_known(200, seed=1), expected_slope=1.0)
    assert with_prior.slope == pytest.approx(line.slope, rel=0.1)
    assert with_prior.slope < line.slope


def test_a_line_is_fitted_on_ten_accounts_or_more():
    with pytest.raises(ValueError, match="10 accounts or more, not on 9"):
        fit_match(np.eye(9))
