"""What holds for every source."""

from collections import Counter
from datetime import date

import pytest

from helpers.sources import COLUMNS, SOURCES, frames, open_source


@pytest.mark.parametrize("kind", ["zulip", "pipermail", "table"])
def test_nothing_to_read_is_an_error(kind, tmp_path):
    with pytest.raises(ValueError, match="nothing to read"):
        open_source(kind, str(tmp_path))
    with pytest.raises(ValueError, match="absent"):
        open_source(kind, str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("zulip", {"columns": {}}, "unknown option of source 'zulip' 'columns'; valid: raw"),
        ("table", {"column": {}}, "unknown option of source 'table' 'column' .did you mean 'columns'"),
        ("demo", {"author": 9}, "unknown option of source 'demo' 'author' .did you mean 'authors'"),
        ("table", {"columns": ["author"]}, "'columns' must be dict"),
        ("mud", {"pieces": 5}, "'pieces' must be str"),
        ("mud", {"epoch": date(2015, 7, 1)}, "'epoch' must be str, not date"),
        ("mud", {"epoch": "0001-01-01"}, "epoch must be a date"),
        ("amazon", {"raw": "maybe"}, "'raw' must be bool"),
        ("pushshift", {"raw": 2}, "'raw' must be bool"),
        ("pan", {"raw": None}, "'raw' must be bool"),
    ],
)
def test_options_are_checked_before_any_work(tmp_path, kind, options, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(kind, str(tmp_path), **options)
    assert "\n" not in str(error.value)


def test_an_unknown_source_lists_those_there_are():
    with pytest.raises(ValueError, match=f"unknown source 'usenet'; valid: {', '.join(SOURCES)}"):
        open_source("usenet", "")


def test_frames_are_bounded_and_drops_counted():
    drops = Counter()
    rows = ["empty", *[("a", n, "t", "x", None) for n in range(7)], "bot", "empty"]
    found = list(frames(rows, drops, 3))
    assert [len(frame) for frame in found] == [3, 3, 1] and drops == {"empty": 2, "bot": 1}
    assert all(list(frame) == [*COLUMNS, "id"] and frame["time"].dtype == "int64" for frame in found)
    assert [list(frame) for frame in frames([("a", 1, "t", "x")], drops)] == [COLUMNS]
    assert list(frames(["bot"], drops)) == []
