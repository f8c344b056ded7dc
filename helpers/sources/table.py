"""Tables with one post per row: Parquet, CSV (or TSV) and JSON lines.

The values of a row of CSV are parted by commas, semicolons, tabs or bars, whatever the file's
ending, see :func:`helpers.sources.csv_and_json_lines.csv_rows`. CSV and JSON lines may be packed
(.gz, .bz2, .xz, .zst). Files are read in batches, so a file may be larger than memory.
Times may be timestamps (naive ones count as UTC), ISO 8601 text, dates written as digits, or
numbers since 1970, see :func:`helpers.sources.table_columns.unix_seconds`. Text is UTF-8, or
UTF-16 with a mark at its start; bytes that are not UTF-8 are read as cp1252.
"""

from collections import Counter
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from ..cleaning.text import RETWEET, is_bot, is_notice
from ..core.files import OPENERS, bare_path, check_readable
from ..core.parameters import unknown
from ..core.paths import resolve
from . import COLUMNS, Part, as_list, file_parts, source_files
from .csv_and_json_lines import csv_rows, json_records
from .table_columns import (
    TEXT,
    RoundedIds,
    is_blank,
    joined_texts,
    marked_rows,
    marks_rows,
    unix_seconds,
    value_text,
)

BATCH_ROWS = 10_000  # most rows of a batch
KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# what to do with files of other endings
REMEDIES = {
    ".json": "write one JSON object a line into a .jsonl file, see docs/data.md",
    ".txt": "rename it to .csv, .tsv or .jsonl, as its lines are",
    ".zip": "unpack it, and name the file in it",
    ".sql": "export its table as CSV from the database",
    ".mbox": "write one mail a line into a .jsonl file, see docs/data.md",
}
# what a file without a name of a column does not hold
NO_COLUMNS = {
    "csv": "first line with the names of columns, such as author,time,topic,text, and posts below",
    "jsonl": f"JSON object on a line of its own: {REMEDIES['.json']}",
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
    :func:`helpers.sources.table_columns.marked_rows`.

    A number is named as a person writes it, in a file of any kind: 10.0 as 10. A truth value is
    "True" or "False". A number that was rounded names nobody, since different ids look alike then:
    such rows are dropped as rounded_author, and a file with many is refused.

    All posts with an empty topic have one topic, NO_TOPIC. For a split by topic, and for whatever
    compares topics, it is a topic like any other.

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
        message = (
            f"table: {path} is none of {', '.join(KINDS)} (or one of the text kinds, packed as "
            f"{', '.join(OPENERS)})"
        )
        if _suffix(path) in REMEDIES:
            message += f": {REMEDIES[_suffix(path)]}"
        raise ValueError(message)
    try:
        names = _column_names(path)
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
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
        try:
            for batch in _batches(path, _needed([columns]), Counter()):
                names.update(joined_texts(batch, columns, "author", path.stem).fillna(""))
        except UNREADABLE as error:
            raise _unreadable(path, error) from None
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
        for batch in _batches(path, [column], Counter()):
            times = batch.column(column)
            for value in times.filter(pa.array(unix_seconds(times) < 0)).to_pylist():
                if str(value or "").strip():
                    return str(value)
    return ""


def first_line_of(location: str | list[str], reason: str) -> str:
    """Return where the first row of some CSV files begins that is dropped or noted for a reason.

    Parameters
    ----------
    location : str or list of str
        as :func:`parts` takes it
    reason : str
        broken_row or note_rows_in_quotes, of which there is at least one
    """
    for path in source_files("table", location, _kind).values():
        first_lines = {}
        if _kind(path) == "csv":
            for _ in csv_rows(path, Counter(), first_lines):
                pass
        if reason in first_lines:
            return f"line {first_lines[reason]:,} of {path.name}"
    return ""


def _rows(columns, path, drops):
    """Yield the values of the posts of one file."""
    marks = filter(marks_rows, column_names(path))
    needed = _needed([*columns.values(), marks])
    ids = RoundedIds(columns["author"])
    try:
        for batch in _batches(path, needed, drops, columns["text"]):
            frame = _frame(batch, columns, bare_path(path).stem, drops, ids).astype(object)
            # only an id may be missing here
            yield from frame.where(frame.notna(), None).itertuples(index=False, name=None)
        ids.check()
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _batches(path, needed, drops, prose=()):
    """Return an iterator over tables with the needed columns of a file.

    Lone surrogates, which only JSON can hold, become "?" in columns of prose, escapes in others.
    """
    if _kind(path) == "parquet":
        return _read_parquet(path, needed)
    if _kind(path) == "csv":
        csv_values = csv_rows(path, drops)
        header = next(csv_values)
        places = [header.index(column) for column in needed]
        rows = ([row[place] for place in places] for row in csv_values)
    else:
        rows = (
            [_json_text(post.get(column), column, prose) for column in needed]
            for post in json_records(path, dict, drops)
        )
    return _tables(rows, needed)


def _json_text(value, column, prose):
    """Return a value of JSON as text; an object in a column that marks rows is there or not."""
    if isinstance(value, dict) and marks_rows(column):
        return str(bool(value))
    return value_text(value, column in prose)


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


def _frame(batch, columns, stem, drops, ids):
    """Return the posts of a batch; count the dropped rows by reason.

    ``stem`` is the name of the batch's file without endings, ``ids`` its :class:`RoundedIds`.
    """
    frame = pd.DataFrame(index=range(len(batch)))
    for name, file_columns in columns.items():
        if name != "time":
            frame[name] = joined_texts(batch, file_columns, name, stem)
        elif file_columns == [None]:
            frame[name] = 0
        else:
            frame[name] = unix_seconds(batch.column(file_columns[0]))

    bots = [author for author in frame["author"].dropna().unique() if is_bot(author)]
    is_marked, is_repost = marked_rows(batch)
    faults = {
        "empty_author": is_blank(frame["author"]),
        "rounded_author": ids.are_rounded(frame["author"]),
        "empty_text": is_blank(frame["text"]),
        "notice": frame["text"].fillna("").map(is_notice),
        "bad_time": frame["time"] < 0,
        "bot": frame["author"].isin(bots),
        "marked_bot": is_marked,
        "repost": is_repost | frame["text"].str.match(RETWEET, na=False),
    }
    reason = np.select([fault.to_numpy(bool) for fault in faults.values()], list(faults), "")
    drops.update(reason[reason != ""].tolist())
    frame = frame[reason == ""].reset_index(drop=True)
    has_no_topic = is_blank(frame["topic"])
    if has_no_topic.any():
        drops["note_empty_topic"] += int(has_no_topic.sum())
        frame["topic"] = frame["topic"].mask(has_no_topic, NO_TOPIC)
    return frame


def _read_parquet(path, needed):
    """Yield batches with the needed columns of a Parquet file."""
    with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(BATCH_ROWS, columns=needed)


def _tables(rows, needed):
    """Yield rows as tables of text columns, BATCH_ROWS rows at a time."""
    while table_rows := list(islice(rows, BATCH_ROWS)):
        columns = [pa.array(values, TEXT) for values in zip(*table_rows, strict=True)]
        yield pa.table(columns, names=needed)


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


def _column_names(path):
    """Return the names of a file's columns, which may be none."""
    kind = _kind(path)
    if kind == "parquet":
        return pa.parquet.read_schema(path).names
    if kind == "csv":
        return next(csv_rows(path, Counter()), [])
    objects = islice(json_records(path, dict, Counter()), FIRST_OBJECTS)
    return list(dict.fromkeys(chain.from_iterable(objects)))


def _unreadable(path, error):
    """Return the error that says in one line why a file cannot be read."""
    words = " ".join(str(error).split())  # Arrow's messages have several lines
    words = words.removeprefix(f"{path} ")
    return ValueError(f"table: cannot read {path}: {words}")


def _kind(path):
    """Return which of KINDS a file is, None where it is none of them; Parquet is never packed."""
    if _suffix(path) == ".parquet" and path != bare_path(path):
        return None
    return KINDS.get(_suffix(path))


def _suffix(path):
    """Return the ending of a file's name in lower case, before that of a packed file."""
    return bare_path(path).suffix.lower()
