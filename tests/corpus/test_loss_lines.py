"""A reason that drops many rows is said on the terminal, with the column, a value and a remedy."""

import gzip

import pandas as pd
import pytest

from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))


def rows(count=100):
    texts = [f"{word} and {other} went away" for word in WORDS for other in WORDS][:count]
    times = [f"2024-02-13 10:{number % 60:02d}" for number in range(count)]
    return pd.DataFrame({"author": "a", "date": times, "topic": "t", "text": texts})


def collected(path, capsys, frame, columns=(("time", "date"),)):
    if frame is not None:
        frame.to_csv(path, index=False)
    columns = dict(columns)
    settings = {"near_duplicate": 0, "strip_signatures": False}
    config = CollectConfig(source="table", location=str(path), columns=columns, **settings)
    card = collect(Run("any"), config, workers=1)
    return card, capsys.readouterr().out


@pytest.mark.parametrize("count", [5, 6])
def test_few_rows_are_dropped_in_silence(tmp_path, capsys, count):
    frame = rows()
    frame.loc[: count - 1, "date"] = None
    card, said = collected(tmp_path / "p.csv", capsys, frame)
    assert card["dropped_bad_time"] == count
    line = "6 of 100 rows were dropped: column 'date' has no time there. Name the right column"
    assert said.count("\n") == count - 5 and said.startswith(line * (count - 5))


def test_times_that_are_all_missing_say_how_to_go_without(tmp_path, capsys):
    with pytest.raises(ValueError, match="'date' has no time there.*--time <column>.*--time none"):
        collected(tmp_path / "p.csv", capsys, rows().assign(date=""))
    columns = (("time", None),)
    card, said = collected(tmp_path / "p.csv", capsys, rows().assign(date=""), columns)
    assert card["posts"] == 100 and said == ""


SWALLOWED = 'a,2024-02-13,t,"five inches\n' + "a,2024-02-13,t,x\n" * 9 + 'a,2024-02-13,t,5"\n'


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("changes", "more", "count", "number", "words"),
    [
        ({"date": "13.02. 10:00\x1b[1m"}, "", "dropped_bad_time", 50, 'such as "13.02. 10:00\\x1b'),
        ({"author": "\x1b[deleted]"}, "", "dropped_placeholder_author", 50, '(50 of "[deleted]")'),
        ({"author": "A"}, "", "note_name_forms", 2, 'such as "A" and "a". If'),
        ({}, "a,too,few\n", "dropped_broken_row", 1, "1 of 101 rows were dropped: rows of a CSV"),
        ({}, SWALLOWED, "note_rows_in_quotes", 1, "left open: 1. Each is kept as one post"),
    ],
)
def test_what_is_lost_is_said(tmp_path, capsys, changes, more, count, number, words):
    frame = rows()
    frame.loc[::2, list(changes)] = list(changes.values())
    (tmp_path / "p.csv").write_text(frame.to_csv(index=False) + more)
    for _ in range(2):  # also where the posts are kept from before
        card, said = collected(tmp_path / "p.csv", capsys, None)
        assert card[count] == number and words in said


def test_a_cut_file_is_said_however_small_the_counted_loss(tmp_path, capsys):
    packed = gzip.compress(rows().to_csv(index=False).encode())
    (tmp_path / "p.csv.gz").write_bytes(packed[:-20])
    card, said = collected(tmp_path / "p.csv.gz", capsys, None)
    assert card["dropped_truncated_file"] == 1
    assert said.startswith("Damaged or cut files: 1. The posts before the damage are kept")
