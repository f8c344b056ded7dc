"""PAN's metrics against loops written after their definition and the published results of two systems."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from helpers.evaluation import verification
from helpers.evaluation.bootstrap import weights
from helpers.evaluation.pan_files import evaluate as evaluate_files
from helpers.evaluation.verification import (
    DEFINITIONS,
    METRICS,
    PUBLISHED_THRESHOLDS,
    VerificationConfig,
    apply_thresholds,
    auc_by_topic,
    best_thresholds,
    distances,
    evaluate,
    fit_decision,
    fit_scores,
    fit_shift,
    legacy_min_max,
    pan_metrics,
    threshold_surface,
    to_scores,
    verification_trials,
)  # fmt: skip
from helpers.runs import paths
from tests.factories import LookUp, one_token_samples, store_in_memory, unit_rows
from tests.oracles import slow_pan_metrics

PAN20 = Path(os.environ.get("AUTHORBOOK_PAN20") or paths.ROOT / "data" / "pan20")
PUBLISHED = {
    "araujo20-small": {"F1": 0.811, "AUC": 0.874, "Brier": 0.829, "c@1": 0.770, "F_0.5u": 0.762, "overall": 0.809},
    "weerasinghe20-large": {"F1": 0.891, "AUC": 0.953, "Brier": 0.904, "c@1": 0.880, "F_0.5u": 0.882, "overall": 0.902},
}
OVERALL_2020 = {"araujo20-small": 0.804, "weerasinghe20-large": 0.902}


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
        assert pan_metrics(scores, same, definition) == pytest.approx(slow_pan_metrics(scores, same, definition))

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
        assert pan_metrics(np.ones(10), same) == pytest.approx(slow_pan_metrics(np.ones(10), same, "pan21"))
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
    found = evaluate_files(*files).value
    assert {name: round(found[name], 3) for name in PUBLISHED[system]} == PUBLISHED[system]
    assert (found["n_pairs"], found["n_missing"], found["n_unanswered"]) == (14311, 0, 0)
    old = evaluate_files(*files, definition="pan20").value
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
        scored = {(low, high): slow_pan_metrics(apply_thresholds(scores, low, high), same, "pan21")["overall"]
                  for low in grid for high in grid if low <= high}  # fmt: skip
        assert scored[lower, upper] == pytest.approx(max(scored.values())) == surface.overall.max()
        assert (lower, upper) == max(scored, key=scored.get) and lower >= 0.3

    @pytest.mark.parametrize("definition", DEFINITIONS)
    def test_the_surface_is_that_of_every_combination_alone(self, definition):
        scores, same = trials()
        grid = np.array([0.1, 0.3, 0.35, 0.5, 0.8])
        for row in threshold_surface(scores, same, definition, grid).to_dict("records"):
            alone = pan_metrics(apply_thresholds(scores, row.pop("lower"), row.pop("upper")), same, definition)
            assert row == pytest.approx(alone)

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
    pairs = pd.DataFrame({"first": [0, 5, 2, 5], "second": [3, 4, 2, 0]})

    def test_each_pair_is_that_of_its_documents(self):
        rows = unit_rows(7, 4)
        rows[4] = 0  # a text that says nothing
        trials = verification_trials(one_token_samples(range(7)), self.pairs)
        model = LookUp(rows)
        cosines = (rows[self.pairs["first"]].astype(float) * rows[self.pairs.second]).sum(1)
        found = distances(model, trials)
        np.testing.assert_allclose(found, 1 - cosines, atol=1e-6)
        assert found[1] == 1 and found[2] == 0 and model.calls == 5, "documents in no pair are not embedded"
        raw = distances(LookUp(9 * rows, unit=False), trials)
        apart = 9 * (rows[self.pairs["first"]] - rows[self.pairs.second])
        np.testing.assert_allclose(raw, np.linalg.norm(apart, axis=1), atol=1e-5)

    def test_documents_are_posts_of_a_store_and_labels_come_from_its_authors(self):
        store = store_in_memory([2, 3, 2])
        trials = verification_trials(store, self.pairs)
        author = np.repeat([0, 1, 2], [2, 3, 2])
        assert trials.same.tolist() == (author[self.pairs["first"]] == author[self.pairs.second]).tolist()
        assert trials.queries.first[trials.pairs].tolist() == self.pairs.to_numpy().tolist()
        with pytest.raises(ValueError, match="pairs name documents 0 to 7, there are 7"):
            verification_trials(store, self.pairs.replace(5, 7))


class TestDecision:
    same = np.random.default_rng(1).random(400) < 0.5
    apart = np.random.default_rng(2).normal(1.0 - 0.4 * same, 0.3)

    @pytest.mark.parametrize("fit", [fit_decision, fit_shift])
    def test_it_is_learned_on_dev_and_judges_each_pair_alone(self, fit):
        dev, test = slice(0, 200), slice(200, 400)
        decide, (lower, upper) = fit(self.apart[dev], self.same[dev])
        scores = decide(self.apart[test])
        assert 0 < lower <= upper < 1 and ((0 <= scores) & (scores <= 1)).all()
        assert np.array_equal(np.concatenate([decide(self.apart[[number]]) for number in range(200, 400)]), scores)
        plain = np.clip(1 - self.apart[dev], 0, 1)
        if fit is fit_decision:
            plain = to_scores(fit_scores(self.apart[dev], self.same[dev]), self.apart[dev])
        surface = threshold_surface(plain, self.same[dev])
        best = pan_metrics(decide(self.apart[dev]), self.same[dev])["overall"]
        assert best == pytest.approx(surface.overall.max())
        assert best >= pan_metrics(plain, self.same[dev])["overall"]
        assert pan_metrics(scores, self.same[test])["AUC"] > 0.75


class TestEvaluate:
    @pytest.fixture
    def sides(self):
        """Dev and test documents of 40 authors, whose two texts are alike."""
        authors = np.arange(80) % 40
        rows = unit_rows(40, 8)[authors] + 0.8 * unit_rows(80, 8, seed=1)
        model = LookUp((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
        documents = one_token_samples(authors)

        def draw(low, high):
            two = pd.DataFrame({"first": np.arange(low, high), "second": 40 + np.roll(np.arange(low, high), 1)})
            one = pd.DataFrame({"first": np.arange(low, high), "second": 40 + np.arange(low, high)})
            return verification_trials(documents, pd.concat([one, two]))
        return model, draw(0, 20), draw(20, 40)

    def test_it_is_the_decision_of_dev_on_test(self, sides):
        model, dev, test = sides
        topics = np.arange(40) % 3 == 0
        table, scored = evaluate(model, dev, test, same_topic=topics)
        decide, _ = fit_decision(distances(model, dev), dev.same)
        scores = decide(distances(model, test))
        assert scored["test"].score.tolist() == scores.tolist() and scored["dev"].same.tolist() == dev.same.tolist()
        for name, value in pan_metrics(scores, test.same).items():
            assert table.value[name] == pytest.approx(value)
        hard = test.same != topics
        assert table.value["hardest_AUC"] == pytest.approx(roc_auc_score(test.same[hard], scores[hard]))
        assert table.value["dev_overall"] == pan_metrics(decide(distances(model, dev)), dev.same)["overall"]
        ends = table.loc[["AUC", "F1", "c@1", "F_0.5u", "Brier", "overall", "hardest_AUC"]]
        assert ((ends.low <= ends.value) & (ends.value <= ends.high)).all() and (ends.low < ends.high).any()
        assert table.loc[["n_unanswered", "dev_overall"], ["low", "high"]].isna().all(axis=None)

    def test_intervals_are_those_of_copied_pairs(self, sides):
        """A pair is there as often as its author was drawn, one of two authors as often as both were, multiplied."""
        config = VerificationConfig(resamples=20, seed=3)
        table, scored = evaluate(*sides, config=config)
        test, score, drawn = sides[2], scored["test"].score.to_numpy(), []
        for times in weights(np.arange(20, 40), 20, seed=3):
            one, other = times[test.queries.authors[test.pairs.T] - 20]
            rows = np.repeat(np.arange(40), np.where(test.same, one, one * other))
            drawn.append([pan_metrics(score[rows], test.same[rows])[name] for name in METRICS])
        wanted = np.percentile(drawn, [2.5, 97.5], axis=0)
        np.testing.assert_allclose(table.loc[list(METRICS), ["low", "high"]].T, wanted)

    def test_settings(self, sides):
        config = VerificationConfig(decision="shift", definition="pan20", resamples=0)
        table, scored = evaluate(*sides, config=config)
        model, dev, test = sides
        decide, _ = fit_shift(distances(model, dev), dev.same, "pan20")
        assert scored["test"].score.tolist() == decide(distances(model, test)).tolist()
        alone = pan_metrics(scored["test"].score, test.same, "pan20")
        assert table.value["overall"] == pytest.approx(alone["overall"])
        assert table[["low", "high"]].isna().all(axis=None)
        with pytest.raises(ValueError, match="'definition' is 'pan19'"):
            VerificationConfig.of({"definition": "pan19"})


def test_auc_by_topic():
    scores, same = trials()
    topic = np.random.default_rng(1).random(len(same)) < 0.3
    table = auc_by_topic(scores, same, topic).set_index(["same_author", "different_author"])
    assert len(table) == 9
    chosen = (same & topic) | (~same & ~topic)
    row = table.loc["same topic", "different topic"]
    assert row.AUC == pytest.approx(slow_pan_metrics(scores[chosen], same[chosen], "pan21")["AUC"])
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
