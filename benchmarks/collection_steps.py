"""Where the seconds of a collection go: reading, cleaning, names, copies, writing.

    python benchmarks/collection_steps.py table data/lean.parquet data/rust.parquet
    python benchmarks/collection_steps.py zulip data/zulip_json
    python benchmarks/collection_steps.py pushshift RC_2015-07.zst

Each second of the processor counts for the innermost step that is at work. The collection runs in
one process with one thread. It is written to a temporary folder, with a pseudonym key of its own.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from helpers.core import paths
from helpers.corpus import collect, deduplicate, near_duplicates, signatures
from helpers.sources import pipermail, zulip

# name of a step: the functions that do it, each with the module that calls it
STEPS = {
    "reading": [],
    "cleaning": [
        (collect, "_clean_text"),
        (pipermail, "own_paragraphs"),
        (zulip, "html_to_text"),
    ],
    "names": [
        (collect, "_people"),
        (collect, "author_name"),
        (pipermail, "mask_mentions"),
        (collect, "_names_to_mask"),
        (deduplicate, "mask_names"),
    ],
    "exact copies": [
        (deduplicate, "_make_unique_posts"),
        (deduplicate, "_make_distinct_posts"),
    ],
    "signatures": [(signatures, "find_signatures"), (deduplicate, "cut_signatures")],
    "near copies": [(near_duplicates, "near_pairs")],
    "writing": [
        (collect.pq.ParquetWriter, "write_table"),
        (collect, "write_checksum"),
        (deduplicate, "_write_table"),
    ],
    "everything else": [],
}
seconds = Counter()  # by step
at_work = ["everything else"]  # steps, each within the one before
last = [0.0]  # seconds of the processor when the step changed


def account():
    """Count the seconds since the step changed."""
    now = time.process_time()
    seconds[at_work[-1]] += now - last[0]
    last[0] = now


def timed(step, function):
    """Return a function whose seconds count for a step."""

    def call(*values, **named):
        account()
        at_work.append(step)
        try:
            return function(*values, **named)
        finally:
            account()
            at_work.pop()

    return call


def timed_frames(read):
    """Return the reader of a part, whose seconds count for reading."""

    def frames(drops):
        iterator = read(drops)
        take = timed("reading", lambda: next(iterator, None))
        frame = take()
        while frame is not None:
            yield frame
            frame = take()

    return frames


def open_parts(config, opened=collect._open_parts):
    """Open the parts of a source, whose readers are timed."""
    parts = timed("reading", opened)(config)
    return [replace(part, read=timed_frames(part.read)) for part in parts]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", help="kind of the source")
    parser.add_argument("location", nargs="+", help="its files or folders")
    arguments = parser.parse_args()
    location = [str(Path(place).resolve()) for place in arguments.location]
    columns = {}
    if arguments.source == "table":
        columns = {"topic": [None, "topic"]}
    config = collect.CollectConfig(source=arguments.source, location=location, columns=columns)

    collect._open_parts = open_parts
    for step, functions in STEPS.items():
        for module, name in functions:
            setattr(module, name, timed(step, getattr(module, name)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AUTHORBOOK_OUTPUTS"] = folder
        os.environ["AUTHORBOOK_PSEUDONYM_KEY"] = "00" * 32
        last[0] = time.process_time()
        card = collect.collect(paths.Run("steps"), config, workers=1)
        account()
    total = sum(seconds.values())
    print(f"{card['rows_read']:,} rows read, {card['posts']:,} posts kept, {total:.1f} s")
    for step in STEPS:
        print(f"{step:16} {seconds[step]:8.2f} s {seconds[step] / total:7.1%}")


if __name__ == "__main__":
    main()
