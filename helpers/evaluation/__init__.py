"""Evaluation: trials -> scores -> metrics with intervals.

In come samples, encoders and lists of pairs; out go tables of metrics with intervals, and decisions
fitted on dev. It decides ties in one place (:mod:`helpers.evaluation.scores`). It never knows a
loss or trains a network, and never fits on what it measures.
"""
