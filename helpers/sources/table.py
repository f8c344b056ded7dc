"""Tables with one post per row: Parquet, CSV (or TSV) and JSON lines.

The values of a row of CSV are parted by commas, semicolons, tabs or bars, whatever the file's
ending, see :func:`helpers.sources.csv_and_json_lines.csv_rows`. CSV and JSON lines may be packed
(.gz, .bz2, .xz, .zst). Files are read in batches, so a file may be larger than memory.
Times may be timestamps (naive ones count as UTC), ISO 8601 text, dates written as digits, or
numbers since 1970, see :func:`helpers.sources.table_columns.unix_seconds`. Text is UTF-8, or
UTF-16 with a mark at its start; bytes that are not UTF-8 are read as cp1252.
"""

from collections import Counter
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from ..cleaning.authors import escape_surrogates
from ..cleaning.text import RETWEET, is_bot, is_notice
from ..core.files import OPENERS, bare_path, check_readable
from ..core.parameters import unknown
from ..core.paths import resolve
from . import COLUMNS, Part, as_list, file_parts, source_files
from .csv_and_json_lines import csv_rows, json_records
from .table_columns import (
    RoundedIds,
    author_of,
    holds_names,
    joined_text,
    marks_rows,
    row_mark,
    unix_seconds,
    value_text,
)

BATCH_ROWS = 10_000  # most rows of a batch
KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
JSON_LINES_HINT = "write one JSON object a line into a .jsonl file, see docs/data.md"
# what a file without a name of a column does not hold
NO_COLUMNS = {
    "csv": "first line with the names of columns, such as author,time,topic,text, and posts below",
    "jsonl": f"JSON object on a line of its own: {JSON_LINES_HINT}",
    "parquet": "column",
}
FIRST_OBJECTS = 1000  # of JSON lines, which are looked at for the names of columns
MAX_LISTED = 30  # names of columns in a message
MAX_NAME_CHARS = 60  # of such a name
NO_TOPIC = "(no topic)"  # topic of a post whose topic is empty
# errors for a file that cannot be read as its kind
UNREADABLE = (ValueError, OSError, pa.ArrowException)


def parts(
    location: str | list[str],
    *,
    columns: dict | None = None,
) -> list[Part]:
    """Return one part per file.

    Drops counted: broken_row (a row of a CSV file with a stray quote, or with more or fewer values
    than columns), broken_json, truncated_file; empty_author, rounded_author, empty_text, notice,
    bad_time, bot, marked_bot, repost (a row counts under the first of these eight that fits).
    Noted: note_empty_topic, posts without a topic; note_cp1252, rows with bytes that are not UTF-8;
    note_rows_in_quotes, rows of a CSV file with a value that seems to hold other rows.

    A column may mark posts of bots, or reposts of others, see
    :func:`helpers.sources.table_columns.row_mark`.

    A number is named as a person writes it, in a file of any kind: 10.0 as 10. A truth value is
    "True" or "False". A number that was rounded names nobody, since different ids look alike then:
    such rows are dropped as rounded_author, and a file with many is refused.

    All posts with an empty topic have one topic, NO_TOPIC. For a split by topic, and for whatever
    compares topics, it is a topic like any other.

    Columns that are called as those with names are read for these names, which are masked in posts.

    A text of JSON may be a list of strings and objects with a ``text``, as Telegram writes words in
    bold and links; they are joined.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively)
    columns : dict
        name of the file's column for each of author, time, topic and text, and for id if ids are
        wanted; a column that is not given has the same name in the file. The values of a list of
        columns are joined with "/". For the topic None, alone or in a list, stands for the file's
        name. For the time None says that there are no times: all are 0, the first second of 1970,
        so a split by time is meaningless.

    Raises
    ------
    ValueError
        A location is missing or has no table, ``columns`` names an unknown column of the posts
        table, or a file is unreadable, is empty, lacks a column (the message lists those that it
        has), or has rounded numbers for authors.
    """
    file_columns = _file_columns(columns or {})
    files = source_files("table", location, _kind)
    if not files:
        raise ValueError(f"table: {location} holds no file that ends in {', '.join(KINDS)}")
    for path in files.values():
        _check_columns(path, _needed(file_columns.values()))
    return file_parts(files, partial(_rows, file_columns))


def column_names(location: str | Path) -> list[str]:
    """Return the names of a file's columns; of JSON lines those in its first 1,000 objects.

    Raises
    ------
    ValueError
        There is no such file, it is of no kind of KINDS, or it is empty or unreadable.
    """
    path = resolve(location)
    check_readable(path)
    if not _kind(path):
        raise ValueError(
            f"table: {path} is none of {', '.join(KINDS)} (or one of the text kinds, packed as "
            f"{', '.join(OPENERS)}): rename it if its lines are, export its posts as CSV, or "
            f"{JSON_LINES_HINT}"
        )
    with _readable(path):
        if _kind(path) == "parquet":
            names = pa.parquet.read_schema(path).names
        elif _kind(path) == "csv":
            names = next(csv_rows(path, Counter()), [])
        else:
            objects = islice(json_records(path, dict, Counter()), FIRST_OBJECTS)
            names = list(dict.fromkeys(chain.from_iterable(objects)))
    if not names:
        raise ValueError(
            f"table: {path.name} is empty or cut: it holds no {NO_COLUMNS[_kind(path)]}"
        )
    return names


def listed_names(columns: list[str]) -> str:
    """Return the names of a file's columns for a message, long ones and long lists cut."""
    names = [repr(column[:MAX_NAME_CHARS]) for column in columns[:MAX_LISTED]]
    if len(columns) > MAX_LISTED:
        names.append("...")
    return ", ".join(names)


def author_names(location: str | list[str], column: str | list[str]) -> list[str]:
    """Return the different names of authors in some files, as :func:`parts` reads them; "" is none.

    Parameters
    ----------
    location : str or list of str
        as :func:`parts` takes it
    column : str or list of str
        the files' columns of authors

    Raises
    ------
    ValueError
        The file is unreadable.
    """
    columns = as_list(column)
    names = set()
    for path in source_files("table", location, _kind).values():
        records = _records(path, columns, Counter())
        names.update(author_of(record, columns) for record in records)
    return sorted(names)


def bad_time(location: str | list[str], column: str) -> str:
    """Return the first value that is no time in a column of some files, "" if all are empty.

    Parameters
    ----------
    location : str or list of str
        as :func:`parts` takes it
    column : str
        the column of times
    """
    for path in source_files("table", location, _kind).values():
        for record in _records(path, [column], Counter()):
            value = record.get(column)
            if unix_seconds(value) < 0 and str(value or "").strip():
                return str(value)
    return ""


def _rows(columns, path, drops):
    """Yield the values of the posts of one file, and the reasons of drops."""
    further = [column for column in column_names(path) if marks_rows(column) or holds_names(column)]
    stem = bare_path(path).stem
    ids = RoundedIds(columns["author"])
    for record in _records(path, _needed([*columns.values(), further]), drops):
        yield _row(record, columns, stem, ids, drops)
    with _readable(path):
        ids.check()


def _row(record, columns, stem, ids, drops):
    """Return the values of the post that a row is, or the reason why it is dropped.

    ``stem`` is the name of the file without endings, ``ids`` its :class:`RoundedIds`. A post
    without a topic is noted in ``drops``.
    """
    author = author_of(record, columns["author"])
    is_rounded = ids.is_rounded(author)
    if not author:
        return "empty_author"
    if is_rounded:
        return "rounded_author"
    # a lone surrogate, half of a letter, becomes "?"
    text = joined_text(record, columns["text"], stem).encode("utf-8", "replace").decode()
    if not text.strip():
        return "empty_text"
    if is_notice(text):
        return "notice"
    time = 0
    if columns["time"] != [None]:
        time = unix_seconds(record.get(columns["time"][0]))
    if time < 0:
        return "bad_time"
    if is_bot(author):
        return "bot"
    names = []
    for column, value in record.items():
        # a column of JSON lines may begin anywhere in the file
        if marks_rows(column):
            mark = row_mark(column, value)
            if mark:
                return mark
        if holds_names(column):
            names.append(value_text(value) or "")
    if RETWEET.match(text):
        return "repost"
    topic = joined_text(record, columns["topic"], stem)
    if not topic.strip():
        drops["note_empty_topic"] += 1
        topic = NO_TOPIC
    post_id = escape_surrogates(joined_text(record, columns.get("id", []), stem))
    return author, time, topic, text, post_id or None, names


def _records(path, needed, drops):
    """Yield the rows of a file as dicts, with at least the needed columns that it has."""
    with _readable(path):
        if _kind(path) == "parquet":
            with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=needed):
                    columns = list(map(_dates_as_text, batch.columns))
                    yield from pa.table(columns, names=batch.schema.names).to_pylist()
        elif _kind(path) == "csv":
            rows = csv_rows(path, drops)
            header = next(rows)
            yield from (dict(zip(header, row)) for row in rows)
        else:
            yield from json_records(path, dict, drops)


def _dates_as_text(column):
    """Return dates as text in UTC, as Python knows none after 9999; other columns as they are."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("s"), safe=False).cast(pa.string())
    return column


@contextmanager
def _readable(path):
    """Let a block that reads a file raise only an error that names it, in one line."""
    try:
        yield
    except UNREADABLE as error:
        words = " ".join(str(error).split())  # Arrow's messages have several lines
        words = words.removeprefix(f"{path} ")
        raise ValueError(f"table: cannot read {path}: {words}") from None


def _file_columns(columns):
    """Return, for each column of the posts table, the list of the file's columns it is made of."""
    message = unknown(columns, [*COLUMNS, "id"], "column of the posts table")
    if message:
        raise ValueError(message)
    file_columns = {name: [name] for name in COLUMNS}
    for name, column in columns.items():
        file_columns[name] = column if isinstance(column, list) else [column]
    if None in file_columns["author"] + file_columns["text"]:
        raise ValueError("table: name the file's columns for author and text")
    return file_columns


def _needed(columns):
    """Return the names of a file's columns that several lists hold, each once."""
    names = dict.fromkeys(chain.from_iterable(columns))
    return [name for name in names if name is not None]


def _check_columns(path, needed):
    """Raise ValueError unless a file is readable and has each needed column exactly once."""
    present = column_names(path)
    missing = [column for column in needed if column not in present]
    if missing:
        raise ValueError(
            f"table: {path.name} has no column {', '.join(map(repr, missing))}; it has "
            f"{listed_names(present)}; say which is which with columns={{...}}"
        )
    for column in needed:
        if present.count(column) > 1:
            raise ValueError(
                f"table: {path.name} has the column {column!r} {present.count(column)} times; "
                "rename one"
            )


def _kind(path):
    """Return which of KINDS a file is by its name, None for none; Parquet is never packed."""
    path = Path(path)
    suffix = bare_path(path).suffix.lower()
    if suffix == ".parquet" and path != bare_path(path):
        return None
    return KINDS.get(suffix)
