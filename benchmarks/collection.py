"""The merge of notebook 01 in tables and in files of partitions, on generated posts.

Equal bytes, seconds, peak memory.

    python benchmarks/collection.py 10000 100000 1000000      needs the extra `distributed`
    python benchmarks/collection.py --other loop 1000000      the files of `daft` made in a plain
                                                              loop

Each measurement is a process of its own, with those that it starts. Of memory it says the most that
the largest of them held, and the most that all held at once, looked at four times a second. A fifth
of the posts are copies of an earlier one with none to three words changed; one author in ten
repeats a signature.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.core.artifacts import file_fingerprint
from helpers.corpus.collection import PART
from helpers.corpus.merge import MergeSettings, merge
from helpers.corpus.workers import run_by_daft

SIMILARITY = 0.8
PARTS = 8


def run_in_turn(function, jobs):
    """Return the results of jobs that run one after the other in this process."""
    return [function(*job) for job in jobs]


ENGINES = {"duckdb": None, "daft": partial(run_by_daft, workers=2), "loop": run_in_turn}


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


def measure(engine, folder):
    """Merge the parts of a folder by an engine; print a JSON line of what it took and gave."""
    began = time.perf_counter()
    target = folder / f"{engine}.table"
    settings = MergeSettings(
        min_chars=10,
        near_duplicate=SIMILARITY,
        keep_copies=False,
        strip_signatures=True,
        names={},
    )
    parts = sorted(folder.glob("*.parquet"))
    merge(parts, target, settings, folder / "scratch", "1GB", 2, ENGINES[engine])
    seconds = time.perf_counter() - began
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(process).ru_maxrss for process in processes) / 1024
    result = {"seconds": seconds, "peak": peak, "file": file_fingerprint(target)}
    print(json.dumps(result), flush=True)


def held(process):
    """MB of a process and those that it started.

    What they share counts once where the system can tell.
    """
    total = 0
    with suppress(psutil.Error):  # a process that ends meanwhile
        for running in [process, *process.children(recursive=True)]:
            memory = running.memory_full_info()
            total += getattr(memory, "pss", memory.rss) / 2**20
    return total


def measured(engine, folder):
    """What :func:`measure` prints in a process of its own; ``all`` is what all processes held."""
    command = [sys.executable, __file__, "--engine", engine, "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, held(psutil.Process(process.pid)))
        time.sleep(0.25)
    return json.loads(process.stdout.read().splitlines()[-1]) | {"all": peak}


def compare(count, other):
    """Print what DuckDB and another engine took; check that they made the same table."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), count)
        rows = {engine: measured(engine, folder) for engine in ("duckdb", other)}
    for engine, row in rows.items():
        memory = f"largest process {row['peak']:6,.0f} MB, all at once {row['all']:6,.0f} MB"
        seconds = f"{row['seconds']:8,.1f} s"
        print(f"{count:>10,} {engine:13} {seconds}, {memory}, {row['file']}", flush=True)
        assert row["file"] == rows["duckdb"]["file"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("counts", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--other", choices=ENGINES, default="daft")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        return measure(arguments.engine, arguments.folder)
    for count in arguments.counts:
        compare(count, arguments.other)


if __name__ == "__main__":
    main()
