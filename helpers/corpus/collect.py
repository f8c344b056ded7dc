"""Corpora: collect a source into one posts table, select authors, count.

A posts table is a Parquet file with the columns ``author`` (text), ``time`` (timestamp, whole seconds, UTC),
``topic`` (text), ``text`` and, where the source has it, ``id`` (text), sorted by author, then time, then text.
"""

import hashlib
import multiprocessing
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from helpers.cleaning import text as cleaning
from helpers.runs import paths
from helpers.cleaning import pseudonyms
from helpers import sources
from helpers.runs.artifacts import file_fingerprint, fingerprint_of, is_current, read_json, atomic_write, write_json
from helpers.corpus.table import database, merge, text, write
from helpers.runs.progress import progress_bar

VERSION = 2  # raised when the same settings give another posts table
SLACK = 8  # a post is cut to this many times max_chars before it is cleaned, and to max_chars after
PART = pa.schema([(name, pa.int64() if name == "time" else pa.string()) for name in (*sources.COLUMNS, "id")])


def collect(run: paths.Run, source: str, location, *, columns=None, raw=False, pseudonymise=True, min_chars=10,
            max_chars=10_000, near_duplicate=0.8, strip_signoffs=True, memory_limit="2GB", workers=2, progress=True,
            **options) -> dict:
    """Read a source into ``posts.parquet`` of the run; return the data card, also written as ``data_card.json``.

    source, location, columns, options: as :func:`sources.open_source` takes them. raw: neither source nor text is
    cleaned. min_chars, max_chars: shorter posts are dropped, longer ones cut. near_duplicate, strip_signoffs: see
    :mod:`helpers.cleaning.near_duplicates` (0: off) and :mod:`helpers.cleaning.signatures`. memory_limit: of DuckDB. workers: processes
    that read parts, and threads of DuckDB. progress: show a bar (never under CI).

    Parts already read with the same settings are not read again. In the card, ``rows_read`` = ``posts`` + all
    ``dropped_*``. Raises ValueError where nothing is left, with the counts, or where the source is at fault.
    """
    if columns is not None:
        options["columns"] = columns
    parts = sources.open_source(source, location, raw=raw, **options)
    pseudonymise = pseudonymise and source not in sources.INVENTED
    key = pseudonyms.key() if pseudonymise else None
    reading = {"source": source, "location": location, "raw": raw, "pseudonyms": pseudonymise,
               "min_chars": min_chars, "max_chars": max_chars, **options}
    origin = fingerprint_of(VERSION, reading, hashlib.sha256(key or b"").hexdigest())
    merging = {"near_duplicate": near_duplicate, "strip_signoffs": strip_signoffs}
    fingerprint = fingerprint_of(origin, merging, [(part.name, part.stamp) for part in parts])
    posts = run.folder / "posts.parquet"
    if is_current(run.data_card, fingerprint) and posts.exists():
        card = read_json(run.data_card)
        if card["sha256"] == file_fingerprint(posts):
            return card

    folder = run.folder / "collect"
    files = [folder / f"{number:04d}-{re.sub(r'[^A-Za-z0-9.-]+', '_', part.name)[:60]}" for number, part in
             enumerate(parts)]
    read = partial(_read_part, origin=origin, key=key, clean=not raw, min_chars=min_chars, max_chars=max_chars)
    counts = _each_part(read, parts, files, workers, progress)
    rows_read, truncated = counts.pop("rows_read", 0), counts.pop("truncated", 0)
    scratch = folder / "merge"
    with database(scratch, memory_limit, workers) as connection:
        merged = merge(connection, scratch, [_parquet(file) for file in files], posts, min_chars=min_chars,
                       near_duplicate=near_duplicate, strip_signoffs=strip_signoffs)
    cut = {name: merged.pop(name) for name in ("signoffs_cut", "signoff_words_cut")}
    drops = {f"dropped_{reason}": number for reason, number in sorted((counts + Counter(merged)).items())}
    kept = rows_read - sum(drops.values())
    if not kept:
        raise ValueError(f"nothing is left of {rows_read} posts of source {source!r}: {drops or 'none was found'}")
    facts = statistics(posts)
    if facts["posts"] != kept:
        raise RuntimeError(f"{facts['posts']} posts were written, but {rows_read} were read and {drops} dropped")
    card = {
        **reading, "location": _public(location), **merging, "rows_read": rows_read, **drops, "truncated": truncated,
        **cut, **facts, "fingerprint": fingerprint, "sha256": file_fingerprint(posts),
    }
    write_json(run.data_card, card)
    return card


def select(posts_path, out_path, min_posts=100, max_posts=1000, start="", end="", memory_limit="2GB") -> dict:
    """Write the posts within [start, end) of the authors who have min_posts..max_posts of them there (K12).

    max_posts: 0 is no limit. start, end: ISO dates, UTC; "" is open. Returns counts: posts and authors before and
    after. Raises ValueError where nobody is left.
    """
    inside = "true" if not start else f"time >= {text(start)}::TIMESTAMPTZ"
    inside += "" if not end else f" AND time < {text(end)}::TIMESTAMPTZ"
    out_path = Path(out_path)
    with database(out_path.parent / (out_path.name + ".work"), memory_limit) as connection:
        before = connection.execute(f"SELECT count(*), count(DISTINCT author) FROM {text(posts_path)}").fetchall()[0]
        connection.execute(f"""
            CREATE TABLE chosen AS SELECT author, count(*) AS posts FROM {text(posts_path)} WHERE {inside}
            GROUP BY author HAVING posts >= {int(min_posts)} AND (posts <= {int(max_posts)} OR {int(max_posts)} = 0)""")
        after = connection.execute("SELECT coalesce(sum(posts), 0)::BIGINT, count(*) FROM chosen").fetchall()[0]
        posts, authors = after
        if not authors:
            limit = max_posts or "any number of"
            raise ValueError(f"none of {before[1]} authors has {min_posts}..{limit} posts in [{start}, {end})")
        write(connection, f"FROM {text(posts_path)} SEMI JOIN chosen USING (author) WHERE {inside}", out_path)
    return {"posts_before": before[0], "authors_before": before[1], "posts": posts, "authors": authors}


def statistics(posts_path, tokens_per_post=None) -> dict:
    """Table 8: size and shape of a posts table; means are over authors but ``words_per_post``, over posts.

    ``active_months``: calendar months, UTC, with a post. tokens_per_post: put in where known.
    """
    with database(Path(f"{posts_path}.work")) as connection:
        names = ["posts", "authors", "topics", "first", "last", "words_per_post"]
        values = connection.execute(f"""
            SELECT count(*), count(DISTINCT author), count(DISTINCT topic), strftime(min(time), '%Y-%m-%d %H:%M:%S'),
                   strftime(max(time), '%Y-%m-%d %H:%M:%S'), round(avg(len(string_split(trim(text), ' '))), 2)
            FROM {text(posts_path)}""").fetchall()[0]
        means = connection.execute(f"""
            SELECT round(avg(posts), 2), round(avg(topics), 2), round(avg(months), 2) FROM (
                SELECT count(*) AS posts, count(DISTINCT topic) AS topics, count(DISTINCT date_trunc('month', time)) AS
                months FROM {text(posts_path)} GROUP BY author)""").fetchall()[0]
    facts = dict(zip(names, values)) | dict(zip(["posts_per_author", "topics_per_author", "active_months"], means))
    return facts if tokens_per_post is None else facts | {"tokens_per_post": tokens_per_post}


def _each_part(read, parts, files, workers, progress):
    """Sum of the parts' counts; parts in ``workers`` processes where the system can fork (a part holds closures)."""
    jobs = [(part, file) for part, file in zip(parts, files)]
    shown = partial(progress_bar, total=len(jobs), progress=progress, desc="reading", unit="part")
    if workers < 2 or len(jobs) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return sum(map(Counter, shown(read(*job) for job in jobs)), Counter())
    global _jobs
    _jobs = read, jobs  # what forked processes find in their memory need not be pickled
    try:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
            return sum(map(Counter, shown(pool.map(_job, range(len(jobs))))), Counter())
    finally:
        _jobs = None


def _job(number):
    read, jobs = _jobs
    return read(*jobs[number])


def _parquet(file):
    return file.with_name(file.name + ".parquet")


def _read_part(part, file, *, origin, key, clean, min_chars, max_chars):
    """Write a part's posts beside a JSON file of its counts; return these. Both current: nothing to do."""
    fingerprint = fingerprint_of(origin, part.name, part.stamp)
    record = file.with_name(file.name + ".json")
    if is_current(record, fingerprint) and _parquet(file).exists():
        return read_json(record)["counts"]
    lost, counts = Counter(), Counter()
    name, is_bot = pseudonyms.namer(key), lru_cache(maxsize=None)(cleaning.is_bot)

    def keep(author, time, topic, post, number):
        if is_bot(author):
            return counts.update(bot=1)
        post = post[: SLACK * max_chars]
        post = cleaning.clean(post, author) if clean else cleaning.normalise_unicode(post)
        counts["truncated"] += len(post) > max_chars
        post = post[:max_chars].rstrip()
        if len(post) < min_chars:
            return counts.update(short=1)
        return name(author), time, topic, post, number

    with atomic_write(_parquet(file)) as temporary, pq.ParquetWriter(temporary, PART, compression="zstd") as writer:
        for frame in part.read(lost):
            counts["rows_read"] += len(frame)
            columns = [frame[column].tolist() for column in sources.COLUMNS]
            # an id of a public archive would lead back from a pseudonym to the name
            numbers = frame["id"].tolist() if "id" in frame and key is None else [None] * len(frame)
            rows = [row for row in map(keep, *columns, numbers) if row]
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=PART))
    counts.update(rows_read=sum(lost.values()))
    counts.update(lost)
    write_json(record, {"fingerprint": fingerprint, "counts": dict(counts)})
    return dict(counts)


def _public(location):
    """A location as it may be published: of an absolute path, the last part."""
    if isinstance(location, list | tuple):
        return ", ".join(map(_public, location))
    place = Path(str(location)).expanduser()
    return place.name if place.is_absolute() else str(location)
