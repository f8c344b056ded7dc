"""Verification: PAN's metrics against loops and published results, the decision of dev on test."""

import os
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from helpers.core import paths
from helpers.evaluation import verification
from helpers.evaluation.bootstrap import resample_weights
from helpers.evaluation.calibration import fit_calibration
from helpers.evaluation.detection import auc
from helpers.evaluation.models import as_model
from helpers.evaluation.verification import (
    DEFINITIONS,
    METRICS,
    apply_thresholds,
    auc_by_comparison,
    best_thresholds,
    evaluate_documents,
    pan_metrics,
    threshold_surface,
    to_scores,
    trial_similarities,
    verification_metrics,
    verification_trials,
    write_records,
)
from tests.factories import LookUp, one_token_samples, store_in_memory, unit_rows
from tests.oracles import slow_pan_metrics

PAN20 = Path(os.environ.get("AUTHORBOOK_PAN20") or paths.ROOT / "data" / "pan20")
PUBLISHED = {  # by the metrics of 2021, and overall by those of 2020
    "araujo20-small": ([0.874, 0.811, 0.770, 0.762, 0.829, 0.809], 0.804),
    "weerasinghe20-large": ([0.953, 0.891, 0.880, 0.882, 0.904, 0.902], 0.902),
}
PAIRS = pd.DataFrame({"first": [0, 5, 2, 5], "second": [3, 4, 2, 0]})


def scored_pairs(size=200, seed=0):
    """Scores with many ties, some of them unanswered."""
    rng = np.random.default_rng(seed)
    same = rng.random(size) < 0.4
    return np.round((rng.random(size) + 0.5 * same) / 1.5, 1), same


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("seed", range(2))
def test_metrics_are_those_of_a_loop_and_weights_those_of_copies(definition, seed):
    scores, same = scored_pairs(seed=seed)
    assert (scores == 0.5).sum() > 5
    expected = slow_pan_metrics(scores, same, definition)
    assert pan_metrics(scores, same, definition) == pytest.approx(expected)
    weights = np.random.default_rng(1).integers(0, 4, (3, len(same)))
    weighted = pan_metrics(scores, same, definition, weights)
    for row, times in enumerate(weights):
        copies = np.repeat(np.arange(len(same)), times)
        alone = slow_pan_metrics(scores[copies], same[copies], definition)
        assert {name: values[row] for name, values in weighted.items()} == pytest.approx(alone)
    expected = roc_auc_score(same, scores, sample_weight=weights[0])
    assert auc(scores, same, weights[0]) == pytest.approx(expected)
    assert np.isnan(auc(scores, same, weights * same)).all()


def test_only_exactly_one_half_is_unanswered():
    near = np.array([np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.5])
    assert pan_metrics(near, [1, 0, 0])["n_unanswered"] == 1
    nothing = pan_metrics(np.full(10, 0.5), np.arange(10) < 4)
    assert [*nothing.values()] == [0.5, 0, 0, 0, 0.75, 0.25, 10]
    with pytest.raises(ValueError, match="2 of 2 pairs are of one author"):
        pan_metrics([0.1, 0.2], [1, 1])
    with pytest.raises(ValueError, match="unknown definition 'pan22'.*valid: pan20, pan21"):
        pan_metrics([0.1, 0.2], [1, 0], "pan22")


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
    values, overall_of_2020 = PUBLISHED[system]
    metrics = pan_metrics(scores, truth.same)
    assert [round(metrics[name], 3) for name in METRICS[:-1]] == values
    old = pan_metrics(scores, truth.same, "pan20")
    assert round(old["overall"], 3) == overall_of_2020


def test_comparisons_by_topic_are_those_of_scikit_learn():
    """Hard ones are of one author on two topics and of two authors on one."""
    scores, same = scored_pairs()
    topic = np.random.default_rng(1).random(len(same)) < 0.3
    table = auc_by_comparison(scores, same, topic)
    compared = {
        "all pairs": same | ~same,
        "on one topic": topic,
        "on two topics": ~topic,
        "easy": (same & topic) | (~same & ~topic),
        "hard": (same & ~topic) | (~same & topic),
    }
    assert list(table.index) == list(compared)
    for name, pairs in compared.items():
        assert table.AUC[name] == pytest.approx(roc_auc_score(same[pairs], scores[pairs]))
        counts = (same[pairs].sum(), (~same[pairs]).sum())
        assert tuple(table.loc[name, ["positives", "negatives"]]) == counts
    assert np.isnan(auc_by_comparison(scores, same, topic & ~same).AUC["on one topic"])


def test_files_hold_all_digits(tmp_path):
    values = [0.1, np.nextafter(0.5, 1), 1.0, float(np.float32(0.3))]
    answers = pd.DataFrame({"id": ["1", "12-345", "c", "d"], "value": values})
    write_records(tmp_path / "answers.jsonl", answers)
    read = pd.read_json(tmp_path / "answers.jsonl", lines=True, dtype=False, precise_float=True)
    pd.testing.assert_frame_equal(read, answers, check_dtype=False, check_exact=True)


def test_each_similarity_is_that_of_its_documents_which_are_posts_of_a_store():
    trials = verification_trials(store_in_memory([2, 3, 2]), PAIRS)
    author = np.repeat([0, 1, 2], [2, 3, 2])
    assert trials.same.tolist() == (author[PAIRS["first"]] == author[PAIRS.second]).tolist()
    assert trials.queries.first[trials.pairs].tolist() == PAIRS.to_numpy().tolist()
    rows = unit_rows(7, 4)
    rows[4] = 0  # a text that says nothing
    trials = verification_trials(one_token_samples(range(7)), PAIRS)
    model = LookUp(rows)
    cosines = (rows[PAIRS["first"]].astype(float) * rows[PAIRS.second]).sum(1)
    found = trial_similarities(model, trials)
    np.testing.assert_allclose(found, cosines, atol=1e-6)
    assert found[1] == 0 and model.calls == 5, "documents in no pair are not embedded"
    raw = trial_similarities(LookUp(9 * rows, unit=False), trials)
    apart = 9 * (rows[PAIRS["first"]] - rows[PAIRS.second])
    np.testing.assert_allclose(raw, -np.linalg.norm(apart, axis=1), atol=1e-5)


@pytest.fixture
def texts():
    """A model, and dev and test documents of 40 authors, whose two texts are alike, and pairs."""
    authors = np.arange(80) % 40
    rows = unit_rows(40, 8)[authors] + 0.8 * unit_rows(80, 8, seed=1)
    model = LookUp((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    pairs = {}
    for split, first in (("dev", np.arange(20)), ("test", np.arange(20, 40))):
        second = 40 + np.concatenate([np.roll(first, 1), first])
        topics = np.arange(40) % 2 == 0
        columns = {"first": np.tile(first, 2), "second": second, "same_topic": topics}
        pairs[split] = pd.DataFrame(columns)
    stores = dict.fromkeys(pairs, one_token_samples(authors))
    return model, SimpleNamespace(stores=stores, raw=None), pairs


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("decision", ["calibrated", "shift"])
def test_it_is_the_decision_of_dev_on_each_test_pair_alone(texts, definition, decision):
    model, documents, pairs = texts
    table, scored = evaluate_documents(model, documents, pairs, 32, definition, decision)
    dev, test = [verification_trials(documents.stores[split], pairs[split]) for split in pairs]
    similarity = trial_similarities(model, dev)
    fitted = fit_calibration(similarity, dev.same, prior=0.5) if decision == "calibrated" else None
    surface = threshold_surface(to_scores(fitted, similarity), dev.same, definition)
    probability = to_scores(fitted, trial_similarities(model, test))
    scores = apply_thresholds(probability, *best_thresholds(surface))
    assert scored["test"].probability.tolist() == probability.tolist()
    assert scored["test"].score.tolist() == scores.tolist()
    assert scored["dev"].same.tolist() == dev.same.tolist()
    fewer = pairs | {"test": pairs["test"][10:30]}
    _, scored_alone = evaluate_documents(model, documents, fewer, 32, definition, decision)
    assert scored_alone["test"].score.tolist() == scores[10:30].tolist()
    assert (scored["test"].seconds > 0).all() and scored["test"].seconds.nunique() == 1
    for name, value in pan_metrics(scores, test.same, definition).items():
        assert table.value[name] == pytest.approx(value)
    hard = test.same != pairs["test"].same_topic
    hardest = roc_auc_score(test.same[hard], scores[hard])
    assert table.value["hardest_AUC"] == pytest.approx(hardest)
    assert table.value["dev_overall"] == surface.overall.max()
    ends = table.loc[list(METRICS)]
    assert ((ends.low <= ends.value) & (ends.value <= ends.high)).all()
    assert table.loc[["n_unanswered", "dev_overall"], ["low", "high"]].isna().all(axis=None)


def test_a_paired_difference_is_that_of_copied_pairs(texts):
    """A pair is there as often as its author was drawn, of two authors the product."""
    model, documents, pairs = texts
    test = verification_trials(documents.stores["test"], pairs["test"])
    rows = model.rows + unit_rows(80, 8, seed=9)
    other = LookUp(rows / np.linalg.norm(rows, axis=1)[:, None])
    on_topic = pairs["test"].same_topic.to_numpy()
    both = []
    for system in (model, other):
        _, scored = evaluate_documents(system, documents, pairs, resamples=0)
        both.append(scored["test"])
    table = verification_metrics(*both, resamples=20, seed=3)
    assert table.index.tolist() == [f"{name}_difference" for name in METRICS]

    def difference(rows):
        hard = rows[(test.same != on_topic)[rows]]
        values = []
        for part in both:
            metrics = pan_metrics(part.score[rows], test.same[rows])
            metrics["hardest_AUC"] = roc_auc_score(test.same[hard], part.score[hard])
            values.append([metrics[name] for name in METRICS])
        return np.subtract(*values)

    np.testing.assert_allclose(table.value, difference(np.arange(40)))
    drawn = []
    for times in resample_weights(np.arange(20, 40), 20, seed=3):
        one, two = times[test.queries.authors[test.pairs.T] - 20]
        drawn.append(difference(np.repeat(np.arange(40), np.where(test.same, one, one * two))))
    wanted = np.percentile(drawn, [2.5, 97.5], axis=0)
    np.testing.assert_allclose(table[["low", "high"]].T, wanted, atol=1e-12)
    with pytest.raises(ValueError, match="not measured on the same pairs"):
        verification_metrics(both[0], both[1][::-1].reset_index(drop=True))


class Reader(LookUp):
    """Remembers how many tokens of a document it reads at most."""

    def __init__(self, tokenizer, **settings):
        super().__init__(unit_rows(80, 4), **settings)
        self.tokenizer = tokenizer
        self.read = set()

    def forward(self, batch):
        self.read.add(batch.tokens.shape[-1])
        return super().forward(batch)


def test_documents_are_read_as_what_the_model_was_fitted_on():
    """Their raw texts, whole, as PAN's baseline does, or so many of their tokens."""
    subwords, letters = [store_in_memory([4] * 4, lengths=np.full(16, n)) for n in (4, 9)]
    letters.tokens[:] = 79 - np.repeat(np.arange(16), 9)
    splits = ("dev", "test")
    raw = SimpleNamespace(tokenizer="letters", longest=9, stores=dict.fromkeys(splits, letters))
    tokens = SimpleNamespace(tokenizer="subwords", stores=dict.fromkeys(splits, subwords), raw=raw)
    pairs = pd.DataFrame(combinations(range(16), 2), columns=["first", "second"])
    judged = dict.fromkeys(splits, pairs.assign(same_topic=False))
    rows = unit_rows(80, 4).astype(float)
    for documents, first, longest in ((tokens, rows[:16], 3), (raw, rows[:63:-1], 9)):
        encoder = Reader(documents.tokenizer)
        _, scored = evaluate_documents(as_model(encoder), tokens, judged, 3, resamples=0)
        expected = (first[pairs["first"]] * first[pairs.second]).sum(1)
        np.testing.assert_allclose(scored["test"].similarity, expected, atol=1e-6)
        assert encoder.read == {longest}


@pytest.mark.parametrize("lower, upper", [(0.1, 0.3), (0.7, 0.7), (0, 1), (0, 0), (1, 1)])
def test_only_what_lies_between_thresholds_is_unanswered_and_order_stays(lower, upper):
    near = [np.nextafter(edge, side) for edge in (lower, upper) for side in (0, 1)]
    some = np.random.default_rng(0).random(1000)
    scores = np.sort(np.concatenate([some, near, [lower, upper, 0, 1, 1e-300]]))
    answers = apply_thresholds(scores, lower, upper)
    np.testing.assert_array_equal(answers == 0.5, (lower <= scores) & (scores <= upper))
    np.testing.assert_array_equal(answers < 0.5, scores < lower)
    assert (np.diff(answers) >= 0).all() and answers.min() >= 0 and answers.max() <= 1
    by_hand = apply_thresholds([0, 0.2, 0.4, 0.5, 0.6, 0.8, 1], 0.4, 0.6)
    assert by_hand == pytest.approx([0, 0.25, 0.5, 0.5, 0.5, 0.75, 1])


def test_the_surface_finds_a_known_best(monkeypatch):
    """Below 0.3 all are different, above 0.6 all the same, and between it is a toss-up."""
    scores = np.linspace(0.005, 0.995, 120)
    same = np.where(scores < 0.6, (np.arange(120) % 2 == 0) & (scores > 0.3), True)
    grid = np.round(np.arange(0.1, 1, 0.1), 1)
    monkeypatch.setattr(verification, "GRID", grid)
    surface = threshold_surface(scores, same)
    overall = {}
    for low, high in [(low, high) for low in grid for high in grid if low <= high]:
        answers = apply_thresholds(scores, low, high)
        overall[low, high] = slow_pan_metrics(answers, same, "pan21")["overall"]
    np.testing.assert_allclose(surface.overall, [*overall.values()])
    assert best_thresholds(surface) == max(overall, key=overall.get)
    columns = {"lower": [0.2, 0.3, 0.1], "upper": [0.6, 0.5, 0.5], "overall": [0.8, 0.8, 0.7]}
    equal = pd.DataFrame(columns | {"n_unanswered": [4, 2, 0]})
    assert best_thresholds(equal) == (0.3, 0.5), "of equal ones the fewest unanswered"
