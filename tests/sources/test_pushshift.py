"""Reddit dumps: a plain loop over json.loads reads the same; what breaks costs itself only."""

import json
import random
from collections import Counter

import pandas as pd
import pytest
from backports import zstd

from helpers.cleaning.text import clean_post
from helpers.sources import Post, open_source
from tests.sources.examples import EXAMPLES

TIME = 1_435_708_800
GOOD = {
    "author": "jane_7",
    "created_utc": TIME,
    "subreddit": "askscience",
    "body": "why is it blue",
    "id": "c1",
}


def comment(**changes):
    """One line of a dump, with the fields in another order than the one they are read in."""
    record = {"score": 3, "gildings": {"gid_1": [{"id": "g", "author": "x"}]}} | GOOD | changes
    return json.dumps(dict(sorted(record.items())))


def long_window(data):
    setting = zstd.CompressionParameter
    options = {setting.window_log: 31, setting.enable_long_distance_matching: 1}
    packer = zstd.ZstdCompressor(options={setting.compression_level: 1} | options)
    return packer.compress(data) + packer.flush()


PACK = {".zst": long_window, ".ndjson": bytes, "": bytes}  # others: core/test_files.py


def dump(folder, lines, name="RC_2015-07", suffix=""):
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}{suffix}"
    packed_lines = [line.encode() if isinstance(line, str) else line for line in lines]
    path.write_bytes(PACK[suffix](b"\n".join(packed_lines) + b"\n"))
    return path


def read(location, **options):
    drops = Counter()
    parts = open_source("pushshift", str(location), **options)
    posts = [post for part in parts for post in part.read(drops)]
    return pd.DataFrame(posts, columns=Post._fields).drop(columns="names"), dict(drops)


@pytest.mark.parametrize("suffix", PACK)
def test_every_drop_is_counted(tmp_path, suffix):
    bad_times = ("x", -5, True, 1e300, float("nan"))
    lost = {
        "broken_json": ['{"author": "a', comment() + " x", b"\xff\xfe"],
        "missing_field": ["{}", "[1, 2]", comment(author=None), comment(body=None)],
        "deleted": [comment(author="[deleted]"), comment(body="[removed]")],
        "bot": [comment(author="AutoModerator"), comment(author="RemindMeBot")],
        "bad_time": [comment(created_utc=value) for value in bad_times],
        "empty": [comment(body=" \n\t")],
    }
    lines = [line for group in lost.values() for line in group]
    random.Random(0).shuffle(lines)
    good = [comment(), comment(created_utc=str(TIME)), comment(created_utc=TIME + 0.5)]
    path = dump(tmp_path, [*good, "", *lines, "  ", comment(id=None)], suffix=suffix)
    rows, drops = read(path)
    assert rows["id"].isna().tolist() == [False] * 3 + [True]
    columns = ["author", "time", "topic", "text"]
    assert rows[columns].values.tolist() == [["jane_7", TIME, "askscience", "why is it blue"]] * 4
    assert drops == {reason: len(group) for reason, group in lost.items()}


def test_what_only_a_lenient_parser_reads_is_read(tmp_path):
    good = comment().encode()
    lines = [
        comment(body="half \ud800 a face"),
        good.replace(b"blue", b"bl\xffue"),
        b"\xef\xbb\xbf" + good,
        comment(body="nul \x00 inside"),
        good + b"\r",
    ]
    rows, drops = read(dump(tmp_path, lines))
    assert drops == {"note_cp1252": 1} and sorted(map(clean_post, rows["text"])) == [
        "half a face",
        "nul inside",
        "why is it blue",
        "why is it blue",
        "why is it bl\u00ffue",
    ]
    rows.to_parquet(tmp_path / "rows.parquet")


def test_a_zstd_file_cut_between_two_lines_is_known_to_be_cut(tmp_path):
    packer = zstd.ZstdCompressor()
    data = packer.compress(f"{comment()}\n".encode() * 10, packer.FLUSH_BLOCK)
    (tmp_path / "RC_2015-07.zst").write_bytes(data)
    rows, drops = read(tmp_path)
    assert len(rows) == 10 and drops == {"truncated_file": 1}


@pytest.mark.parametrize(("body", "text"), EXAMPLES["reddit_markup"])
def test_markup_after_the_common_cleaning(tmp_path, body, text):
    rows, _ = read(dump(tmp_path, [comment(body=body)]))
    assert clean_post(rows["text"][0]) == text


def test_files_that_are_found(tmp_path):
    for name in ("RC_2015-07", "RC_2015-07.txt", "RS_2015-07", "cats_submissions"):
        dump(tmp_path / "in", [comment()], name)
    for name in ("RC_2015-08", "RS_2015-08", "cats_comments"):
        dump(tmp_path / "in", [comment()], name, ".zst")
    dump(tmp_path / "in", [comment()], "x", ".ndjson")
    names = [part.name for part in open_source("pushshift", str(tmp_path / "in"))]
    assert names == ["RC_2015-07", "RC_2015-08.zst", "cats_comments.zst", "x.ndjson"]


def test_a_share_of_the_comments_is_drawn_by_their_ids(tmp_path, share=0.1):
    lines = [comment(id=f"c{number}", body=f"comment {number}") for number in range(4000)]
    whole, _ = read(dump(tmp_path, lines))
    drawn_rows, drops = read(tmp_path, share=share)
    assert drops == {"not_drawn": 4000 - len(drawn_rows)}
    assert len(drawn_rows) == pytest.approx(4000 * share, rel=0.15)
    assert set(drawn_rows.text) < set(whole.text) and len(whole) == 4000
    reordered_rows, _ = read(dump(tmp_path / "in another order", lines[::-1]), share=share)
    assert sorted(reordered_rows.text) == sorted(drawn_rows.text)
