"""Matching of two lists against a plain loop, SciPy and what generated scores are known to be.

So is its fit: drawn lists, and lines of scores whose likelihood ratios are known.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from helpers.evaluation import matching
from helpers.evaluation.matching import (
    FIT_LISTS,
    MatchConfig,
    as_pairs,
    draw_lists,
    estimate_overlap,
    fit_match,
    mutual_best,
    sinkhorn,
)
from tests.oracles import slow_match

CONFIG = MatchConfig(slope=1.5, intercept=-2.0)
SHAPES = st.tuples(st.integers(1, 8), st.integers(1, 8))
OVERLAPS = st.sampled_from([1.0, 0.5, 0.1, 0.01])


def drawn_scores(seed, shape, missing=0.0):
    """Normal scores, a share of them -inf."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(shape) * 2
    scores[rng.random(shape) < missing] = -np.inf
    return scores


@given(st.integers(0, 10**6), SHAPES, OVERLAPS, st.sampled_from([0.0, 0.4]))
def test_matching_is_that_of_a_loop_in_log_space(seed, shape, overlap, missing):
    scores = drawn_scores(seed, shape, missing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sinkhorn(scores, CONFIG, overlap)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(slow_match(scores, CONFIG, overlap))
    np.testing.assert_allclose(result, expected[:-1, :-1], atol=1e-9)
    has_pairs = np.isfinite(scores).any(1)
    np.testing.assert_allclose(
        1 - result.sum(1)[has_pairs], expected[:-1, -1][has_pairs], atol=1e-9
    )
    assert overlap == 1 or (result.sum(0) <= matching.MOST_TOTAL).all()


@pytest.mark.parametrize("overlap", [0.5, 0.1])
def test_two_queries_are_not_both_sure_of_one_target(overlap):
    """Each is half of it, however well both fit; 50 rounds would leave both certain."""
    scores = np.full((3, 3), -np.inf)
    scores[:2, 0] = 60
    scores[2, 1] = 2
    result = sinkhorn(scores, CONFIG, overlap)
    assert result[:2, 0] == pytest.approx([0.5, 0.5], abs=0.05)
    early = sinkhorn(scores, CONFIG, overlap, 50)
    assert early[:2, 0].sum() > 1.9


@given(st.integers(0, 10**6), SHAPES, st.sampled_from([3, 1000]))
def test_mutual_best_pairs_are_those_of_a_loop(seed, shape, values):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, values, shape).astype(float)
    scores[rng.random(shape) < 0.2] = -np.inf
    for (query, target), mutual in np.ndenumerate(mutual_best(scores)):
        score = scores[query, target]
        as_high = (scores[query] >= score).sum() + (scores[:, target] >= score).sum()
        assert mutual == (as_high == 2 and score > -np.inf)


@given(st.integers(0, 10**6), SHAPES, OVERLAPS)
def test_sparse_scores_in_any_order_have_the_same_probabilities(seed, shape, overlap):
    scores = drawn_scores(seed, shape, 0.2)
    pairs = as_pairs(scores)
    order = np.random.default_rng(seed).permutation(pairs.nnz)
    places = tuple(place[order] for place in pairs.coords)
    mixed = sparse.coo_array((pairs.data[order], places), shape)
    expected = sinkhorn(scores, CONFIG, overlap)
    np.testing.assert_allclose(sinkhorn(mixed, CONFIG, overlap).toarray(), expected, atol=1e-9)


@pytest.mark.parametrize("overlap", [1.0, 0.01])
@pytest.mark.parametrize("shape", [(6, 6), (5, 9)])
def test_extreme_scores_give_numbers_and_no_warning(overlap, shape):
    rng = np.random.default_rng(0)
    one_target = np.full((300, shape[1]), -np.inf)
    one_target[:, 0] = rng.standard_normal(300) * 1e4
    empty_row = rng.standard_normal(shape)
    empty_row[1] = -np.inf
    lists = [rng.standard_normal(shape) * 1e4, one_target, one_target.T, empty_row, empty_row.T]
    lists += [np.full(shape, value) for value in (0.0, 1e4, -1e4, -np.inf)]
    for scores in lists:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = sinkhorn(scores, CONFIG, overlap)
            llr = CONFIG.llr(result, overlap, max(scores.shape))
            estimate = estimate_overlap(scores, CONFIG)
        assert np.isfinite(result).all() and np.isfinite(llr).all()
        assert (result.sum(1) <= 1 + 1e-9).all()
        assert matching.MIN_OVERLAP <= estimate <= matching.MAX_OVERLAP


def test_the_likelihood_ratio_takes_the_prior_of_a_pair_away():
    result = sinkhorn(drawn_scores(0, (4, 8)), CONFIG, 0.5)
    odds = np.exp(CONFIG.llr(result, 0.5, 8)) / 15  # 2 of 32 pairs are partners
    np.testing.assert_allclose(odds / (1 + odds), result)


DISTANCE = 3.0  # of the scores of true pairs from those of others, in standard deviations


def scores_of_known(accounts, seed):
    """Scores (N, N) with true pairs on the diagonal; their log ratio is DISTANCE * s - const."""
    scores = np.random.default_rng(seed).standard_normal((accounts, accounts))
    return scores + DISTANCE * np.eye(accounts)


@pytest.mark.parametrize("overlap", [1.0, 0.5, 0.01])
def test_drawn_lists_share_the_accounts_of_their_overlap(overlap):
    queries, targets = draw_lists(300, overlap, np.random.default_rng(0))
    shared = np.intersect1d(queries, targets)
    assert len(queries) == len(targets) == len({*queries}) == len({*targets})
    assert len(shared) / len(queries) == pytest.approx(overlap, abs=0.005)
    np.testing.assert_array_equal(queries[: len(shared)], targets[: len(shared)])


def test_a_line_is_that_of_the_likelihood_ratio_and_the_likeliest_of_those_near_it():
    """The mean log-probability of the truth, in the fitted lists, falls to all sides."""
    scores = scores_of_known(60, seed=1)
    line = fit_match(scores)

    def likelihood(candidate):
        rng = np.random.default_rng(0)
        means = []
        for overlap, count in FIT_LISTS.items():
            for _ in range(count):
                queries, targets = draw_lists(60, overlap, rng)
                probability = sinkhorn(scores[np.ix_(queries, targets)], candidate, overlap)
                same = queries[:, None] == targets
                nobody = [1 - probability.sum(axis)[~same.any(axis)] for axis in (0, 1)]
                truth = np.concatenate([probability[same], *nobody])
                means.append(np.log(np.maximum(truth, 1e-12)).mean() / count)
        return sum(means)

    assert line.slope == pytest.approx(DISTANCE, rel=0.25)
    assert line.accounts == 60 and 0.5 < line.llr_scale < 1.5
    best = likelihood(line)
    for slope, shift in ((0.7, 0), (1.4, 0), (1, -1.5), (1, 1.5)):
        assert likelihood(MatchConfig(slope * line.slope, line.intercept + shift)) < best


def test_a_prior_bounds_the_slope_of_few_accounts_that_are_all_told_apart():
    scores = scores_of_known(12, seed=5) + 10 * np.eye(12)
    assert fit_match(scores).slope > 3, "the likeliest slope is infinite"
    assert 0.5 < fit_match(scores, expected_slope=1.0).slope < 2
    with pytest.raises(ValueError, match="10 accounts or more, not on 9"):
        fit_match(np.eye(9))


def test_the_fit_does_not_end_at_a_line_that_links_nobody():
    rng = np.random.default_rng(2)
    scores = rng.normal(-3, 1.5, (50, 50))
    np.fill_diagonal(scores, rng.uniform(-0.5, 15, 50))
    assert fit_match(scores, expected_slope=1.0).slope > 1.5
