"""Zulip archives: what is read, what is dropped and why, and what a broken file does."""

import json
import time
from pathlib import Path

import pytest

from helpers.cleaning.text import clean_post
from helpers.sources import COLUMNS, open_source, zulip
from tests.factories import read_source as read
from tests.sources.examples import EXAMPLES


def message(**changes):
    sender = {"id": 7, "sender_full_name": "Jane Doe", "timestamp": 1600000000}
    return sender | {"content": "<p>Hello there</p>"} | changes


def archive(folder, *messages, stream="12-new.20members", topic="a.2Fb", text=None):
    path = folder / "zulip_json" / stream / f"{topic}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(messages) if text is None else text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("html", "text"), EXAMPLES["zulip_html"])
def test_zulip_html(html, text):
    assert clean_post(zulip.message_text(html)) == text


def test_zulip_rows(tmp_path):
    named = '<span class="user-mention" data-user-id="1">@Jack Lee</span>'
    second = message(sender_full_name=" Jo\ud800 ", content=f"é\x00\udfff🙂 {named}")
    archive(tmp_path, message(), second | {"timestamp": 1600000001.0})
    rows, drops = read("zulip", tmp_path)
    assert rows[COLUMNS].values.tolist() == [
        ["Jane Doe", 1600000000, "new members", "Hello there"],
        ["Jo\\ud800", 1600000001, "new members", "é🙂 @user"],
    ]
    assert rows["time"].dtype == "int64" and rows["id"].tolist() == ["7", "7"] and drops == {}
    assert rows["names"].tolist()[1][1:] == ["Jack Lee"]
    rows.drop(columns="names").to_parquet(tmp_path / "rows.parquet")


def test_zulip_counts_every_drop(tmp_path):
    bad = [3, {}, message(content=None), message(sender_full_name=""), message(timestamp=True)]
    absurd = [message(timestamp=value) for value in (float("nan"), -5, 1e300, 10**400)]
    bot = message(sender_full_name="Random Issue Bot")
    quote = message(content="<blockquote>q</blockquote>")
    archive(tmp_path, message(), *bad, *absurd, bot, quote)
    archive(tmp_path, topic="cut", text='[{"id": 1, "content": "<p>trunc')
    archive(tmp_path, topic="object", text='{"messages": []}')
    archive(tmp_path, topic="deep", text="[" * 200_000)
    (tmp_path / "zulip_json" / "12-new.20members" / "latin.json").write_bytes(b'["\xe9"]')
    rows, drops = read("zulip", tmp_path)
    assert len(rows) == 1
    lost = {"broken_message": 5, "bad_time": 4, "bot": 1, "empty": 1, "broken_json_file": 4}
    assert drops == lost


def test_zulip_nested_tags_cost_little(tmp_path):
    nested = [message(content="<blockquote>" * n + "Hello there") for n in (200_000, 4_000)]
    archive(tmp_path, message(), *nested, message())
    start = time.perf_counter()
    rows, drops = read("zulip", tmp_path)
    assert time.perf_counter() - start < 2  # the tree of the deep one would cost minutes
    assert drops.pop("too_many_tags") == 1 and len(rows) + sum(drops.values()) == 3


def test_zulip_finds_the_archive_where_it_lies(tmp_path):
    archive(tmp_path / "repository" / "archive", message())
    archive(tmp_path / "repository" / "archive", message(), stream="3-lean4")
    for place in ("repository", "repository/archive/zulip_json"):
        names = [part.name for part in open_source("zulip", str(tmp_path / place))]
        assert [Path(name).name for name in names] == ["12-new.20members", "3-lean4"]


def test_zulip_finds_a_stream_whose_name_holds_a_slash(tmp_path):
    archive(tmp_path, message(), stream="7-t-compiler")
    archive(tmp_path, message(), message(), stream="7-t-compiler/wg-nll")
    archive(tmp_path, message(), stream="8-t-lang/wg/inner")
    rows, drops = read("zulip", tmp_path)
    assert rows["topic"].value_counts().to_dict() == {"t-compiler": 3, "t-lang": 1} and not drops
    assert len(read("zulip", tmp_path / "zulip_json")[0]) == 4


def test_zulip_stream_names():
    names = {"217875-Is-there-code-for-X%3F": "Is-there-code-for-X?", "1-a.2Eb.20.C3.A9": "a.b é"}
    names |= {"9-v1.0": "v1.0", "5-.FF": ".FF", "8-a.00b": "a.00b", "new members": "new members"}
    assert {name: zulip.stream_name(name) for name in names} == names


def test_zulip_links_out_of_an_archive_are_not_followed(tmp_path, capsys):
    private = archive(
        tmp_path / "private", message(content="<p>nobody else's business</p>"), stream="9-diary"
    )
    root = archive(tmp_path / "clone", message(), topic="first")
    general = root / "zulip_json" / "12-new.20members"
    (general / "secret.json").symlink_to(next(private.rglob("*.json")))
    (general / "loop.json").symlink_to("loop.json")
    (general / "again.json").symlink_to("first.json")
    (root / "zulip_json" / "9-diary").symlink_to(private / "zulip_json" / "9-diary")
    (root / "more").mkdir()
    (root / "more" / "zulip_json").symlink_to(private / "zulip_json")
    rows, drops = read("zulip", root)
    assert rows["text"].tolist() == ["Hello there"] * 2 and not drops
    assert "3 links that lead out of it are not followed, such as " in capsys.readouterr().out
