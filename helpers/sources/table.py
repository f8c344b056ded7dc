"""Tables that hold one post per row: Parquet, CSV (or TSV) and JSON lines, the latter two also gzipped.

Read in batches, so a file may be larger than memory. Times may be timestamps (naive ones count as UTC), ISO 8601 text,
or numbers since 1970: seconds, milli-, micro- or nanoseconds, told apart by their size.
"""

import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from helpers.cleaning.text import is_bot
from helpers.runs.parameters import unknown
from helpers.sources import COLUMNS, Part, file_parts, files
from helpers.sources.ndjson import records
from helpers.sources.timestamps import seconds

ROWS = 50_000  # of one frame
KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def parts(location: str | list[str], *, columns: dict | None = None, raw: bool = False) -> list[Part]:
    """One part per file.

    location: a file, a folder (searched recursively) or a list of these.
    columns: the file's column for each of author, time, topic, text and, if wanted, id; the same name where absent. A
        list of columns is joined with "/". For the topic None stands for the file's name, alone or in a list; for the
        time None says that there is none: it is 0, the first second of 1970, so a split by time says nothing.
    raw: accepted for all sources; a table has no markup of its own to remove.
    Drops counted: broken_row, broken_json, truncated_file, bad_time, empty_author, empty_text, empty_topic, bot.
    Raises ValueError where a location is missing, a file is unreadable or lacks a column (it lists those found).
    """
    if message := unknown(columns or {}, [*COLUMNS, "id"], "column of the posts table"):
        raise ValueError(message)
    columns = {name: name for name in COLUMNS} | (columns or {})
    for name, column in columns.items():
        if column == [] or None in _listed(column) and name != "topic" and (name, column) != ("time", None):
            raise ValueError(f"table: name the file's column for {name!r}")
    named = files("table", location, _kind)
    for path in named.values():
        _check(path, columns)
    return file_parts(named, partial(read, columns))


def read(columns: dict, path: Path, drops: Counter) -> Iterator[pd.DataFrame]:
    """The posts of one file in frames of at most ROWS rows."""
    reader = {"parquet": _parquet, "csv": _csv, "jsonl": _jsonl}[_kind(path)]
    try:
        for batch in reader(path, _needed(columns), drops):
            frame = _frame(batch, columns, _stem(path), drops)
            if len(frame):
                yield frame
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"table: cannot read {path}: {error}") from None


def _frame(batch, columns, stem, drops):
    frame = pd.DataFrame(
        {name: _text(batch, column, name, stem) for name, column in columns.items() if name != "time"},
        index=range(len(batch)),
    )
    frame["time"] = 0 if columns["time"] is None else seconds(batch.column(columns["time"]))
    bots = {author for author in frame["author"].dropna().unique() if is_bot(author)}
    faults = {f"empty_{name}": frame[name].fillna("").str.strip().eq("") for name in ("author", "text", "topic")}
    faults |= {"bad_time": frame["time"].lt(0), "bot": frame["author"].isin(bots)}
    reason = np.select([fault.to_numpy(bool) for fault in faults.values()], list(faults), "")  # the first counts
    drops.update(reason[reason != ""].tolist())
    order = [*COLUMNS, *(["id"] if "id" in frame else [])]
    return frame.loc[reason == "", order].reset_index(drop=True).astype({"time": "int64"})


def _listed(column):
    return column if isinstance(column, list) else [column]


def _needed(columns):
    """The file's columns that are needed, each once."""
    names = (name for column in columns.values() for name in _listed(column))
    return list(dict.fromkeys(name for name in names if name is not None))


def _text(batch, column, name, stem):
    """A column as text; several are joined with "/" and missing where one of them is; None is the file's name."""
    if column in (None, [None]):
        return stem
    kind = pa.large_string()
    names = _listed(column)
    try:
        texts = [pa.scalar(stem, kind) if each is None else pc.cast(batch.column(each), kind) for each in names]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"table: column {column} for {name!r} is not text: {error}") from None
    return (texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, pa.scalar("/", kind))).to_pandas()


def _parquet(path, needed, drops):
    with pa.parquet.ParquetFile(path) as file:
        yield from file.iter_batches(ROWS, columns=needed)


def _csv(path, needed, drops):
    with pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(block_size=1 << 24, use_threads=False),
        parse_options=pa.csv.ParseOptions(
            delimiter=_delimiter(path), newlines_in_values=True,
            invalid_row_handler=lambda row: drops.update(broken_row=1) or "skip",
        ),
        # as bytes, so that a wrong encoding costs the odd letter and not the file
        convert_options=pa.csv.ConvertOptions(
            include_columns=needed, column_types=dict.fromkeys(needed, pa.binary()), strings_can_be_null=False
        ),
    ) as reader:  # fmt: skip
        for batch in reader:
            for start in range(0, len(batch), ROWS):
                piece = batch.slice(start, ROWS)
                yield pa.table({column: _decoded(piece.column(column)) for column in needed})


def _delimiter(path):
    return "\t" if ".tsv" in path.suffixes else ","


def _decoded(column):
    try:
        return pc.cast(column, pa.large_string())
    except pa.ArrowInvalid:
        texts = (value.decode("utf-8", "replace") if value is not None else None for value in column.to_pylist())
        return pa.array(texts, pa.large_string())


def _jsonl(path, needed, drops):
    rows = ([_plain(row.get(column)) for column in needed] for row in _objects(path, drops))
    while some := list(islice(rows, ROWS)):
        yield pa.table([pa.array(values, pa.large_string()) for values in zip(*some, strict=True)], names=needed)


def _objects(path, drops):
    """The objects of a JSON lines file."""
    for record in records(path, drops, errors="replace"):
        if isinstance(record, dict) and record:
            yield record
        else:
            drops["broken_json"] += 1


def _plain(value):
    """A JSON value as text; what is neither text nor number is missing."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")  # lone surrogates
    return str(value) if type(value) in (int, float) and math.isfinite(value) else None


def _check(path, columns):
    """Raise ValueError where a file is unreadable or lacks a needed column; it lists the columns there are."""
    kind = _kind(path)
    if not kind:
        raise ValueError(f"table: {path} is none of {', '.join(KINDS)} (or one of the text kinds with .gz)")
    try:
        if kind == "parquet":
            present = pa.parquet.read_schema(path).names
        elif kind == "csv":
            with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
                head = pa.BufferReader(file.readline(1 << 20))
            options = pa.csv.ParseOptions(delimiter=_delimiter(path))
            present = pa.csv.read_csv(head, parse_options=options).column_names
        else:
            present = list(dict.fromkeys(key for row in islice(_objects(path, Counter()), 1000) for key in row))
    except (ValueError, OSError, EOFError, zlib.error) as error:  # Arrow's errors are ValueErrors
        raise ValueError(f"table: cannot read {path}: {error}") from None
    if missing := [column for column in _needed(columns) if column not in present]:
        raise ValueError(
            f"table: {path.name} has no column {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, present)) or 'none'}; say which is which with columns={{...}}"
        )


def _kind(path):
    return KINDS.get((path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower())


def _stem(path):
    return (path.with_suffix("") if path.suffix == ".gz" else path).stem
