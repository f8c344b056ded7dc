"""Time and memory of fused, gallery-normalised scores over those of the members' bare products.

python benchmarks/fusion.py                          5,000 queries x 100,000 targets, three sparse
members, two dense python benchmarks/fusion.py --queries 500            the same ratio in a tenth of
the time
"""

import argparse
import resource

import numpy as np
import torch
from in_turns import compare
from ranking import product
from scipy import sparse
from sklearn.preprocessing import normalize

from helpers.encoders.base import Encoder
from helpers.evaluation.models import Member, Model
from helpers.evaluation.scores import as_rows
from helpers.tokens.batch import Samples

DENSE = (1024, 512)  # LSA, stream
SPARSE = (16_384, 65_536, 200_000)  # words, subword pairs, characters
WORDS = 150  # different features of a sparse row
TIMES = 3  # that each way is timed
MAX_TOKENS = 32  # rows are there already, so nothing is read


def dense(count, dim, rng):
    return as_rows(
        torch.nn.functional.normalize(
            torch.from_numpy(rng.standard_normal((count, dim), np.float32))
        )
    )


def counted(count, dim, rng):
    """Unit rows with features by Zipf's law, the commonest with the least weight, as by an idf."""
    column = np.minimum((dim ** rng.random(count * WORDS)).astype(np.int64) - 1, dim - 1)
    weight, row = np.log(dim / (1.0 + column)), np.repeat(np.arange(count), WORDS)
    return as_rows(normalize(sparse.csr_matrix((weight, (row, column)), (count, dim))))


def bare(members, queries):
    """Every member's product, block by block, and nothing else."""
    for rows in members:
        query_rows = rows[queries.first]
        if not sparse.issparse(rows):
            product(query_rows, rows)
            continue
        columns = rows.T.tocsr()
        for first in range(0, len(queries), 64):
            (query_rows[first : first + 64] @ columns).toarray()


def keep(member, samples, rows):
    """Let a member find the rows of samples in its cache."""
    member.embeddings.once(("rows", member.encoder, samples, MAX_TOKENS), lambda: rows)


def model_of(rows, queries, targets):
    """Fuse members whose rows are there: row n is target n, the first ones are the queries."""
    members = []
    for number, target_rows in enumerate(rows):
        member = Member(str(number), Encoder(), "s_norm")
        keep(member, targets, target_rows)
        query_rows = target_rows[: len(queries)]
        keep(member, queries, query_rows)
        members.append(member)
    return Model.mean(members)


def fused(model, queries, targets):
    for _ in model.scores(queries, targets, MAX_TOKENS):
        pass


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--targets", type=int, default=100_000)
    arguments = parser.parse_args()
    rng, place = np.random.default_rng(0), np.arange(arguments.targets)
    targets = Samples(None, place, np.ones_like(place), place)
    members = [
        *(dense(len(place), dim, rng) for dim in DENSE),
        *(counted(len(place), dim, rng) for dim in SPARSE),
    ]
    queries = targets[place[: arguments.queries]]
    model = model_of(members, queries, targets)
    for member in model.members:
        member.gallery(targets, MAX_TOKENS)  # its statistics are made once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shape = f"{len(queries):,} x {len(targets):,}, {len(members)} members"
    print(f"{shape}, median of {TIMES}")
    ways = {
        "bare products": lambda: bare(members, queries),
        "fused, normalised": lambda: fused(model, queries, targets),
    }
    compare(ways, TIMES)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"scoring took {grown / 2**20:.1f} GiB beyond the gallery")


if __name__ == "__main__":
    main()
