"""Both engines of notebook 01 on the same generated posts: equal bytes, seconds, peak memory; and an exact oracle.

    python benchmarks/collection.py 10000 100000 1000000      needs the extra `distributed`
    python benchmarks/collection.py --oracle 20000            near-duplicates against every pair that shares three words in a row

Each measurement is a process of its own, with those that it starts. Of memory it says the most that the largest of
them held, and the most that all held at once, looked at four times a second. A fifth of the posts are copies of an
earlier one with none to three words changed; one author in ten repeats a signature.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.core.artifacts import file_fingerprint
from helpers.corpus.collect import ENGINES, PART
from helpers.corpus.near_duplicates import MIN_WORDS, SHINGLE
from helpers.corpus.posts_table import open_database

SIMILARITY, PARTS, GROUP = 0.8, 8, 10_000  # rows of a row group, as sources write them


def posts(count, seed=0):
    """Rows of PART, 12 to 40 words of a vocabulary of 20,000 each."""
    rng, recent = random.Random(seed), []
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
    for part in range(PARTS):
        rows = list(posts(count // PARTS, part))
        pq.write_table(
            pa.table(list(zip(*rows, strict=True)), schema=PART), folder / f"{part}.parquet", GROUP
        )


def one(engine, folder, strip=True):
    """Merge the parts of a folder by an engine; print a JSON line of what it took and gave."""
    began, target = time.perf_counter(), folder / f"{engine}.table"
    with open_database(folder / "collect" / "merge", "1GB", 2) as connection:
        counts = ENGINES[engine](connection, folder / "collect" / "merge", sorted(folder.glob("*.parquet")), target,
                                 min_chars=10, near_duplicate=SIMILARITY, strip_signatures=strip, names={})  # fmt: skip
    counts.pop("steps", None)
    took = time.perf_counter() - began
    peak = (
        max(
            resource.getrusage(who).ru_maxrss
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        / 1024
    )
    print(
        json.dumps(
            {"seconds": took, "peak": peak, "file": file_fingerprint(target), "counts": counts}
        ),
        flush=True,
    )


def held(process):
    """MB of a process and those that it started; what they share counts once where the system can tell."""
    total = 0
    with suppress(psutil.Error):  # one that ends meanwhile
        for each in [process, *process.children(recursive=True)]:
            memory = each.memory_full_info()
            total += getattr(memory, "pss", memory.rss) / 2**20
    return total


def measured(engine, folder, *options):
    command = [sys.executable, __file__, "--engine", engine, "--folder", str(folder), *options]
    started, most = subprocess.Popen(command, stdout=subprocess.PIPE, text=True), 0
    while started.poll() is None:
        most = max(most, held(psutil.Process(started.pid)))
        time.sleep(0.25)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, command)
    return json.loads(started.stdout.read().splitlines()[-1]) | {"all": most}


def compare(count):
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), count)
        rows = {engine: measured(engine, folder) for engine in ENGINES}
    for engine, row in rows.items():
        print(f"{count:>10,} {engine:7} {row['seconds']:8,.1f} s, largest process {row['peak']:6,.0f} MB, "
              f"all at once {row['all']:6,.0f} MB, {row['file']}", flush=True)  # fmt: skip
    assert (
        rows["duckdb"]["file"] == rows["daft"]["file"]
        and rows["duckdb"]["counts"] == rows["daft"]["counts"]
    )


def shingles(text):
    words = text.split()
    return (
        frozenset(tuple(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1))
        if len(words) >= MIN_WORDS
        else frozenset()
    )


def oracle(count):
    """Every post with an earlier one of at least this Jaccard similarity: all pairs that share a run of words."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), count)
        files = sorted(Path(folder).glob("*.parquet"))
        rows = sorted(
            row
            for file in files
            for row in zip(*pq.read_table(file).drop("id").to_pydict().values())
        )
        first = {}
        for author, when, topic, text in sorted(
            rows, key=lambda row: (row[1], row[0], row[3], row[2])
        ):
            first.setdefault(text.lower(), (author, when, topic, text))
        sets, copies, holders = [], set(), defaultdict(list)
        for number, text in enumerate(first):
            sets.append(shingles(text))
            earlier = {other for run in sets[-1] for other in holders[run]}
            if any(
                len(sets[-1] & sets[other]) >= SIMILARITY * len(sets[-1] | sets[other])
                for other in earlier
            ):
                copies.add(text)
            for run in sets[-1]:
                holders[run].append(number)
        for engine in ENGINES:
            measured(engine, folder, "--keep-signatures")
            left = {
                text.lower()
                for text in pq.read_table(Path(folder) / f"{engine}.table")["text"].to_pylist()
            }
            found = set(first) - left
            print(
                f"{engine}: {len(copies):,} near copies among {count:,} posts, found {len(found):,}, "
                f"recall {len(found & copies) / len(copies):.4f}, precision {len(found & copies) / len(found):.4f}"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("counts", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--oracle", type=int)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--keep-signatures", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        return one(arguments.engine, arguments.folder, not arguments.keep_signatures)
    if arguments.oracle:
        return oracle(arguments.oracle)
    for count in arguments.counts:
        compare(count)


if __name__ == "__main__":
    main()
