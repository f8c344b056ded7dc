"""PAN's metrics against loops written after their definition and published results; its files."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from helpers.core import paths
from helpers.evaluation.detection import auc
from helpers.evaluation.verification import (
    DEFINITIONS,
    auc_by_comparison,
    pan_metrics,
    write_records,
)
from tests.oracles import slow_pan_metrics

PAN20 = Path(os.environ.get("AUTHORBOOK_PAN20") or paths.ROOT / "data" / "pan20")
PUBLISHED = {
    "araujo20-small": {
        "F1": 0.811,
        "AUC": 0.874,
        "Brier": 0.829,
        "c@1": 0.770,
        "F_0.5u": 0.762,
        "overall": 0.809,
    },
    "weerasinghe20-large": {
        "F1": 0.891,
        "AUC": 0.953,
        "Brier": 0.904,
        "c@1": 0.880,
        "F_0.5u": 0.882,
        "overall": 0.902,
    },
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
        assert pan_metrics(scores, same, definition) == pytest.approx(
            slow_pan_metrics(scores, same, definition)
        )

    def test_by_hand(self):
        scores, same = [0.9, 0.5, 0.2, 0.7, 0.5, 0.1], [1, 1, 1, 0, 0, 0]
        metrics = pan_metrics(scores, same)
        assert metrics["AUC"] == pytest.approx((3 + 1.5 + 1) / 9)
        assert metrics["F1"] == pytest.approx(2 / (2 + 1 + 1))
        assert metrics["c@1"] == pytest.approx((2 + 2 * 2 / 6) / 6)
        assert metrics["F_0.5u"] == pytest.approx(1.25 / (1.25 + 0.25 * (1 + 2) + 1))
        assert metrics["Brier"] == pytest.approx(1 - (0.01 + 0.25 + 0.64 + 0.49 + 0.25 + 0.01) / 6)
        assert metrics["n_unanswered"] == 2
        assert pan_metrics(scores, same, "pan20")["F_0.5u"] == pytest.approx(2.5 / (2.5 + 0.25 + 2))

    def test_nothing_answered(self):
        metrics = pan_metrics(np.full(10, 0.5), np.arange(10) < 4)
        assert metrics == {
            "AUC": 0.5,
            "F1": 0,
            "c@1": 0,
            "F_0.5u": 0,
            "Brier": 0.75,
            "overall": 0.25,
            "n_unanswered": 10,
        }
        old = pan_metrics(np.full(10, 0.5), np.arange(10) < 4, "pan20")
        assert old["F_0.5u"] == pytest.approx(5 / (5 + 6)) and old["overall"] == pytest.approx(
            (0.5 + 5 / 11) / 4
        )

    def test_only_exactly_one_half_is_unanswered(self):
        near = np.array([np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.5])
        assert pan_metrics(near, [1, 0, 0])["n_unanswered"] == 1
        assert pan_metrics(near.astype(np.float32), [1, 0, 0])["n_unanswered"] == 3, (
            "as float32 they are 0.5"
        )

    @pytest.mark.parametrize(
        ("scores", "same", "message"),
        [
            ([0.1, 1.2], [1, 0], "1 scores are others"),
            ([0.1, np.nan], [1, 0], "1 scores are others"),
            ([0.1, 0.2], [1, 1], "2 of 2 pairs are of one author"),
            ([0.1, 0.2], [0, 0], "0 of 2 pairs"),
        ],
    )
    def test_errors(self, scores, same, message):
        with pytest.raises(ValueError, match=message):
            pan_metrics(scores, same)


@pytest.mark.skipif(
    not PAN20.is_dir(), reason="needs PAN 2020's truth and answers, $AUTHORBOOK_PAN20 or data/pan20"
)
@pytest.mark.parametrize("system", PUBLISHED)
def test_published_results_of_pan_2020(system):
    truth, answers = [
        pd.read_json(PAN20 / f"{name}.jsonl", lines=True, dtype=False).set_index("id")
        for name in ("truth", system)
    ]
    assert len(truth) == len(answers) == 14311
    scores = answers.value[truth.index]
    metrics = pan_metrics(scores, truth.same)
    assert {name: round(metrics[name], 3) for name in PUBLISHED[system]} == PUBLISHED[system]
    assert metrics["n_unanswered"] == 0
    old = pan_metrics(scores, truth.same, "pan20")
    assert round(old["overall"], 3) == OVERALL_2020[system]
    assert round(old["F_0.5u"], 3) == PUBLISHED[system]["F_0.5u"]


def test_metrics_of_weighted_pairs_are_those_of_copies():
    scores, same = trials()
    weights = np.random.default_rng(1).integers(0, 4, (3, len(same)))
    for definition in DEFINITIONS:
        weighted = pan_metrics(scores, same, definition, weights)
        for row, times in enumerate(weights):
            copies = np.repeat(np.arange(len(same)), times)
            alone = slow_pan_metrics(scores[copies], same[copies], definition)
            assert {name: values[row] for name, values in weighted.items()} == pytest.approx(alone)
    expected = roc_auc_score(same, scores, sample_weight=weights[0])
    assert auc(scores, same, weights[0]) == pytest.approx(expected)
    assert np.isnan(auc(scores, same, weights * same)).all()


def test_comparisons_by_topic_are_those_of_scikit_learn():
    """Hard ones are of one author on two topics and of two authors on one."""
    scores, same = trials()
    topic = np.random.default_rng(1).random(len(same)) < 0.3
    table = auc_by_comparison(scores, same, topic)
    assert list(table.index) == ["all pairs", "on one topic", "on two topics", "easy", "hard"]
    chosen = {
        "all pairs": same | ~same,
        "on one topic": topic,
        "on two topics": ~topic,
        "easy": (same & topic) | (~same & ~topic),
        "hard": (same & ~topic) | (~same & topic),
    }
    for name, pairs in chosen.items():
        assert table.AUC[name] == pytest.approx(roc_auc_score(same[pairs], scores[pairs]))
        counts = (same[pairs].sum(), (~same[pairs]).sum())
        assert tuple(table.loc[name, ["positives", "negatives"]]) == counts
    assert np.isnan(auc_by_comparison(scores, same, topic & ~same).AUC["on one topic"])


def test_a_topic_reader_is_seen_through():
    """Scores say only whether the topic is the same, and two texts of one author share none."""
    rng = np.random.default_rng(0)
    same = rng.random(1000) < 0.5
    topic = ~same & (rng.random(1000) < 0.3)
    areas = auc_by_comparison(1.0 - topic, same, topic).AUC
    assert areas["all pairs"] > 0.6 and areas["on two topics"] == 0.5


def test_files_hold_all_digits(tmp_path):
    ids = ["1", "12-345", "c", "d"]
    values = [0.1, np.nextafter(0.5, 1), 1.0, float(np.float32(0.3))]
    answers = pd.DataFrame({"id": ids, "value": values})
    write_records(tmp_path / "answers.jsonl", answers)
    read = pd.read_json(tmp_path / "answers.jsonl", lines=True, dtype=False, precise_float=True)
    pd.testing.assert_frame_equal(read, answers, check_dtype=False, check_exact=True)
    truth = answers.assign(same=[True, False, True, True], authors=[["a", "b"]] * 4)
    write_records(tmp_path / "truth.jsonl", truth[["id", "same", "authors"]])
    first = (tmp_path / "truth.jsonl").read_text().splitlines()[0]
    assert json.loads(first) == {"id": "1", "same": True, "authors": ["a", "b"]}
