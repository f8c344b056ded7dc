"""Collection of a source into one posts table with its data card."""

import hashlib
import multiprocessing
import operator
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from joblib import wrap_non_picklable_objects
from pydantic import Field

from helpers import sources
from helpers.cleaning import pseudonyms, salutations
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
from helpers.corpus import daft_engine, deduplicate, personal_names
from helpers.corpus.capacity import step_row
from helpers.corpus.posts_table import SCHEMA, open_database
from helpers.corpus.selection import corpus_statistics

VERSION = 8  # raised when the same settings give another posts table
SAMPLE_POSTS = 200  # posts of the finished table that are searched for names left in them
# a post is cut to SLACK * max_chars before it is cleaned, and to max_chars afterwards
SLACK = 8
# "duckdb" works on one machine, "daft" on one or many
ENGINES = {"duckdb": deduplicate.merge_posts, "daft": daft_engine.merge_partitions}
# schema of the file of a part: times are still integers
PART = SCHEMA.set(SCHEMA.get_field_index("time"), pa.field("time", pa.int64()))


class CollectConfig(Config):
    """Settings of a collection: what is read, and how posts are cleaned.

    Attributes
    ----------
    source, location, options : kind, location and options of :func:`helpers.sources.open_source`
    columns : the option ``columns`` of the source; left out where empty
    raw : True: texts are only normalised (Unicode), not cleaned, and names are not collected
    pseudonymise : True: authors become pseudonyms, except those of the sources in INVENTED
    min_chars : posts with fewer characters after cleaning are dropped
    max_chars : posts with more characters are cut
    near_duplicate : Jaccard similarity from which the later of two posts is dropped; 0 drops none
    strip_signatures : True: the last words that only one author repeats are cut
    """

    source: str
    location: str | list[str] = []
    columns: dict[str, Any] = {}
    options: dict[str, Any] = {}
    raw: bool = False
    pseudonymise: bool = True
    min_chars: int = Field(10, ge=1)
    max_chars: int = Field(10_000, ge=1)
    near_duplicate: float = Field(0.8, ge=0, le=1)
    strip_signatures: bool = True


def collect(
    run: Run,
    config: CollectConfig,
    memory_limit: str = "2GB",
    workers: int = 2,
    engine: str = "duckdb",
) -> dict:
    """Write the posts of a source to ``posts.parquet`` of a run; return the data card.

    A finished table with the same settings is kept, and so is the file of every part that was
    already read with them.

    Parameters
    ----------
    run, config
        Run whose folder the posts are written to; settings of the collection.
    memory_limit
        Memory of DuckDB, which uses the disk beyond it; with the engine "daft", of each worker.
    workers : int
        Number of processes that read parts, and of DuckDB's threads or Daft's workers. On a Ray
        cluster Daft uses all processors instead.
    engine
        One of ENGINES; all write the same bytes.

    Returns
    -------
    dict, also written as ``data_card.json``: the settings, counts of rows, statistics of the table.
    ``rows_read`` is the sum of ``posts`` and all ``dropped_<reason>``. ``note_<reason>`` are counts
    of kept records. ``names_left`` is the share of SAMPLE_POSTS posts that hold a word of a known
    name, see :func:`helpers.corpus.personal_names.share_with_names` for what that counts.

    Raises
    ------
    ValueError
        Where no post is left (the message holds the counts), or the source raises it.
    RuntimeError
        Where the written table has another number of posts than were read and not dropped.
    """
    parts = _open_parts(config)
    key = _pseudonym_key(config)
    origin, fingerprint = _fingerprints(config, key, parts)
    posts = run.folder / "posts.parquet"
    if is_current(run.data_card, fingerprint) and verify_checksum(posts):
        return read_json(run.data_card)

    run_jobs = daft_engine.map_parts if engine == "daft" else _run_jobs
    folder = run.folder / "collect"
    files = [folder / f"{number:04d}.parquet" for number in range(len(parts))]
    read_part = partial(_read_part, config=config, origin=origin, key=key)
    records = run_jobs(read_part, list(zip(parts, files, strict=True)), workers)
    counts, people, salutation_names = _add_up(records)

    names = personal_names.words_of_names(people, salutation_names)
    letter_case = _count_letter_case(names, files, run_jobs, workers)
    hidden = personal_names.names_to_mask(names, salutation_names, letter_case)
    merged = _merge(engine, folder, files, posts, config, hidden, memory_limit, workers)
    steps = [step_row("read", records, files), step_row("names", letter_case, [])]
    write_json(folder / "steps.json", {"steps": steps + merged.pop("steps")})

    card = config.model_dump() | _account(counts, merged)
    card |= {"location": _public(config.location), "pseudonymise": key is not None}
    known_words = personal_names.identifying_words(people, salutation_names)
    card |= _facts(posts, card, known_words)
    card |= {"fingerprint": fingerprint, "sha256": file_fingerprint(posts)}
    write_json(run.data_card, card)
    return read_json(run.data_card)


def _pseudonym_key(config):
    """Return the secret key of pseudonyms, None where authors keep their names."""
    if config.pseudonymise and config.source not in sources.INVENTED:
        return pseudonyms.pseudonym_key()
    return None


def _count_letter_case(names, files, run_jobs, workers):
    """Return what :func:`personal_names.count_letter_case` returns for names, a record per part."""
    name_words = sorted(set().union(*names.values()))
    count_letter_case = partial(personal_names.count_letter_case, name_words)
    return run_jobs(count_letter_case, [(file,) for file in files], workers)


def _open_parts(config):
    """Return the parts of the source that a config names."""
    options = dict(config.options)
    if config.columns:
        options["columns"] = config.columns
    return sources.open_source(config.source, config.location, raw=config.raw, **options)


def _fingerprints(config, key, parts):
    """Return the fingerprint of how parts are read, and that of the whole posts table."""
    reading = config.model_dump(exclude={"near_duplicate", "strip_signatures"})
    origin = fingerprint_of(VERSION, reading, hashlib.sha256(key or b"").hexdigest())
    stamps = [(part.name, part.stamp) for part in parts]
    return origin, fingerprint_of(origin, config.fingerprint, stamps)


def _run_jobs(function: Callable, jobs: list[tuple], workers: int) -> list:
    """Return ``function(*job)`` of every job, by several processes where the system can fork."""
    bar = partial(progress_bar, total=len(jobs), desc="reading", unit="part")
    if workers < 2 or len(jobs) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return list(bar(function(*job) for job in jobs))
    fork = multiprocessing.get_context("fork")
    # a part holds closures, which pickle cannot handle
    tasks = [wrap_non_picklable_objects(partial(function, *job)) for job in jobs]
    with ProcessPoolExecutor(workers, fork, daft_engine.exit_with_parent, (os.getpid(),)) as pool:
        return list(bar(pool.map(operator.call, tasks)))


def _add_up(records):
    """Return the counts, the names of people and the counts of salutations, of all parts."""
    counts = Counter()
    salutation_names = Counter()
    people = set()
    for record in records:
        counts += Counter(record["counts"])
        salutation_names.update(record["heard"])
        people.update(record["people"])
    return counts, people, salutation_names


def _merge(engine, folder, files, posts, config, names, memory_limit, workers):
    """Write the posts table from the files of the parts; return counts, and rows of ``steps``."""
    began = time.perf_counter()
    with open_database(folder / "merge", memory_limit, workers) as connection:
        merged = ENGINES[engine](
            connection,
            folder / "merge",
            files,
            posts,
            min_chars=config.min_chars,
            near_duplicate=config.near_duplicate,
            strip_signatures=config.strip_signatures,
            names=names,
        )
    record = {"seconds": time.perf_counter() - began}
    return {"steps": [step_row("merge", [record], files)]} | merged


def _account(read_counts, merge_counts):
    """Return the counts of the data card, in its order: rows read, drops, notes, changes."""
    counts = read_counts + Counter(merge_counts)
    rows_read = counts.pop("rows_read", 0)
    truncated = counts.pop("truncated", 0)
    notes = {name: counts[name] for name in sorted(counts) if name.startswith("note_")}
    changes = {}
    for name in ("names_masked", "signatures_cut", "signature_words_cut"):
        changes[name] = merge_counts[name]
    for name in (*notes, *changes):
        del counts[name]
    drops = {f"dropped_{reason}": number for reason, number in sorted(counts.items())}
    return {"rows_read": rows_read, **drops, "truncated": truncated, **notes, **changes}


def _facts(posts, card, known_words):
    """Return statistics of the posts table; raise where its size is not what the card says."""
    drops = {name: count for name, count in card.items() if name.startswith("dropped_")}
    rows_read = card["rows_read"]
    posts_left = rows_read - sum(drops.values())
    if not posts_left:
        raise ValueError(
            f"nothing is left of {rows_read} posts of source {card['source']!r}: "
            f"{drops or 'none there'}"
        )
    facts = corpus_statistics(posts)
    if facts["posts"] != posts_left:
        raise RuntimeError(
            f"{facts['posts']} posts were written, but {rows_read} were read and {drops} dropped"
        )
    with open_database(Path(f"{posts}.work")) as connection:
        # ordered by a hash: a sample at random that is the same on every machine
        sample = connection.read_parquet(str(posts)).order("md5(text)").limit(SAMPLE_POSTS)
        texts = [text for (text,) in sample.project("text").fetchall()]
    facts["names_left"] = personal_names.share_with_names(texts, known_words)
    return facts


def _read_part(part, file, *, config, origin, key):
    """Write a part's posts and, beside them, a JSON record of counts and names; return the record.

    Where both are current, neither is written again. In the record ``people`` are the names of
    authors and those in headers and mentions; ``heard`` says how often posts greet or sign with a
    name.
    """
    fingerprint = fingerprint_of(origin, part.name, part.stamp)
    record = file.with_suffix(".json")
    if is_current(record, fingerprint) and verify_checksum(file):
        return read_json(record)
    began = time.perf_counter()
    source_counts = Counter()
    counts = Counter()
    salutation_names = Counter()
    people = set()
    with (
        atomic_write(file) as temporary,
        pq.ParquetWriter(temporary, PART, compression="zstd") as writer,
    ):
        for frame in part.read(source_counts):
            counts["rows_read"] += len(frame)
            if not config.raw:
                people.update(frame["author"])
                if "names" in frame:
                    people.update("\n".join(frame["names"]).split("\n"))
            rows = _clean_rows(frame, config, key, counts, salutation_names)
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=PART))
    write_checksum(file)
    for reason, number in source_counts.items():
        counts[reason] += number
        if not reason.startswith("note_"):
            counts["rows_read"] += number
    content = {
        "fingerprint": fingerprint,
        "counts": dict(counts),
        "people": sorted(people - {""}),
        "heard": dict(salutation_names),
        "seconds": round(time.perf_counter() - began, 3),
    }
    write_json(record, content)
    return read_json(record)


def _clean_rows(frame, config, key, counts, salutation_names):
    """Return the cleaned posts of a frame as rows of PART; count dropped and truncated ones.

    ``counts`` and ``salutation_names`` are increased in place.
    """
    pseudonym = pseudonyms.pseudonymiser(key)
    # pseudonymised posts have no ids: an id of a public archive would lead back to the name
    if key is None and "id" in frame:
        ids = frame["id"].to_numpy(object, na_value=None)
    else:
        ids = [None] * len(frame)
    columns = [frame[column].tolist() for column in sources.COLUMNS]
    rows = []
    for author, second, topic, text, post_id in zip(*columns, ids, strict=True):
        if cleaning.is_bot(author):
            counts["bot"] += 1
            continue
        text = text[: SLACK * config.max_chars]
        if config.raw:
            text = cleaning.normalise_unicode(text)
        else:
            text, names = salutations.mask_salutations(text)
            salutation_names.update(names)
            text = cleaning.clean_post(text, author)
        if len(text) > config.max_chars:
            counts["truncated"] += 1
        text = text[: config.max_chars].rstrip()
        if len(text) < config.min_chars:
            counts["short"] += 1
            continue
        rows.append((pseudonym(author), second, topic, text, post_id))
    return rows


def _public(location):
    """Return a location as it may be published: of an absolute path only the last part."""
    if isinstance(location, list):
        return ", ".join(_public(place) for place in location)
    path = Path(location).expanduser()
    if path.is_absolute():
        return path.name
    return location
