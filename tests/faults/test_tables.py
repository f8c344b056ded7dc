"""Hostile tables: every row is kept or counted, or an error names the file; nothing else happens.

See ``hostile.py`` for what is drawn.
"""

import warnings
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.accounts import reading
from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect
from helpers.sources import open_source
from tests.faults import calls
from tests.faults.hostile import COLUMNS, parquet_files, text_files

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
