"""Answers of a list against loops over queries and thresholds; ways to answer drawn lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.evaluation.bootstrap import INTERVAL_ENDS, resample_weights
from helpers.evaluation.lists import METRICS, best_answers, list_metrics, match_drawn_lists
from helpers.evaluation.matching import fit_match
from tests.oracles import slow_answers, slow_list_metrics


def drawn_list(seed, queries, targets, values=6):
    """Values with ties, -inf of some pairs, and partners, -1 of some queries."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, values, (queries, targets)).astype(float)
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    partners = np.full(queries, -1)
    partners[:targets] = rng.permutation(targets)[:queries]
    partners[rng.random(queries) < 0.3] = -1
    return scores, partners


def answers_of(seed, help=25, queries=30, targets=25):
    """Answers of one list whose partners are often best, and accounts of two queries each."""
    values, partners = drawn_list(seed, queries, targets, values=40)
    same = partners[:, None] == np.arange(targets)
    answers = best_answers(values + help * same, same)
    return answers.assign(account=np.arange(queries) // 2 * 7 % 11)


def slow_metrics(answers, counts):
    """METRICS by a loop, each query as often as it counts."""
    rows = []
    for rank, value, count in zip(answers["rank"], answers.value, counts):
        rows += [(None if np.isnan(rank) else rank, value)] * int(count)
    return slow_list_metrics(rows)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
def test_answers_are_those_of_a_loop(seed, queries, targets):
    values, partners = drawn_list(seed, queries, targets)
    answers = best_answers(values, partners[:, None] == np.arange(targets))
    pairs = np.argwhere(values > -np.inf)
    expected = slow_answers(pairs, values[tuple(pairs.T)], partners, targets)
    ranks = [np.nan if rank is None else rank for rank, _ in expected]
    np.testing.assert_array_equal(answers["rank"], ranks)
    np.testing.assert_array_equal(answers.value, [value for _, value in expected])
    has_candidates = values.max(1) > -np.inf
    target = np.where(has_candidates, values.argmax(1), -1)
    np.testing.assert_array_equal(answers.target, target)


@pytest.mark.parametrize("seed", range(3))
def test_metrics_and_paired_differences_are_those_of_a_loop(seed):
    sides = [answers_of(seed), answers_of(seed, help=10)]
    row_of_account = np.unique(sides[0].account, return_inverse=True)[1]
    resampled = []
    for weights in [np.ones(11, int), *resample_weights(row_of_account, 20, 5)]:
        resampled.append([slow_metrics(side, weights[row_of_account]) for side in sides])
    resampled = np.array(resampled)
    for base, values in ((None, resampled[:, 0]), (sides[1], -np.diff(resampled, axis=1)[:, 0])):
        table = list_metrics(sides[0], base, seed=5, resamples=20)
        ends = np.quantile(values[1:], INTERVAL_ENDS, axis=0)
        np.testing.assert_allclose(table.T, [values[0], *ends], atol=1e-12)
    assert list(table.index) == [f"{name}_difference" for name in METRICS]


ACCOUNTS = 40  # of drawn lists


def scores_of(seed):
    """Scores with a hub, and partners that stand out by 3 of the noise's standard deviations."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(ACCOUNTS, ACCOUNTS)) + 3 * np.eye(ACCOUNTS)
    scores[:, 5] += 4
    return scores.astype(np.float32)


@pytest.fixture(scope="module")
def line():
    return fit_match(scores_of(1))


def test_closed_lists_know_a_hub(line):
    found = match_drawn_lists(scores_of(0), line, 1.0)
    assert sorted(found.answers["alone"].account) == list(range(ACCOUNTS)) and found.overlaps == [1]
    right = {way: answers.right.mean() for way, answers in found.answers.items()}
    assert right["matched"] - right["alone"] > 0.3
    assert len(set(found.answers["assigned"].target)) == ACCOUNTS, "one partner for each target"
    mutual = found.answers["mutual"].target
    assert len(set(mutual[mutual >= 0])) == (mutual >= 0).sum() < ACCOUNTS


def test_answers_of_several_lists_are_counted_together(line):
    found = match_drawn_lists(scores_of(0), line, 0.5, lists=3, seed=4)
    best = found.answers["matched"]
    assert len(found.llr) == 3 * (len(best) // 3) ** 2
    assert found.same.sum() == best["rank"].count()
    row = found.calibration()
    likely = best.value >= 0.5
    assert row["called 50%"] == likely.mean() and row["right, 50%"] == best.right[likely].mean()
    assert row["right, nobody"] == best["rank"].isna()[best.nobody >= 0.5].mean() > 0.5
    assert row["minCllr"] <= row["Cllr"] < 1
    assert row["MRR, matched"] == list_metrics(best, resamples=0).value["MRR"]
    estimated = match_drawn_lists(scores_of(0), line, 0.5, lists=3, seed=4, estimated=True)
    assert abs(np.mean(estimated.overlaps) - 0.5) < 0.25 and 0.5 not in estimated.overlaps
    first, second = [lists_.answers["alone"].account for lists_ in (found, estimated)]
    np.testing.assert_array_equal(first, second)
