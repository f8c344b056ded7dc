"""Exact ranking, with the rule for ties, and the bare product of the same vectors.

``python benchmarks/speed.py ranking`` measures what rule and ranks add.
"""

import numpy as np

from helpers.evaluation.scores import BLOCK, best_ranks, score_blocks


def product(queries, targets):
    """The bare product, block by block, as the scores of a gallery are computed."""
    rows = max(1, BLOCK // len(targets))
    for begin in range(0, len(queries), rows):
        queries[begin : begin + rows] @ targets.T


def ranked(queries, targets):
    """Ranks from vectors; query i and target i are by one author."""
    author = np.arange(len(targets))
    ranks = []
    for part, scores in score_blocks(queries, targets):
        ranks.append(best_ranks(scores, author[part, None] == author))
    return np.concatenate(ranks)
