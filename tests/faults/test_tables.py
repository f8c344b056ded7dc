"""Hostile tables: every row is kept or counted, or an error names the file; nothing else happens.

A drawn table has the columns ``who, when, room, said`` and perhaps more, and cells of any kind:
control characters, NUL, marks of direction, lone surrogates, quotes and delimiters, wrong types,
NaN, numbers and dates out of range. Damaged bytes are in tests/sources/test_sources.py.
"""

import csv
import gzip
import io
import json
import warnings
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.accounts import reading
from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect
from tests.factories import read_posts, read_source
from tests.faults import calls

NAMES = ["who", "when", "room", "said"]
COLUMNS = {"author": "who", "time": "when", "topic": "room", "text": "said"}
SUFFIXES = [".csv", ".tsv", ".jsonl", ".ndjson", ".csv.gz", ".jsonl.gz"]
ODD_TEXTS = [
    *"\0 a\0b \x1b[31mred \u202eevil\u202c \u200b \ufeff \ud800 x\udfffy".split(" "),
    *"\u2028 \x85 \r e\u0301".split(" "),
    *""" " "" "a a"b , ; ' \\ =1+1 null NaN nan inf -1 1e999 0x10""".split(),
    *["\n\n", "\t", "\xa0", " ", "", "9" * 400, "ÿ" * 50, "x" * 20_000],
]
ODD_TIMES = [
    *"2020-01-01 2020-02-30 0000-00-00 99999-01-01 -2020-01-01 2020-01-01T25:61:61".split(),
    *"20200101 1577836800 1577836800.5 2020-01-01T00:00:00+99:99 today".split(),
    *["9" * 30, "-" + "9" * 30, 1577836800, 1577836800000, -1, 2**63 - 1, -(2**63), 2**70],
    *[1.5e300, float("nan"), float("inf"), True, None],
]
odd_text = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=12), st.just("hello there you"))
odd_value = st.one_of(
    odd_text,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)
odd_time = st.one_of(st.sampled_from(ODD_TIMES), odd_text)
rows = st.lists(st.tuples(odd_text, odd_time, odd_text, odd_text), max_size=8)


class Written(NamedTuple):
    """A file: ending, bytes, and number of rows, None where it depends on how one is read."""

    suffix: str
    content: bytes
    rows: int | None


@st.composite
def text_files(draw):
    suffix = draw(st.sampled_from(SUFFIXES))
    table = draw(rows)
    names = draw(st.sampled_from([NAMES, [*NAMES, "more"], [*NAMES, "who"], NAMES[:3], []]))
    if "json" in suffix:
        text = json_lines(draw, table, names)
    else:
        text = csv_text(draw, table, names, "\t" if "tsv" in suffix else ",")
    is_odd = "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)
    content = text.encode("utf-8", "surrogatepass")
    if suffix.endswith(".gz"):
        content = gzip.compress(content)
    return Written(suffix, content, None if is_odd or not table else len(table))


def csv_text(draw, table, names, delimiter):
    """Return rows as CSV, all cells quoted where that is needed, or none."""
    file = io.StringIO()
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end)
    if names:
        writer.writerow(names)
    for row in table:
        writer.writerow([*row, *["x"] * (len(names) - 4)][: max(len(names), 4)])
    return file.getvalue()


def json_lines(draw, table, names):
    ascii_only = draw(st.booleans())
    lines = []
    for row in table:
        record = dict(zip(names, row))
        if draw(st.integers(0, 5)) == 0:
            record[draw(st.sampled_from(NAMES))] = draw(odd_value)
        lines.append(json.dumps(record, ensure_ascii=ascii_only) + "\n")
    return "".join(lines)


@st.composite
def parquet_files(draw):
    """Draw a Parquet file with columns of any type."""
    count = draw(st.integers(0, 6))
    texts = st.lists(st.one_of(st.none(), odd_text), min_size=count, max_size=count)
    blobs = st.lists(st.binary(max_size=6), min_size=count, max_size=count)
    numbers = st.lists(st.integers(-(2**62), 2**62), min_size=count, max_size=count)
    kept = [text and text.encode("utf-8", "replace").decode() for text in draw(texts)]
    columns = [
        pa.array(kept, pa.string()),
        pa.array(kept, pa.large_string()),
        pa.array(draw(blobs), pa.binary()).view(pa.string()),  # bytes that are no UTF-8
        pa.array(draw(numbers), pa.int64()),
        pa.array(draw(numbers), pa.int64()).view(pa.timestamp("us", "Asia/Tokyo")),
        pa.array(draw(st.lists(st.floats(), min_size=count, max_size=count)), pa.float64()),
        pa.array([None] * count, pa.null()),
        pa.array([True] * count, pa.bool_()),
        pa.array([[1]] * count, pa.list_(pa.int64())),
        pa.array([{"a": 1}] * count, pa.struct({"a": pa.int64()})),
        pa.array(["x"] * count).dictionary_encode(),
        pa.array([10**30] * count, pa.decimal128(38, 2)),
        pa.array([-(2**31)] * count, pa.int32()).view(pa.date32()),
    ]
    arrays = [draw(st.sampled_from([columns[0], *columns])) for _ in NAMES]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=NAMES), sink)
    return Written(".parquet", sink.getvalue(), count)


any_file = st.one_of(text_files(), parquet_files())


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)


def write(folder, written):
    path = folder / f"posts{written.suffix}"
    path.write_bytes(written.content)
    return path


MANY_DIGITS = '{"who": "a", "when": 1577836800, "room": "r", "said": %s}\n' % ("9" * 5000)


@given(written=any_file, pseudonymise=st.booleans())
@example(written=Written(".jsonl", (MANY_DIGITS + MANY_DIGITS).encode(), 2), pseudonymise=True)
def test_every_row_of_a_hostile_table_is_kept_or_counted(written, pseudonymise, tmp_path):
    path = write(tmp_path, written)
    config = CollectConfig(
        source="table", location=str(path), columns=COLUMNS, min_chars=1, pseudonymise=pseudonymise
    )
    run = Run("hostile")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            card = collect(run, config, workers=1)
    except ValueError as error:
        assert path.name in str(error) or "nothing is left" in str(error), repr(error)
        return
    for author, time, topic, text in read_posts(run.folder / "posts.parquet"):
        assert author.strip() and topic.strip() and text.strip() and time >= 0
    drops = [number for name, number in card.items() if name.startswith("dropped_")]
    assert card["rows_read"] == card["posts"] + sum(drops)
    if written.rows is not None:
        assert card["rows_read"] == written.rows


@settings(max_examples=settings.default.max_examples // 5)
@given(written=any_file)
def test_own_posts_of_a_hostile_table_are_read_or_refused(written, tmp_path):
    path = write(tmp_path, written)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reading.read_posts(Run("hostile"), str(path), calls.shipped(), dict(COLUMNS))
    except ValueError as error:
        assert len(str(error)) > 10


@pytest.mark.parametrize("place", range(4))
def test_a_carriage_return_without_quotes_is_a_blank_of_its_value(place, tmp_path):
    """As pandas writes it; it would else cut a text, or make another author of a name's end."""
    values = ["ann", "2020-01-01", "room", "hello there"]
    values[place] = "\r".join([values[place][:5], values[place][5:] or "end"])
    path = tmp_path / "posts.csv"
    lines = ["who,when,room,said", ",".join(values), "bob,2020-01-01,r,x", ""]
    path.write_bytes("\r\n".join(lines).encode())
    rows, drops = read_source("table", path, columns=COLUMNS)
    if place == 1:
        assert drops == {"bad_time": 1}
    else:
        expected = [value.replace("\r", " ") for value in (values[0], *values[2:])]
        assert rows.loc[0, ["author", "topic", "text"]].tolist() == expected and not drops
    assert rows.author.iloc[-1] == "bob"
