"""Evaluation: trials -> scores -> metrics with intervals.

Samples, encoders and lists of pairs come in; tables of metrics with intervals, and decisions fitted
on dev go out. Ties are decided in one place (:mod:`helpers.evaluation.scores`). Nothing here knows
a loss, trains a network, or is fitted on the data that it measures.
"""
