"""Hostile tables: every row is kept or counted, or an error names the file; nothing else happens.

A drawn table has the columns ``who, when, room, said`` and perhaps more, and cells of any kind:
control characters, NUL, marks of direction, lone surrogates, quotes and delimiters, wrong types,
NaN, numbers and dates out of range.
"""

import csv
import gzip
import io
import json
import warnings
from collections import Counter
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.accounts import reading
from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect
from helpers.sources import open_source
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


@dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes
    ----------
    suffix : ending of its name
    content : its bytes
    rows : how many rows it has; None where that depends on how a broken row is read
    """

    suffix: str
    content: bytes
    rows: int | None


@st.composite
def text_files(draw):
    """Draw a CSV, TSV or JSON lines file, perhaps broken."""
    suffix = draw(st.sampled_from(SUFFIXES))
    table = draw(rows)
    names = draw(st.sampled_from([NAMES, [*NAMES, "more"], [*NAMES, "who"], NAMES[:3], []]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-32"]))
    if "json" in suffix:
        text = json_lines(draw, table, names)
    else:
        text = csv_text(draw, table, names, "\t" if "tsv" in suffix else ",")
    count = len(table)
    if encoding == "cp1252":
        content = text.encode(encoding, "backslashreplace")
        if "json" in suffix:
            count = None  # "\\ud800" within a text may be no JSON
    else:
        content = text.encode(encoding, "surrogatepass")
    if not is_plain(table, text, encoding):
        count = None
    damage = draw(st.sampled_from(["", "", "", "cut", "bytes"]))
    if damage:
        count = None
    if damage == "cut":
        content = content[: draw(st.integers(0, len(content)))]
    if damage == "bytes":
        place = draw(st.integers(0, len(content)))
        content = content[:place] + draw(st.binary(max_size=8)) + content[place:]
    if suffix.endswith(".gz"):
        content = gzip.compress(content)
        if draw(st.integers(0, 4)) == 0:
            content = content[: draw(st.integers(0, len(content)))]
            count = None
    return Written(suffix, content, count)


def is_plain(table, text, encoding):
    """Return whether all readers agree how many rows a text has: no NUL and no lone surrogate."""
    if encoding not in ("utf-8", "utf-8-sig"):
        return False
    if not table or "\0" in text:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def csv_text(draw, table, names, delimiter):
    """Return rows as CSV, all cells quoted where that is needed, or none."""
    file = io.StringIO()
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end)
    if names:
        writer.writerow(names)
    for row in table:
        writer.writerow([*map(as_text, row), *["x"] * (len(names) - 4)][: max(len(names), 4)])
    return file.getvalue()


def as_text(value):
    """Return a cell as text; None is empty."""
    return "" if value is None else str(value)


def json_lines(draw, table, names):
    """Return rows as JSON lines."""
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
    arrays = [draw(columns(count)) for _ in NAMES]
    names = list(NAMES)
    if draw(st.integers(0, 5)) == 0:
        arrays.append(arrays[0])
        names.append(draw(st.sampled_from(["more", "who", ""])))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=names), sink, write_page_checksum=True)
    content = sink.getvalue()
    rows_of_file = count
    if draw(st.integers(0, 5)) == 0:
        content = content[: draw(st.integers(0, len(content)))]
        rows_of_file = None
    return Written(".parquet", content, rows_of_file)


@st.composite
def columns(draw, count):
    """Draw a column of so many values, most often of text."""
    made = draw(st.sampled_from(["text", "text", "text", "bytes", "number", "time", "odd"]))
    if made == "text":
        texts = draw(st.lists(st.one_of(st.none(), odd_text), min_size=count, max_size=count))
        kept = [text and text.encode("utf-8", "replace").decode() for text in texts]
        return pa.array(kept, draw(st.sampled_from([pa.string(), pa.large_string()])))
    if made == "bytes":  # a column of text whose bytes are no UTF-8
        blobs = draw(st.lists(st.binary(max_size=6), min_size=count, max_size=count))
        return pa.array(blobs, pa.binary()).view(draw(st.sampled_from([pa.string(), pa.binary()])))
    if made == "number":
        kinds = [pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()]
        kind = draw(st.sampled_from(kinds))
        if pa.types.is_floating(kind):
            numbers = st.floats(width=kind.bit_width)
        else:
            low = 0 if kind == pa.uint64() else -(2 ** (kind.bit_width - 1))
            numbers = st.integers(low, low + 2**kind.bit_width - 1)
        values = draw(st.lists(st.one_of(st.none(), numbers), min_size=count, max_size=count))
        return pa.array(values, kind)
    if made == "time":
        kinds = [pa.timestamp("s"), pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("ns")]
        kind = draw(st.sampled_from(kinds))
        bits = 52 if kind.unit == "s" else 62  # Parquet keeps seconds as milliseconds
        numbers = st.integers(-(2**bits), 2**bits)
        values = draw(st.lists(st.one_of(st.none(), numbers), min_size=count, max_size=count))
        return pa.array(values, pa.int64()).view(kind)
    values = [
        pa.array([None] * count, pa.null()),
        pa.array([True] * count, pa.bool_()),
        pa.array([[1]] * count, pa.list_(pa.int64())),
        pa.array([{"a": 1}] * count, pa.struct({"a": pa.int64()})),
        pa.array(["x"] * count).dictionary_encode(),
        pa.array([10**30] * count, pa.decimal128(38, 2)),
        pa.array([-(2**31)] * count, pa.int32()).view(pa.date32()),
    ]
    return draw(st.sampled_from(values))


any_file = st.one_of(text_files(), parquet_files())


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)


def write(folder, written):
    """Write a drawn file, and return its path."""
    path = folder / f"posts{written.suffix}"
    path.write_bytes(written.content)
    return path


def read(path):
    """Return the rows and the drops of a table."""
    drops = Counter()
    rows = []
    for part in open_source("table", str(path), columns=COLUMNS):
        rows += [post[:4] for post in part.read(drops)]
    return rows, Counter(
        {reason: n for reason, n in drops.items() if not reason.startswith("note_")}
    )


@given(written=any_file)
def test_every_row_of_a_hostile_table_is_kept_or_counted(written, tmp_path):
    path = write(tmp_path, written)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, drops = read(path)
    except ValueError as error:
        assert path.name in str(error), f"an error without the file's name: {error!r}"
        return
    for author, time, topic, text in rows:
        assert all(isinstance(value, str) and value.strip() for value in (author, topic, text))
        assert time >= 0
    if written.rows is not None:
        assert len(rows) + drops.total() == written.rows, (len(rows), drops)


@given(written=any_file, pseudonymise=st.booleans())
def test_a_collection_of_a_hostile_table_adds_up(written, pseudonymise, tmp_path):
    path = write(tmp_path, written)
    config = CollectConfig(
        source="table", location=str(path), columns=COLUMNS, min_chars=1, pseudonymise=pseudonymise
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            card = collect(Run("hostile"), config, workers=1)
    except ValueError as error:
        assert path.name in str(error) or "nothing is left" in str(error), repr(error)
        return
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


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_of_many_digits_is_kept_or_counted(digits, tmp_path):
    path = tmp_path / "posts.jsonl"
    line = '{"who": "a", "when": 1577836800, "room": "r", "said": %s}\n'
    path.write_text(line % ("9" * digits) + line % '"x"')
    rows, drops = read(path)
    assert len(rows) + drops.total() == 2


@pytest.mark.parametrize("place", range(4))
def test_a_carriage_return_without_quotes_is_a_blank_of_its_value(place, tmp_path):
    """As pandas writes it; it would else cut a text, or make another author of a name's end."""
    values = ["ann", "2020-01-01", "room", "hello there"]
    values[place] = "\r".join([values[place][:5], values[place][5:] or "end"])
    path = tmp_path / "posts.csv"
    lines = ["who,when,room,said", ",".join(values), "bob,2020-01-01,r,x", ""]
    path.write_bytes("\r\n".join(lines).encode())
    rows, drops = read(path)
    if place == 1:
        assert drops == {"bad_time": 1}
    else:
        author, _, topic, text = rows.pop(0)
        expected = [value.replace("\r", " ") for value in (values[0], *values[2:])]
        assert [author, topic, text] == expected and not drops
    assert [row[0] for row in rows] == ["bob"]


@pytest.mark.torture
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_enormous_field_is_kept_cut_or_refused(suffix, tmp_path):
    path = tmp_path / f"posts.{suffix}"
    texts = ["x " * 40_000_000, "short and sweet"]
    frame = pd.DataFrame({"who": ["a", "b"], "when": "2020-01-01", "room": "r", "said": texts})
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    try:
        rows, drops = read(path)
    except ValueError as error:
        assert path.name in str(error)
        return
    assert len(rows) + drops.total() == 2
