"""MB/s of Reddit dumps through helpers.sources.pushshift and through a loop over json.loads.

    python benchmarks/pushshift.py                   0.5 GB of generated comments, plain and zstd
    python benchmarks/pushshift.py --memory          peak memory as the input grows, 0.3 GB to 3 GB
    python benchmarks/pushshift.py --file RC_2015-07.zst

Generated comments have the fields of 2015 or, with --era 2019, of 2019. Every measurement is a
process of its own, of one thread, on the same file; the ways take turns, and the ratio is that of
the medians, by the clock and by the processor time that a busy machine disturbs less. The loop
reads the five fields and keeps nothing. The source yields frames: it judges, counts what it drops,
and unescapes as well. It takes less than 0.1 s to begin, whatever the size.
"""

import argparse
import io
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache, partial
from pathlib import Path

from backports import zstd

from helpers.core.files import ZSTD_OPTIONS
from helpers.sources import json_lines, pushshift

DIFFERENT_COMMENTS = 50_000
WORDS = (
    "the of and to in is that it for you was with on as have but be they I this not are or from "
    "at one had"
).split()
LATER = {
    "all_awardings": [],
    "author_created_utc": 1_400_000_000,
    "author_flair_background_color": "",
    "author_premium": False,
    "author_flair_richtext": [],
    "author_flair_type": "text",
    "author_fullname": "t2_abcde",
    "can_gild": True,
    "can_mod_post": False,
    "collapsed": False,
    "collapsed_reason": None,
    "gildings": {},
    "is_submitter": False,
    "locked": False,
    "no_follow": True,
    "permalink": "/r/pics/comments/abc/a_title/def/",
    "send_replies": True,
    "subreddit_name_prefixed": "r/pics",
    "subreddit_type": "public",
    "total_awards_received": 0,
    "quarantined": False,
}


def comment(number: int, rng: random.Random, era: str) -> str:
    """A line of 30 words on average, at times quoted, escaped or code.

    One author in 20 is deleted, one in 60 a bot.
    """
    words = rng.choices(WORDS, k=max(1, int(rng.lognormvariate(2.9, 1))))
    chance = rng.random()
    body = " ".join(words)
    if chance < 0.1:
        body = f"&gt; {' '.join(words[:12])}\n\n{body}"
    elif chance < 0.25:
        body = f'{body}.\n\n{body[:80]} &amp; so "on" \u00e9'
    elif chance < 0.26:
        body += "\n\n    x = 1\n\nso"
    author = rng.choice(
        ["[deleted]"] * 3 + ["AutoModerator"] + [f"User_{rng.randrange(3_000_000)}"] * 56
    )
    record = {
        "controversiality": 0,
        "body": body,
        "subreddit_id": "t5_2qh1i",
        "link_id": f"t3_{number:x}",
        "stickied": False,
        "subreddit": rng.choice(["AskReddit", "pics", "funny", "nba"]),
        "score": rng.randrange(-5, 400),
        "ups": 2,
        "author_flair_css_class": None,
        "created_utc": 1_435_708_800 + number // 30,
        "author_flair_text": None,
        "author": author,
        "id": f"c{number:x}",
        "edited": False,
        "parent_id": f"t1_{number:x}",
        "gilded": 0,
        "distinguished": None,
        "retrieved_on": 1_437_000_000,
        "archived": False,
        "downs": 0,
        "score_hidden": False,
    }
    return json.dumps(record | (LATER if era == "2019" else {}), separators=(",", ":")) + "\n"


@cache
def comments(era: str) -> list[bytes]:
    rng = random.Random(0)
    return [comment(number, rng, era).encode() for number in range(DIFFERENT_COMMENTS)]


def write(path: Path, size: int, era: str):
    """About ``size`` bytes of comments, many of them different, compressed if the name says so."""
    rng = random.Random(0)
    lines = comments(era).copy()
    with zstd.open(path, "wb") if path.suffix == ".zst" else open(path, "wb") as file:
        while size > 0:
            rng.shuffle(lines)  # or zstd would only find one repetition
            block = b"".join(lines)
            file.write(
                block if len(block) <= size else block[: block.rfind(b"\n", 0, size + 1000) + 1]
            )
            size -= len(block)


def loop(path: Path):
    if path.suffix == ".zst":
        binary = zstd.open(path, options=ZSTD_OPTIONS)
    else:
        binary = open(path, "rb")
    with io.TextIOWrapper(binary, "utf-8") as file:
        for line in file:
            record = json.loads(line)
            for name in ("author", "created_utc", "subreddit", "body", "id"):
                record[name]


def source(path: Path, raw: bool):
    for _ in pushshift.read_comments(path, Counter(), raw):
        pass


WAYS = {
    "json.loads": loop,
    "source, raw": partial(source, raw=True),
    "source": partial(source, raw=False),
}


def measured(way: str, path: Path):
    """(seconds, seconds of the processor, MB at most) of one way in a process of its own."""
    command = [sys.executable, __file__, "--one", way, "--file", str(path)]
    threads = {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | threads
    )
    return json.loads(done.stdout)


def measure(way, path):
    """Print as JSON what :func:`measured` returns."""
    began = time.perf_counter()
    began_processor = time.process_time()
    WAYS[way](path)
    seconds = time.perf_counter() - began
    processor = time.process_time() - began_processor
    print(json.dumps([seconds, processor, peak()]))


def peak():
    """MB at most so far.

    Linux begins ru_maxrss with what the parent held, and VmHWM with the program.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(path, times):
    size = sum(map(len, json_lines.byte_blocks(path, Counter()))) / 1e6
    rows = {way: [] for way in WAYS}
    for _ in range(times):
        for way in WAYS:
            rows[way].append(measured(way, path))
    print(f"{path.name}, {size:,.0f} MB uncompressed, medians of {times}")
    print(
        f"{'':12} {'MB/s':>7} {'ratio':>7} {'MB/s of processor time':>25} {'ratio':>7} {'peak':>9}"
    )
    medians = {way: [statistics.median(column) for column in zip(*rows[way])] for way in WAYS}
    base_seconds, base_processor, _ = medians["json.loads"]
    for way, (seconds, processor, _) in medians.items():
        by_clock = f"{size / seconds:7,.0f} {base_seconds / seconds:6.2f}x"
        by_processor = f"{size / processor:25,.0f} {base_processor / processor:6.2f}x"
        highest = max(row[2] for row in rows[way])
        print(f"{way:12} {by_clock} {by_processor} {highest:6,.0f} MB")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, help="a dump of your own")
    parser.add_argument("--era", choices=("2015", "2019"), default="2015")
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return measure(arguments.one, arguments.file)
    if arguments.file:
        return compare(arguments.file, arguments.times)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".ndjson", ".zst"):
            path = Path(folder) / f"RC{suffix}"
            if not arguments.memory:
                write(path, int(arguments.gigabytes * 1e9), arguments.era)
                compare(path, arguments.times)
            else:
                for gigabytes in (0.3, 3):
                    write(path, int(gigabytes * 1e9), arguments.era)
                    print(
                        f"{path.name} {gigabytes:4} GB: peak {measured('source', path)[2]:,.0f} MB"
                    )
            path.unlink()


if __name__ == "__main__":
    main()
