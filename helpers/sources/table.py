"""Tables with one post per row: Parquet, CSV (or TSV) and JSON lines.

CSV and JSON lines may be gzipped. Files are read in batches, so a file may be larger than memory.
Times may be timestamps (naive ones count as UTC), ISO 8601 text, dates written as digits, or
numbers since 1970, see :func:`helpers.sources.timestamps.unix_seconds`. Text is UTF-8; bytes that
are not are read as cp1252.
"""

import csv
import gzip
import math
import warnings
from collections import Counter, deque
from functools import partial
from itertools import chain, islice

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from helpers.cleaning.author_names import escape_surrogates
from helpers.cleaning.text import is_bot
from helpers.core.artifacts import file_stats_fingerprint
from helpers.core.parameters import unknown
from helpers.sources import COLUMNS, Part, source_files
from helpers.sources.json_lines import DAMAGE, MAX_LINE_BYTES, json_records
from helpers.sources.timestamps import unix_seconds

FRAME_ROWS = 50_000  # most rows of one frame
# a broken CSV row of more lines is an error: a quote that is never closed swallowed them
MAX_ROW_LINES = 1000
KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# errors for a file that cannot be read as its kind
UNREADABLE = (ValueError, OSError, pa.ArrowException)
TEXT = pa.large_string()
csv.field_size_limit(MAX_LINE_BYTES)


def parts(
    location: str | list[str], *, columns: dict | None = None, raw: bool = False
) -> list[Part]:
    """Return one part per file.

    Drops counted: broken_row (a row of a CSV file with a stray quote, or with more or fewer values
    than columns; a warning names the first of a file), broken_json, truncated_file; empty_author,
    empty_text, empty_topic, bad_time, bot (a row counts under the first of these five that fits).
    Noted: note_cp1252, rows with bytes that are not UTF-8.

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
    raw : bool
        ignored: a table has no markup of its own to remove

    Raises
    ------
    ValueError
        A location is missing, ``columns`` names an unknown column of the posts table, or a file is
        unreadable, is empty, or lacks a column (the message lists those that it has).
    """
    file_columns = _file_columns(columns or {})
    files = source_files("table", location, _kind)
    for path in files.values():
        _check_columns(path, file_columns)
    return [
        Part(name, partial(_frames, file_columns, path), file_stats_fingerprint(path))
        for name, path in files.items()
    ]


def _frames(columns, path, drops):
    """Yield the posts of one file in frames of at most FRAME_ROWS rows."""
    read_jsonl = partial(_read_jsonl, columns["text"])
    reader = {"parquet": _read_parquet, "csv": _read_csv, "jsonl": read_jsonl}[_kind(path)]
    try:
        for batch in reader(path, _needed(columns), drops):
            frame = _frame(batch, columns, _path_without_gz(path).stem, drops)
            if len(frame):
                yield frame
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _file_columns(columns):
    """Return, for each column of the posts table, the list of the file's columns it is made of."""
    message = unknown(columns, [*COLUMNS, "id"], "column of the posts table")
    if message:
        raise ValueError(message)
    file_columns = {name: [name] for name in COLUMNS}
    for name, column in columns.items():
        if not isinstance(column, list) or name == "time":
            column = [column]
        if not column or not all(_is_named(file_column, name) for file_column in column):
            raise ValueError(f"table: name the file's column for {name!r}")
        file_columns[name] = column
    return file_columns


def _is_named(file_column, name):
    """Return whether a value may stand for a file's column: a name, or None for time and topic."""
    if file_column is None:
        return name in ("time", "topic")
    return isinstance(file_column, str) and file_column != ""


def _needed(columns):
    """Return the file's columns that are needed, each once."""
    names = dict.fromkeys(chain.from_iterable(columns.values()))
    return [name for name in names if name is not None]


def _frame(batch, columns, stem, drops):
    """Return the posts of a batch; count the dropped rows by reason.

    ``stem`` is the name of the batch's file without endings.
    """
    frame = pd.DataFrame(index=range(len(batch)))
    for name, file_columns in columns.items():
        if name != "time":
            frame[name] = _text(batch, file_columns, name, stem)
        elif file_columns == [None]:
            frame[name] = 0
        else:
            frame[name] = unix_seconds(batch.column(file_columns[0]))

    bots = [author for author in frame["author"].dropna().unique() if is_bot(author)]
    faults = {
        "empty_author": _is_blank(frame["author"]),
        "empty_text": _is_blank(frame["text"]),
        "empty_topic": _is_blank(frame["topic"]),
        "bad_time": frame["time"] < 0,
        "bot": frame["author"].isin(bots),
    }
    reason = np.select([fault.to_numpy(bool) for fault in faults.values()], list(faults), "")
    drops.update(reason[reason != ""].tolist())
    return frame[reason == ""].reset_index(drop=True)


def _is_blank(texts):
    """Return for each text whether it is missing or blank."""
    return texts.fillna("").str.strip() == ""


def _text(batch, file_columns, name, stem):
    """Return a column of the posts table as text.

    The values of several columns are joined with "/"; the result is missing where one value is.
    None stands for ``stem``, the file's name.
    """
    if file_columns == [None]:
        return stem
    texts = []
    try:
        for file_column in file_columns:
            if file_column is None:
                texts.append(pa.scalar(stem, TEXT))
            else:
                texts.append(batch.column(file_column).cast(TEXT))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {', '.join(map(str, file_columns))} for {name!r} is not text: {error}"
        ) from None
    if len(texts) == 1:
        return texts[0].to_pandas()
    return pc.binary_join_element_wise(*texts, pa.scalar("/", TEXT)).to_pandas()


def _read_parquet(path, needed, drops):
    """Yield batches with the needed columns of a Parquet file; nothing is dropped."""
    with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(FRAME_ROWS, columns=needed)


def _read_csv(path, needed, drops):
    """Return an iterator over tables with the needed columns of a CSV file."""
    rows = _csv_rows(path, drops)
    header = next(rows)
    places = [header.index(column) for column in needed]
    return _tables(([row[place] for place in places] for row in rows), needed)


def _read_jsonl(text_columns, path, needed, drops):
    """Return an iterator over tables with the needed columns of a JSON lines file."""
    rows = (
        [_json_text(post.get(column), column in text_columns) for column in needed]
        for post in _json_objects(path, drops)
    )
    return _tables(rows, needed)


def _tables(rows, needed):
    """Yield rows as tables, which end at FRAME_ROWS rows or beyond MAX_LINE_BYTES characters."""
    table_rows = []
    n_chars = 0
    for row in rows:
        if len(table_rows) == FRAME_ROWS or n_chars > MAX_LINE_BYTES:
            yield _table(table_rows, needed)
            table_rows = []
            n_chars = 0
        table_rows.append(row)
        n_chars += sum(len(value) for value in row if value)
    if table_rows:
        yield _table(table_rows, needed)


def _table(rows, names):
    """Return rows, of which there is at least one, as a table of text columns."""
    columns = [pa.array(values, TEXT) for values in zip(*rows, strict=True)]
    return pa.table(columns, names=names)


class _CsvLines:
    """Iterate over the lines of a CSV file; the lines of a broken row can be read again.

    The end of the file and damage to it end the iteration.
    """

    def __init__(self, file, drops):
        self.file = file
        self.drops = drops
        self.pending = deque()  # lines that are to be read again
        self.row_lines = []  # lines of the row being read; "" is the file's end, None damage
        self.row_chars = 0
        self.row_number = 1  # number, in the file, of the row's first line

    def __iter__(self):
        return self

    def __next__(self):
        line = self.pending.popleft() if self.pending else self.read_line()
        self.row_lines.append(line)
        if not line:
            raise StopIteration
        self.row_chars += len(line)
        if self.row_chars > MAX_LINE_BYTES:
            raise ValueError(
                f"the row that begins in line {self.row_number} is over {MAX_LINE_BYTES:,} "
                "characters; an open quote?"
            )
        return line

    def read_line(self):
        """Return the next line, "" at the end of the file, None where it is damaged (counted)."""
        try:
            return self.file.readline(MAX_LINE_BYTES + 1)
        except DAMAGE:
            self.drops["truncated_file"] += 1
            return None

    def begin_row(self):
        """Count the lines of the last row as read, and begin a new row."""
        self.row_number += len(self.row_lines)
        self.row_lines = []
        self.row_chars = 0

    def read_again(self):
        """Count only the first line of the row as read; the lines after it are read again."""
        self.pending.extendleft(reversed(self.row_lines[1:]))
        del self.row_lines[1:]


def _csv_rows(path, drops):
    """Yield the rows of a CSV file, its header first; blank lines are skipped.

    Of a row with a stray quote only the first line is dropped: the lines that the open quote
    swallowed are read again. ValueError is raised where that is impossible.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    delimiter = "\t" if ".tsv" in path.suffixes else ","
    with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        lines = _CsvLines(file, drops)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        n_columns = 0
        is_warned = False
        while True:
            lines.begin_row()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                # the file is damaged within a quote: counted already
                if lines.row_lines[-1] is None:
                    return
                row = None
            if row == []:
                continue
            if row and n_columns in (0, len(row)):
                n_columns = len(row)
                yield _as_utf8(row, drops)
                continue

            place = f"the row that begins in line {lines.row_number}"
            n_lines = len(lines.row_lines)
            if not n_columns or not lines.row_lines[-1] or n_lines > MAX_ROW_LINES:
                raise ValueError(f"{place} has a quote that is not closed")
            if not is_warned:
                warnings.warn(f"table: {path}: {place} is broken", stacklevel=2)
            is_warned = True
            drops["broken_row"] += 1
            if row is None:
                lines.read_again()


def _as_utf8(row, drops):
    """Return the values of a row with bytes that are not UTF-8, here surrogates, read as cp1252."""
    try:
        "".join(row).encode()
        return row
    except UnicodeEncodeError:
        drops["note_cp1252"] += 1
    return [value.encode("utf-8", "surrogateescape").decode("utf-8", "cp1252") for value in row]


def _json_objects(path, drops):
    """Yield the objects of a JSON lines file; an empty one or another value is broken_json."""
    for record in json_records(path, drops):
        if isinstance(record, dict) and record:
            yield record
        else:
            drops["broken_json"] += 1


def _json_text(value, is_prose):
    """Return a JSON value as text; None where it is neither text nor a finite number.

    Lone surrogates become "?" in prose. Elsewhere they become escapes, so that two names which
    differ in them stay apart.
    """
    if isinstance(value, str) and is_prose:
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, str):
        return escape_surrogates(value)
    if type(value) in (int, float) and math.isfinite(value):
        return str(value)
    return None


def _check_columns(path, columns):
    """Raise ValueError unless a file is readable and has each needed column exactly once."""
    kind = _kind(path)
    if not kind:
        raise ValueError(
            f"table: {path} is none of {', '.join(KINDS)} (or one of the text kinds with .gz)"
        )
    try:
        present = _column_names(path, kind)
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    if not present:
        row = "JSON object" if kind == "jsonl" else "row"
        raise ValueError(f"table: {path.name} is empty or cut: it holds no {row}")

    missing = [column for column in _needed(columns) if column not in present]
    if missing:
        raise ValueError(
            f"table: {path.name} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, present))}; say which is which with columns={{...}}"
        )
    for column in _needed(columns):
        if present.count(column) > 1:
            raise ValueError(
                f"table: {path.name} has the column {column!r} {present.count(column)} times; "
                "rename one"
            )


def _column_names(path, kind):
    """Return the names of a file's columns; of JSON lines those in its first 1,000 objects."""
    if kind == "parquet":
        return pa.parquet.read_schema(path).names
    if kind == "csv":
        return next(_csv_rows(path, Counter()), [])
    objects = islice(_json_objects(path, Counter()), 1000)
    return list(dict.fromkeys(chain.from_iterable(objects)))


def _unreadable(path, error):
    """Return the error that says in one line why a file cannot be read."""
    words = " ".join(str(error).split())  # Arrow's messages have several lines
    return ValueError(f"table: cannot read {path}: {words}")


def _kind(path):
    """Return which of KINDS a file is, None where it is none of them."""
    return KINDS.get(_path_without_gz(path).suffix.lower())


def _path_without_gz(path):
    """Return the path without the ending .gz."""
    return path.with_name(path.name.removesuffix(".gz"))
