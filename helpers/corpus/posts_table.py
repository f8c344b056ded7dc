"""The posts table: its schema, and the DuckDB engine that reads, sorts and writes tables larger than memory."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.core.artifacts import atomic_write, write_checksum

ROWS = 100_000  # of a row group
READ = 10_000  # at once: Arrow holds 2 GB of text in one column of a batch
# Parquet knows no unit above milliseconds: readers get timestamp[ms, UTC] of whole seconds
SCHEMA = pa.schema([
    ("author", pa.string()), ("time", pa.timestamp("s", "UTC")), ("topic", pa.string()), ("text", pa.string()),
    ("id", pa.string())])  # fmt: skip


@contextmanager
def open_database(
    scratch: Path, memory_limit: str = "2GB", threads: int = 2
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection that spills to the folder ``scratch``; the folder is new and removed at the end.

    Raises ValueError for a folder whose name DuckDB takes for an address with options.
    """
    if "?" in str(scratch):
        raise ValueError(f"DuckDB cannot work in a folder with '?' in its name: set AUTHORBOOK_OUTPUTS to another one "
                         f"than {scratch}")  # fmt: skip
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
            with suppress(
                duckdb.Error
            ):  # in a notebook without ipywidgets there is no bar, and no switch for it
                connection.execute("SET enable_progress_bar = false")
            yield connection
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def query_scalar(connection: duckdb.DuckDBPyConnection, query: str, values: Sequence = ()):
    """The one value that a query gives. values: of the query's ``?``; no path and no text is written into SQL."""
    return connection.execute(query, values).fetchall()[0][0]


def write_posts(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    target: Path,
    values: Sequence = (),
    is_sorted: bool = False,
) -> int:
    """Write the posts a query selects, sorted by author, time, text, topic, and seal them; return their number.

    The query yields columns of :data:`SCHEMA`; time may be seconds (BIGINT) or a TIMESTAMPTZ. is_sorted: it yields
    them in this order, so that none need be held. Equal rows give equal bytes: row groups hold exactly ROWS posts and
    pages end with every READ, whatever the batches that DuckDB's threads hand over.
    """
    relation = connection.sql(f"FROM ({query})", params=values)
    names = [name for name in SCHEMA.names if name in relation.columns]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    is_number = str(relation.types[relation.columns.index("time")]) == "BIGINT"
    columns = [
        "epoch(time)::BIGINT AS time" if name == "time" and not is_number else name
        for name in names
    ]
    order = ", ".join(name for name in ("author", "time", "text", "topic", "id") if name in names)
    ordered = f"({query})" if is_sorted else f"({query}) ORDER BY {order}"
    reader = connection.sql(f"SELECT {', '.join(columns)} FROM {ordered}", params=values)
    written, waiting = 0, schema.empty_table()

    def write(rows):
        pages = [rows.slice(at, READ).combine_chunks() for at in range(0, max(len(rows), 1), READ)]
        writer.write_table(pa.concat_tables(pages), ROWS)

    with (
        atomic_write(target) as partial,
        pq.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for batch in reader.to_arrow_reader(READ):
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch]).cast(schema)])
            while len(waiting) >= ROWS:
                write(waiting.slice(0, ROWS))
                waiting, written = waiting.slice(ROWS), written + ROWS
        if len(waiting) or not written:
            write(waiting)
    write_checksum(target)
    return written + len(waiting)
