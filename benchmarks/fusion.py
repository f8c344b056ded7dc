"""Time and memory of fused, gallery-normalised scores over those of the members' bare products.

python benchmarks/fusion.py                          5,000 queries x 100,000 targets, three sparse members, two dense
python benchmarks/fusion.py --queries 500            the same ratio in a tenth of the time
"""

import argparse
import resource
import time

import numpy as np
import torch
from in_turns import compare
from scipy import sparse
from sklearn.preprocessing import normalize

from helpers.evaluation.fusion import FusedGallery
from helpers.evaluation.score_norm import NormalisedGallery
from helpers.evaluation.scores import BLOCK, as_rows, score_blocks
from helpers.tokens.batch import Samples
from helpers.training.distributed import device_name

DENSE = (1024, 512)  # LSA, stream
SPARSE = (16_384, 65_536, 200_000)  # words, subword pairs, characters
WORDS = 150  # different features of a sparse row


class Rows:
    """A gallery of rows that are there already; sample n is row n."""

    def __init__(self, rows, targets):
        self.rows, self.targets = rows, targets

    def scores(self, samples):
        return score_blocks(self.rows[samples.first], self.rows)


def dense(count, dim, rng):
    return as_rows(
        torch.nn.functional.normalize(
            torch.from_numpy(rng.standard_normal((count, dim), np.float32))
        )
    )


def counted(count, dim, rng):
    """Unit rows with features by Zipf's law, the commonest ones with the least weight, as an idf gives them."""
    column = np.minimum((dim ** rng.random(count * WORDS)).astype(np.int64) - 1, dim - 1)
    weight, row = np.log(dim / (1.0 + column)), np.repeat(np.arange(count), WORDS)
    return as_rows(normalize(sparse.csr_matrix((weight, (row, column)), (count, dim))))


def bare(members, queries):
    """Every member's product, block by block, and nothing else."""
    for rows in members:
        columns = rows.T.tocsr() if sparse.issparse(rows) else rows
        step = max(1, BLOCK // rows.shape[0])
        for begin in range(0, len(queries), step):
            block = rows[queries.first[begin : begin + step]]
            if sparse.issparse(rows):
                for first in range(0, block.shape[0], 64):
                    (block[first : first + 64] @ columns).toarray()
            else:
                block @ columns.T


def fused(gallery, queries):
    for _ in gallery.scores(queries):
        pass


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    rng, place = np.random.default_rng(0), np.arange(arguments.targets)
    targets = Samples(None, place, np.ones_like(place), place)
    members = [
        *(dense(len(place), dim, rng) for dim in DENSE),
        *(counted(len(place), dim, rng) for dim in SPARSE),
    ]
    began = time.perf_counter()
    gallery = FusedGallery(
        [(NormalisedGallery(Rows(rows, targets)), 1 / len(members)) for rows in members]
    )
    made = time.perf_counter() - began
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queries = targets[place[: arguments.queries]]
    print(f"{len(queries):,} x {len(targets):,}, {len(members)} members, {device_name(torch.device('cpu'))}, "
          f"median of {arguments.times}")  # fmt: skip
    compare({"bare products": lambda: bare(members, queries), "fused, normalised": lambda: fused(gallery, queries)},
            arguments.times)  # fmt: skip
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"statistics of the gallery, once: {made:.1f} s; scores of all pairs would take "
        f"{len(queries) * len(targets) * 4 / 2**30:.1f} GiB, scoring took {grown / 2**20:.1f} GiB beyond the gallery"
    )


if __name__ == "__main__":
    main()
