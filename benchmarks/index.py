"""An index of a million accounts: milliseconds a query, recall, memory, build time.

Recall is that of the exact top 100.

    pip install faiss-cpu
    python benchmarks/index.py                       1,000,000 accounts x 256 dimensions, one thread
    python benchmarks/index.py --vectors rows.npy    unit vectors of one's own; the last ones ask
    python benchmarks/index.py --lists 1024          inverted lists too, with the same codes and
                                                     re-ranking

Made accounts lie in 200 communities of unequal size; the variance of their dimensions falls by the
power 0.9 of the rank, as that of 3,292 bloggers' whitened LSA vectors does (33 effective
dimensions, here 39), turned, so that no dimension is known to matter. Half of the queries are
second samples of accounts that are there, half are of nobody. One query at a time; the ways take
turns, so that a busy machine slows all alike. By the clock, and by the processor's time, which a
busy machine disturbs less. The index keeps float16: what it misses of the product is mostly that.
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
    accounts: int, dim: int, queries: int, communities: int = 200
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of accounts, second samples of known accounts, and samples of unknown ones.

    All have unit length.
    """
    rng = np.random.default_rng(0)
    spread = np.arange(1, dim + 1) ** -0.45
    spread = (spread / np.linalg.norm(spread)).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)

    def draw(count, scale):
        return rng.standard_normal((count, dim), np.float32) * (spread * np.float32(scale))

    places = draw(1, 0.45) + draw(communities, 0.35)
    centres = draw(accounts + queries, 0.65)
    sizes = rng.dirichlet(np.full(communities, 0.5))
    centres += places[rng.choice(communities, len(centres), p=sizes)]

    def sample(rows):
        vectors = centres[rows] + draw(len(rows), 0.5)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ turn

    known = rng.choice(accounts, queries, replace=False)
    unknown = np.arange(accounts, len(centres))
    return sample(np.arange(accounts)), sample(known), sample(unknown)


def product(targets, query, k):
    """Exact search without an index: every score in float32, then the k best."""
    return (targets @ torch.from_numpy(query)).topk(k).indices.numpy()


def listed(vectors, lists, probes):
    """Inverted lists of the codes of the index, ranked anew in the same way.

    Returns a function of query and k.
    """
    import faiss

    width = vectors.shape[1]
    codes = faiss.index_factory(
        width, f"RR{width},IVF{lists},RaBitQfs2", faiss.METRIC_INNER_PRODUCT
    )
    codes.train(vectors[:: len(vectors) // (100 * lists) + 1])
    codes.add(vectors)
    faiss.extract_index_ivf(codes).nprobe = probes
    halves = vectors.astype(np.float16)

    def search(query, k):
        rows = codes.search(query[None], CANDIDATES)[1][0]
        rows = rows[rows >= 0]
        return rows[np.argsort(-(halves[rows].astype(np.float32) @ query))[:k]]

    return search


def timed(make):
    began = time.perf_counter()
    began_processor = time.process_time()
    result = make()
    seconds = time.perf_counter() - began
    processor = time.process_time() - began_processor
    print(f"  {seconds:6.1f} s, {processor:6.1f} s of the processor")
    return result


def compare(ways, groups, k):
    """Print milliseconds of every way in turns, and the share of the first way's answers."""
    clock = {name: [] for name in ways}
    processor = {name: [] for name in ways}
    recalls = {(name, group): [] for name in ways for group in groups}
    for group, queries in groups.items():
        for query in queries:
            truth = None
            for name, way in ways.items():
                began = time.perf_counter()
                began_processor = time.process_time()
                rows = way(query, k)
                clock[name].append((time.perf_counter() - began) * 1e3)
                processor[name].append((time.process_time() - began_processor) * 1e3)
                if truth is None:  # the rows of the first way
                    truth = rows
                recalls[name, group].append(len(np.intersect1d(rows, truth)) / k)
    base = statistics.median(processor[next(iter(ways))])
    columns = f"{'median':>8} {'p95':>8} {'processor':>10} {'p95':>8} {'ratio':>7}"
    print(f"{'':22} {columns}   recall@{k} of {', '.join(groups)}")
    for name in ways:
        median, high = np.quantile(clock[name], [0.5, 0.95])
        processor_median, processor_high = np.quantile(processor[name], [0.5, 0.95])
        by_clock = f"{median:5.1f} ms {high:5.1f} ms"
        by_processor = f"{processor_median:7.1f} ms {processor_high:5.1f} ms"
        means = ", ".join(f"{np.mean(recalls[name, group]):.4f}" for group in groups)
        print(f"{name:22} {by_clock} {by_processor} {processor_median / base:6.2f}x   {means}")


def arguments_of_command():
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
    return parser.parse_args()


def searched(index, query, k):
    """The rows of the k nearest accounts by an index."""
    return index.search(query[None], k)[1][0]


def main():
    arguments = arguments_of_command()
    import faiss

    torch.set_num_threads(arguments.threads)
    faiss.omp_set_num_threads(arguments.threads)
    if arguments.vectors:
        rows = np.load(arguments.vectors)
        vectors = rows[: -arguments.queries]
        groups = {"own": rows[-arguments.queries :]}
    else:
        sizes = arguments.accounts, arguments.dimensions, arguments.queries
        vectors, known, unknown = made(*sizes)
        groups = {"members": known, "nobody": unknown}
    device = device_name(torch.device("cpu"))
    print(f"{len(vectors):,} x {vectors.shape[1]}, {arguments.threads} thread(s), {device}")
    print("build, exact")
    exact = timed(partial(VectorIndex, vectors, False))
    print("build, coded")
    coded = timed(partial(VectorIndex, vectors, True))
    codes = faiss.serialize_index(coded.codes).nbytes
    print(
        f"  {coded.vectors.nbytes / 1e6:,.0f} MB of vectors, {codes / 1e6:,.0f} MB of codes; "
        f"in float32 the vectors are {vectors.nbytes / 1e6:,.0f} MB"
    )
    ways = {
        "product, no index": partial(product, torch.from_numpy(vectors)),
        "VectorIndex, exact": partial(searched, exact),
        "VectorIndex, coded": partial(searched, coded),
    }
    if arguments.lists:
        print(f"build, {arguments.lists} lists, {arguments.probes} read")
        make = partial(listed, vectors, arguments.lists, arguments.probes)
        ways[f"{arguments.lists} lists"] = timed(make)
    compare(ways, groups, arguments.k)


if __name__ == "__main__":
    main()
