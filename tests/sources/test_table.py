"""Tables of any columns: formats, times, and what a broken row does."""

import gzip
import json
from collections import Counter

import pandas as pd
import pytest

from helpers.sources import COLUMNS, open_source, table
from tests.factories import read_source as read


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "tsv", "jsonl", "ndjson.gz"])
def test_table_formats(tmp_path, suffix):
    frame = pd.DataFrame(
        {
            "who": ["a", "", "b", "c", "AutoModerator"],
            "when": ["2020-01-01T00:00:00Z", "2020-01-01", "never", "2020-01-01 01:00:00+01:00", "2020-01-01"],
            "sub": ["s", "s", "s", "s", "s"],
            "body": ['line\none, "two"\té', "x", "x", "<script>", "x"],
        }
    )
    path = tmp_path / f"posts.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif "json" in suffix:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    columns = {"author": ["sub", "who"], "time": "when", "topic": "sub", "text": "body", "id": "who"}
    rows, drops = read("table", path, columns=columns | {"author": "who"})
    assert rows[COLUMNS].values.tolist() == [
        ["a", 1577836800, "s", 'line\none, "two"\té'],
        ["c", 1577836800, "s", "<script>"],
    ]
    assert rows["id"].tolist() == ["a", "c"]
    assert drops == {"empty_author": 1, "bad_time": 1, "bot": 1}
    assert read("table", path, columns=columns)[0]["author"].iloc[0] == "s/a"
    assert read("table", path, columns=columns | {"topic": None})[0]["topic"].iloc[0] == "posts"
    assert read("table", path, columns=columns | {"topic": [None, "sub"]})[0]["topic"].iloc[0] == "posts/s"
    with pytest.raises(ValueError, match="name the file's column for 'author'"):
        read("table", path, columns=columns | {"author": [None, "who"]})


@pytest.mark.parametrize(
    "times",
    [
        ["1577836801"] * 2,
        ["2020-01-01T00:00:01.5", "2020-01-01 02:00:01+02:00"],
        [1577836801, 1577836801],
        [1577836801000, 1577836801999],
        [1577836801000000, 1577836801000000000],
        [1577836801.5, 1577836801.0],
        pd.to_datetime(["2020-01-01 00:00:01.9"] * 2),
        pd.to_datetime(["2020-01-01 00:00:01"] * 2, utc=True).tz_convert("Asia/Tokyo"),
    ],
)
def test_table_times_are_utc_seconds(tmp_path, times):
    path = tmp_path / "posts.parquet"
    pd.DataFrame({"author": "a", "time": times, "topic": "t", "text": "x"}).to_parquet(path)
    assert read("table", path)[0]["time"].tolist() == [1577836801] * 2


def test_table_bad_times(tmp_path):
    times = [None, "", "yesterday", "-5", "nan", "inf", "1e300", "2020-13-45", "1577836800"]
    path = tmp_path / "posts.jsonl"
    pd.DataFrame({"author": "a", "time": times, "topic": "t", "text": "x"}).to_json(path, orient="records", lines=True)
    rows, drops = read("table", path)
    assert rows["time"].tolist() == [1577836800] and drops == {"bad_time": 8}


def test_table_missing_column_lists_those_found(tmp_path):
    (tmp_path / "posts.csv").write_text("who,when\na,1\n")
    with pytest.raises(ValueError, match="no column 'author'.*'who', 'when'"):
        open_source("table", str(tmp_path))
    with pytest.raises(ValueError, match="texts.*did you mean 'text'"):
        open_source("table", str(tmp_path), columns={"texts": "who"})


def test_table_broken_json_lines(tmp_path):
    good = json.dumps({"author": "a", "time": 1577836800, "topic": "t", "text": "x"})
    lines = [good, '{"author": "a", "ti', "[1, 2]", "", "null", good.replace('"x"', '"\\ud800y"'), '{"author": "b"}']
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    rows, drops = read("table", tmp_path)
    assert len(rows) == 2 and drops == {"broken_json": 3, "empty_text": 1}
    rows.to_parquet(tmp_path / "out.parquet")
    data = gzip.compress(("\n".join([good] * 5000)).encode())
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "p.jsonl.gz").write_bytes(data[:-30])
    assert read("table", tmp_path / "cut")[1]["truncated_file"] == 1


def test_table_broken_csv(tmp_path):
    head = "author,time,topic,text\n"
    (tmp_path / "latin.csv").write_bytes((head + "é,1577836800,t,x\n").encode("latin-1"))
    assert read("table", tmp_path / "latin.csv")[0]["author"].tolist() == ["\ufffd"]
    (tmp_path / "long.csv").write_text(head + "a,1577836800,t,x\na,1577836800,t,x,too,many\n")
    assert read("table", tmp_path / "long.csv")[1] == {"broken_row": 1}
    (tmp_path / "not.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "zero.csv").write_bytes(b"")
    for name in ("not.parquet", "zero.csv"):
        with pytest.raises(ValueError, match=name):
            open_source("table", str(tmp_path / name))


def test_table_reads_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 10)
    frame = pd.DataFrame({"author": "a", "time": range(1577836800, 1577836835), "topic": "t", "text": "x"})
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_csv(tmp_path / "p.csv", index=False)
    for part in open_source("table", str(tmp_path)):
        assert [len(rows) for rows in part.read(Counter())] == [10, 10, 10, 5]


def test_a_table_without_time(tmp_path):
    """The layout that the authors of sawatphol2022 expect: text, author, topic."""
    path = tmp_path / "train.csv"
    path.write_text('text,author,topic\n"one, two",a1,Books\n,a2,Books\nthree,a2,Music\n')
    with pytest.raises(ValueError, match="no column 'time'"):
        open_source("table", str(path))
    for columns in ({"time": []}, {"time": [None]}, {"text": None}):
        with pytest.raises(ValueError, match="name the file's column"):
            open_source("table", str(path), columns=columns)
    drops = Counter()
    (part,) = open_source("table", str(path), columns={"time": None})
    (frame,) = part.read(drops)
    assert frame.values.tolist() == [["a1", 0, "Books", "one, two"], ["a2", 0, "Music", "three"]]
    assert frame["time"].dtype == "int64" and drops == {"empty_text": 1}
