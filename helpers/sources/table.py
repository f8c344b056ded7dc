"""Tables that hold one post per row: Parquet, CSV (or TSV) and JSON lines, the latter two also gzipped.

Read in batches, so a file may be larger than memory. Times may be timestamps (naive ones count as UTC), ISO 8601 text,
or numbers since 1970: seconds, milli-, micro- or nanoseconds, told apart by their size.
"""

import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from helpers.runs import paths
from helpers.runs.artifacts import stamp
from helpers.cleaning.text import is_bot
from helpers.runs.parameters import unknown
from helpers.sources import COLUMNS, Part
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
    for name, wanted in columns.items():
        if wanted == [] or None in _listed(wanted) and name != "topic" and (name, wanted) != ("time", None):
            raise ValueError(f"table: name the file's column for {name!r}")
    found = {}
    for place in [location] if isinstance(location, str | Path) else location:
        root = paths.resolve(place)
        for path in _files(root):
            name = path.relative_to(root).as_posix() if root.is_dir() else path.name
            if name in found:
                raise ValueError(f"table: {found[name]} and {path} have the same name; rename one")
            found[name] = path
            _check(path, columns)
    return [
        Part(name, lambda drops, path=path: read(path, columns, drops), stamp(path)) for name, path in found.items()
    ]


def read(path: Path, columns: dict, drops: Counter) -> Iterator[pd.DataFrame]:
    """The posts of one file in frames of at most ROWS rows."""
    for batch in _batches(path, _wanted(columns), drops):
        frame = _frame(batch, columns, _stem(path), drops)
        if len(frame):
            yield frame


def _frame(batch, columns, stem, drops):
    length = len(batch)
    data = {
        name: np.full(length, stem, object) if wanted is None else _text(batch, wanted, name, stem)
        for name, wanted in columns.items()
        if name != "time"
    }
    data["time"] = seconds(batch.column(columns["time"])) if columns["time"] is not None else np.zeros(length, np.int64)
    frame = pd.DataFrame(data)
    keep = np.ones(length, bool)
    for name in ("author", "text", "topic"):
        empty = frame[name].fillna("").str.strip().eq("").to_numpy(bool) & keep
        drops[f"empty_{name}"] += int(empty.sum())
        keep &= ~empty
    bad = (frame["time"] < 0).to_numpy(bool) & keep
    drops["bad_time"] += int(bad.sum())
    keep &= ~bad
    bots = {author for author in frame["author"][keep].unique() if is_bot(author)}
    bot = frame["author"].isin(bots).to_numpy(bool) & keep
    drops["bot"] += int(bot.sum())
    for reason in [reason for reason, count in drops.items() if not count]:
        del drops[reason]
    frame = frame[keep & ~bot].reset_index(drop=True)
    order = [*COLUMNS, *(["id"] if "id" in frame else [])]
    return frame[order].astype({"time": "int64"})


def _listed(wanted):
    return wanted if isinstance(wanted, list) else [wanted]


def _text(batch, wanted, name, stem):
    """A column as text; several are joined with "/" and missing where one of them is."""
    try:
        texts = [
            pa.scalar(stem, pa.large_string()) if column is None else pc.cast(batch.column(column), pa.large_string())
            for column in _listed(wanted)
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"table: column {wanted} for {name!r} is not text: {error}") from None
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, pa.scalar("/", pa.large_string()))
    return joined.to_pandas()


def _batches(path, wanted, drops):
    """Record batches (or tables) with the wanted columns."""
    kind = _kind(path)
    try:
        if kind == "parquet":
            with pa.parquet.ParquetFile(path) as file:
                yield from file.iter_batches(ROWS, columns=wanted)
        elif kind == "csv":
            yield from _csv(path, wanted, drops)
        else:
            yield from _jsonl(path, wanted, drops)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"table: cannot read {path}: {error}") from None


def _csv(path, wanted, drops):
    def broken(row):
        drops["broken_row"] += 1
        return "skip"

    # as bytes, so that a wrong encoding costs the odd letter and not the file
    types = {column: pa.binary() for column in wanted}
    with pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(block_size=1 << 24, use_threads=False),
        parse_options=pa.csv.ParseOptions(
            delimiter="\t" if ".tsv" in path.suffixes else ",", newlines_in_values=True, invalid_row_handler=broken
        ),
        convert_options=pa.csv.ConvertOptions(include_columns=wanted, column_types=types, strings_can_be_null=False),
    ) as reader:
        for batch in reader:
            for start in range(0, len(batch), ROWS):
                piece = batch.slice(start, ROWS)
                yield pa.table({column: _decoded(piece.column(column)) for column in wanted})


def _decoded(column):
    try:
        return pc.cast(column, pa.large_string())
    except pa.ArrowInvalid:
        texts = (value.decode("utf-8", "replace") if value is not None else None for value in column.to_pylist())
        return pa.array(texts, pa.large_string())


def _jsonl(path, wanted, drops):
    rows = []
    for row in _lines(path, drops):
        rows.append([row.get(column) for column in wanted])
        if len(rows) == ROWS:
            yield _table(rows, wanted)
            rows = []
    if rows:
        yield _table(rows, wanted)


def _table(rows, wanted):
    """Rows of mixed JSON values as text; what is neither text nor number is missing."""
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(map(_plain, values), pa.large_string()) for name, values in zip(wanted, columns)})


def _plain(value):
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")  # lone surrogates
    return str(value) if type(value) in (int, float) and math.isfinite(value) else None


def _lines(path, drops):
    """The objects of a JSON lines file."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        try:
            for line in file:
                try:
                    row = json.loads(line.decode("utf-8-sig", "replace")) if line.strip() else {}
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict) and row:
                    yield row
                elif line.strip():
                    drops["broken_json"] += 1
        except (EOFError, zlib.error, gzip.BadGzipFile):
            drops["truncated_file"] += 1


def _check(path, columns):
    """Raise ValueError where a file is unreadable or lacks a wanted column; it lists the columns there are."""
    kind = _kind(path)
    try:
        if kind == "parquet":
            there = pa.parquet.read_schema(path).names
        elif kind == "csv":
            with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
                head = file.readline(1 << 20)
            delimiter = "\t" if ".tsv" in path.suffixes else ","
            there = pa.csv.read_csv(
                pa.BufferReader(head), parse_options=pa.csv.ParseOptions(delimiter=delimiter)
            ).column_names
        else:
            there = list(dict.fromkeys(key for row in islice(_lines(path, Counter()), 1000) for key in row))
    except (ValueError, OSError, EOFError, zlib.error) as error:  # Arrow's errors are ValueErrors
        raise ValueError(f"table: cannot read {path}: {error}") from None
    if missing := [column for column in _wanted(columns) if column not in there]:
        raise ValueError(
            f"table: {path.name} has no column {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, there)) or 'none'}; say which is which with columns={{...}}"
        )


def _wanted(columns):
    """The file's columns that are needed, each once."""
    names = (name for value in columns.values() for name in _listed(value))
    return list(dict.fromkeys(name for name in names if name is not None))


def _files(path):
    if path.is_file():
        if not _kind(path):
            raise ValueError(f"table: {path} is none of {', '.join(KINDS)} (or one of the text kinds with .gz)")
        return [path]
    if not path.is_dir():
        raise ValueError(f"table: {path} is missing")
    return sorted(file for file in path.rglob("*") if file.is_file() and _kind(file))


def _kind(path):
    return KINDS.get((path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower())


def _stem(path):
    return (path.with_suffix("") if path.suffix == ".gz" else path).stem
