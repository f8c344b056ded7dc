"""Trials: which of them are of one author, and what lies outside."""

import numpy as np
import pytest

from helpers.evaluation.trials import Trials
from tests.factories import one_token_samples

QUERIES, TARGETS = one_token_samples([5, 6, 5]), one_token_samples([6, 5])


def test_every_query_against_every_target():
    trials = Trials(QUERIES, TARGETS)
    assert len(trials) == 6
    assert trials.same.tolist() == [[False, True], [True, False], [False, True]]


def test_listed_pairs():
    trials = Trials(QUERIES, TARGETS, np.array([[0, 1], [2, 0]]))
    assert len(trials) == 2 and trials.same.tolist() == [True, False]
    assert len(Trials(QUERIES, TARGETS, np.empty((0, 2), int))) == 0
    for outside in ([3, 0], [0, 2], [-1, 0]):
        with pytest.raises(
            ValueError, match="trials 'x': a pair lies outside of 3 queries x 2 targets"
        ):
            Trials(QUERIES, TARGETS, np.array([outside]), "x")
