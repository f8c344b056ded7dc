"""What holds for every source."""

import gzip
import json
import random
from collections import Counter

import pandas as pd
import pytest

from helpers.sources import SOURCES, Part, Post, open_source
from tests.factories import read_source, write_lines

TIME = 1_577_836_800
POST = {"author": "J\u00f6rg", "time": TIME, "topic": "t", "text": '"1", so\nhe \u00e9'}
MUD = {"syms": [["\u2581\u00e9"]], "day": [1], "hour": [2], "minute": [3], "action_type": ["x"]}
# the records of a file of each source; each gets a key with its number
RECORDS = {
    "p.jsonl": ("author", POST),
    "RC_2020-01.ndjson": (
        "body",
        {"author": "jane", "created_utc": TIME, "subreddit": "s"},
    ),
    "q.json": ("author_id", MUD),
    "Books.json": ("reviewerID", {"reviewText": "\u00e9", "unixReviewTime": TIME}),
    "pairs.jsonl": ("id", {"fandoms": ["F", "G"], "pair": ["\u00e9", "x"]}),
}


@pytest.mark.parametrize("kind", "zulip pipermail table pushshift mud amazon pan".split())
def test_nothing_to_read_is_an_error(kind, tmp_path):
    with pytest.raises(ValueError, match="nothing to read|holds no file"):
        open_source(kind, str(tmp_path))
    with pytest.raises(ValueError, match="absent"):
        open_source(kind, str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("table", {"column": {}}, "unknown option .* 'column' .did you mean 'columns'"),
        ("mud", {"epoch": "0001-01-01"}, "epoch must be a date"),
        ("pushshift", {"share": True}, "'share' is .*valid number"),
        ("usenet", {}, f"unknown source 'usenet'; valid: {', '.join(SOURCES)}"),
    ],
)
def test_options_are_checked_before_any_work(tmp_path, kind, options, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(kind, str(tmp_path), **options)
    assert "\n" not in str(error.value)


def test_posts_are_yielded_and_drops_counted():
    drops = Counter()
    rows = ["empty", ("a", 1, "t", "x"), ("\ud800", 2, "\ud800", "x", "7", "Ann"), "bot", "empty"]
    rows += [("", 1, "t", "x"), ("a", 1, " ", "x"), ("a", 1, "t", "\n")]
    posts = list(Part("p", lambda drops: rows).read(drops))
    assert posts == [Post("a", 1, "t", "x"), Post("\\ud800", 2, "\\ud800", "x", "7", "Ann")]
    assert drops == {"empty": 5, "bot": 1}


def damaged(data, rng):
    """Bytes that are cut, flipped, inserted, left out or repeated somewhere."""
    data = bytearray(data)
    strays = [b'"', b"\n", b"\r", b",", b"\0", b"\xff", b"\\ud800", b"\xed\xa0\x80", b"[", b"1e999"]
    for _ in range(rng.choice([1, 2, 9])):
        at, length = rng.randrange(len(data) + 1), rng.randrange(1, 99)
        data[at:] = rng.choice(
            [
                b"",
                bytes([rng.randrange(256)]) + data[at + 1 :],
                rng.choice(strays) + data[at:],
                data[at + length :],
                data[at : at + length] + data[at:],
            ]
        )
    return bytes(data)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("table", "p.csv"),
        *zip(["table", "pushshift", "mud", "amazon", "pan"], RECORDS, strict=True),
    ],
)
def test_damage_costs_rows_that_are_counted_or_is_a_clear_error(tmp_path, kind, name, suffix):
    rng = random.Random(name)
    pack = gzip.compress if suffix else bytes
    key, record = RECORDS.get(name, ("author", POST))
    records = [record | {key: f"\u00e9 {number}"} for number in range(20)]
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    whole = "".join(lines).encode()
    if name == "p.csv":
        whole = pd.DataFrame(records).to_csv(index=False).encode()
    truth = [{"id": f"\u00e9 {n}", "same": False, "authors": [f"a{n}", "b"]} for n in range(20)]
    write_lines(tmp_path / f"truth.jsonl{suffix}", truth)
    path = tmp_path / (name + suffix)
    readable = 0
    for _ in range(40):
        data = damaged(pack(whole), rng)
        path.write_bytes(data)
        try:
            rows, drops = read_source(kind, path)
        except ValueError as error:
            assert name in str(error) and "\n" not in str(error)
            continue
        readable += 1
        lost = sum(number for reason, number in drops.items() if not reason.startswith("note_"))
        texts = rows[["author", "topic", "text"]].to_numpy().ravel()
        assert all(text.strip() for text in texts)
        "".join(texts).encode()
        if name in ("p.jsonl", "RC_2020-01.ndjson", "Books.json") and not suffix:
            full_lines = [line for line in data.split(b"\n") if line.strip()]
            assert len(rows) + lost == len(full_lines)
    assert readable
