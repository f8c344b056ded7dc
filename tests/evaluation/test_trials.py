"""Trials: which of them are of one author."""

import numpy as np

from helpers.evaluation.trials import Trials
from tests.factories import one_token_samples

QUERIES, TARGETS = one_token_samples([5, 6, 5]), one_token_samples([6, 5])


def test_every_query_against_every_target():
    trials = Trials(QUERIES, TARGETS)
    assert trials.same.tolist() == [[False, True], [True, False], [False, True]]


def test_listed_pairs():
    trials = Trials(QUERIES, TARGETS, np.array([[0, 1], [2, 0]]))
    assert trials.same.tolist() == [True, False]
    assert Trials(QUERIES, TARGETS, np.empty((0, 2), int)).same.tolist() == []
