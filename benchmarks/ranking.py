"""Time of exact ranking over that of the bare matrix product in the same blocks: what counting ranks adds.

    python benchmarks/ranking.py                         5,000 queries x 100,000 targets x 512 dimensions
"""

import argparse
import inspect
import statistics
import time

import torch

from helpers.evaluation.ranking import ranks
from helpers.training.loop import device_name

BLOCKS = {name: inspect.signature(ranks).parameters[name].default for name in ("rows", "columns")}


def product(queries, targets):
    """The bare product, block by block, as ``ranks`` computes it."""
    for begin in range(0, len(queries), BLOCKS["rows"]):
        block = queries[begin : begin + BLOCKS["rows"]]
        for first in range(0, len(targets), BLOCKS["columns"]):
            block @ targets[first : first + BLOCKS["columns"]].T


def timed(function, *arguments, **settings):
    began = time.perf_counter()
    function(*arguments, **settings)
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        "bare product": lambda: timed(product, queries, targets),
        "ranks, pessimistic": lambda: timed(ranks, queries, targets),
        "ranks, average": lambda: timed(ranks, queries, targets, ties="average"),
    }
    seconds = {name: [] for name in ways}
    for _ in range(arguments.times):  # in turns: a busy machine slows all of them alike
        for name, way in ways.items():
            seconds[name].append(way())
    shape = f"{arguments.queries:,} x {arguments.targets:,} x {arguments.dimensions}"
    print(f"{shape}, {device_name(torch.device('cpu'))}, median of {arguments.times}")
    base = statistics.median(seconds["bare product"])
    for name, took in seconds.items():
        print(f"{name:20} {statistics.median(took):8.2f} s {statistics.median(took) / base:6.2f}x")


if __name__ == "__main__":
    main()
