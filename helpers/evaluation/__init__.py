"""Evaluation: trials -> scores -> metrics with intervals. Ties are decided in :mod:`helpers.evaluation.scores`."""
