"""Answers of a list against a loop over queries, and their metrics against one over thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.evaluation.bootstrap import INTERVAL_ENDS, resample_weights
from helpers.evaluation.candidates import Candidates, all_candidates
from helpers.evaluation.lists import (
    METRICS,
    Answers,
    best_answers,
    cumulative_answers,
    join_answers,
    list_metrics,
    precision_at_mean,
    precision_curve,
)
from tests.oracles import slow_answers, slow_list_metrics


def drawn_list(seed, queries, targets, values=6):
    """Candidates with ties among their values, and partners, -1 of some queries."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, values, (queries, targets)).astype(float)
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    partners = np.full(queries, -1)
    partners[:targets] = rng.permutation(targets)[:queries]
    partners[rng.random(queries) < 0.3] = -1
    return all_candidates(scores), partners


def same_of(partners, targets):
    return partners[:, None] == np.arange(targets)


def answers_of(seed, queries=30, targets=25):
    """Answers of one list whose partners are often best, and accounts of two queries each."""
    candidates, partners = drawn_list(seed, queries, targets, values=40)
    values = candidates.scores + 25 * (partners[candidates.pairs[:, 0]] == candidates.pairs[:, 1])
    return best_answers(candidates, values, same_of(partners, targets))


def expanded(answers, counts):
    """(rank, value) of each query, as often as it counts."""
    rows = []
    for rank, value, count in zip(answers.rank, answers.value, counts):
        rows += [(None if np.isnan(rank) else rank, value)] * int(count)
    return rows


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
def test_answers_are_those_of_a_loop(seed, queries, targets):
    candidates, partners = drawn_list(seed, queries, targets)
    answers = best_answers(candidates, candidates.scores, same_of(partners, targets))
    expected = slow_answers(candidates.pairs, candidates.scores, partners, targets)
    ranks = [np.nan if rank is None else rank for rank, _ in expected]
    np.testing.assert_array_equal(answers.rank, ranks)
    np.testing.assert_array_equal(answers.value, [value for _, value in expected])
    np.testing.assert_array_equal(answers.partner, partners)
    np.testing.assert_array_equal(answers.has_partner, partners >= 0)
    scores = np.full((queries, targets), -np.inf)
    scores[tuple(candidates.pairs.T)] = candidates.scores
    has_candidates = scores.max(1) > -np.inf
    assert (answers.target[~has_candidates] == -1).all()
    np.testing.assert_array_equal(answers.target[has_candidates], scores.argmax(1)[has_candidates])


def test_a_tied_best_is_not_right_and_a_partner_that_is_no_candidate_has_the_last_rank():
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]])
    candidates = Candidates(pairs, np.array([2.0, 2, 1, 3, 5]), 4, 3)
    answers = best_answers(candidates, candidates.scores, same_of(np.array([0, 1, 2, -1]), 3))
    assert answers.rank[:3].tolist() == [2, 1, 3] and np.isnan(answers.rank[3])
    assert answers.right.tolist() == [False, True, False, False]
    assert answers.target.tolist() == [0, 1, 0, -1]
    assert answers.value.tolist() == [2, 3, 5, -np.inf]


def test_a_query_without_candidates_is_not_right_where_there_is_one_target():
    candidates = Candidates(np.array([[1, 0]]), np.array([1.0]), 2, 1)
    answers = best_answers(candidates, candidates.scores, np.array([[True], [False]]))
    assert not answers.right.any()
    metrics = list_metrics(answers, np.arange(2), resamples=0).value
    assert metrics["R@1"] == 0 and metrics["A@P90"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_metrics_and_intervals_are_those_of_a_loop_over_thresholds(seed):
    answers = answers_of(seed)
    accounts = np.arange(30) // 2 * 7 % 11
    table = list_metrics(answers, accounts, seed=5, resamples=20)
    assert list(table.index) == list(METRICS)
    ones = np.ones(30)
    np.testing.assert_allclose(table.value, slow_list_metrics(expanded(answers, ones)))
    row_of_account = np.unique(accounts, return_inverse=True)[1]
    resampled = []
    for weights in resample_weights(row_of_account, 20, 5):
        resampled.append(slow_list_metrics(expanded(answers, weights[row_of_account])))
    low, high = np.percentile(resampled, INTERVAL_ENDS, axis=0)
    np.testing.assert_allclose(table[["low", "high"]], np.stack([low, high], 1))


def test_the_precision_at_a_mean_probability_is_that_of_the_likeliest_answers():
    value = np.array([0.5, 1.0, 0.8, 0.1])
    partner = np.array([0, 1, -1, 3])
    answers = Answers(np.array([0, 1, 2, 3]), value, np.ones(4), partner)
    assert precision_at_mean(answers, 1.0) == 1  # the second answer alone
    assert precision_at_mean(answers, 0.9) == 1 / 2  # and the third, which has no partner
    assert precision_at_mean(answers, 0.7) == 2 / 3
    unlikely = Answers(np.zeros(1), value[:1], np.ones(1), partner[:1])
    assert np.isnan(precision_at_mean(unlikely, 0.9))


def test_differences_are_paired():
    first = answers_of(1)
    scrambled = np.random.default_rng(0).permutation(30)
    second = best_answers(*_worse(1, scrambled))
    accounts = np.arange(30)
    table = list_metrics(first, accounts, second, seed=2, resamples=30)
    sides = [list_metrics(side, accounts, resamples=0).value for side in (first, second)]
    assert list(table.index) == [f"{name}_difference" for name in METRICS]
    np.testing.assert_allclose(table.value, sides[0] - sides[1])
    resampled = []
    for weights in resample_weights(accounts, 30, 2):
        values = [slow_list_metrics(expanded(side, weights)) for side in (first, second)]
        resampled.append(np.subtract(*values))
    low, high = np.percentile(resampled, INTERVAL_ENDS, axis=0)
    np.testing.assert_allclose(table[["low", "high"]], np.stack([low, high], 1), atol=1e-12)
    nothing = list_metrics(first, accounts, first, resamples=10)
    assert (nothing == 0).all(axis=None)


def _worse(seed, order):
    """The list of :func:`answers_of` with other values, for the same partners."""
    candidates, partners = drawn_list(seed, 30, 25, values=40)
    return candidates, candidates.scores + order[candidates.pairs[:, 0]], same_of(partners, 25)


def test_curves_count_answers_from_the_best_down():
    answers = answers_of(3)
    order = np.argsort(-answers.value, kind="stable")
    weights = np.random.default_rng(1).integers(0, 3, 30)
    right, answered, is_last = cumulative_answers(answers, order, weights)
    for place, query in enumerate(order):
        if is_last[place]:
            above = answers.value >= answers.value[query]
            assert answered[place] == weights[above].sum()
            assert right[place] == weights[above & answers.right].sum()
    assert is_last.sum() == len(np.unique(answers.value)) and is_last[-1]


def test_several_lists_are_counted_together():
    parts = [answers_of(1), answers_of(2)]
    joined = join_answers(parts)
    rows = expanded(parts[0], np.ones(30)) + expanded(parts[1], np.ones(30))
    table = list_metrics(joined, np.arange(60), resamples=0)
    np.testing.assert_allclose(table.value, slow_list_metrics(rows))
    assert table.low.isna().all()


def test_what_cannot_be_measured_is_an_error():
    candidates = all_candidates(np.eye(3))
    with pytest.raises(ValueError, match="one partner"):
        best_answers(candidates, candidates.scores, np.ones((3, 3), bool))
    first = best_answers(candidates, candidates.scores, np.eye(3, dtype=bool))
    second = best_answers(candidates, candidates.scores, np.eye(3, dtype=bool)[[1, 0, 2]])
    with pytest.raises(ValueError, match="same queries"):
        list_metrics(first, np.arange(3), second)


def test_the_curve_of_precision_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    partner = np.where(rng.random(60) < 0.6, rng.integers(0, 40, 60), -1)
    rank = np.where(partner >= 0, rng.integers(1, 4, 60), np.nan)
    value = rng.integers(0, 9, 60) / 8  # with ties, which one threshold answers together
    value[rng.random(60) < 0.1] = -np.inf  # no candidate, so no answer
    answers = Answers(np.where(rank == 1, partner, 40), value, rank, partner)
    expected = []
    for threshold in sorted(set(value[value >= 0]), reverse=True):
        answered = value >= threshold
        right = (answered & (rank == 1)).sum()
        expected.append((right / (partner >= 0).sum(), right / answered.sum()))
    curve = precision_curve(answers)
    np.testing.assert_allclose(curve[["recall", "precision"]], expected)
