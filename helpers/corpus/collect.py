"""Collection of a source into one posts table with its data card.

While it works, and to go on later, a collection keeps names of people, and posts in which those
names are not masked yet. All this lies in :func:`parts_folder`, nothing of it in the run's folder.
"""

import hashlib
import multiprocessing
import operator
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from joblib import wrap_non_picklable_objects
from pydantic import Field, model_validator

from .. import sources
from ..cleaning import salutations
from ..cleaning import text as cleaning
from ..cleaning.authors import (
    author_name,
    is_placeholder,
    joined_names,
    names_folder,
    pseudonym_key,
    pseudonymiser,
    same_author,
)
from ..cleaning.markup import plain_text
from ..core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    folder_lock,
    is_current,
    note,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from ..core.config import Config
from ..core.paths import Run
from ..core.progress import progress_bar
from . import daft_engine, deduplicate, personal_names
from .daft_engine import step_row
from .loss_lines import loss_lines, nothing_left, placeholder_names
from .posts_table import SCHEMA, open_database
from .selection import corpus_statistics

VERSION = 10  # raised when the same settings give another posts table
SAMPLE_POSTS = 200  # posts of the finished table that are searched for names left in them
# a post is cut to SLACK * max_chars before it is cleaned, and to max_chars afterwards
SLACK = 8
# "duckdb" works on one machine, "daft" on one or many
ENGINES = {"duckdb": deduplicate.merge_posts, "daft": daft_engine.merge_partitions}
# schema of the file of a part: times are still integers
PART = SCHEMA.set(SCHEMA.get_field_index("time"), pa.field("time", pa.int64()))
# a control character but tab and line ends: a topic with one is damaged
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


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
    keep_copies : True: posts with equal texts are kept, as in the corpora of the papers; it needs
        a near_duplicate of 0 and the engine "duckdb". A model can learn authors by heart from what
        they repeat, so copies are dropped by default
    strip_signatures : True: the last words that only one author repeats are cut
    """

    source: str
    location: str | list[str] = []
    columns: dict[str, Any] = {}
    options: dict[str, Any] = {}
    raw: bool = False
    pseudonymise: bool = True
    min_chars: int = Field(10, ge=1, le=10**7)
    max_chars: int = Field(10_000, ge=1, le=10**7)
    near_duplicate: float = Field(0.8, ge=0, le=1)
    keep_copies: bool = False
    strip_signatures: bool = True

    @model_validator(mode="after")
    def _some_length_is_left(self):
        if self.min_chars > self.max_chars:
            raise ValueError(
                f"min_chars ({self.min_chars}) must not be above max_chars ({self.max_chars})"
            )
        if self.options.get("keep_repeats") and not self.keep_copies:
            raise ValueError("keep_repeats needs keep_copies, else copies are dropped afterwards")
        if self.keep_copies and self.near_duplicate:
            raise ValueError("keep_copies needs a near_duplicate of 0: equal texts are near, too")
        return self


@dataclass
class _Tally:
    """What is counted and heard while a part is read.

    Attributes
    ----------
    counts : posts dropped by reason, and notes
    authors : number of kept posts by the author's name, as the source writes it
    people : names of authors, and those in headers and mentions
    heard : how often posts greet or sign with a name
    placeholders : number of dropped posts by a name that stands for nobody
    """

    counts: Counter = field(default_factory=Counter)
    authors: Counter = field(default_factory=Counter)
    people: set = field(default_factory=set)
    heard: Counter = field(default_factory=Counter)
    placeholders: Counter = field(default_factory=Counter)


def parts_folder(run: Run) -> Path:
    """Return the folder of a run's parts, with the names of people in them; it may not exist."""
    return names_folder() / run.name


def collect(
    run: Run,
    config: CollectConfig,
    memory_limit: str = "2GB",
    workers: int = 2,
    engine: str = "duckdb",
    quiet: bool = False,
) -> dict:
    """Write the posts of a source to ``posts.parquet`` of a run; return the data card.

    Reasons that dropped many rows are printed, see :mod:`helpers.corpus.loss_lines`. A finished
    table with the same settings is kept, and so is the file of every part that was already read
    with them.

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
    quiet
        Whether nothing is printed about dropped rows.

    Returns
    -------
    dict, also written as ``data_card.json``: the settings, counts of rows, statistics of the table.
    ``rows_read`` is the sum of ``posts`` and all ``dropped_<reason>``. ``note_<reason>`` are counts
    of kept records, and ``note_name_forms`` is the number of names that share their author with
    another name, see :mod:`helpers.cleaning.authors`. ``names_left`` is the share of
    SAMPLE_POSTS posts that hold a word of a known name, see
    :func:`helpers.corpus.personal_names.share_with_names` for what that counts.

    Raises
    ------
    ValueError
        Where no post is left (the message holds the counts), the engine "daft" is to keep copies,
        or the source raises it.
    RuntimeError
        Where the written table has another number of posts than were read and not dropped.
    """
    if config.keep_copies and engine == "daft":
        raise ValueError("keep_copies: the engine daft drops copies; take the engine duckdb")
    with folder_lock(run.folder):
        card = _collect(run, config, memory_limit, workers, engine)
    if not quiet:
        for line in loss_lines(card, config.location, config.columns):
            print(line)
    return card


def _collect(run, config, memory_limit, workers, engine):
    """Do what :func:`collect` does, in whose folder nobody else is at work."""
    parts = _open_parts(config)
    key = _pseudonym_key(config)
    origin, fingerprint = _fingerprints(config, key, parts)
    posts = run.folder / "posts.parquet"
    folder = parts_folder(run)
    files = [folder / f"{number:04d}.parquet" for number in range(len(parts))]
    _remove_leftovers(run, files)
    if is_current(run.data_card, fingerprint) and verify_checksum(posts):
        note(run.data_card, posts, run.folder / "collect")
        return read_json(run.data_card)

    run_jobs = daft_engine.map_parts if engine == "daft" else _run_jobs
    read_part = partial(_read_part, config=config, origin=origin, key=key)
    records = run_jobs(read_part, list(zip(parts, files, strict=True)), workers)
    total = _add_up(records)
    joined = joined_names(total.authors)
    total.counts["note_name_forms"] = len(joined)

    steps = [step_row("read", records, files)]
    hidden, letter_case = _names_to_mask(total, files, run_jobs, workers)
    steps.append(step_row("names", letter_case, []))
    if key is None and joined:
        files = _with_shown_names(files, folder / "shown", joined)
    merged = _merge(engine, folder, files, posts, config, hidden, memory_limit, workers)
    shutil.rmtree(folder / "shown", ignore_errors=True)
    write_json(run.folder / "collect" / "steps.json", {"steps": steps + merged.pop("steps")})

    card = config.model_dump() | _account(total.counts, merged)
    card |= {"location": _public(config.location), "pseudonymise": key is not None}
    if total.placeholders:
        card["placeholder_names"] = placeholder_names(total.placeholders)
    known_words = personal_names.identifying_words(total.people, total.heard)
    card |= _facts(posts, card, known_words, config)
    card |= {"fingerprint": fingerprint, "sha256": file_fingerprint(posts)}
    write_json(run.data_card, card)
    note(folder)
    return read_json(run.data_card)


def _pseudonym_key(config):
    """Return the secret key of pseudonyms, None where authors keep their names."""
    if config.pseudonymise and config.source not in sources.INVENTED:
        return pseudonym_key()
    return None


def _remove_leftovers(run, files):
    """Remove what is of no part: of parts that the source has no longer, and of earlier versions.

    Those versions kept parts, with the names in them, in the folder of the run.
    """
    names = {file.stem for file in files}
    for path in parts_folder(run).glob("*.*"):
        if path.name.partition(".")[0] not in names:
            path.unlink()
    for path in (run.folder / "collect").glob("*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.name.startswith("steps."):
            path.unlink()


def _names_to_mask(total, files, run_jobs, workers):
    """Return the names to mask in all posts, and the records of the counts of their letter case."""
    names = personal_names.words_of_names(total.people, total.heard)
    name_words = sorted(set().union(*names.values()))
    count_letter_case = partial(personal_names.count_letter_case, name_words)
    letter_case = run_jobs(count_letter_case, [(file,) for file in files], workers)
    hidden = personal_names.names_to_mask(names, total.heard, letter_case)
    for record in letter_case:
        Path(record["words"]).unlink()
    return hidden, letter_case


def _open_parts(config):
    """Return the parts of the source that a config names."""
    options = dict(config.options)
    if config.columns:
        options["columns"] = config.columns
    return sources.open_source(config.source, config.location, raw=config.raw, **options)


def _fingerprints(config, key, parts):
    """Return the fingerprint of how parts are read, and that of the whole posts table."""
    reading = config.model_dump(exclude={"near_duplicate", "keep_copies", "strip_signatures"})
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
    """Return the tally of all parts, from the record of each."""
    total = _Tally()
    for record in records:
        total.counts += Counter(record["counts"])
        total.authors.update(record["authors"])
        total.people.update(record["people"])
        total.heard.update(record["heard"])
        total.placeholders.update(record["placeholders"])
    return total


def _with_shown_names(files, folder, joined):
    """Write the files of the parts again, with one name for each author; return the new files.

    ``joined`` is what :func:`~helpers.cleaning.authors.joined_names` returns.
    """
    shown = {author_name(name): joined[name] for name in joined}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in files:
        part = pq.ParquetFile(file)
        with pq.ParquetWriter(folder / file.name, PART, compression="zstd") as writer:
            for number in range(part.num_row_groups):
                rows = part.read_row_group(number)
                names = [shown.get(name, name) for name in rows["author"].to_pylist()]
                writer.write_table(rows.set_column(0, PART.field("author"), [names]))
    return [folder / file.name for file in files]


def _merge(engine, folder, files, posts, config, names, memory_limit, workers):
    """Write the posts table from the files of the parts; return counts, and rows of ``steps``."""
    began = time.perf_counter()
    near_duplicate = None if config.keep_copies else config.near_duplicate
    with open_database(folder / "merge", memory_limit, workers) as connection:
        merged = ENGINES[engine](
            connection,
            folder / "merge",
            files,
            posts,
            min_chars=config.min_chars,
            near_duplicate=near_duplicate,
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


def _facts(posts, card, known_words, config):
    """Return statistics of the posts table; raise where its size is not what the card says."""
    drops = {name: count for name, count in card.items() if name.startswith("dropped_")}
    rows_read = card["rows_read"]
    posts_left = rows_read - sum(drops.values())
    if not posts_left:
        raise ValueError(nothing_left(card, config.location, config.columns))
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

    Where both are current, neither is written again. The record holds a :class:`_Tally`.
    """
    fingerprint = fingerprint_of(origin, part.name, part.stamp)
    record = file.with_suffix(".json")
    if is_current(record, fingerprint) and verify_checksum(file):
        return read_json(record)
    began = time.perf_counter()
    source_counts = Counter()
    tally = _Tally()
    with (
        atomic_write(file) as temporary,
        pq.ParquetWriter(temporary, PART, compression="zstd") as writer,
    ):
        for frame in part.read(source_counts):
            tally.counts["rows_read"] += len(frame)
            if not config.raw:
                tally.people.update(_people(frame))
            rows = _clean_rows(frame, config, key, tally)
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=PART))
    write_checksum(file)
    for reason, number in source_counts.items():
        tally.counts[reason] += number
        if not reason.startswith("note_"):
            tally.counts["rows_read"] += number
    content = {
        "fingerprint": fingerprint,
        "counts": dict(tally.counts),
        "authors": dict(tally.authors),
        "people": sorted(tally.people - {""}),
        "heard": dict(tally.heard),
        "placeholders": dict(tally.placeholders),
        "seconds": round(time.perf_counter() - began, 3),
    }
    write_json(record, content)
    return read_json(record)


def _people(frame):
    """Return the names of the authors of a frame, and those in headers and mentions."""
    names = set(frame["author"])
    if "names" in frame:
        names.update("\n".join(frame["names"]).split("\n"))
    return {author_name(name) for name in names}


def _clean_rows(frame, config, key, tally):
    """Return the cleaned posts of a frame as rows of PART; add to the tally in place."""
    pseudonym = pseudonymiser(key)
    # pseudonymised posts have no ids: an id of a public archive would lead back to the name
    if key is None and "id" in frame:
        ids = frame["id"].to_numpy(object, na_value=None)
    else:
        ids = [None] * len(frame)
    columns = [frame[column].tolist() for column in sources.COLUMNS]
    rows = []
    for source_name, second, topic, text, post_id in zip(*columns, ids, strict=True):
        author = author_name(source_name)
        reason = _drop_reason(author, topic)
        if reason:
            tally.counts[reason] += 1
            if reason == "placeholder_author":
                tally.placeholders[author] += 1
            continue
        text, was_cut = _clean_text(text, author, config, tally.heard)
        if len(text) < config.min_chars:
            tally.counts["short"] += 1
            continue
        tally.counts["truncated"] += was_cut
        tally.authors[source_name] += 1
        rows.append((pseudonym(source_name), second, topic, text, post_id))
    return rows


def _drop_reason(author, topic):
    """Return why all posts of an author, or on a topic, are dropped; "" where they are not."""
    if not same_author(author):
        return "empty_author"
    if is_placeholder(author):
        return "placeholder_author"
    if cleaning.is_bot(author):
        return "bot"
    if CONTROL.search(topic):
        return "broken_topic"
    return ""


def _clean_text(text, author, config, heard):
    """Return a cleaned post of at most max_chars characters, and whether it was cut.

    ``heard`` is increased in place by the names that the post greets or signs with.
    """
    was_cut = len(text) > SLACK * config.max_chars
    text = text[: SLACK * config.max_chars]
    if config.raw:
        text = cleaning.normalise_unicode(text)
    else:
        # a greeting is told from the lines of a post, which may be those of HTML
        text, names = salutations.mask_salutations(plain_text(text))
        if names:
            heard.update(names)
        text = cleaning.clean_post(text, author)
    was_cut = was_cut or len(text) > config.max_chars
    return text[: config.max_chars].rstrip(), was_cut


def _public(location):
    """Return a location as it may be published: of an absolute path only the last part."""
    if isinstance(location, list):
        return ", ".join(_public(place) for place in location)
    path = Path(location).expanduser()
    if path.is_absolute():
        return path.name
    return location
