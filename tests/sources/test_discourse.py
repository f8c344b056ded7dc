"""Exports of Discourse: what is read, what is dropped and why, and what a broken file does."""

import gzip
import json
import time

import pytest

from helpers.cleaning.text import clean_post
from helpers.sources import COLUMNS, discourse, open_source
from tests.factories import read_source as read

TIME = 1_600_000_000  # 2020-09-13T12:26:40Z


def post(**changes):
    return {
        "id": 7,
        "username": "jane_doe",
        "name": "Jane Doe",
        "user_id": 12,
        "created_at": "2020-09-13T12:26:40.000Z",
        "cooked": "<p>Hello there</p>",
        "post_type": 1,
        "topic_slug": "first-words",
        "hidden": False,
        "deleted_at": None,
        "user_deleted": False,
        "wiki": False,
    } | changes


def topic(*posts, **changes):
    record = {"id": 3, "slug": "first-words", "category_id": 5, "archetype": "regular"}
    return record | {"post_stream": {"posts": list(posts), "stream": [7]}} | changes


def export(folder, record, name="t/3.json"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = record if isinstance(record, str) else json.dumps(record)
    path.write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one<br>\ntwo</p>\n<ul><li>three</li></ul>", "one two three"),
        (
            '<aside class="quote no-group" data-username="joe" data-post="4" data-topic="6">\n'
            '<div class="title">\n<div class="quote-controls"></div>\n<img class="avatar">'
            " joe:</div>"
            "\n<blockquote>\n<p>old</p>\n</blockquote>\n</aside>\n<p>new</p>",
            "new",
        ),
        (
            '<p>look</p><aside class="onebox allowlistedgeneric"><header class="source">'
            '<a href="https://example.org">Example</a></header><article class="onebox-body">'
            "<h3>Their title</h3><p>their words</p></article></aside>",
            "look",
        ),
        (
            '<p>see <a href="https://example.org" class="inline-onebox">Their title</a>, '
            '<a href="https://example.org">this page</a> and <a href="https://a.example.org">'
            'a.example.org</a>, <a class="attachment" href="/uploads/x/mesh.zip">my mesh</a></p>',
            "see @url, this page and @url, @url",
        ),
        ('<p><a class="mention" href="/u/joe">@joe</a>, hi</p>', "@user, hi"),
        ("<p>use <code>f(x)</code></p><pre><code>def f(x):</code></pre><p>so</p>", "use @code so"),
        (
            '<p>this</p><p><div class="lightbox-wrapper"><a class="lightbox" href="/u/i.png"><img>'
            '<div class="meta"><span class="filename">i.png</span><span class="informations">9x9'
            "</span></div></a></div></p>",
            "this",
        ),
        ('<p>fine <img src="/x.png" title=":wink:" class="emoji" alt=":wink:"></p>', "fine :wink:"),
        ("<p>joe wrote:</p><blockquote><p>old</p></blockquote><p>new</p>", "new"),
        (
            "<p>[quote=“joe”]old<br>[quote]older[/quote] old[/quote]<br>new [b]word[/b]</p>",
            "new word",
        ),
        ("<p>so</p><p>[code]<br>int a = f(b);<br>[/code]</p>", "so"),
        ("<p>mine</p><p>[quote=“joe”]theirs, never closed</p><p>mine too</p>", "mine mine too"),
        ('<p>vote</p><div class="poll"><ul><li>yes</li></ul></div>', "vote"),
        ('<p>mail</p><details class="elided"><summary>…</summary>old mail</details>', "mail"),
        ("<p>int x = f(3);<br>but this is mine.</p>", "but this is mine."),
        ("<p>unclosed <em>tags <b>here", "unclosed tags here"),
    ],
)
def test_cooked_posts(tmp_path, html, text):
    export(tmp_path, topic(post(cooked=html)))
    rows, drops = read("discourse", tmp_path)
    assert [clean_post(text) for text in rows["text"]] == [text] and not drops


def test_rows(tmp_path):
    export(tmp_path, topic(post(), post(id=8, username="joe", cooked="<p>é 🙂</p>", name=None)))
    rows, drops = read("discourse", tmp_path)
    assert rows[COLUMNS].values.tolist() == [
        ["jane_doe", TIME, "category 5", "Hello there"],
        ["joe", TIME, "category 5", "é 🙂"],
    ]
    assert rows["id"].tolist() == ["7", "8"] and drops == {}
    assert rows["names"].tolist() == ["jane_doe\nJane Doe", "joe"]


def test_topics_are_categories_or_the_setting(tmp_path):
    export(tmp_path, topic(post()))
    export(tmp_path, topic(post(), category_id=None), "t/4.json")
    export(tmp_path, json.dumps(post(category_id=6)), "posts.jsonl")
    rows, _ = read("discourse", tmp_path, topic="board", categories={5: "Support"})
    assert sorted(rows["topic"]) == ["Support", "board", "category 6"]
    with pytest.raises(ValueError, match="topic must be a name"):
        open_source("discourse", str(tmp_path), topic="")


def test_layouts_of_files(tmp_path):
    export(tmp_path, topic(post()), "a/1.json")
    export(tmp_path, [topic(post()), topic(post())], "b/topics.json")
    export(tmp_path, [post(), post()], "c/posts.json")
    export(tmp_path, {"latest_posts": [post()]}, "d/posts.json")
    export(tmp_path, post(), "e/7.json")
    export(tmp_path, f"{json.dumps(topic(post()))}\n\n{json.dumps(post())}\n", "f.jsonl")
    (tmp_path / "g.ndjson.gz").write_bytes(gzip.compress(json.dumps(post()).encode()))
    rows, drops = read("discourse", tmp_path)
    assert len(rows) == 10 and not drops
    parts = [part.name for part in open_source("discourse", str(tmp_path))]
    assert parts == ["a/", "b/", "c/", "d/", "e/", "f.jsonl", "g.ndjson.gz"]


def test_every_drop_is_counted(tmp_path):
    broken = [3, None, {}, post(cooked=None), post(username=" "), post(created_at=5)]
    times = ["", "yesterday", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2020-13-01"]
    dropped = {
        "broken_post": broken,
        "bad_time": [post(created_at=value) for value in times],
        "small_action": [post(post_type=3), post(post_type="3")],
        "whisper": [post(post_type=4)],
        "hidden": [post(hidden=True)],
        "deleted": [post(deleted_at="2020-09-14"), post(user_deleted=True)],
        "wiki": [post(wiki=True)],
        "bot": [post(username="system", user_id=-1), post(username="news-bot")],
        "too_many_tags": [post(cooked="<b>" * 200_000)],
        "empty": [post(cooked="<blockquote>q</blockquote>"), post(cooked="")],
    }
    posts = [value for values in dropped.values() for value in values]
    export(tmp_path, topic(post(), *posts, post(post_type=2)))
    export(tmp_path, topic(post(), archetype="private_message"), "t/4.json")
    export(tmp_path, topic(post(), deleted_at="2020-09-14"), "t/5.json")
    rows, drops = read("discourse", tmp_path)
    assert len(rows) == 2
    expected = {reason: len(values) for reason, values in dropped.items()} | {"private": 1}
    expected["deleted"] += 1
    assert drops == expected


def test_broken_files_are_counted(tmp_path):
    export(tmp_path, topic(post()))
    export(tmp_path, '{"post_stream": {"posts": [', "t/cut.json")
    export(tmp_path, "", "t/void.json")
    export(tmp_path, "[" * 200_000, "t/deep.json")
    export(tmp_path, {"categories": [1]}, "t/site.json")
    export(tmp_path, [3], "t/list.json")
    export(tmp_path, {"post_stream": {"posts": "none"}}, "t/text.json")
    export(tmp_path, f"{json.dumps(post())}\nnonsense\n3\n", "lines.jsonl")
    (tmp_path / "t" / "latin.json").write_bytes(
        json.dumps(topic(post(cooked="caf\xe9")), ensure_ascii=False).encode("cp1252")
    )
    (tmp_path / "t" / "9.json").mkdir()
    rows, drops = read("discourse", tmp_path)
    assert drops == {"broken_json": 4, "broken_record": 4, "note_cp1252": 1}
    assert sorted(rows["text"]) == ["Hello there", "Hello there", "caf\xe9"]


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\0\0\0")
    with pytest.raises(ValueError, match="x.json"):
        open_source("discourse", str(tmp_path))


def test_user_names_are_masked_without_a_mention(tmp_path):
    export(tmp_path, topic(post(), post(username="felix42", cooked="<p>Felix42 is mine</p>")))
    export(tmp_path, topic(post(cooked="<p>Thanks FELIX42 and Larry Wall</p>")), "u/1.json")
    rows, _ = read("discourse", tmp_path)
    assert rows["text"].tolist() == ["Hello there", "@self is mine", "Thanks @user and @user"]


def test_names_of_quoted_people_are_told(tmp_path):
    quote = '<aside class="quote" data-username="Joe"><blockquote>x</blockquote></aside><p>y</p>'
    export(tmp_path, topic(post(cooked=quote)))
    assert read("discourse", tmp_path)[0]["names"].tolist() == ["jane_doe\nJoe\nJane Doe"]


def test_raw_keeps_quotes_and_code(tmp_path):
    html = "<blockquote>old</blockquote><p>mine <code>f x</code> jane_doe</p>"
    export(tmp_path, topic(post(cooked=html)))
    assert read("discourse", tmp_path, raw=True)[0]["text"][0].split() == (
        "old mine f x jane_doe".split()
    )


def test_brackets_cost_little():
    start = time.perf_counter()
    for text in ("[quote]" * 9_000, "[quote][/quote]" * 9_000, "[" * 90_000, "[code=" * 9_000):
        discourse._without_bbcode(text)
    assert time.perf_counter() - start < 5


def test_a_changed_file_changes_the_stamp(tmp_path):
    export(tmp_path, topic(post()))
    (part,) = open_source("discourse", str(tmp_path))
    export(tmp_path, topic(post(), post()))
    assert open_source("discourse", str(tmp_path))[0].stamp != part.stamp
