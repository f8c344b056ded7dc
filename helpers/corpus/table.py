"""From the parts of a corpus to one posts table: duplicates out, sign-offs cut, sorted. Larger than memory.

DuckDB holds what grows with the corpus and spills to a folder of the run, which is gone afterwards.
"""

import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.cleaning import near_duplicates as duplicates
from helpers.cleaning import signatures as signoffs
from helpers.runs.artifacts import atomic_write

ROWS = 100_000  # of a row group
READ = 10_000  # at once: Arrow holds 2 GB of text in one column of a batch
# Parquet knows no unit above milliseconds: readers get timestamp[ms, UTC] of whole seconds
SCHEMA = pa.schema([
    ("author", pa.string()), ("time", pa.timestamp("s", "UTC")), ("topic", pa.string()), ("text", pa.string()),
    ("id", pa.string()),
])


@contextmanager
def database(scratch: Path, memory_limit: str = "2GB", threads: int = 2):
    """A DuckDB connection that spills to the folder ``scratch``; the folder is new and removed at the end."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    settings = {"memory_limit": memory_limit, "threads": threads, "temp_directory": str(scratch / "spill")}
    try:
        with duckdb.connect(str(scratch / "work.duckdb"), config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            with suppress(duckdb.Error):  # in a notebook without ipywidgets there is no bar, and no switch for it
                connection.execute("SET enable_progress_bar = false")
            yield connection
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def text(path) -> str:
    """A SQL literal of a path or a list of paths."""
    if isinstance(path, list | tuple):
        return "[" + ", ".join(map(text, path)) + "]"
    return "'" + str(path).replace("'", "''") + "'"


def merge(connection, scratch: Path, parts: list[Path], target: Path, *, min_chars: int, near_duplicate: float,
          strip_signoffs: bool) -> dict[str, int]:
    """Write the posts table ``target`` (whole or absent) from part files; return what went and what was cut.

    parts: Parquet files with the columns of :data:`SCHEMA`, time as int64 seconds.
    near_duplicate: Jaccard similarity in (0, 1] from which a later post is a copy, or 0: keep them.
    Returns counts by name: ``duplicate``, ``near_duplicate``, ``short_after_signoff`` (posts dropped) and
    ``signoffs_cut``, ``signoff_words_cut`` (posts, words). Of copies the earliest stays; ties go by author, text,
    topic, so neither the order of the parts nor that of threads matters.
    """
    unique, rest = scratch / "unique.parquet", scratch / "rest.parquet"
    # by content, so that the order holds to the last byte
    order = "time, author, text, topic, id"
    total = _one(connection, f"SELECT count(*) FROM read_parquet({text(parts)})")
    connection.execute(f"""
        COPY (SELECT *, {duplicates.NORMAL} AS normal FROM read_parquet({text(parts)})
              QUALIFY row_number() OVER (PARTITION BY md5_number(normal) ORDER BY {order}) = 1 ORDER BY {order})
        TO {text(unique)} (FORMAT parquet)""")
    connection.execute(f"""
        CREATE VIEW unique_posts AS SELECT * EXCLUDE file_row_number, file_row_number AS n
        FROM read_parquet({text(unique)}, file_row_number = true)""")
    kept = _one(connection, "SELECT count(*) FROM unique_posts")
    counts = {"duplicate": total - kept}
    connection.execute("CREATE TABLE shortened (n BIGINT, words INT, text VARCHAR, normal VARCHAR)")
    if strip_signoffs:
        _strip(connection, signoffs.find(connection, "unique_posts", kept))
    counts["signoffs_cut"], counts["signoff_words_cut"], counts["short_after_signoff"] = connection.execute(
        "SELECT count(*), coalesce(sum(words), 0)::BIGINT, count(*) FILTER (length(text) < ?) FROM shortened",
        [min_chars],
    ).fetchall()[0]
    # what differed in the sign-off alone is the same now
    connection.execute(f"""
        COPY (SELECT p.n, p.author, p.time, p.topic, p.id, coalesce(s.text, p.text) AS text,
                     coalesce(s.normal, p.normal) AS normal
              FROM unique_posts p LEFT JOIN shortened s USING (n)
              WHERE s.text IS NULL OR length(s.text) >= {int(min_chars)}
              QUALIFY row_number() OVER (PARTITION BY md5_number(coalesce(s.normal, p.normal)) ORDER BY p.n) = 1)
        TO {text(rest)} (FORMAT parquet)""")
    connection.execute(f"CREATE VIEW rest AS FROM read_parquet({text(rest)})")
    left = _one(connection, "SELECT count(*) FROM rest")
    counts["duplicate"] += kept - counts["short_after_signoff"] - left
    connection.execute("CREATE TABLE copies (n BIGINT)")
    if near_duplicate:
        duplicates.near(connection, "rest", near_duplicate)
    counts["near_duplicate"] = _one(connection, "SELECT count(*) FROM copies")
    if left > counts["near_duplicate"]:
        columns = SCHEMA.names if _one(connection, "SELECT count(nullif(id, '')) FROM rest") else SCHEMA.names[:4]
        write(connection, f"SELECT {', '.join(columns)} FROM rest ANTI JOIN copies USING (n)", target)
    return counts


def write(connection, query: str, target: Path) -> int:
    """Write the posts a query selects, sorted by author, time, text, topic; return their number.

    The query yields columns of :data:`SCHEMA`; time may be seconds (BIGINT) or a TIMESTAMPTZ. Equal rows give equal
    bytes: row groups hold exactly ROWS posts whatever the batches that DuckDB hands over.
    """
    found = connection.sql(f"FROM ({query})")
    names = [name for name in SCHEMA.names if name in found.columns]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    seconds = "time" if str(found.types[found.columns.index("time")]) == "BIGINT" else "epoch(time)::BIGINT AS time"
    sort = [name for name in ("author", "time", "text", "topic", "id") if name in names]
    columns = ", ".join(seconds if name == "time" else name for name in names)
    reader = connection.sql(f"SELECT {columns} FROM ({query}) ORDER BY {', '.join(sort)}").to_arrow_reader(READ)
    written, waiting = 0, []
    with atomic_write(target) as partial, pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for batch in reader:
            waiting.append(pa.Table.from_batches([batch]).cast(schema))
            while sum(map(len, waiting)) >= ROWS:
                table = pa.concat_tables(waiting)
                writer.write_table(table.slice(0, ROWS), ROWS)
                waiting = [table.slice(ROWS)]
                written += ROWS
        if waiting and any(map(len, waiting)) or not written:
            table = pa.concat_tables(waiting) if waiting else schema.empty_table()
            writer.write_table(table, ROWS)
            written += len(table)
    return written


def _strip(connection, cuts):
    reader = connection.cursor().sql("SELECT n, text, normal FROM unique_posts").to_arrow_reader(1 << 15)
    for batch in reader:
        words = cuts[batch.column("n").to_numpy()]
        batch = batch.filter(pa.array(words > 0))
        number, words = batch.column("n").to_numpy(), words[words > 0]
        texts, normals = (
            [signoffs.cut(post, count) for post, count in zip(batch.column(name).to_pylist(), words.tolist())]
            for name in ("text", "normal")
        )
        if len(words):
            found = pa.table({"n": number, "words": words, "text": texts, "normal": normals})
            connection.execute("INSERT INTO shortened SELECT * FROM found")


def _one(connection, query):
    return connection.execute(query).fetchall()[0][0]
