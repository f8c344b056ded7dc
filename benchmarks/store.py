"""Seconds to open a token store, and to draw a batch of the paper's size, as stores grow.

    python benchmarks/store.py [--large]                 10^4, 10^6 (and 10^8) posts

The stores are synthetic: 43 tokens a post on average, 300 posts an author, in a temporary folder.
That of 10^8 posts takes 10 GB; its tokens are left empty on the disk, so reading them costs less
than it would.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.tokens.samplers import SamplerConfig, make_sampler
from helpers.tokens.store import FILES, SUFFIX, file_checksum, open_store

PART = 10**6


def write(folder: Path, posts: int, per_author: int = 300, tokens: int = 43):
    """A store of so many posts, written in parts."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    files = {name: open(folder / f"{name}.{SUFFIX[kind]}", "wb") for name, kind in FILES.items()}
    end = np.zeros(1, "i8")
    files["post_offsets"].write(end.tobytes())
    for begin in range(0, posts, PART):
        count = min(PART, posts - begin)
        offsets = end[-1:] + rng.poisson(tokens, count).cumsum()
        end = offsets
        files["post_offsets"].write(offsets.astype("i8").tobytes())
        files["hour"].write(rng.integers(0, 24, count, "u1").tobytes())
        files["time"].write(np.arange(begin, begin + count, dtype="i8").tobytes())
        files["topic"].write(rng.integers(0, 2049, count, "u2").tobytes())
        if posts <= 10 * PART:
            files["tokens"].write(rng.bytes(int(end[-1]) * 2 - files["tokens"].tell()))
    files["tokens"].truncate(int(end[-1]) * 2)
    authors = np.append(np.arange(0, posts, per_author), posts).astype("i8")
    files["author_offsets"].write(authors.tobytes())
    for file in files.values():
        file.close()
    counts = {
        "tokens": int(end[-1]),
        "post_offsets": posts + 1,
        "hour": posts,
        "time": posts,
        "topic": posts,
    }
    counts["author_offsets"] = len(authors)
    names = pa.table({"author": [str(number) for number in range(len(authors) - 1)]})
    pq.write_table(names, folder / "authors.parquet")
    sums = {path.name: file_checksum(path) for path in folder.iterdir()}
    meta = {"fingerprint": "benchmark", "counts": counts, "topics": [], "sha256": sums}
    (folder / "store.json").write_text(json.dumps(meta))


def first_batch(store):
    """A sampler, and whatever it finds out about a store before its first batch is there."""
    sampler = make_sampler(SamplerConfig(), store, 0)
    sampler(0)
    return sampler


def timed(function, *arguments):
    began = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - began, result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--large", action="store_true", help="10^8 posts too (10 GB in the temporary folder)"
    )
    parser.add_argument("--posts", type=int, nargs="+", default=[10**4, 10**6])
    parser.add_argument("--steps", type=int, default=20, help="batches drawn of each store")
    parser.add_argument("--folder", help="where the stores are written for the time being")
    arguments = parser.parse_args()
    print(f"{'posts':>12} {'files':>9} {'open':>10} {'first batch':>12} {'batch':>10} {'ratio':>7}")
    base = None
    sizes = arguments.posts
    if arguments.large:
        sizes = [*sizes, 10**8]
    for posts in sizes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = Path(folder) / "store"
            write(path, posts)
            size = sum(file.stat().st_size for file in path.iterdir())
            opened, store = timed(open_store, path)
            first, sampler = timed(first_batch, store)
            batch = statistics.median(
                timed(sampler, step)[0] for step in range(1, arguments.steps + 1)
            )
            if base is None:
                base = batch
            times = f"{opened * 1e3:7.2f} ms {first * 1e3:9.1f} ms {batch * 1e3:7.1f} ms"
            print(f"{posts:12,} {size / 1e6:6,.0f} MB {times} {batch / base:6.2f}x")
            del store


if __name__ == "__main__":
    main()
