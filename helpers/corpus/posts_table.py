"""The posts table: its schema, and reading, sorting and writing of tables larger than memory."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from ..core.artifacts import atomic_write, make_folder, write_checksum
from ..core.parameters import memory_size

ROW_GROUP_POSTS = 100_000  # posts of a row group of the file
# posts of a batch and of a page: Arrow allows 2 GB of text in one column of a batch
PAGE_POSTS = 10_000
# Parquet has no time unit of seconds: readers get timestamp[ms, UTC] with whole seconds
SCHEMA = pa.schema(
    [
        ("author", pa.string()),
        ("time", pa.timestamp("s", "UTC")),
        ("topic", pa.string()),
        ("text", pa.string()),
        ("id", pa.string()),
    ]
)
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


def write_posts(
    connection: DuckDBPyConnection,
    query: str,
    target: Path,
    values: Sequence = (),
    is_sorted: bool = False,
) -> int:
    """Write the posts that a query selects, sorted, and their checksum; return their number.

    The same rows always give the same bytes: all row groups but the last hold exactly
    ROW_GROUP_POSTS posts and are written in pieces of PAGE_POSTS, whatever batches DuckDB yields.
    Without posts the file holds an empty table.

    Parameters
    ----------
    connection
        DuckDB connection.
    query
        SQL that selects columns of :data:`SCHEMA`, ``time`` among them, as seconds (BIGINT) or as
        TIMESTAMPTZ; other columns are left out.
    target
        Path of the file, which is written whole or not at all.
    values
        Values of the query's ``?``.
    is_sorted : bool
        Whether the query already yields posts in the order of SORTED_BY; then they are not sorted.
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
    """Write rows as one row group in pieces of PAGE_POSTS; without rows, one empty piece."""
    starts = range(0, max(len(rows), 1), PAGE_POSTS)
    pages = [rows.slice(start, PAGE_POSTS).combine_chunks() for start in starts]
    writer.write_table(pa.concat_tables(pages), ROW_GROUP_POSTS)
