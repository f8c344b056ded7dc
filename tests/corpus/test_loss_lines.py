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


def test_times_that_cannot_be_read_are_said(tmp_path, capsys):
    frame = rows()
    frame.loc[::2, "date"] = "13.02.2024 10:00\x1b[1m"
    frame.loc[0, "date"] = ""
    for _ in range(2):  # also where the posts are kept from before
        card, said = collected(tmp_path / "p.csv", capsys, frame)
        assert card["dropped_bad_time"] == 50
        words = "50 of 100 rows were dropped: the time in column 'date' cannot be read, such as "
        assert said.startswith(words + '"13.02.2024 10:00\\x1b[1m". Day and month are not guessed')


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


@pytest.mark.filterwarnings("error")
def test_one_broken_row_of_many_is_said_without_a_warning(tmp_path, capsys):
    (tmp_path / "p.csv").write_text(rows().to_csv(index=False) + "a,too,few\n")
    card, said = collected(tmp_path / "p.csv", capsys, None)
    assert card["dropped_broken_row"] == 1 and card["posts"] == 100
    assert "1 of 101 rows were dropped: rows of a CSV file with a stray quote" in said
    assert "Save the file again" in said


@pytest.mark.filterwarnings("error")
def test_rows_that_a_quote_may_have_swallowed_are_said(tmp_path, capsys):
    swallowing = 'a,2024-02-13,t,"five inches\n' + "a,2024-02-13,t,x\n" * 9 + 'a,2024-02-13,t,5"\n'
    (tmp_path / "p.csv").write_text(rows().to_csv(index=False) + swallowing)
    card, said = collected(tmp_path / "p.csv", capsys, None)
    assert card["note_rows_in_quotes"] == 1 and card["posts"] == 101
    assert "left open: 1. Each is kept as one post" in said


def test_a_cut_file_is_said_however_small_the_counted_loss(tmp_path, capsys):
    packed = gzip.compress(rows().to_csv(index=False).encode())
    (tmp_path / "p.csv.gz").write_bytes(packed[:-20])
    card, said = collected(tmp_path / "p.csv.gz", capsys, None)
    assert card["dropped_truncated_file"] == 1
    assert said.startswith("Damaged or cut files: 1. The posts before the damage are kept")


def test_names_that_count_as_one_are_said(tmp_path, capsys):
    frame = rows()
    frame.loc[::2, "author"] = "A"
    card, said = collected(tmp_path / "p.csv", capsys, frame)
    assert card["note_name_forms"] == 2 and card["authors"] == 1
    assert said.startswith("2 names differ from another one only in case")
    assert 'such as "A" and "a". If' in said


def test_names_that_stand_for_nobody_are_those_of_the_file(tmp_path, capsys):
    frame = rows()
    frame.loc[:16, "author"] = ["Deleted User 1a2b"] * 9 + ["\x1b[deleted]"] * 8
    _, said = collected(tmp_path / "p.csv", capsys, frame)
    assert said.startswith("17 of 100 rows were dropped: posts under a name that stands for nobody")
    assert said.endswith('(9 of "Deleted User 1a2b", 8 of "[deleted]").\n')
