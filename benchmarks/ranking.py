"""Exact ranking, with the rule for ties, and the bare product of the same vectors.

``python benchmarks/speed.py ranking`` measures what rule and ranks add.
"""

import numpy as np

from helpers.evaluation.ranking import best_ranks, positive_targets
from helpers.evaluation.scores import BLOCK, TILE, score_blocks
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples


def product(queries, targets):
    """The bare product, block by block, as the scores of a gallery are computed."""
    rows = max(1, BLOCK // len(targets))
    for begin in range(0, len(queries), rows):
        block = queries[begin : begin + rows]
        for first in range(0, len(targets), TILE):
            block @ targets[first : first + TILE].T


def ranked(queries, targets):
    """Ranks from vectors; query i and target i are by one author."""
    authors = np.arange(len(targets))
    samples = Samples(None, authors, np.ones_like(authors), authors)
    positives = positive_targets(Trials(samples[: len(queries)], samples))
    ranks = [best_ranks(scores, positives[part]) for part, scores in score_blocks(queries, targets)]
    return np.concatenate(ranks)
