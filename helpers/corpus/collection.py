"""Collection of a source into one posts table with its data card.

While it works, and to go on later, a collection keeps names of people, and posts in which those
names are not masked yet. All this lies in :func:`parts_folder`, nothing of it in the run's folder.
"""

import hashlib
import re
from collections import Counter
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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
from ..core.parameters import Config
from ..core.paths import Run
from . import personal_names
from .loss_lines import loss_lines, nothing_left, placeholder_names
from .merge import MergeSettings, merge
from .posts_table import COLUMNS, corpus_statistics, open_database
from .workers import run_by_daft, run_jobs

VERSION = 19  # raised when the same settings give another posts table
BATCH_POSTS = 2000  # posts in memory at a time: each may have 20,000 characters
# a post is cut to SLACK * max_chars before it is cleaned, and to max_chars afterwards
SLACK = 8
# who reads the parts: "duckdb" on one machine, "daft" on one or many
ENGINES = {"duckdb": run_jobs, "daft": run_by_daft}
# schema of the file of a part: times are still integers
PART = pa.schema({name: pa.string() for name in COLUMNS} | {"time": pa.int64()})
# counts of a data card that are neither drops nor notes
COUNTS_OF_KEPT = (
    "rows_read",
    "truncated",
    "names_masked",
    "signatures_cut",
    "signature_words_cut",
)
MERGE_RULES = {"min_chars", "near_duplicate", "keep_copies", "strip_signatures"}
# a control character but tab and line ends: a topic with one is damaged
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class CollectConfig(Config):
    """Settings of a collection: what is read, and how posts are cleaned.

    Attributes
    ----------
    source, location, options : kind, location and options of :func:`helpers.sources.open_source`
    columns : the option ``columns`` of the source; left out where empty
    raw : True: texts stay as the source reads them, but for normalised Unicode; names are not
        collected
    pseudonymise : True: authors become pseudonyms, except those of the sources in INVENTED
    min_chars : posts with fewer characters after cleaning are dropped
    max_chars : posts with more characters are cut
    near_duplicate : Jaccard similarity from which the later of two posts is dropped; 0 drops none
    keep_copies : True: posts with equal texts are kept, as in the corpora of the papers; it needs
        a near_duplicate of 0. A model can learn authors by heart from what they repeat, so copies
        are dropped by default
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


def parts_folder(run: Run) -> Path:
    """Return the folder of a run's parts, with the names of people in them; it may not exist."""
    return names_folder() / run.name


def collect(
    run: Run,
    config: CollectConfig,
    memory_limit: str = "2GB",
    workers: int = 2,
    engine: str = "duckdb",
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
        Memory of DuckDB, which uses the disk beyond it.
    workers : int
        Number of processes that read parts, and of DuckDB's threads. On a Ray cluster Daft reads
        with all processors instead.
    engine
        One of ENGINES, which says who reads the parts; all write the same bytes.

    Returns
    -------
    dict, also written as ``data_card.json``: the settings, counts of rows, statistics of the table.
    ``rows_read`` is the sum of ``posts`` and all ``dropped_<reason>``. ``note_<reason>`` are counts
    of kept records, and ``note_name_forms`` is the number of names that share their author with
    another name, see :mod:`helpers.cleaning.authors`.

    Raises
    ------
    ValueError
        Where no post is left (the message holds the counts), or the source raises it.
    RuntimeError
        Where the written table has another number of posts than were read and not dropped.
    """
    with folder_lock(run.folder):
        card = _collect(run, config, memory_limit, workers, engine)
    for line in loss_lines(card, config.location, config.columns):
        print(line)
    return card


def _collect(run, config, memory_limit, workers, engine):
    """Do what :func:`collect` does, in whose folder nobody else is at work."""
    options = config.options | ({"columns": config.columns} if config.columns else {})
    parts = sources.open_source(config.source, config.location, **options)
    key = None
    if config.pseudonymise and config.source not in sources.INVENTED:
        key = pseudonym_key()
    reading = config.model_dump(exclude=MERGE_RULES - {"min_chars"})
    origin = fingerprint_of(VERSION, reading, hashlib.sha256(key or b"").hexdigest())
    stamps = [(part.name, part.stamp) for part in parts]
    fingerprint = fingerprint_of(origin, config.fingerprint, stamps)
    posts = run.folder / "posts.parquet"
    folder = parts_folder(run)
    files = [folder / f"{number:04d}.parquet" for number in range(len(parts))]
    _remove_leftovers(folder, files)
    if is_current(run.data_card, fingerprint) and verify_checksum(posts):
        note(run.data_card, posts)
        return read_json(run.data_card)

    read_part = partial(_read_part, config=config, origin=origin, key=key)
    total = _new_tally()
    for record in ENGINES[engine](read_part, list(zip(parts, files, strict=True)), workers):
        for kind, counter in total.items():
            counter.update(record[kind])
    joined = joined_names(total["authors"])
    total["counts"]["note_name_forms"] = len(joined)
    with open_database(folder / "names", memory_limit, workers) as connection:
        names = personal_names.names_to_mask(connection, total["people"], total["heard"], files)
    nicks = personal_names.nicks_of(total["people"])
    rules = config.model_dump(include=MERGE_RULES)
    settings = MergeSettings(**rules, names=names, nicks=nicks, mask_topics=key is not None)
    if key is None:
        settings.shown_names.update((author_name(name), joined[name]) for name in joined)
    merged = merge(files, posts, settings, folder / "merge", memory_limit, workers)

    card = config.model_dump() | {"fingerprint": fingerprint, "pseudonymise": key is not None}
    card |= {"location": _public(config.location)} | _account(total["counts"], merged)
    write_json(run.data_card, card | _facts(config, card, total, posts))
    note(folder)
    return read_json(run.data_card)


def _new_tally():
    """Return what is counted while parts are read.

    Returns
    -------
    dict of Counter: ``counts``, posts dropped by reason, and notes; ``authors``, kept posts by the
    author's name, as the source writes it; ``people``, names of authors, and those in headers and
    mentions; ``heard``, how often posts greet or sign with a name; ``placeholders``, dropped posts
    by a name that stands for nobody.
    """
    return {kind: Counter() for kind in ("counts", "authors", "people", "heard", "placeholders")}


def _remove_leftovers(folder, files):
    """Remove the files, with the names in them, of parts that the source has no longer."""
    names = {file.stem for file in files}
    for path in folder.glob("*.*"):
        if path.name.partition(".")[0] not in names:
            path.unlink()


def _account(read_counts, merge_counts):
    """Return the counts of the data card: COUNTS_OF_KEPT, then drops and notes."""
    counts = read_counts + Counter(merge_counts)
    card = {name: counts[name] for name in COUNTS_OF_KEPT}
    for name in sorted(counts.keys() - card.keys()):
        card[name if name.startswith("note_") else f"dropped_{name}"] = counts[name]
    return card


def _facts(config, card, total, posts):
    """Return facts of the posts table; raise where its size is not what the card says."""
    facts = {}
    if total["placeholders"]:
        facts["placeholder_names"] = placeholder_names(total["placeholders"])
    drops = {name: count for name, count in card.items() if name.startswith("dropped_")}
    rows_read = card["rows_read"]
    posts_left = rows_read - sum(drops.values())
    if not posts_left:
        raise ValueError(nothing_left(card | facts, config.location, config.columns))
    facts |= corpus_statistics(posts)
    if facts["posts"] != posts_left:
        raise RuntimeError(
            f"{facts['posts']} posts were written, but {rows_read} were read and {drops} dropped"
        )
    return facts | {"sha256": file_fingerprint(posts)}


def _read_part(part, file, *, config, origin, key):
    """Write a part's posts and, beside them, a JSON record of its tally; return the record.

    Where both are current, neither is written again.
    """
    fingerprint = fingerprint_of(origin, part.name, part.stamp)
    record = file.with_suffix(".json")
    if is_current(record, fingerprint) and verify_checksum(file):
        return read_json(record)
    source_counts = Counter()
    tally = _new_tally()
    counts = tally["counts"]
    with (
        atomic_write(file) as temporary,
        pq.ParquetWriter(temporary, PART, compression="zstd") as writer,
    ):
        posts = part.read(source_counts)
        while batch := list(islice(posts, BATCH_POSTS)):
            counts["rows_read"] += len(batch)
            if not config.raw:
                tally["people"].update(_people(batch))
            rows = _clean_rows(batch, config, key, tally)
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=PART))
    write_checksum(file)
    for reason, number in source_counts.items():
        counts[reason] += number
        if not reason.startswith("note_"):
            counts["rows_read"] += number
    write_json(record, {"fingerprint": fingerprint, **tally})
    return read_json(record)


def _people(posts):
    """Return the names of the authors of posts, and those in headers and mentions."""
    other_names = chain.from_iterable(post.names for post in posts)
    names = {post.author for post in posts}.union(map(cleaning.normalise_unicode, other_names))
    names.update(list(map(personal_names.bare_name, names)))
    return {author_name(name) for name in names} - {""}


def _clean_rows(posts, config, key, tally):
    """Return cleaned posts as rows of PART; add to the tally in place."""
    pseudonym = pseudonymiser(key)
    rows = []
    for post in posts:
        author = author_name(post.author)
        reason = _drop_reason(author, post.topic)
        if reason:
            tally["counts"][reason] += 1
            if reason == "placeholder_author":
                tally["placeholders"][author] += 1
            continue
        text, was_cut = _clean_text(post.text, author, config, tally["heard"])
        if len(text) < config.min_chars:
            tally["counts"]["short"] += 1
            continue
        tally["counts"]["truncated"] += was_cut
        tally["authors"][post.author] += 1
        # pseudonymised posts have no ids: an id of a public archive would lead back to the name
        post_id = post.id if key is None else None
        rows.append((pseudonym(post.author), post.time, post.topic, text, post_id))
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
        heard.update(names)
        text = cleaning.clean_plain_text(text, author)
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
