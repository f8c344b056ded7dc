"""What holds for every source."""

from collections import Counter

import pytest

from helpers.sources import COLUMNS, SOURCES, frames, open_source


@pytest.mark.parametrize("kind", ["zulip", "pipermail", "table"])
def test_nothing_to_read_is_an_error(kind, tmp_path):
    with pytest.raises(ValueError, match="nothing to read"):
        open_source(kind, str(tmp_path))
    with pytest.raises(ValueError, match="absent"):
        open_source(kind, str(tmp_path / "absent"))
    with pytest.raises(TypeError):
        open_source(kind, str(tmp_path), unknown_option=1)


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
