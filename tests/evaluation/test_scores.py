"""Scores against double precision; the rounding rule; blocks, sparse and raw rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from helpers.evaluation import calibration, detection, ranking, scores, verification
from helpers.evaluation.matching import as_pairs
from helpers.evaluation.scores import GRID, as_rows, pair_scores, round_scores, score_blocks
from tests.factories import unit_rows

QUERIES, TARGETS = unit_rows(12, 6), unit_rows(30, 6, seed=1)


def whole(queries, targets, unit=True):
    scores = []
    rows = []
    for part, block in score_blocks(as_rows(queries), as_rows(targets), unit):
        rows.extend(range(queries.shape[0])[part])
        scores.append(block)
    assert rows == list(range(queries.shape[0]))
    return np.concatenate(scores)


@pytest.mark.parametrize("kind", ["dense", "csr_matrix", "csr_array", "raw"])
def test_scores_are_those_of_double_precision_on_the_grid_in_blocks_of_any_size(monkeypatch, kind):
    queries, targets = QUERIES, TARGETS
    wanted = queries.astype(float) @ targets.T.astype(float)
    if kind.startswith("csr"):
        sides = [np.where(abs(side) > 0.4, side, 0) for side in (QUERIES, TARGETS)]
        wanted = sides[0].astype(float) @ sides[1].T
        queries, targets = [getattr(sparse, kind)(side) for side in sides]
    if kind == "raw":
        queries, targets = 7 * queries, 7 * targets
        wanted = -cdist(queries, targets)
    pairs = np.argwhere(np.ones_like(wanted))
    monkeypatch.setattr(scores, "MIN_BLOCK_ROWS", 1)
    for block in (1, 300, 2**24):
        monkeypatch.setattr(scores, "BLOCK", block)
        monkeypatch.setattr(scores, "PAIRS", block)
        result = whole(queries, targets, kind != "raw")
        assert result.dtype == np.float32 and (result * GRID == np.rint(result * GRID)).all()
        np.testing.assert_allclose(result, wanted, atol=1e-6)
        listed = pair_scores(as_rows(queries), as_rows(targets), pairs, kind != "raw")
        assert (listed * GRID == np.rint(listed * GRID)).all()
        np.testing.assert_allclose(listed, wanted.ravel(), atol=1e-6)


def test_scores_that_only_the_order_of_summation_tells_apart_are_equal():
    assert round_scores(np.array([0.25 + 1e-8, 0.25, 0.25 - 1e-8])).tolist() == [0.25] * 3
    assert len(set(round_scores(np.array([0.25, 0.25 + 2**-20])))) == 2
    for dim in (16, 100, 1024):
        equal = whole(unit_rows(13, dim), np.repeat(unit_rows(1, dim, seed=1), 5003, 0))
        assert (equal == equal[:, :1]).all()
    long = 9 * unit_rows(20, 100)
    assert (whole(long, long, unit=False).diagonal() == 0).all()


VALUES = np.linspace(0.1, 0.9, 60)
SAME = np.arange(60) % 2 == 0
METRICS_OF_TRIALS = {
    "auc": detection.auc,
    "count_scores": lambda v, same: detection.error_rates(detection.count_scores(v, same)),
    "fit_calibration": lambda v, same: calibration.fit_calibration(v, same).weights,
    "cllr": calibration.cllr,
    "min_cllr": calibration.min_cllr,
    "reliability_bins": calibration.reliability_bins,
    "calibration_metrics": calibration.calibration_metrics,
    "pan_metrics": lambda v, same: list(verification.pan_metrics(v, same).values()),
    "topics": lambda v, same: verification.auc_by_comparison(v, SAME, same),
    "best_ranks": lambda v, same: scores.best_ranks(np.stack([v, v]), np.stack([same, same])),
}


@pytest.mark.parametrize("name", METRICS_OF_TRIALS)
def test_labels_are_0_and_1_of_any_type_one_for_each_score_which_is_a_number(name):
    measure = METRICS_OF_TRIALS[name]
    wanted = measure(VALUES, SAME)
    for same in (list(SAME), SAME.astype(float)):
        np.testing.assert_array_equal(measure(list(VALUES), same), wanted)
    for same in (np.where(SAME, 1, -1), np.where(VALUES < 0.2, np.nan, SAME), SAME[:1]):
        with pytest.raises(ValueError, match="labels need the shape"):
            measure(VALUES, same)
    with pytest.raises(ValueError, match="NaN|finite|in \\[0, 1\\]"):
        measure(np.where(VALUES > 0.8, np.nan, VALUES), SAME)


@pytest.mark.parametrize("measure", [ranking.ranking_metrics, calibration.estimate_prior, as_pairs])
def test_no_other_metric_takes_nan(measure):
    values = pd.Series(np.append(np.ones(59), np.nan))
    with pytest.raises(ValueError, match="NaN|finite"):
        measure(values)
