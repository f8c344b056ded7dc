"""Scores against double precision; the rounding rule; blocks, sparse and raw rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from helpers.evaluation import (
    calibration,
    detection,
    lists,
    ranking,
    scores,
    verification,
)
from helpers.evaluation.matching import as_pairs
from helpers.evaluation.scores import (
    GRID,
    as_rows,
    cosine,
    fuse,
    pair_scores,
    round_scores,
    score_blocks,
)
from tests.factories import unit_rows

QUERIES, TARGETS = unit_rows(40, 6), unit_rows(90, 6, seed=1)


def whole(queries, targets, unit=True):
    """All scores, of consecutive blocks."""
    scores = []
    rows = []
    for part, block in score_blocks(as_rows(queries), as_rows(targets), unit):
        rows.extend(range(queries.shape[0])[part])
        scores.append(block)
    assert rows == list(range(queries.shape[0]))
    return np.concatenate(scores)


@pytest.mark.parametrize("kind", ["dense", "csr_matrix", "csr_array", "raw"])
def test_scores_are_those_of_double_precision_on_the_grid(kind):
    queries, targets = QUERIES, TARGETS
    wanted = queries.astype(float) @ targets.T.astype(float)
    if kind.startswith("csr"):
        queries, targets = (
            getattr(sparse, kind)(np.where(abs(side) > 0.4, side, 0)) for side in (queries, targets)
        )
        wanted = queries.toarray().astype(float) @ targets.toarray().T.astype(float)
    if kind == "raw":
        queries, targets = 7 * queries, 7 * targets
        wanted = -cdist(queries, targets)
    result = whole(queries, targets, kind != "raw")
    assert result.dtype == np.float32 and (result * GRID == np.rint(result * GRID)).all()
    np.testing.assert_allclose(result, wanted, atol=1e-6)
    alone = cosine(as_rows(queries), as_rows(targets), kind != "raw")
    assert (alone == result).all(), "without blocks"
    pairs = np.argwhere(np.ones_like(result))
    listed = pair_scores(as_rows(queries), as_rows(targets), pairs, kind != "raw")
    assert (listed * GRID == np.rint(listed * GRID)).all()
    np.testing.assert_allclose(listed, wanted.ravel(), atol=1e-6)


@pytest.mark.parametrize("block, pairs", [(1, 1), (300, 300), (2**24, 10**6)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "raw"])
def test_blocks_of_any_size_agree(monkeypatch, kind, block, pairs):
    sides = [sparse.csr_matrix(side) if kind == "sparse" else side for side in (QUERIES, TARGETS)]
    wanted, rows = whole(*sides, kind != "raw"), np.argwhere(np.ones((40, 90)))
    listed = pair_scores(*map(as_rows, sides), rows, kind != "raw")
    for name, value in (("BLOCK", block), ("MIN_BLOCK_ROWS", 1), ("PAIRS", pairs)):
        monkeypatch.setattr(scores, name, value)
    np.testing.assert_allclose(whole(*sides, kind != "raw"), wanted, atol=1e-6)
    assert (pair_scores(*map(as_rows, sides), rows, kind != "raw") == listed).all()


def test_scores_that_only_the_order_of_summation_tells_apart_are_equal():
    assert round_scores(np.array([0.25 + 1e-8, 0.25, 0.25 - 1e-8])).tolist() == [0.25] * 3
    assert len(set(round_scores(np.array([0.25, 0.25 + 2**-20])))) == 2
    for dim in (16, 100, 1024):
        equal = whole(unit_rows(13, dim), np.repeat(unit_rows(1, dim, seed=1), 5003, 0))
        assert (equal == equal[:, :1]).all()
    long = 9 * unit_rows(20, 100)
    assert (whole(long, long, unit=False).diagonal() == 0).all()


def test_fused_scores_are_a_weighted_sum_on_the_grid():
    systems = [np.random.default_rng(seed).random((3, 5), np.float32) for seed in range(3)]
    wanted = 0.5 * systems[0] + 0.3 * systems[1] + 0.2 * systems[2]
    fused = fuse(systems, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(fused, wanted, atol=1e-6)
    assert (fused * GRID == np.rint(fused * GRID)).all()


MATRIX = np.eye(60)
VALUES = np.linspace(0.1, 0.9, 60)
SAME = np.arange(60) % 2 == 0
RANKS = pd.Series(np.arange(1.0, 61))
# each function with values that it takes; NaN is then put among them
METRICS_OF_VALUES = {
    "best_ranks": (MATRIX, lambda v: scores.best_ranks(v, np.eye(60, dtype=bool))),
    "ranking_metrics": (RANKS, lambda v: ranking.ranking_metrics(v, resamples=2)),
    "ranking_differences": (RANKS, lambda v: ranking.ranking_differences(v, RANKS, 0, 2)),
    "compare_rankings": (RANKS, lambda v: ranking.compare_rankings(RANKS, v, 0, 2)),
    "as_pairs": (MATRIX, as_pairs),
    "best_answers": (MATRIX, lambda v: lists.best_answers(v, MATRIX.astype(bool))),
    "count_scores": (VALUES, lambda v: detection.count_scores(v, SAME)),
    "fit_calibration": (VALUES, lambda v: calibration.fit_calibration(v, SAME)),
    "estimate_prior": (VALUES, calibration.estimate_prior),
    "cllr": (VALUES, lambda v: calibration.cllr(v, SAME)),
    "min_cllr": (VALUES, lambda v: calibration.min_cllr(v, SAME)),
    "reliability_bins": (VALUES, lambda v: calibration.reliability_bins(v, SAME)),
    "calibration_metrics": (VALUES, lambda v: calibration.calibration_metrics(v, SAME)),
    "pan_metrics": (VALUES, lambda v: verification.pan_metrics(v, SAME)),
    "auc_by_comparison": (VALUES, lambda v: verification.auc_by_comparison(v, SAME, SAME)),
    "threshold_surface": (VALUES, lambda v: verification.threshold_surface(v, SAME)),
    "fit_decision": (VALUES, lambda v: verification.fit_decision(v, SAME)),
    "fit_shift": (VALUES, lambda v: verification.fit_decision(v, SAME, kind="shift")),
}


@pytest.mark.parametrize("name", METRICS_OF_VALUES)
@pytest.mark.parametrize("everywhere", [False, True])
def test_no_metric_takes_nan(name, everywhere):
    values, measure = METRICS_OF_VALUES[name]
    values = values.copy()
    measure(values.copy())
    values[slice(None) if everywhere else 7] = np.nan
    with pytest.raises(ValueError, match="NaN|not finite|in \\[0, 1\\]"):
        measure(values)
