"""Time of exact ranking over that of the bare product: what the rule for ties and ranks add.

python benchmarks/ranking.py                         5,000 queries x 100,000 targets x 512
dimensions
"""

import argparse

import numpy as np
import torch
from in_turns import compare

from helpers.evaluation.ranking import best_ranks, positive_targets
from helpers.evaluation.scores import BLOCK, TILE, score_blocks
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples
from helpers.training.distributed import device_name


def product(queries, targets):
    """The bare product, block by block, as the scores of a gallery are computed."""
    rows = max(1, BLOCK // len(targets))
    for begin in range(0, len(queries), rows):
        block = queries[begin : begin + rows]
        for first in range(0, len(targets), TILE):
            block @ targets[first : first + TILE].T


def rounded(queries, targets):
    """The scores alone: the product, rounded for the rule of ties."""
    for _ in score_blocks(queries, targets):
        pass


def ranked(queries, targets):
    """Ranks from vectors; query i and target i are by one author."""
    authors = np.arange(len(targets))
    samples = Samples(None, authors, np.ones_like(authors), authors)
    positives = positive_targets(Trials(samples[: len(queries)], samples))
    ranks = [best_ranks(scores, positives[part]) for part, scores in score_blocks(queries, targets)]
    return np.concatenate(ranks)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=512)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    targets, queries = (
        torch.nn.functional.normalize(torch.randn(rows, arguments.dimensions))
        for rows in (arguments.targets, arguments.queries)
    )
    ways = {
        "bare product": lambda: product(queries, targets),
        "rounded scores": lambda: rounded(queries, targets),
        "ranks": lambda: ranked(queries, targets),
    }
    shape = f"{arguments.queries:,} x {arguments.targets:,} x {arguments.dimensions}"
    print(f"{shape}, {device_name(torch.device('cpu'))}, median of {arguments.times}")
    compare(ways, arguments.times)


if __name__ == "__main__":
    main()
