"""The posts table: its schema, and DuckDB to read, sort and write tables larger than memory."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from helpers.core.artifacts import atomic_write, write_checksum

ROW_GROUP_POSTS = 100_000
PAGE_POSTS = 10_000  # Arrow holds 2 GB of text in one column of a batch
# Parquet knows no unit above milliseconds: readers get timestamp[ms, UTC] of whole seconds
SCHEMA = pa.schema(
    [
        ("author", pa.string()),
        ("time", pa.timestamp("s", "UTC")),
        ("topic", pa.string()),
        ("text", pa.string()),
        ("id", pa.string()),
    ]
)
SORTED_BY = ["author", "time", "text", "topic", "id"]  # of the rows


@contextmanager
def open_database(
    scratch: Path, memory_limit: str = "2GB", threads: int = 2
) -> Iterator[DuckDBPyConnection]:
    """Open a DuckDB connection that spills to a new folder, which is removed at the end.

    Parameters
    ----------
    scratch
        The folder.
    memory_limit
        Memory, as DuckDB takes it.
    threads : int
        Threads of DuckDB.

    Raises
    ------
    ValueError
        For a folder whose name DuckDB takes for an address with options.
    """
    if "?" in str(scratch):
        raise ValueError(
            "DuckDB cannot work in a folder with '?' in its name: "
            f"set AUTHORBOOK_OUTPUTS to another one than {scratch}"
        )
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    settings = {
        "memory_limit": memory_limit,
        "threads": threads,
        "temp_directory": str(scratch / "spill"),
    }
    try:
        with duckdb.connect(str(scratch / "work.duckdb"), config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            # in a notebook without ipywidgets there is no bar, and no switch for it
            with suppress(duckdb.Error):
                connection.execute("SET enable_progress_bar = false")
            yield connection
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def query_scalar(connection: DuckDBPyConnection, query: str, values: Sequence | dict = ()) -> Any:
    """Return the one value that a query gives.

    Parameters
    ----------
    connection
        DuckDB connection.
    query
        SQL.
    values
        Values of the query's ``?``; no path and no text is written into SQL.
    """
    return connection.execute(query, values).fetchall()[0][0]


def write_posts(
    connection: DuckDBPyConnection,
    query: str,
    target: Path,
    values: Sequence = (),
    is_sorted: bool = False,
) -> int:
    """Write the posts that a query selects, sorted, and their checksum; return their number.

    Equal rows give equal bytes: row groups hold exactly ROW_GROUP_POSTS posts and pages end with
    every PAGE_POSTS, whatever the batches that DuckDB's threads hand over.

    Parameters
    ----------
    connection
        DuckDB connection.
    query
        SQL of columns of :data:`SCHEMA`; time may be seconds (BIGINT) or a TIMESTAMPTZ.
    target
        Path of the file, which is whole or absent.
    values
        Values of the query's ``?``.
    is_sorted : bool
        Whether the query yields posts in the order of SORTED_BY; then none need be held.
    """
    relation = connection.sql(f"FROM ({query})", params=values)
    types = dict(zip(relation.columns, relation.types, strict=True))
    schema = pa.schema([field for field in SCHEMA if field.name in types])
    columns = ", ".join(schema.names)
    if str(types["time"]) != "BIGINT":
        columns = columns.replace("time", "epoch(time)::BIGINT AS time")
    rows = f"SELECT {columns} FROM ({query})"
    if not is_sorted:
        rows += " ORDER BY " + ", ".join(name for name in SORTED_BY if name in types)

    posts = 0
    waiting = schema.empty_table()
    with (
        atomic_write(target) as partial_path,
        pq.ParquetWriter(partial_path, schema, compression="zstd") as writer,
    ):
        for batch in connection.sql(rows, params=values).to_arrow_reader(PAGE_POSTS):
            posts += len(batch)
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch]).cast(schema)])
            while len(waiting) >= ROW_GROUP_POSTS:
                _write_row_group(writer, waiting.slice(0, ROW_GROUP_POSTS))
                waiting = waiting.slice(ROW_GROUP_POSTS)
        if len(waiting) or posts == 0:
            _write_row_group(writer, waiting)
    write_checksum(target)
    return posts


def _write_row_group(writer, rows):
    """Write rows in pages of PAGE_POSTS, where there are none one empty page."""
    starts = range(0, max(len(rows), 1), PAGE_POSTS)
    pages = [rows.slice(start, PAGE_POSTS).combine_chunks() for start in starts]
    writer.write_table(pa.concat_tables(pages), ROW_GROUP_POSTS)
