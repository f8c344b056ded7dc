"""Corpora: a source collected into one posts table."""

import hashlib
import multiprocessing
import os
import re
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from helpers import sources
from helpers.cleaning import pseudonyms
from helpers.cleaning import text as cleaning
from helpers.core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    is_current,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from helpers.core.config import Config
from helpers.core.paths import Run
from helpers.core.progress import progress_bar
from helpers.corpus import capacity, daft_engine, deduplicate, personal_names
from helpers.corpus.posts_table import SCHEMA, open_database
from helpers.corpus.selection import corpus_statistics

VERSION = 7  # raised when the same settings give another posts table
SAMPLE = 200  # posts that are searched for the names that are left
SLACK = 8  # a post is cut to this many times max_chars before it is cleaned, and to max_chars after
ENGINES = {
    "duckdb": deduplicate.merge_posts,
    "daft": daft_engine.merge_partitions,
}  # one machine; many
PART = SCHEMA.set(SCHEMA.get_field_index("time"), pa.field("time", pa.int64()))  # of a part's file


class CollectConfig(Config):
    """What a posts table is made from, and how its posts are cleaned."""

    source: str  # source, location, columns, options: see helpers.sources.open_source
    location: str | list[str] = []
    columns: dict[str, Any] = {}
    options: dict[str, Any] = {}
    raw: bool = False  # neither source nor text is cleaned
    pseudonymise: bool = True  # invented authors keep their names
    min_chars: int = Field(10, ge=1)  # shorter posts are dropped
    max_chars: int = Field(10_000, ge=1)  # longer posts are cut
    near_duplicate: float = Field(
        0.8, ge=0, le=1
    )  # Jaccard similarity from which a later post is a copy, 0 keeps all
    strip_signatures: bool = True  # cut the closing words that one author alone repeats


def collect(
    run: Run,
    config: CollectConfig,
    memory_limit: str = "2GB",
    workers: int = 2,
    engine: str = "duckdb",
) -> dict:
    """Read a source into ``posts.parquet`` of the run; return the data card, also written as ``data_card.json``.

    Parts already read with the same settings are not read again. In the card, ``rows_read`` is ``posts`` and all
    ``dropped_*``; ``note_*`` are facts that the source counted beside its drops, and no rows; ``names_left`` is the
    share of SAMPLE posts that :func:`helpers.corpus.personal_names.share_with_names` still finds a known name in. memory_limit: of DuckDB,
    which works on disk beyond it. workers: processes that read parts, and threads of DuckDB. engine: of ENGINES, to the
    same bytes; each worker of ``daft`` has the memory. What the steps took is kept for :mod:`helpers.corpus.capacity`.
    Raises ValueError where nothing is left, with the counts, or where the source is at fault.
    """
    options = config.options | ({"columns": config.columns} if config.columns else {})
    parts = sources.open_source(config.source, config.location, raw=config.raw, **options)
    key = (
        pseudonyms.pseudonym_key()
        if config.pseudonymise and config.source not in sources.INVENTED
        else None
    )
    reading = config.model_dump(exclude={"near_duplicate", "strip_signatures"})
    origin = fingerprint_of(VERSION, reading, hashlib.sha256(key or b"").hexdigest())
    fingerprint = fingerprint_of(
        origin, config.fingerprint, [(part.name, part.stamp) for part in parts]
    )
    posts, folder = run.folder / "posts.parquet", run.folder / "collect"
    if is_current(run.data_card, fingerprint) and verify_checksum(posts):
        return read_json(run.data_card)
    files = [folder / f"{number:04d}-{re.sub(r'[^A-Za-z0-9.-]+', '_', part.name)[:60]}.parquet"
             for number, part in enumerate(parts)]  # fmt: skip
    each = daft_engine.map_parts if engine == "daft" else _each
    jobs = list(zip(parts, files, strict=True))
    read = each(partial(_read_part, config=config, origin=origin, key=key), jobs, workers)
    counts, heard = (
        sum((Counter(record[kind]) for record in read), Counter()) for kind in ("counts", "heard")
    )
    people = {name for record in read for name in record["people"]}
    rows_read, truncated = counts.pop("rows_read", 0), counts.pop("truncated", 0)
    notes = {name: counts.pop(name) for name in sorted(counts) if name.startswith("note_")}
    listed = personal_names.words_of_names(people, heard)
    used = each(
        partial(personal_names.count_letter_case, sorted(set().union(*listed.values()))),
        [(file,) for file in files],
        workers,
    )
    hidden, scratch = personal_names.names_to_mask(listed, heard, used), folder / "merge"
    with open_database(scratch, memory_limit, workers) as connection:
        began = time.perf_counter()
        merged = ENGINES[engine](
            connection, scratch, files, posts, min_chars=config.min_chars, names=hidden,
            near_duplicate=config.near_duplicate, strip_signatures=config.strip_signatures)  # fmt: skip
        capacity.record_steps(
            folder, read, used, files, time.perf_counter() - began, merged.pop("steps", None)
        )
    cut = {
        name: merged.pop(name) for name in ("names_masked", "signatures_cut", "signature_words_cut")
    }
    drops = {
        f"dropped_{reason}": number for reason, number in sorted((counts + Counter(merged)).items())
    }
    left = rows_read - sum(drops.values())
    if not left:
        raise ValueError(
            f"nothing is left of {rows_read} posts of source {config.source!r}: {drops or 'none there'}"
        )
    with open_database(
        Path(f"{posts}.work")
    ) as connection:  # by a hash: the same posts on every machine
        sample = (
            connection.read_parquet(str(posts))
            .order("md5(text)")
            .limit(SAMPLE)
            .project("text")
            .fetchall()
        )
    facts = corpus_statistics(posts) | {
        "names_left": personal_names.share_with_names(
            (text for (text,) in sample), personal_names.words_of(people, heard)
        )
    }
    if facts["posts"] != left:
        raise RuntimeError(
            f"{facts['posts']} posts were written, but {rows_read} were read and {drops} dropped"
        )
    settings = config.model_dump() | {
        "location": _public(config.location),
        "pseudonymise": key is not None,
    }
    write_json(run.data_card, settings | {
        "rows_read": rows_read, **drops, "truncated": truncated, **notes, **cut, **facts, "fingerprint": fingerprint,
        "sha256": file_fingerprint(posts)})  # fmt: skip
    return read_json(run.data_card)


def _each(read, jobs, workers):
    """The parts' records; parts in ``workers`` processes where the system can fork (a part holds closures)."""
    bar = partial(progress_bar, total=len(jobs), desc="reading", unit="part")
    if workers < 2 or len(jobs) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return list(bar(read(*job) for job in jobs))
    fork = multiprocessing.get_context(
        "fork"
    )  # hands the initializer's arguments over without pickling them
    with ProcessPoolExecutor(workers, fork, _inherit, (os.getpid(), read, jobs)) as pool:
        return list(bar(pool.map(_job, range(len(jobs)))))


def _inherit(parent, read, jobs):
    global _jobs
    _jobs = [partial(read, *job) for job in jobs]
    daft_engine.end_with(parent)


def _job(number):
    return _jobs[number]()


def _read_part(part, file, *, config, origin, key):
    """Write a part's posts beside a JSON file of its counts and of names; return it. Both current: nothing to do.

    people: the names that authors, headers and mentions tell. heard: how often a post greets or signs with a name.
    """
    fingerprint = fingerprint_of(origin, part.name, part.stamp)
    record = file.with_suffix(".json")
    if is_current(record, fingerprint) and verify_checksum(file):
        return read_json(record)
    lost, counts, heard, people = Counter(), Counter(), Counter(), set()
    name, is_bot = pseudonyms.pseudonymiser(key), lru_cache(maxsize=None)(cleaning.is_bot)

    def keep(author, time, topic, post, number):
        if is_bot(author):
            return counts.update(bot=1)
        post = post[: SLACK * config.max_chars]
        if config.raw:
            post = cleaning.normalise_unicode(post)
        else:
            post, greeted = personal_names.mask_salutations(post)
            heard.update(greeted)
            post = cleaning.clean_post(post, author)
        counts["truncated"] += len(post) > config.max_chars
        post = post[: config.max_chars].rstrip()
        if len(post) < config.min_chars:
            return counts.update(short=1)
        return name(author), time, topic, post, number

    began = time.perf_counter()
    with (
        atomic_write(file) as temporary,
        pq.ParquetWriter(temporary, PART, compression="zstd") as writer,
    ):
        for frame in part.read(lost):
            counts["rows_read"] += len(frame)
            columns = [frame[column].tolist() for column in sources.COLUMNS]
            # an id of a public archive would lead back from a pseudonym to the name
            kept = "id" in frame and key is None
            numbers = frame["id"].to_numpy(object, na_value=None) if kept else [None] * len(frame)
            if not config.raw:
                people.update(
                    frame["author"].unique(),
                    *frame.get("names", pd.Series(dtype=str)).str.split("\n"),
                )
            rows = [row for row in map(keep, *columns, numbers) if row]
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=PART))
    write_checksum(file)
    counts.update(
        rows_read=sum(number for reason, number in lost.items() if not reason.startswith("note_"))
    )
    counts.update(lost)
    write_json(record, {"fingerprint": fingerprint, "counts": dict(counts), "people": sorted(people - {""}),
                        "heard": dict(heard), "seconds": round(time.perf_counter() - began, 3)})  # fmt: skip
    return read_json(record)


def _public(location):
    """A location as it may be published: of an absolute path, the last part."""
    if isinstance(location, list):
        return ", ".join(map(_public, location))
    place = Path(location).expanduser()
    return place.name if place.is_absolute() else location
