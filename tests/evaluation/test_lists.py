"""Answers of lists: the curve of precision against recall is that of a loop over thresholds."""

import numpy as np

from helpers.evaluation.lists import Answers, precision_curve


def test_the_curve_of_precision_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    partner = np.where(rng.random(60) < 0.6, rng.integers(0, 40, 60), -1)
    rank = np.where(partner >= 0, rng.integers(1, 4, 60), np.nan)
    value = rng.integers(0, 9, 60) / 8  # with ties, which one threshold answers together
    value[rng.random(60) < 0.1] = -np.inf  # no candidate, so no answer
    answers = Answers(np.zeros(60, int), value, rank, partner)
    expected = []
    for threshold in sorted(set(value[value >= 0]), reverse=True):
        answered = value >= threshold
        right = (answered & (rank == 1)).sum()
        expected.append((right / (partner >= 0).sum(), right / answered.sum()))
    curve = precision_curve(answers)
    np.testing.assert_allclose(curve[["recall", "precision"]], expected)
