"""Tables that hold one post per row: Parquet, CSV (or TSV) and JSON lines, the latter two also gzipped.

Read in batches, so a file may be larger than memory. Times may be timestamps (naive ones count as UTC), ISO 8601 text,
dates written as digits, or numbers since 1970, see :func:`helpers.sources.timestamps.unix_seconds`. Text is UTF-8; a byte
that is none is read as cp1252.
"""

import csv
import gzip
import math
import warnings
from collections import Counter, deque
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from helpers.cleaning.text import is_bot
from helpers.core.artifacts import file_stats_fingerprint
from helpers.core.parameters import unknown
from helpers.sources import COLUMNS, Part, source_files
from helpers.sources.json_lines import DAMAGE, LONGEST, json_records
from helpers.sources.timestamps import unix_seconds

ROWS = 50_000  # of one frame
LINES = 1000  # of a CSV row: a longer one that is broken has lost its end
KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
UNREADABLE = (ValueError, OSError, pa.ArrowException)
csv.field_size_limit(LONGEST)


def parts(
    location: str | list[str], *, columns: dict | None = None, raw: bool = False
) -> list[Part]:
    """One part per file.

    location: a file, a folder (searched recursively) or a list of these.
    columns: the file's column for each of author, time, topic, text and, if wanted, id; the same name where absent. A
        list of columns is joined with "/". For the topic None stands for the file's name, alone or in a list; for the
        time None says that there is none: it is 0, the first second of 1970, so a split by time says nothing.
    raw: accepted for all sources; a table has no markup of its own to remove.
    Drops counted: broken_row (a row of a CSV file with a stray quote or more or fewer values than columns; a warning
    names the first), broken_json, truncated_file, bad_time, empty_author, empty_text, empty_topic, bot. Noted:
    note_cp1252, rows with bytes that are no UTF-8.
    Raises ValueError where a location is missing, a file is unreadable or lacks a column (it lists those found).
    """
    if message := unknown(columns or {}, [*COLUMNS, "id"], "column of the posts table"):
        raise ValueError(message)
    columns = {name: name for name in COLUMNS} | (columns or {})
    for name, column in columns.items():
        several = isinstance(column, list) and column and name != "time"
        missing = (None,) * (name in ("time", "topic"))  # stands for the file's name, or no time
        if not all(
            each in missing or each and isinstance(each, str)
            for each in (column if several else [column])
        ):
            raise ValueError(f"table: name the file's column for {name!r}")
    columns = {
        name: column if isinstance(column, list) else [column] for name, column in columns.items()
    }
    named = source_files("table", location, _kind)
    for path in named.values():
        _check(path, columns)
    return [
        Part(name, partial(read_table_rows, columns, path), file_stats_fingerprint(path))
        for name, path in named.items()
    ]


def read_table_rows(columns: dict, path: Path, drops: Counter) -> Iterator[pd.DataFrame]:
    """The posts of one file in frames of at most ROWS rows."""
    reader = {"parquet": _parquet, "csv": _csv, "jsonl": _jsonl}[_kind(path)]
    try:
        for batch in reader(path, _needed(columns), drops):
            frame = _frame(batch, columns, _unpacked(path).stem, drops)
            if len(frame):
                yield frame
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _frame(batch, columns, stem, drops):
    frame = pd.DataFrame(
        {
            name: _text(batch, column, name, stem)
            for name, column in columns.items()
            if name != "time"
        },
        index=range(len(batch)),
    )
    frame["time"] = (
        0 if columns["time"] == [None] else unix_seconds(batch.column(columns["time"][0]))
    )
    bots = {author for author in frame["author"].dropna().unique() if is_bot(author)}
    faults = {
        f"empty_{name}": frame[name].fillna("").str.strip().eq("")
        for name in ("author", "text", "topic")
    }
    faults |= {"bad_time": frame["time"].lt(0), "bot": frame["author"].isin(bots)}
    reason = np.select(
        [fault.to_numpy(bool) for fault in faults.values()], list(faults), ""
    )  # the first counts
    drops.update(reason[reason != ""].tolist())
    order = [*COLUMNS, *(["id"] if "id" in frame else [])]
    return frame.loc[reason == "", order].reset_index(drop=True).astype({"time": "int64"})


def _needed(columns):
    """The file's columns that are needed, each once."""
    return list(
        dict.fromkeys(name for names in columns.values() for name in names if name is not None)
    )


def _text(batch, names, name, stem):
    """A column as text; several are joined with "/" and missing where one of them is; None is the file's name."""
    if names == [None]:
        return stem
    kind = pa.large_string()
    try:
        texts = [
            pa.scalar(stem, kind) if each is None else pc.cast(batch.column(each), kind)
            for each in names
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {', '.join(map(str, names))} for {name!r} is not text: {error}"
        ) from None
    return (
        texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, pa.scalar("/", kind))
    ).to_pandas()


def _parquet(path, needed, drops):
    with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(ROWS, columns=needed)


def _csv(path, needed, drops):
    rows = _rows(path, drops)
    header = next(rows)
    places = [header.index(column) for column in needed]
    return _batches(([row[place] for place in places] for row in rows), needed)


def _rows(path, drops):
    """The rows of a CSV file, header first. A row with a stray quote costs its line; what it took in is read again."""
    lines, again, number, width, broken = (
        [],
        deque(),
        1,
        0,
        False,
    )  # lines: of the row that begins in line ``number``

    def feed(file):
        size = 0
        while True:
            try:
                lines.append(again.popleft() if again else file.readline(LONGEST + 1))
            except DAMAGE:
                drops["truncated_file"] += 1
                lines.append(None)
            if not lines[-1]:
                return
            size = len(lines[-1]) + (size if len(lines) > 1 else 0)
            if size > LONGEST:
                raise ValueError(
                    f"the row that begins in line {number} is over {LONGEST:,} characters; an open quote?"
                )
            yield lines[-1]

    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(
            feed(file), delimiter="\t" if ".tsv" in path.suffixes else ",", strict=True
        )
        while True:
            lines.clear()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                row = None
                if lines[-1] is None:  # the file is cut within a quote
                    return
            width = width or len(row or [])
            if row is None or len(row) not in (0, width):
                if not width or not lines[-1] or len(lines) > LINES:
                    raise ValueError(
                        f"the row that begins in line {number} has a quote that is not closed"
                    )
                if not broken:
                    warnings.warn(
                        f"table: {path}: the row that begins in line {number} is broken",
                        stacklevel=2,
                    )
                broken = True
                drops["broken_row"] += 1
                if row is None:
                    again.extendleft(reversed(lines[1:]))
                    del lines[1:]
            elif row:
                yield _utf8(row, drops)
            number += len(lines)


def _utf8(row, drops):
    try:
        "".join(row).encode()
        return row
    except UnicodeEncodeError:  # bytes that are no UTF-8 came as surrogates
        drops["note_cp1252"] += 1
        return [value.encode("utf-8", "surrogateescape").decode("utf-8", "cp1252") for value in row]


def _batches(rows, needed):
    """Tables of at most ROWS rows and not many more than LONGEST characters."""
    some, size = [], 0
    for row in chain(rows, [None]):
        if some and (row is None or len(some) == ROWS or size > LONGEST):
            yield pa.table(
                [pa.array(values, pa.large_string()) for values in zip(*some, strict=True)],
                names=needed,
            )
            some, size = [], 0
        if row:
            some.append(row)
            size += sum(len(value) for value in row if value)


def _jsonl(path, needed, drops):
    return _batches(
        ([_plain(row.get(column)) for column in needed] for row in _objects(path, drops)), needed
    )


def _objects(path, drops):
    """The objects of a JSON lines file."""
    for record in json_records(path, drops):
        if isinstance(record, dict) and record:
            yield record
        else:
            drops["broken_json"] += 1


def _plain(value):
    """A JSON value as text; what is neither text nor number is missing."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
        )  # lone surrogates
    return str(value) if type(value) in (int, float) and math.isfinite(value) else None


def _check(path, columns):
    """Raise ValueError where a file is unreadable or lacks a needed column; it lists the columns there are."""
    kind = _kind(path)
    if not kind:
        raise ValueError(
            f"table: {path} is none of {', '.join(KINDS)} (or one of the text kinds with .gz)"
        )
    try:
        if kind == "parquet":
            present = pa.parquet.read_schema(path).names
        elif kind == "csv":
            present = next(_rows(path, Counter()), [])
        else:
            present = list(
                dict.fromkeys(key for row in islice(_objects(path, Counter()), 1000) for key in row)
            )
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    if not present:
        row = "JSON object" if kind == "jsonl" else "row"
        raise ValueError(f"table: {path.name} is empty or cut: it holds no {row}")
    if missing := [column for column in _needed(columns) if column not in present]:
        raise ValueError(
            f"table: {path.name} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, present)) or 'none'}; say which is which with columns={{...}}"
        )
    if twice := [column for column in _needed(columns) if present.count(column) > 1]:
        raise ValueError(
            f"table: {path.name} has the column {twice[0]!r} {present.count(twice[0])} times; rename one"
        )


def _unreadable(path, error):
    return ValueError(
        f"table: cannot read {path}: {' '.join(str(error).split())}"
    )  # Arrow's are several lines


def _unpacked(path):
    return path.with_suffix("") if path.suffix == ".gz" else path


def _kind(path):
    return KINDS.get(_unpacked(path).suffix.lower())
