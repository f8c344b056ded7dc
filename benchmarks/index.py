"""Milliseconds a query, recall of the exact top 100, memory and build time of an index of a million accounts.

    pip install faiss-cpu
    python benchmarks/index.py                           1,000,000 accounts x 256 dimensions, one thread
    python benchmarks/index.py --vectors rows.npy        unit vectors of one's own; the last ones ask
    python benchmarks/index.py --lists 1024              inverted lists too, with the same codes and re-ranking

Made accounts lie in 200 communities of unequal size; the variance of their dimensions falls by the power 0.9 of the
rank, as that of 3,292 bloggers' whitened LSA vectors does (33 effective dimensions, here 39), turned, so that no
dimension is known to matter. Half of the queries are second samples of accounts that are there, half are of nobody.
One query at a time; the ways take turns, so that a busy machine slows all alike. By the clock, and by the processor's
time, which a busy machine disturbs less. The index keeps float16: what it misses of the product is mostly that.
"""

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from helpers.accounts.index import CANDIDATES, VectorIndex
from helpers.training.distributed import device_name


def made(
    accounts: int, dim: int, asked: int, communities: int = 200
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of accounts, second samples of some of them, and samples of others, all of unit length."""
    rng = np.random.default_rng(0)
    spread = np.arange(1, dim + 1) ** -0.45
    spread = (spread / np.linalg.norm(spread)).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)

    def draw(count, scale):
        return rng.standard_normal((count, dim), np.float32) * (spread * np.float32(scale))

    places = draw(1, 0.45) + draw(communities, 0.35)
    own = draw(accounts + asked, 0.65)
    own += places[rng.choice(communities, len(own), p=rng.dirichlet(np.full(communities, 0.5)))]

    def sample(rows):
        rows = own[rows] + draw(len(rows), 0.5)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) @ turn

    there = rng.choice(accounts, asked, replace=False)
    return sample(np.arange(accounts)), sample(there), sample(np.arange(accounts, len(own)))


def product(targets, query, k):
    """Exact search without an index: every score in float32, then the k best."""
    return (targets @ torch.from_numpy(query)).topk(k).indices.numpy()


def listed(vectors, lists, probes):
    """Inverted lists of the codes of the index, ranked anew in the same way, as a function of query and k."""
    import faiss

    width = vectors.shape[1]
    codes = faiss.index_factory(
        width, f"RR{width},IVF{lists},RaBitQfs2", faiss.METRIC_INNER_PRODUCT
    )
    codes.train(vectors[:: len(vectors) // (100 * lists) + 1])
    codes.add(vectors)
    faiss.extract_index_ivf(codes).nprobe = probes
    kept = vectors.astype(np.float16)

    def search(query, k):
        rows = codes.search(query[None], CANDIDATES)[1][0]
        rows = rows[rows >= 0]
        return rows[np.argsort(-(kept[rows].astype(np.float32) @ query))[:k]]

    return search


def timed(make):
    began, before = time.perf_counter(), time.process_time()
    result = make()
    print(
        f"  {time.perf_counter() - began:6.1f} s, {time.process_time() - before:6.1f} s of the processor"
    )
    return result


def compare(ways, groups, k):
    """Print milliseconds of every way in turns, and of the others how much of the first one's answers they find."""
    clock, processor, found = ({name: [] for name in ways} for _ in range(3))
    truth = None  # the rows of the first way
    for number, queries in enumerate(groups.values()):
        for query in queries:
            for name, way in ways.items():
                began, before = time.perf_counter(), time.process_time()
                rows = way(query, k)
                clock[name].append((time.perf_counter() - began) * 1e3)
                processor[name].append((time.process_time() - before) * 1e3)
                truth = rows if name == next(iter(ways)) else truth
                found[name].append((number, len(np.intersect1d(rows, truth)) / k))
    base = statistics.median(processor[next(iter(ways))])
    print(f"{'':22} {'median':>8} {'p95':>8} {'processor':>10} {'p95':>8} {'ratio':>7}   "
          f"recall@{k} of {', '.join(groups)}")  # fmt: skip
    for name in ways:
        times = [
            value
            for taken in (clock[name], processor[name])
            for value in np.quantile(taken, [0.5, 0.95])
        ]
        means = (
            np.mean([share for group, share in found[name] if group == number])
            for number in range(len(groups))
        )
        print(f"{name:22} {times[0]:5.1f} ms {times[1]:5.1f} ms {times[2]:7.1f} ms {times[3]:5.1f} ms "
              f"{times[2] / base:6.2f}x   {', '.join(f'{mean:.4f}' for mean in means)}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument(
        "--vectors", type=Path, help="(N, D) float32 of unit length, in random order"
    )
    parser.add_argument("--queries", type=int, default=100, help="of each group")
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--lists", type=int, default=0)
    parser.add_argument("--probes", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    import faiss

    torch.set_num_threads(arguments.threads)
    faiss.omp_set_num_threads(arguments.threads)
    if arguments.vectors:
        rows = np.load(arguments.vectors)
        vectors, groups = rows[: -arguments.queries], {"own": rows[-arguments.queries :]}
    else:
        vectors, members, others = made(arguments.accounts, arguments.dimensions, arguments.queries)
        groups = {"members": members, "nobody": others}
    print(
        f"{len(vectors):,} x {vectors.shape[1]}, {arguments.threads} thread(s), {device_name(torch.device('cpu'))}"
    )
    print("build, exact")
    exact = timed(lambda: VectorIndex(vectors, False))
    print("build, coded")
    coded = timed(lambda: VectorIndex(vectors, True))
    codes = faiss.serialize_index(coded.codes).nbytes
    print(f"  {coded.vectors.nbytes / 1e6:,.0f} MB of vectors, {codes / 1e6:,.0f} MB of codes; "
          f"in float32 the vectors are {vectors.nbytes / 1e6:,.0f} MB")  # fmt: skip
    ways = {
        "product, no index": partial(product, torch.from_numpy(vectors)),
        "VectorIndex, exact": lambda query, k: exact.search(query[None], k)[1][0],
        "VectorIndex, coded": lambda query, k: coded.search(query[None], k)[1][0],
    }
    if arguments.lists:
        print(f"build, {arguments.lists} lists, {arguments.probes} read")
        ways[f"{arguments.lists} lists"] = timed(
            lambda: listed(vectors, arguments.lists, arguments.probes)
        )
    compare(ways, groups, arguments.k)


if __name__ == "__main__":
    main()
