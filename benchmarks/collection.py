"""The merge of notebook 01 on generated posts: seconds and peak memory.

    python benchmarks/collection.py 10000 100000 1000000

Each measurement is a process of its own. A fifth of the posts are copies of an earlier one with
none to three words changed; one author in ten repeats a signature.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from helpers.core.artifacts import file_fingerprint
from helpers.corpus.collection import PART
from helpers.corpus.merge import MergeSettings, merge

SIMILARITY = 0.8
PARTS = 8


def posts(count, seed=0):
    """Rows of PART, 12 to 40 words of a vocabulary of 20,000 each."""
    rng = random.Random(seed)
    recent = []
    for number in range(count):
        author = rng.randrange(max(count // 50, 2))
        words = [f"w{int(20_000 * rng.random() ** 2)}" for _ in range(rng.randint(12, 40))]
        if recent and rng.random() < 0.2:
            words = list(rng.choice(recent))
            for _ in range(rng.randrange(4)):
                words[rng.randrange(len(words))] = f"w{rng.randrange(20_000)}"
        recent = [*recent[-2000:], words]
        if author % 10 == 0 and rng.random() < 0.5:
            words = [*words, "regards", f"author{author}"]
        yield f"u{author:07d}", 1_600_000_000 + number // 3, f"t{author % 7}", " ".join(words), None


def write(folder, count):
    """Parts of generated posts in a folder, as a source writes them."""
    for part in range(PARTS):
        rows = list(posts(count // PARTS, part))
        table = pa.table(list(zip(*rows, strict=True)), schema=PART)
        pq.write_table(table, folder / f"{part}.parquet", 10_000)


def measure(folder):
    """Merge the parts of a folder, and print what it took and gave."""
    began = time.perf_counter()
    settings = MergeSettings(
        min_chars=10,
        near_duplicate=SIMILARITY,
        keep_copies=False,
        strip_signatures=True,
        names={},
    )
    target = folder / "posts.table"
    merge(sorted(folder.glob("*.parquet")), target, settings, folder / "scratch", "1GB", 2)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:8,.1f} s, {peak:6,.0f} MB, {file_fingerprint(target)}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("counts", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder:
        return measure(arguments.folder)
    for count in arguments.counts:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), count)
            print(f"{count:>10,} ", end="", flush=True)
            subprocess.run([sys.executable, __file__, "--folder", folder], check=True)


if __name__ == "__main__":
    main()
