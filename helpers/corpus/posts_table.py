"""The posts table: its schema, writing of tables larger than memory, selection and statistics.

Posts of one author on one topic can be joined into documents, for models that read longer texts:
sawatphol2022 compares whole reviews, comments and chapters, while a post of a chat is only a line.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import duckdb
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection
from pydantic import AfterValidator, Field, model_validator

from ..core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    folder_lock,
    is_current,
    make_folder,
    note,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from ..core.parameters import Config, memory_size

DOCUMENTS_VERSION = 3  # raised when the same posts and settings give other documents
ROW_GROUP_POSTS = 100_000  # posts of a row group of the file, about
# of a posts table; the time is a timestamp in UTC, with whole seconds
COLUMNS = ["author", "time", "topic", "text", "id"]
SORTED_BY = ["author", "time", "text", "topic", "id"]  # order of the rows of a posts table


@contextmanager
def open_database(
    scratch: Path, memory_limit: str = "2GB", threads: int = 2
) -> Iterator[DuckDBPyConnection]:
    """Open a DuckDB connection that uses a new folder beyond its memory; remove it at the end.

    Parameters
    ----------
    scratch
        Path of the folder. If it exists, it is removed first.
    memory_limit
        Memory of DuckDB, such as "2GB".
    threads : int
        Number of threads of DuckDB.

    Raises
    ------
    ValueError
        The folder's path holds a "?", after which DuckDB would read options, or ``memory_limit``
        is no size of memory.
    """
    if "?" in str(scratch):
        raise ValueError(
            "DuckDB cannot work in a folder with '?' in its name: "
            f"set AUTHORBOOK_OUTPUTS to another one than {scratch}"
        )
    memory_size(memory_limit)
    shutil.rmtree(scratch, ignore_errors=True)
    make_folder(scratch)
    settings = {
        "memory_limit": memory_limit,
        "threads": threads,
        "temp_directory": str(scratch / "spill"),
    }
    try:
        with duckdb.connect(str(scratch / "work.duckdb"), config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            # in a notebook without ipywidgets DuckDB has no progress bar, and this setting fails
            with suppress(duckdb.Error):
                connection.execute("SET enable_progress_bar = false")
            yield connection
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def query_scalar(connection: DuckDBPyConnection, query: str, values: Sequence | dict = ()) -> Any:
    """Return the value in the first row and column of a query's result.

    Parameters
    ----------
    connection
        DuckDB connection.
    query
        SQL.
    values
        Values of the query's ``?``, which paths and texts belong in, not into the SQL.
    """
    return connection.execute(query, values).fetchall()[0][0]


def query_row(
    connection: DuckDBPyConnection, query: str, values: Sequence | dict = ()
) -> dict[str, Any]:
    """Return the first row of a query's result: name of a column -> value.

    Parameters
    ----------
    connection, query, values
        as in :func:`query_scalar`
    """
    result = connection.execute(query, values)
    return dict(zip((column[0] for column in result.description), result.fetchall()[0]))


def write_posts(
    connection: DuckDBPyConnection,
    query: str,
    target: Path,
    values: Sequence = (),
) -> int:
    """Write the posts that a query selects, sorted, and their checksum; return their number.

    The same rows always give the same bytes. Without posts the file holds an empty table.

    Parameters
    ----------
    connection
        DuckDB connection.
    query
        SQL that selects COLUMNS, of which ``id`` may be missing; other columns are left out.
    target
        Path of the file, which is written whole or not at all.
    values
        Values of the query's ``?``.
    """
    present = connection.sql(f"FROM ({query})", params=values).columns
    columns = ", ".join(name for name in COLUMNS if name in present)
    order = ", ".join(name for name in SORTED_BY if name in present)
    rows = connection.sql(f"SELECT {columns} FROM ({query}) ORDER BY {order}", params=values)
    with atomic_write(target) as partial_path:
        rows.write_parquet(str(partial_path), compression="zstd", row_group_size=ROW_GROUP_POSTS)
    write_checksum(target)
    return pq.read_metadata(target).num_rows


def _iso_date(day: str) -> str:
    """Return an ISO date as YYYY-MM-DD; an empty text stays empty."""
    if not day:
        return day
    return date.fromisoformat(day).isoformat()


Day = Annotated[str, AfterValidator(_iso_date)]


class Selection(Config):
    """Settings of a selection: the span of time, and how many posts an author must have in it.

    Attributes
    ----------
    min_posts : int, fewest posts of an author in the span
    max_posts : int, most posts of an author in the span; authors with more are left out; 0: no
        limit
    start, end : ISO dates (UTC) of the first day of the span and of the day after its last; empty:
        no bound
    """

    min_posts: int = Field(100, ge=1)
    max_posts: int = Field(1000, ge=0)
    start: Day = ""
    end: Day = ""

    @model_validator(mode="after")
    def _something_is_left(self):
        if 0 < self.max_posts < self.min_posts:
            raise ValueError(
                f"min_posts ({self.min_posts}) must not be above max_posts ({self.max_posts})"
            )
        if self.start and self.end and self.start >= self.end:
            raise ValueError(f"start ({self.start}) must be before end ({self.end})")
        return self


def select_posts(
    posts_path: Path, out_path: Path, selection: Selection, memory_limit: str = "2GB"
) -> dict[str, int]:
    """Write the posts in a span of time by the authors with neither too few nor too many there.

    Parameters
    ----------
    posts_path, out_path
        Paths of the posts table to read and of the one to write.
    selection
        Span of time, and fewest and most posts of an author.
    memory_limit
        Memory of DuckDB.

    Returns
    -------
    dict: ``posts_before`` and ``authors_before``, numbers in the whole table; ``posts`` and
    ``authors``, numbers in the written one.

    Raises
    ------
    ValueError
        Where no author is left.
    """
    scratch = out_path.with_name(f"{out_path.name}.work")
    low = selection.min_posts
    high = selection.max_posts
    with folder_lock(out_path.parent), open_database(scratch, memory_limit) as connection:
        connection.read_parquet(str(posts_path)).create_view("posts")
        connection.sql(
            "FROM posts WHERE time >= ?::TIMESTAMPTZ AND time < ?::TIMESTAMPTZ",
            params=[selection.start or "-infinity", selection.end or "infinity"],
        ).create_view("inside")
        connection.execute(
            """
            CREATE TABLE chosen AS SELECT author, count(*) AS posts FROM inside GROUP BY author
            HAVING posts >= $low AND (posts <= $high OR $high = 0)""",
            {"low": low, "high": high},
        )
        counts = query_row(
            connection,
            """
            SELECT count(*) AS posts_before, count(DISTINCT author) AS authors_before,
                   (SELECT count(*) FROM chosen) AS authors
            FROM posts""",
        )
        if not counts["authors"]:
            raise ValueError(
                f"none of {counts['authors_before']} authors has {low}..{high or 'any number of'} "
                f"posts in [{selection.start}, {selection.end})"
            )
        posts = write_posts(connection, "FROM inside SEMI JOIN chosen USING (author)", out_path)
    return counts | {"posts": posts}


def corpus_statistics(posts_path: Path) -> dict:
    """Return statistics of a posts table: counts, first and last time, and means.

    ``words_per_post`` is a mean over posts; ``posts_per_author``, ``topics_per_author`` and
    ``active_months``, the number of calendar months (UTC) with a post, are means over authors.

    References
    ----------
    khan2021, Table 8
    """
    with open_database(Path(f"{posts_path}.work")) as connection:
        connection.read_parquet(str(posts_path)).create_view("posts")
        query = """
            SELECT * FROM (
                SELECT count(*) AS posts, count(DISTINCT author) AS authors,
                       count(DISTINCT topic) AS topics,
                       strftime(min(time), '%Y-%m-%d %H:%M:%S') AS first,
                       strftime(max(time), '%Y-%m-%d %H:%M:%S') AS last,
                       round(avg(len(string_split(trim(text), ' '))), 2) AS words_per_post
                FROM posts), (
                SELECT round(avg(posts), 2) AS posts_per_author,
                       round(avg(topics), 2) AS topics_per_author,
                       round(avg(months), 2) AS active_months FROM (
                    SELECT count(*) AS posts, count(DISTINCT topic) AS topics,
                           count(DISTINCT date_trunc('month', time)) AS months
                    FROM posts GROUP BY author))"""
        return query_row(connection, query)


def join_posts(
    posts_path: Path,
    out_path: Path,
    *,
    max_chars: int = 2000,
    min_chars: int = 200,
) -> dict:
    """Write a posts table of documents; return the counts, also written as ``<out_path>.json``.

    All posts of an author in a topic, in order of time (then text), are joined by newlines to one
    long text. A document begins with the first post that starts at or after a multiple of
    ``max_chars`` characters of this text, and is cut to ``max_chars``. So each post belongs to one
    document, and only the end of a document's last post is lost. A document has the time and the
    topic of its first post; ids are not kept. A result with the same settings is reused.

    Parameters
    ----------
    posts_path
        Path of the posts table to read.
    out_path
        Path of the posts table of documents to write.
    max_chars : int
        Most characters of a document.
    min_chars : int
        Documents of fewer characters are dropped.

    Returns
    -------
    dict of counts: ``documents``, ``authors`` and ``topics`` that are written; ``documents_cut``,
    documents of more than ``max_chars``. ``posts_used`` and ``posts_in_short_documents`` add up to
    all posts; ``characters_used``, ``characters_in_short_documents`` and ``characters_cut`` add up
    to the characters of all posts, without the newlines between them.

    Raises
    ------
    ValueError
        Where not 0 < ``min_chars`` <= ``max_chars``, or no document is left.
    """
    if not 0 < min_chars <= max_chars:
        raise ValueError(f"need 0 < min_chars ({min_chars}) <= max_chars ({max_chars})")
    out_path = Path(out_path)
    record = out_path.with_name(out_path.name + ".json")
    settings = {"max_chars": max_chars, "min_chars": min_chars}
    fingerprint = fingerprint_of(DOCUMENTS_VERSION, settings, file_fingerprint(posts_path))
    if is_current(record, fingerprint) and verify_checksum(out_path):
        note(out_path, record)
        return read_json(record)

    record.unlink(missing_ok=True)  # without its record an old or half-written file is not reused
    with open_database(out_path.with_name(out_path.name + ".work")) as connection:
        connection.read_parquet(str(posts_path)).create_view("posts")
        _make_documents(connection, max_chars)
        report = settings | _count_documents(connection, min_chars)
        if not report["documents"]:
            raise ValueError(f"no author has {min_chars} characters in a topic: {report}")
        query = f"""
            SELECT author, to_timestamp(time) AS time, topic, text
            FROM documents WHERE length(text) >= {min_chars}"""
        write_posts(connection, query, out_path)
    write_json(record, report | {"fingerprint": fingerprint})
    return read_json(record)


def _make_documents(connection, max_chars):
    """Make the table ``documents`` of the view ``posts``."""
    connection.execute(f"""
        CREATE TABLE documents AS
        WITH placed AS (
            SELECT author, epoch(time)::BIGINT AS second, topic, text,
                   coalesce(sum(length(text) + 1) OVER (
                       PARTITION BY author, topic ORDER BY time, text, topic
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                   // {max_chars} AS number
            FROM posts),
        joined AS (
            SELECT author, min(second) AS second,
                   topic,
                   string_agg(text, chr(10) ORDER BY second, text, topic) AS whole,
                   count(*) AS posts, sum(length(text))::BIGINT AS characters
            FROM placed GROUP BY author, topic, number),
        limited AS (SELECT *, left(whole, {max_chars}) AS part FROM joined)
        SELECT author, second AS time, topic, part AS text, posts, characters,
               characters - (length(whole) - length(part)) AS used,
               length(whole) > length(part) AS cut
        FROM limited""")


def _count_documents(connection, min_chars):
    """Return the counts of the table ``documents``; those of ``min_chars`` and more are kept."""
    is_long = f"length(text) >= {min_chars}"
    query = f"""
        SELECT count(*) FILTER ({is_long}) AS documents,
               count(DISTINCT author) FILTER ({is_long}) AS authors,
               count(DISTINCT topic) FILTER ({is_long}) AS topics,
               count(*) FILTER (cut) AS documents_cut,
               coalesce(sum(posts) FILTER ({is_long}), 0) AS posts_used,
               coalesce(sum(posts) FILTER (NOT {is_long}), 0) AS posts_in_short_documents,
               coalesce(sum(used) FILTER ({is_long}), 0) AS characters_used,
               coalesce(sum(characters - used), 0) AS characters_cut,
               coalesce(sum(used) FILTER (NOT {is_long}), 0) AS characters_in_short_documents
        FROM documents"""
    return query_row(connection, query)
