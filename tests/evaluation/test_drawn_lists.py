"""Drawn lists: ways to answer them, and what is counted of them, against counting by hand."""

import numpy as np
import pytest

from helpers.core import results
from helpers.core.paths import Run
from helpers.evaluation import drawn_lists
from helpers.evaluation.drawn_lists import match_drawn_lists, record_lists
from helpers.evaluation.match_fitting import fit_match
from helpers.evaluation.matching import MatchConfig

ACCOUNTS = 40


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
    assert sorted(found.accounts) == list(range(ACCOUNTS)) and list(found.overlaps) == [1]
    tables = found.metrics()
    right = {way: answers.right.mean() for way, answers in found.answers.items()}
    for way in drawn_lists.WAYS:
        assert tables[way, ""].value["R@1"] == pytest.approx(right[way])
        assert ("MRR" in tables[way, ""].index) == (way not in drawn_lists.WITHOUT_RANKS)
    gain = tables["matched", "alone"].value["R@1_difference"]
    assert gain == pytest.approx(right["matched"] - right["alone"]) and gain > 0.3


def test_one_list_has_one_partner_for_each_target_that_is_assigned(line):
    answers = match_drawn_lists(scores_of(0), line, 1.0).answers
    assert len(set(answers["assigned"].target)) == ACCOUNTS
    mutual = answers["mutual"].target
    assert len(set(mutual[mutual >= 0])) == (mutual >= 0).sum() < ACCOUNTS


def test_answers_of_several_lists_are_counted_together(line):
    found = match_drawn_lists(scores_of(0), line, 0.5, lists=3, seed=4)
    size = len(found.accounts) // 3
    best = found.answers["matched"]
    assert len(found.nobody) == 3 * size and len(found.llr) == 3 * size**2
    assert found.same.sum() == best.has_partner.sum()
    row = found.calibration()
    likely = best.value >= 0.5
    assert row["called 50%"] == likely.mean() and row["right, 50%"] == best.right[likely].mean()
    nobody = found.nobody >= 0.5
    assert row["right, nobody"] == (~best.has_partner)[nobody].mean() > 0.5
    assert row["minCllr"] <= row["Cllr"] < 1
    tables = found.metrics()
    for way in ("alone", "matched"):
        assert row[f"MRR, {way}"] == pytest.approx(tables[way, ""].value["MRR"])


def test_an_estimated_overlap_is_near_the_true_one_and_changes_no_list(line):
    given = match_drawn_lists(scores_of(0), line, 0.5, lists=4)
    estimated = match_drawn_lists(scores_of(0), line, 0.5, lists=4, estimated=True)
    assert abs(estimated.overlaps.mean() - 0.5) < 0.25 and (estimated.overlaps != 0.5).all()
    np.testing.assert_array_equal(given.accounts, estimated.accounts)
    first, second = [found.answers["alone"].rank for found in (given, estimated)]
    np.testing.assert_array_equal(first, second)


def test_scores_of_both_directions_are_averaged_for_all_ways_but_alone(line):
    scores, reverse = scores_of(0), scores_of(7)
    found = match_drawn_lists(scores, line, 0.5, lists=3, reverse_scores=reverse)
    one_way = match_drawn_lists(scores, line, 0.5, lists=3)
    mean = match_drawn_lists((scores.astype(float) + reverse) / 2, line, 0.5, lists=3)
    np.testing.assert_array_equal(found.answers["alone"].rank, one_way.answers["alone"].rank)
    for way in ("AS list", "matched", "assigned", "mutual"):
        np.testing.assert_array_equal(found.answers[way].value, mean.answers[way].value)
        assert (found.answers[way].value != one_way.answers[way].value).any()
    np.testing.assert_array_equal(found.llr, mean.llr)


def test_nothing_likely_is_no_share():
    unsure = MatchConfig(slope=0.01, intercept=-5.0)
    row = match_drawn_lists(scores_of(0), unsure, 0.5).calibration()
    assert row["called 90%"] == 0 and np.isnan(row["right, 90%"])


def test_each_way_is_a_row_of_its_own(line, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    found = match_drawn_lists(scores_of(0), line, 0.5, lists=2)
    run = Run("demo")
    record_lists(run, found, "TF-IDF subword, AS-norm", "matched, overlap 0.5", split="test")
    rows = results.read(run)
    rows = rows[rows.metric.isin(["R@1", "R@1_difference"])].set_index(["model", "base"])
    start = "TF-IDF subword"
    assert set(rows.index) == {
        (f"{start}, AS-norm", ""),
        *[(f"{start}, {way}", "") for way in ("AS list", "matched", "assigned", "mutual")],
        (f"{start}, matched", f"{start}, AS-norm"),
        (f"{start}, matched", f"{start}, AS list"),
    }
    assert (rows["queries"] == len(found.accounts) // 2).all()
    stored = rows.loc[(f"{start}, matched", ""), "value"]
    assert stored == pytest.approx(found.metrics()["matched", ""].value["R@1"])
