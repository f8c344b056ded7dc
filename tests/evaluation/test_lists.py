"""Answers of a list against a loop over queries, their metrics against one over thresholds, and
ways to answer drawn lists against counting by hand.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core import results
from helpers.core.paths import Run
from helpers.evaluation import lists
from helpers.evaluation.bootstrap import INTERVAL_ENDS, resample_weights
from helpers.evaluation.lists import (
    METRICS,
    best_answers,
    list_metrics,
    match_drawn_lists,
    record_lists,
)
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


def same_of(partners, targets):
    return partners[:, None] == np.arange(targets)


def answers_of(seed, queries=30, targets=25):
    """Answers of one list whose partners are often best, and accounts of two queries each."""
    values, partners = drawn_list(seed, queries, targets, values=40)
    same = same_of(partners, targets)
    answers = best_answers(values + 25 * same, same)
    return answers.assign(account=np.arange(queries) // 2 * 7 % 11)


def expanded(answers, counts):
    """(rank, value) of each query, as often as it counts."""
    rows = []
    for rank, value, count in zip(answers["rank"], answers.value, counts):
        rows += [(None if np.isnan(rank) else rank, value)] * int(count)
    return rows


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
def test_answers_are_those_of_a_loop(seed, queries, targets):
    values, partners = drawn_list(seed, queries, targets)
    answers = best_answers(values, same_of(partners, targets))
    pairs = np.argwhere(values > -np.inf)
    expected = slow_answers(pairs, values[tuple(pairs.T)], partners, targets)
    ranks = [np.nan if rank is None else rank for rank, _ in expected]
    np.testing.assert_array_equal(answers["rank"], ranks)
    np.testing.assert_array_equal(answers.value, [value for _, value in expected])
    has_candidates = values.max(1) > -np.inf
    assert (answers.target[~has_candidates] == -1).all()
    np.testing.assert_array_equal(answers.target[has_candidates], values.argmax(1)[has_candidates])


def test_a_tied_best_is_not_right_and_a_partner_that_is_no_candidate_has_the_last_rank():
    none = -np.inf
    values = np.array([[2, 2, none], [1, 3, none], [5, none, none], [none, none, none]])
    answers = best_answers(values, same_of(np.array([0, 1, 2, -1]), 3))
    assert answers["rank"][:3].tolist() == [2, 1, 3] and np.isnan(answers["rank"][3])
    assert answers.right.tolist() == [False, True, False, False]
    assert answers.target.tolist() == [0, 1, 0, -1]
    assert answers.value.tolist() == [2, 3, 5, -np.inf]


@pytest.mark.parametrize("seed", range(4))
def test_metrics_and_intervals_are_those_of_a_loop_over_thresholds(seed):
    answers = answers_of(seed)
    table = list_metrics(answers, seed=5, resamples=20)
    assert list(table.index) == list(METRICS)
    ones = np.ones(30)
    np.testing.assert_allclose(table.value, slow_list_metrics(expanded(answers, ones)))
    row_of_account = np.unique(answers.account, return_inverse=True)[1]
    resampled = []
    for weights in resample_weights(row_of_account, 20, 5):
        resampled.append(slow_list_metrics(expanded(answers, weights[row_of_account])))
    low, high = np.percentile(resampled, INTERVAL_ENDS, axis=0)
    np.testing.assert_allclose(table[["low", "high"]], np.stack([low, high], 1))


def test_differences_are_paired():
    accounts = np.arange(30)
    first = answers_of(1).assign(account=accounts)
    scrambled = np.random.default_rng(0).permutation(30)
    second = best_answers(*_worse(1, scrambled)).assign(account=accounts)
    table = list_metrics(first, second, seed=2, resamples=30)
    sides = [list_metrics(side, resamples=0).value for side in (first, second)]
    assert list(table.index) == [f"{name}_difference" for name in METRICS]
    np.testing.assert_allclose(table.value, sides[0] - sides[1])
    resampled = []
    for weights in resample_weights(accounts, 30, 2):
        values = [slow_list_metrics(expanded(side, weights)) for side in (first, second)]
        resampled.append(np.subtract(*values))
    low, high = np.percentile(resampled, INTERVAL_ENDS, axis=0)
    np.testing.assert_allclose(table[["low", "high"]], np.stack([low, high], 1), atol=1e-12)
    nothing = list_metrics(first, first, resamples=10)
    assert (nothing == 0).all(axis=None)


def _worse(seed, order):
    """The list of :func:`answers_of` with other values, for the same partners."""
    values, partners = drawn_list(seed, 30, 25, values=40)
    return values + order[:, None], same_of(partners, 25)


def test_what_cannot_be_measured_is_an_error():
    with pytest.raises(ValueError, match="1 of 9 scores are no numbers"):
        best_answers(np.where(np.eye(3) * [1, 0, 0], np.nan, 1), np.eye(3, dtype=bool))
    for second in (answers_of(1).assign(account=0), answers_of(2)):
        with pytest.raises(ValueError, match="same queries"):
            list_metrics(answers_of(1), second)


ACCOUNTS = 40  # of drawn lists


def scores_of(seed, spread=1.0):
    """Scores with a hub, and partners that stand out by 3 of the noise's standard deviations."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, spread, (ACCOUNTS, ACCOUNTS)) + 3 * np.eye(ACCOUNTS)
    scores[:, 5] += 4
    return scores.astype(np.float32)


@pytest.fixture(scope="module")
def line():
    return fit_match(scores_of(1))


def test_closed_lists_know_a_hub_and_their_metrics_are_counted(line):
    found = match_drawn_lists(scores_of(0), line, 1.0)
    assert sorted(found.answers["alone"].account) == list(range(ACCOUNTS))
    assert found.overlaps == [1]
    metrics = {way: metrics_of(found, way) for way in lists.WAYS}
    for way, answers in found.answers.items():
        assert metrics[way]["R@1"] == pytest.approx(answers.right.mean())
    assert metrics["matched"]["R@1"] - metrics["alone"]["R@1"] > 0.3


def metrics_of(found, way):
    return list_metrics(found.answers[way], resamples=0).value


def test_one_list_has_one_partner_for_each_target_that_is_assigned(line):
    answers = match_drawn_lists(scores_of(0), line, 1.0).answers
    assert len(set(answers["assigned"].target)) == ACCOUNTS
    mutual = answers["mutual"].target
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
    for way in ("alone", "matched"):
        assert row[f"MRR, {way}"] == pytest.approx(metrics_of(found, way)["MRR"])


def test_an_estimated_overlap_is_near_the_true_one_and_changes_no_list(line):
    given = match_drawn_lists(scores_of(0), line, 0.5, lists=4)
    estimated = match_drawn_lists(scores_of(0), line, 0.5, lists=4, estimated=True)
    assert abs(np.mean(estimated.overlaps) - 0.5) < 0.25 and 0.5 not in estimated.overlaps
    first, second = [found.answers["alone"][["account", "rank"]] for found in (given, estimated)]
    np.testing.assert_array_equal(first, second)


def test_scores_of_lists_are_read_by_all_ways_but_alone(line):
    scores, reverse = scores_of(0), scores_of(7)
    found = match_drawn_lists(
        scores, line, 0.5, lists=3, list_scores=(scores.astype(float) + reverse) / 2
    )
    one_way = match_drawn_lists(scores, line, 0.5, lists=3)
    mean = match_drawn_lists((scores.astype(float) + reverse) / 2, line, 0.5, lists=3)
    np.testing.assert_array_equal(found.answers["alone"]["rank"], one_way.answers["alone"]["rank"])
    for way in ("AS list", "matched", "assigned", "mutual"):
        np.testing.assert_array_equal(found.answers[way].value, mean.answers[way].value)
        assert (found.answers[way].value != one_way.answers[way].value).any()
    np.testing.assert_array_equal(found.llr, mean.llr)


def test_each_way_is_a_row_of_its_own(line, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    found = match_drawn_lists(scores_of(0), line, 0.5, lists=2)
    run = Run("demo")
    record_lists(run, found, "TF-IDF subword, AS-norm", "matched, overlap 0.5", split="test")
    rows = results.read_results(run)
    without_ranks = set(rows.model) - set(rows[rows.metric == "MRR"].model)
    assert without_ranks == {f"TF-IDF subword, {way}" for way in lists.WITHOUT_RANKS}
    rows = rows[rows.metric.isin(["R@1", "R@1_difference"])].set_index(["model", "base"])
    start = "TF-IDF subword"
    assert set(rows.index) == {
        (f"{start}, AS-norm", ""),
        *[(f"{start}, {way}", "") for way in ("AS list", "matched", "assigned", "mutual")],
        (f"{start}, matched", f"{start}, AS-norm"),
        (f"{start}, matched", f"{start}, AS list"),
    }
    assert (rows["queries"] == len(found.answers["alone"]) // 2).all()
    stored = rows.loc[(f"{start}, matched", ""), "value"]
    assert stored == pytest.approx(metrics_of(found, "matched")["R@1"])
