"""PAN's metrics against loops written after their definition and the published results of two systems."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.runs import paths
from helpers.evaluation import verification
from helpers.evaluation.pan_files import evaluate
from helpers.evaluation.verification import (
    DEFINITIONS,
    PUBLISHED_THRESHOLDS,
    apply_thresholds,
    auc_by_topic,
    best_thresholds,
    fit_decision,
    fit_scores,
    legacy_min_max,
    pair_distances,
    pan_metrics,
    threshold_surface,
    to_scores,
)  # fmt: skip

PAN20 = Path(os.environ.get("AUTHORBOOK_PAN20") or paths.ROOT / "data" / "pan20")
PUBLISHED = {
    "araujo20-small": {"F1": 0.811, "AUC": 0.874, "Brier": 0.829, "c@1": 0.770, "F_0.5u": 0.762, "overall": 0.809},
    "weerasinghe20-large": {"F1": 0.891, "AUC": 0.953, "Brier": 0.904, "c@1": 0.880, "F_0.5u": 0.882, "overall": 0.902},
}
OVERALL_2020 = {"araujo20-small": 0.804, "weerasinghe20-large": 0.902}


def by_loops(scores, same, definition):
    """Every metric, one pair at a time."""
    wins = sum((a > b) + (a == b) / 2 for a, y in zip(scores, same) if y for b, z in zip(scores, same) if not z)
    n, right, unanswered, error = len(same), 0, 0, 0
    tp = fp = fn = strict_tp = strict_fp = strict_fn = doubtful = 0
    for score, truth in zip(scores, same):
        error += (score - truth) ** 2
        if score == 0.5:
            unanswered += 1
        else:
            right += (score > 0.5) == truth
            tp, fp, fn = tp + (score > 0.5 and truth), fp + (score > 0.5 and not truth), fn + (score < 0.5 and truth)
        answer = 1 if score > 0.5 else 0 if score < 0.5 else 0.5 if definition == "pan21" else 1
        strict_tp += answer == 1 and truth
        strict_fp += answer == 1 and not truth
        strict_fn += answer == 0 and truth
        doubtful += answer == 0.5
    found = {
        "AUC": wins / (sum(same) * (n - sum(same))),
        "F1": 2 * tp / (2 * tp + fp + fn) if tp else 0,
        "c@1": (right + unanswered * right / n) / n,
        "F_0.5u": 1.25 * strict_tp / (1.25 * strict_tp + 0.25 * (strict_fn + doubtful) + strict_fp),
        "Brier": 1 - error / n,
    }
    names = ["AUC", "F1", "c@1", "F_0.5u"] + ["Brier"] * (definition == "pan21")
    return found | {"overall": sum(found[name] for name in names) / len(names), "n_unanswered": unanswered}


def trials(size=200, seed=0):
    """Scores with many ties, some of them unanswered."""
    rng = np.random.default_rng(seed)
    same = rng.random(size) < 0.4
    return np.round((rng.random(size) + 0.5 * same) / 1.5, 1), same


class TestMetrics:
    @pytest.mark.parametrize("definition", DEFINITIONS)
    @pytest.mark.parametrize("seed", range(5))
    def test_they_are_those_of_a_loop(self, definition, seed):
        scores, same = trials(seed=seed)
        assert (scores == 0.5).sum() > 5
        assert pan_metrics(scores, same, definition) == pytest.approx(by_loops(scores, same, definition))

    def test_by_hand(self):
        scores, same = [0.9, 0.5, 0.2, 0.7, 0.5, 0.1], [1, 1, 1, 0, 0, 0]
        found = pan_metrics(scores, same)
        assert found["AUC"] == pytest.approx((3 + 1.5 + 1) / 9)
        assert found["F1"] == pytest.approx(2 / (2 + 1 + 1))
        assert found["c@1"] == pytest.approx((2 + 2 * 2 / 6) / 6)
        assert found["F_0.5u"] == pytest.approx(1.25 / (1.25 + 0.25 * (1 + 2) + 1))
        assert found["Brier"] == pytest.approx(1 - (0.01 + 0.25 + 0.64 + 0.49 + 0.25 + 0.01) / 6)
        assert found["n_unanswered"] == 2
        assert pan_metrics(scores, same, "pan20")["F_0.5u"] == pytest.approx(2.5 / (2.5 + 0.25 + 2))

    def test_nothing_answered(self):
        found = pan_metrics(np.full(10, 0.5), np.arange(10) < 4)
        assert found == {"AUC": 0.5, "F1": 0, "c@1": 0, "F_0.5u": 0, "Brier": 0.75, "overall": 0.25, "n_unanswered": 10}
        old = pan_metrics(np.full(10, 0.5), np.arange(10) < 4, "pan20")
        assert old["F_0.5u"] == pytest.approx(5 / (5 + 6)) and old["overall"] == pytest.approx((0.5 + 5 / 11) / 4)

    def test_all_same_and_all_different(self):
        same = np.arange(10) < 4
        assert pan_metrics(np.ones(10), same) == pytest.approx(by_loops(np.ones(10), same, "pan21"))
        none = pan_metrics(np.zeros(10), same)
        assert none["F1"] == none["F_0.5u"] == 0 and none["c@1"] == 0.6

    def test_only_exactly_one_half_is_unanswered(self):
        near = np.array([np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.5])
        assert pan_metrics(near, [1, 0, 0])["n_unanswered"] == 1
        assert pan_metrics(near.astype(np.float32), [1, 0, 0])["n_unanswered"] == 3, "as float32 they are 0.5"

    @pytest.mark.parametrize(
        ("scores", "same", "message"),
        [
            ([0.1, 1.2], [1, 0], "1 of 2 scores are not in"), ([0.1, np.nan], [1, 0], "1 of 2 scores are not in"),
            ([0.1, 0.2], [1, 1], "2 of 2 pairs are of one author"), ([0.1, 0.2], [0, 0], "0 of 2 pairs"),
            ([0.1], [1, 0], "do not fit together"), ([], [], "0 of 0"),
        ],
    )  # fmt: skip
    def test_errors(self, scores, same, message):
        with pytest.raises(ValueError, match=message):
            pan_metrics(scores, same)
        with pytest.raises(ValueError, match="one of pan21, pan20"):
            pan_metrics([0.1, 0.2], [0, 1], "pan19")


@pytest.mark.skipif(not PAN20.is_dir(), reason="needs PAN 2020's truth and answers, $AUTHORBOOK_PAN20 or data/pan20")
@pytest.mark.parametrize("system", PUBLISHED)
def test_published_results_of_pan_2020(system):
    files = PAN20 / "truth.jsonl", PAN20 / f"{system}.jsonl"
    found = evaluate(*files)
    assert {name: round(found[name], 3) for name in PUBLISHED[system]} == PUBLISHED[system]
    assert (found["n_pairs"], found["n_missing"], found["n_unanswered"]) == (14311, 0, 0)
    old = evaluate(*files, definition="pan20")
    assert round(old["overall"], 3) == OVERALL_2020[system]
    assert round(old["F_0.5u"], 3) == PUBLISHED[system]["F_0.5u"]


class TestThresholds:
    def test_by_hand(self):
        found = apply_thresholds([0, 0.2, 0.4, 0.5, 0.6, 0.8, 1], 0.4, 0.6)
        assert found == pytest.approx([0, 0.25, 0.5, 0.5, 0.5, 0.75, 1])

    @pytest.mark.parametrize("lower, upper", [PUBLISHED_THRESHOLDS, (0.1, 0.3), (0.7, 0.7), (0, 1), (0, 0), (1, 1)])
    def test_only_what_lies_between_is_unanswered_and_order_stays(self, lower, upper):
        near = [np.nextafter(edge, side) for edge in (lower, upper) for side in (0, 1)]
        scores = np.sort(np.concatenate([np.random.default_rng(0).random(1000), near, [lower, upper, 0, 1, 1e-300]]))
        found = apply_thresholds(scores, lower, upper)
        np.testing.assert_array_equal(found == 0.5, (lower <= scores) & (scores <= upper))
        np.testing.assert_array_equal(found < 0.5, scores < lower)
        assert (np.diff(found) >= 0).all() and found.min() >= 0 and found.max() <= 1

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
        scored = {(low, high): by_loops(apply_thresholds(scores, low, high), same, "pan21")["overall"]
                  for low in grid for high in grid if low <= high}  # fmt: skip
        assert scored[lower, upper] == pytest.approx(max(scored.values())) == surface.overall.max()
        assert (lower, upper) == max(scored, key=scored.get) and lower >= 0.3

    def test_of_equal_ones_the_fewest_unanswered(self):
        surface = pd.DataFrame({"lower": [0.2, 0.3, 0.1], "upper": [0.6, 0.5, 0.5], "overall": [0.8, 0.8, 0.7],
                                "n_unanswered": [4, 2, 0]})  # fmt: skip
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
        np.testing.assert_array_equal(to_scores(fitted, np.append(distances[:50], [1e6, -1e6]))[:50], alone)
        assert (legacy_min_max(np.append(distances[:50], 1e3))[:50] != legacy_min_max(distances[:50])).any()

    def test_the_legacy_scaling(self):
        assert legacy_min_max([1, 2, 5]).tolist() == [1, 0.75, 0]
        for wrong in ([2, 2], [1, np.nan]):
            with pytest.raises(ValueError, match="finite distances that are not all equal"):
                legacy_min_max(wrong)


class TestDistances:
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    pairs = pd.DataFrame({"first": [0, 1, 2, 5], "second": [3, 4, 2, 0]})

    @pytest.mark.parametrize("distance", ["cosine", "euclidean", "raw"])
    def test_those_of_the_losses(self, distance):
        import torch

        from helpers.losses.registry import distances

        wanted = distances(torch.from_numpy(self.vectors), distance).numpy()[self.pairs["first"], self.pairs.second]
        assert np.allclose(pair_distances(self.vectors, self.pairs, distance), wanted, atol=1e-6)

    def test_another_distance_is_refused(self):
        with pytest.raises(ValueError, match="distance 'Cosine': one of euclidean, cosine, raw"):
            pair_distances(self.vectors, self.pairs, "Cosine")

    def test_a_text_that_says_nothing_is_near_to_none(self):
        silent = np.where(np.arange(6)[:, None] == 3, 0, self.vectors)
        assert pair_distances(silent, self.pairs)[0] == 1 and np.isfinite(pair_distances(silent, self.pairs)).all()


def test_a_decision_is_learned_on_dev_and_judges_each_pair_alone():
    same = np.random.default_rng(1).random(400) < 0.5
    apart = np.random.default_rng(2).normal(1.0 - 0.4 * same, 0.3)
    decide, (lower, upper) = fit_decision(apart[:200], same[:200])
    scores = decide(apart[200:])
    assert 0 < lower <= upper < 1 and ((0 <= scores) & (scores <= 1)).all()
    assert np.array_equal(np.concatenate([decide(apart[[number]]) for number in range(200, 400)]), scores)
    known = to_scores(fit_scores(apart[:200], same[:200]), apart[:200])
    surface = threshold_surface(known, same[:200])
    assert pan_metrics(decide(apart[:200]), same[:200])["overall"] == pytest.approx(surface.overall.max())
    assert pan_metrics(scores, same[200:])["AUC"] > 0.75


def test_auc_by_topic():
    scores, same = trials()
    topic = np.random.default_rng(1).random(len(same)) < 0.3
    table = auc_by_topic(scores, same, topic).set_index(["same_author", "different_author"])
    assert len(table) == 9
    chosen = (same & topic) | (~same & ~topic)
    row = table.loc["same topic", "different topic"]
    assert row.AUC == pytest.approx(by_loops(scores[chosen], same[chosen], "pan21")["AUC"])
    assert (row.positives, row.negatives) == ((same & topic).sum(), (~same & ~topic).sum())
    assert table.loc["all", "all"].AUC == pytest.approx(pan_metrics(scores, same)["AUC"])
    none = auc_by_topic(scores, same, topic & ~same).set_index(["same_author", "different_author"])
    assert np.isnan(none.loc["same topic", "all"].AUC) and none.loc["same topic", "all"].positives == 0
    with pytest.raises(ValueError, match="1 topic labels for 200 pairs"):
        auc_by_topic(scores, same, [True])


def test_a_topic_reader_is_seen_through():
    """Scores that say only whether the topic is the same, where two texts of one author never share one."""
    rng = np.random.default_rng(0)
    same = rng.random(1000) < 0.5
    topic = ~same & (rng.random(1000) < 0.3)
    table = auc_by_topic(1.0 - topic, same, topic).set_index(["same_author", "different_author"]).AUC
    assert table["all", "all"] > 0.6 and table["all", "different topic"] == 0.5


def test_the_grid_holds_the_identity():
    assert 0.5 in verification.GRID and len(verification.GRID) == 49
