"""Matching of two lists against a plain loop, SciPy and what generated scores are known to be."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from helpers.evaluation import matching
from helpers.evaluation.candidates import all_candidates
from helpers.evaluation.matching import (
    MatchConfig,
    estimate_overlap,
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


def matrix_of(result):
    """The probabilities (Q, T) of a matching, 0 of pairs that are no candidates."""
    matrix = np.zeros((result.candidates.queries, result.candidates.targets))
    matrix[tuple(result.candidates.pairs.T)] = result.probability
    return matrix


@given(st.integers(0, 10**6), SHAPES, OVERLAPS, st.sampled_from([0.0, 0.4]))
def test_matching_is_that_of_a_loop_in_log_space(seed, shape, overlap, missing):
    scores = drawn_scores(seed, shape, missing)
    has_pairs = np.isfinite(scores).any(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sinkhorn(all_candidates(scores), CONFIG, overlap)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(slow_match(scores, CONFIG, overlap))
    np.testing.assert_allclose(matrix_of(result), expected[:-1, :-1], atol=1e-9)
    nobody = np.where(has_pairs, expected[:-1, -1], 1)
    np.testing.assert_allclose(result.nobody_of_queries, nobody, atol=1e-9)
    left = np.clip(1 - expected[:-1, :-1].sum(0), 0, 1)
    np.testing.assert_allclose(result.nobody_of_targets, left, atol=1e-9)


@given(st.integers(0, 10**6), SHAPES, OVERLAPS)
def test_probabilities_of_a_query_sum_to_one(seed, shape, overlap):
    result = sinkhorn(all_candidates(drawn_scores(seed, shape, 0.1)), CONFIG, overlap)
    of_queries = matrix_of(result).sum(1) + result.nobody_of_queries
    np.testing.assert_allclose(of_queries, 1, atol=1e-9)
    assert ((0 <= result.nobody_of_targets) & (result.nobody_of_targets <= 1)).all()
    if overlap < 1:
        assert (matrix_of(result).sum(0) <= matching.MOST_TOTAL).all()


@pytest.mark.parametrize("overlap, left", [(1.0, 1e-3), (0.5, 5e-3), (0.1, 5e-4), (0.01, 1e-5)])
@pytest.mark.parametrize("shape", [(60, 60), (40, 60), (60, 40)])
def test_fifty_rounds_leave_little_of_the_targets(overlap, left, shape):
    """What the probabilities of a target sum to, against a hundred times as many rounds."""
    candidates = all_candidates(drawn_scores(0, shape))
    sums = [
        matrix_of(sinkhorn(candidates, CONFIG, overlap, rounds)).sum(0) for rounds in (50, 5000)
    ]
    np.testing.assert_allclose(*sums, atol=left)


@pytest.mark.parametrize("overlap", [0.5, 0.1])
def test_two_queries_are_not_both_sure_of_one_target(overlap):
    """Each is half of it, however well both fit; 50 rounds would leave both certain."""
    scores = np.full((3, 3), -np.inf)
    scores[:2, 0] = 60
    scores[2, 1] = 2
    result = sinkhorn(all_candidates(scores), CONFIG, overlap)
    assert matrix_of(result)[:2, 0] == pytest.approx([0.5, 0.5], abs=0.05)
    assert matrix_of(sinkhorn(all_candidates(scores), CONFIG, overlap, 50))[:2, 0].sum() > 1.9


def pairs_of(candidates, chosen):
    """Chosen candidates as a matrix (Q, T) bool."""
    matrix = np.zeros((candidates.queries, candidates.targets), bool)
    matrix[tuple(candidates.pairs[chosen].T)] = True
    return matrix


def assignment(scores):
    """The best assignment (Q, T) bool by SciPy, and how much it is better than the second best."""
    rows = optimize.linear_sum_assignment(scores, maximize=True)
    best = np.zeros(scores.shape, bool)
    best[rows] = True
    others = []
    for pair in zip(*rows):
        without = scores.copy()
        without[pair] = -1e6
        others.append(without[optimize.linear_sum_assignment(without, maximize=True)].sum())
    return best, scores[rows].sum() - max(others)


@pytest.mark.parametrize("shape", [(6, 6), (5, 7), (7, 5)])
def test_at_a_low_temperature_pairs_are_those_of_the_best_assignment(shape):
    compared = 0
    for seed in range(30):
        scores = np.random.default_rng(seed).standard_normal(shape)
        best, margin = assignment(scores)
        candidates = all_candidates(scores)
        if margin > 0.1:
            result = sinkhorn(candidates, MatchConfig(slope=70.0, intercept=0.0), 1.0, 2000)
            np.testing.assert_array_equal(pairs_of(candidates, result.probability > 0.5), best)
            compared += 1
    assert compared > 15


@given(st.integers(0, 10**6), SHAPES, st.sampled_from([3, 1000]))
def test_mutual_best_pairs_are_those_of_a_loop(seed, shape, values):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, values, shape).astype(float)
    scores[rng.random(shape) < 0.2] = -np.inf
    candidates = all_candidates(scores)
    is_mutual = mutual_best(candidates)
    for (query, target), mutual in zip(candidates.pairs, is_mutual):
        score = scores[query, target]
        as_high = (scores[query] >= score).sum() + (scores[:, target] >= score).sum()
        assert mutual == (as_high == 2)


@given(st.integers(0, 10**6), SHAPES, OVERLAPS)
def test_a_forbidden_pair_has_no_probability(seed, shape, overlap):
    scores = drawn_scores(seed, shape)
    rng = np.random.default_rng(seed)
    forbidden = np.argwhere(rng.random(shape) < 0.4)
    scores[tuple(forbidden.T)] = 50  # however well they fit
    candidates = all_candidates(scores).without(forbidden)
    result = sinkhorn(candidates, CONFIG, overlap)
    assert (matrix_of(result)[tuple(forbidden.T)] == 0).all()
    chosen = pairs_of(candidates, mutual_best(candidates))
    assert not chosen[tuple(forbidden.T)].any()


@given(st.integers(0, 10**6), SHAPES, OVERLAPS)
def test_the_order_of_accounts_does_not_matter(seed, shape, overlap):
    scores = drawn_scores(seed, shape, 0.2)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(shape[0])
    columns = rng.permutation(shape[1])
    one = sinkhorn(all_candidates(scores), CONFIG, overlap)
    candidates = all_candidates(scores[rows][:, columns])
    order = rng.permutation(len(candidates))
    mixed = replace(candidates, pairs=candidates.pairs[order], scores=candidates.scores[order])
    other = sinkhorn(mixed, CONFIG, overlap)
    expected = matrix_of(one)[rows][:, columns]
    np.testing.assert_allclose(matrix_of(other), expected, atol=1e-9)
    np.testing.assert_allclose(other.nobody_of_queries, one.nobody_of_queries[rows], atol=1e-9)
    np.testing.assert_allclose(other.nobody_of_targets, one.nobody_of_targets[columns], atol=1e-9)


@pytest.mark.parametrize("overlap", [1.0, 0.5, 0.01])
@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (9, 5)])
def test_extreme_scores_give_numbers_and_no_warning(overlap, shape):
    rng = np.random.default_rng(0)
    one_target = np.full((300, shape[1]), -np.inf)
    one_target[:, 0] = rng.standard_normal(300) * 1e4
    empty_row = rng.standard_normal(shape)
    empty_row[1] = -np.inf
    lists = [rng.choice([-1e4, 1e4], shape), rng.standard_normal(shape) * 1e4, one_target]
    lists += [np.full(shape, value) for value in (0.0, 1e4, -1e4, -np.inf)]
    lists += [one_target.T, empty_row, empty_row.T]
    for scores in lists:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = sinkhorn(all_candidates(scores), CONFIG, overlap)
            llr = result.llr()
            estimate = estimate_overlap(all_candidates(scores), CONFIG)
        matrix = matrix_of(result)
        for values in (matrix, llr, result.nobody_of_queries, result.nobody_of_targets):
            assert np.isfinite(values).all()
        np.testing.assert_allclose(matrix.sum(1) + result.nobody_of_queries, 1, atol=1e-9)
        has_pairs = np.isfinite(scores).any(1)
        assert (result.nobody_of_queries[~has_pairs] == 1).all()
        assert matching.MIN_OVERLAP <= estimate <= matching.MAX_OVERLAP


@pytest.mark.parametrize("overlap", [1.0, 0.5, 0.1, 0.01])
def test_one_list_with_itself_gives_symmetric_probabilities(overlap):
    """Rows are scaled last, so they are symmetric as far as the rounds have gone: to 1e-4."""
    for seed in range(5):
        scores = drawn_scores(seed, (40, 40))
        scores = (scores + scores.T) / 2
        np.fill_diagonal(scores, -np.inf)
        matrix = matrix_of(sinkhorn(all_candidates(scores), CONFIG, overlap))
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-4)
        assert (matrix.diagonal() == 0).all()


def test_the_likelihood_ratio_takes_the_prior_of_a_pair_away():
    result = sinkhorn(all_candidates(drawn_scores(0, (4, 8))), CONFIG, 0.5)
    odds = np.exp(result.llr()) * (1 / 16) / (1 - 1 / 16)  # 2 of 32 pairs are partners
    np.testing.assert_allclose(odds / (1 + odds), result.probability)


@pytest.mark.parametrize("overlap", [0, -0.1, 1.01])
def test_an_overlap_is_a_share(overlap):
    with pytest.raises(ValueError, match="above 0, at most 1"):
        sinkhorn(all_candidates(np.eye(2)), CONFIG, overlap)


def test_without_a_round_rows_alone_are_divided():
    candidates = all_candidates(np.array([[1.0, 0.0], [1.0, -1.0]]))
    probability = sinkhorn(candidates, MatchConfig(1.0, 0.0), 1.0, rounds=0).probability
    expected = np.exp([[1, 0], [1, -1]]) / np.exp([[1, 0], [1, -1]]).sum(1, keepdims=True)
    np.testing.assert_allclose(probability.reshape(2, 2), expected)


def test_no_probability_is_higher_than_the_comparisons_of_the_fit_support():
    line = MatchConfig(1.0, 0.0, accounts=99)
    odds = 0.1 / 40 / (1 - 0.1 / 40) * 100 * 39  # prior odds of a pair, the largest ratio
    assert line.highest_probability(0.1, 40) == pytest.approx(odds / (1 + odds))
    assert line.highest_probability(0.01, 40) < 0.5 < line.highest_probability(0.1, 40)
    assert MatchConfig(1.0, 0.0).highest_probability(0.01, 40) == 1


def test_where_nobody_may_be_a_partner_nobody_is():
    candidates = all_candidates(np.full((2, 3), -np.inf))
    assert not len(mutual_best(candidates))
    assert (sinkhorn(candidates, CONFIG, 1.0).nobody_of_queries == 1).all()
