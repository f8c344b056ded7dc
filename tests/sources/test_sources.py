"""What holds for every source."""

import gzip
import json
import random
from collections import Counter
from datetime import date

import pandas as pd
import pytest

from helpers.sources import SOURCES, Part, Post, open_source
from tests.factories import read_source

TIME = 1_577_836_800
POSTS = [
    {
        "author": f"J\u00f6rg {n % 3}",
        "time": TIME + n,
        "topic": "t",
        "text": f'"{n}", so\nhe \u00e9',
    }
    for n in range(20)
]
RECORDS = {
    "p.jsonl": POSTS,
    "RC_2020-01.ndjson": [
        {"author": "jane", "created_utc": TIME, "subreddit": "s", "body": f"\u00e9 {n}"}
        for n in range(20)
    ],
    "q.json": [
        {
            "author_id": n,
            "syms": [["\u2581\u00e9"]],
            "day": [1],
            "hour": [2],
            "minute": [3],
            "action_type": ["x"],
        }
        for n in range(20)
    ],
    "Books.json": [
        {"reviewerID": f"A{n}", "reviewText": "\u00e9", "unixReviewTime": TIME} for n in range(20)
    ],
    "pairs.jsonl": [
        {"id": n, "fandoms": ["F", "G"], "pair": [f"\u00e9 {n}", f"{n}"]} for n in range(20)
    ],
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
        ("zulip", {"columns": {}}, "unknown option of source 'zulip' 'columns'; valid: "),
        (
            "table",
            {"column": {}},
            "unknown option of source 'table' 'column' .did you mean 'columns'",
        ),
        ("demo", {"author": 9}, "unknown option of source 'demo' 'author' .did you mean 'authors'"),
        ("table", {"columns": ["author"]}, "'columns' is .*valid dictionary"),
        ("mud", {"pieces": 5}, "'pieces' is 5: .*valid string"),
        ("mud", {"epoch": date(2015, 7, 1)}, "'epoch' is .*valid string"),
        ("mud", {"epoch": "0001-01-01"}, "epoch must be a date"),
        ("pushshift", {"share": True}, "'share' is .*valid number"),
    ],
)
def test_options_are_checked_before_any_work(tmp_path, kind, options, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(kind, str(tmp_path), **options)
    assert "\n" not in str(error.value)


def test_an_unknown_source_lists_those_there_are():
    with pytest.raises(ValueError, match=f"unknown source 'usenet'; valid: {', '.join(SOURCES)}"):
        open_source("usenet", "")


def test_posts_are_yielded_and_drops_counted():
    drops = Counter()
    rows = ["empty", ("a", 1, "t", "x"), ("\ud800", 2, "\ud800", "x", "7", "Ann"), "bot", "empty"]
    posts = list(Part("p", lambda drops: rows).read(drops))
    assert posts == [Post("a", 1, "t", "x"), Post("\\ud800", 2, "\\ud800", "x", "7", "Ann")]
    assert drops == {"empty": 2, "bot": 1}


@pytest.mark.parametrize("row", [("", 1, "t", "x"), ("a", 1, " ", "x"), ("a", 1, "t", "\n")])
def test_a_post_without_author_topic_or_text_is_empty(row):
    drops = Counter()
    assert list(Part("p", lambda drops: [row]).read(drops)) == [] and drops == {"empty": 1}


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
    rng, pack = random.Random(name), gzip.compress if suffix else bytes
    whole = "".join(
        json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS.get(name, [])
    ).encode()
    whole = whole or pd.DataFrame(POSTS).to_csv(index=False).encode()
    truth = [{"id": n, "same": False, "authors": [f"a{n}", f"b{n}"]} for n in range(20)]
    (tmp_path / f"truth.jsonl{suffix}").write_bytes(
        pack("\n".join(map(json.dumps, truth)).encode())
    )
    path, readable = tmp_path / (name + suffix), 0
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
        assert not len(rows) or rows[["author", "topic", "text"]].map(str.strip).ne("").all(
            axis=None
        )
        "".join(rows[["author", "topic", "text"]].to_numpy().ravel()).encode()
        if name in ("p.jsonl", "RC_2020-01.ndjson", "Books.json", "forum.jsonl") and not suffix:
            assert len(rows) + lost == sum(map(bool, map(bytes.strip, data.split(b"\n"))))
    assert readable
