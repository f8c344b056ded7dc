"""Sources on hand-made archives: what is read, what is dropped and why, and what a broken file does."""

import gzip
import http.server
import json
import subprocess
import threading
from collections import Counter
from functools import partial

import pandas as pd
import pytest

from helpers import paths
from helpers.cleaning import clean
from helpers.sources import COLUMNS, open_source, pipermail, table, zulip

SAMPLES = paths.ROOT.parent / "shared" / "data" / "raw"


def read(kind, location, **options):
    """(all rows, drops) of a source."""
    drops = Counter()
    frames = [frame for part in open_source(kind, str(location), **options) for frame in part.read(drops)]
    rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)
    assert list(rows.columns[:4]) == COLUMNS
    return rows, dict(drops)


# --- Zulip


def message(**changes):
    return {"id": 7, "sender_full_name": "Jane Doe", "timestamp": 1600000000, "content": "<p>Hello there</p>"} | changes


def archive(folder, *messages, stream="12-new.20members", topic="a.2Fb", text=None):
    path = folder / "zulip_json" / stream / f"{topic}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(messages) if text is None else text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p>\n<p>two<br>\nthree</p>", "one two three"),
        ("<ul>\n<li>a</li><li>b</li></ul>c", "a b c"),
        ("<p>use <code>simp</code>s, not x<code>y</code></p>", "use @code s, not x @code"),
        ('<p>see</p><div class="codehilite" data-code-language="Lean"><pre><span></span><code>'
         "<i>def</i></code></pre></div>\n<p>it</p>", "see it"),
        ('<p><span class="user-mention silent" data-user-id="1">@Joe</span> <a href="#narrow/stream/1/near/2">said</a>:'
         "</p>\n<blockquote>\n<p>old</p>\n<blockquote>\n<p>older</p>\n</blockquote>\n</blockquote>\n<p>new</p>", "new"),
        ('<p>Right.</p><p><span class="user-mention silent" data-user-id="1">@Joe</span> <a href="/#narrow/x">ha dicho'
         "</a>:</p>\n<blockquote><p>q</p></blockquote>", "Right."),
        ('<p><span class="user-mention" data-user-id="1">@Joe</span>: '
         '<span class="user-group-mention">@team</span>!</p>', "@user: @user!"),
        ('<p>a <a href="https://example.org/x">https://example.org/x</a> b <a href="https://example.org">this proof</a>'
         ' c <a class="stream" href="/#narrow/9">#general</a> d <a href="/user_uploads/1/i.png">i.png</a></p>',
         "a @url b this proof c @url d @url"),
        ('<p>fine <span aria-label="smile" class="emoji emoji-1f642" role="img" title="smile">:smile:</span> '
         '<img alt=":lean:" class="emoji" src="/x.png" title="lean"></p>', "fine :smile: :lean:"),
        ('<div class="message_inline_image"><a href="/u/i.png" title="i.png"><img src="/u/i.png"></a></div><p>look</p>',
         "look"),
        ('<p>let <span class="katex"><span class="katex-mathml"><math><mi>x</mi></math></span><span class="katex-html">'
         '<span class="mord">x</span></span></span>be</p>', "let be"),
        ('<div class="spoiler-block"><div class="spoiler-header">\n<p>hint</p></div><div class="spoiler-content">'
         "<p>answer</p></div></div>", "hint answer"),
        ("<p>a &lt;script&gt; b &amp;lt;</p><script>alert(1)</script><p>c</p>", "a <script> b < c"),
        ('<p>x <a href="https://example.org" title="a > b">y</a></p>', "x y"),
        ("<p>unclosed <em>tags <b>here", "unclosed tags here"),
        ("5 < 6 and 7 > 3", "5 < 6 and 7 > 3"),
        ("</p></a></blockquote>stray", "stray"),
    ],
)  # fmt: skip
def test_zulip_html(html, text):
    assert clean(zulip.html_to_text(html)) == text


def test_zulip_raw_keeps_quotes_and_code():
    html = "<blockquote><p>old words</p></blockquote><p>mine <code>f x</code></p><pre><code>def f</code></pre>"
    assert zulip.html_to_text(html, raw=True).split() == "old words mine f x def f".split()
    assert zulip.html_to_text(html) == "mine @code"


def test_zulip_rows(tmp_path):
    archive(tmp_path, message(), message(sender_full_name=" Joe ", content="<p>é 🙂</p>", timestamp=1600000001.0))
    rows, drops = read("zulip", tmp_path)
    assert rows[COLUMNS].values.tolist() == [
        ["Jane Doe", 1600000000, "new members", "Hello there"],
        ["Joe", 1600000001, "new members", "é 🙂"],
    ]
    assert rows["time"].dtype == "int64" and rows["id"].tolist() == ["7", "7"] and drops == {}


def test_zulip_counts_every_drop(tmp_path):
    bad = [3, None, {}, message(content=None), message(sender_full_name=""), message(timestamp="1600000000"),
           message(timestamp=True)]  # fmt: skip
    absurd = [message(timestamp=value) for value in (float("nan"), float("inf"), -5, 0, 1e300, 10**400)]
    rest = [message(sender_full_name="Random Issue Bot"), message(content="<blockquote>q</blockquote>")]
    archive(tmp_path, message(), *bad, *absurd, *rest)
    archive(tmp_path, topic="cut", text='[{"id": 1, "content": "<p>trunc')
    archive(tmp_path, topic="object", text='{"messages": []}')
    archive(tmp_path, topic="deep", text="[" * 200_000)
    (tmp_path / "zulip_json" / "12-new.20members" / "latin.json").write_bytes(b'["\xe9"]')
    rows, drops = read("zulip", tmp_path)
    assert len(rows) == 1
    assert drops == {"broken_message": 7, "bad_time": 6, "bot": 1, "empty": 1, "broken_json_file": 4}


def test_zulip_surrogates_and_controls_do_not_break_parquet(tmp_path):
    archive(tmp_path, message(sender_full_name="J\ud800", content="a\x00\udfffb"))
    rows, _ = read("zulip", tmp_path)
    rows.to_parquet(tmp_path / "rows.parquet")
    assert rows["author"][0] == "J" and rows["text"][0] == "ab"


def test_zulip_finds_the_archive_where_it_lies(tmp_path):
    archive(tmp_path / "repository" / "archive", message())
    archive(tmp_path / "repository" / "archive", message(), stream="3-lean4")
    nested = [part.name for part in open_source("zulip", str(tmp_path / "repository"))]
    assert nested == [part.name for part in open_source("zulip", str(tmp_path / "repository/archive/zulip_json"))]
    assert nested == ["12-new.20members", "3-lean4"]


def test_zulip_stream_names():
    names = {"217875-Is-there-code-for-X%3F": "Is-there-code-for-X?", "1-a.2Eb.20.C3.A9": "a.b é", "9-v1.0": "v1.0",
             "5-.FF": ".FF", "new members": "new members", "7-2020": "2020", "8-a.00b": "a.00b"}  # fmt: skip
    assert {name: zulip.stream_name(name) for name in names} == names


def test_zulip_clones_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    origin = archive(tmp_path / "team" / "archive", message())
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=origin, check=True)
    url = f"file://{origin}"
    assert len(read("zulip", url)[0]) == 1
    assert "cloning" in capsys.readouterr().out
    assert len(read("zulip", url)[0]) == 1
    assert "reusing" in capsys.readouterr().out
    with pytest.raises(ValueError, match="could not clone"):
        open_source("zulip", f"file://{tmp_path}/absent.git")
    assert [path.name.startswith("team-archive") for path in (tmp_path / "data" / "clones").iterdir()] == [True]


@pytest.mark.parametrize("kind", ["zulip", "pipermail", "table"])
def test_nothing_to_read_is_an_error(kind, tmp_path):
    with pytest.raises(ValueError, match="nothing to read"):
        open_source(kind, str(tmp_path))
    with pytest.raises(ValueError, match="absent"):
        open_source(kind, str(tmp_path / "absent"))
    with pytest.raises(TypeError):
        open_source(kind, str(tmp_path), unknown_option=1)


# --- pipermail

HEAD = "From jane at example.org  Mon Jul  2 08:07:46 2007\n"


def mail(body, sender="jane at example.org (Jane Doe)", date="Sun, 1 Jul 2007 23:07:46 -0700", more=""):
    date = f"Date: {date}\n" if date else ""
    sender = f"From: {sender}\n" if sender else ""
    return f"{HEAD}{sender}{date}Subject: [L] a subject\n\tthat is folded\n{more}Message-ID: <1@x>\n\n{body}\n\n"


def months(folder, *mails, name="r-devel/2007-July.txt", encoding="utf-8"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(mails).encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def test_pipermail_rows(tmp_path):
    months(tmp_path, mail("First post."), mail("Second\n\n> quoted\n\nreply. Jane", date="2 Jul 2007 08:00 +0200"))
    rows, drops = read("pipermail", tmp_path)
    assert rows[COLUMNS].values.tolist() == [
        ["jane@example.org", 1183356466, "r-devel", "First post."],
        ["jane@example.org", 1183356000, "r-devel", "Second\n\nreply. @self"],
    ]
    assert rows["id"].tolist() == ["1@x", "1@x"] and drops == {}
    raw, _ = read("pipermail", tmp_path, raw=True)
    assert raw["text"][1] == "Second\n\n> quoted\n\nreply. Jane"


def test_pipermail_separator_is_not_any_line_that_begins_with_from(tmp_path):
    body = "He said so.\n\nFrom what I know it is fine.\nFrom Mon Jul to Aug\n\n"
    body += "From Mon Jul  2 08:07:46 2007\nnot a header"
    months(tmp_path, mail(body), mail("next"))
    rows, _ = read("pipermail", tmp_path)
    assert len(rows) == 2 and "From what I know" in rows["text"][0] and "not a header" in rows["text"][0]


def test_pipermail_counts_every_drop(tmp_path):
    months(
        tmp_path,
        mail("kept"),
        mail("x", date="sometime"),
        mail("x", date="Mon, 2 Jul 1901 08:00:00 +0000"),
        mail("x", date="Mon, 2 Jul 2091 08:00:00 +0000"),
        mail("x", date="Mon, 99 Jul 2007 99:00:00 +9900"),
        mail("x", date=None),
        mail("x", sender=None),
        mail("x", sender="mailer-daemon at example.org"),
        mail("x", sender="x at example.org (Release Bot)"),
        mail("> all quoted"),
        mail("An HTML attachment was scrubbed...\nURL: <https://example.org/a.html>"),
    )
    months(tmp_path, "<html>not found</html>", name="r-devel/2008-May.txt")
    rows, drops = read("pipermail", tmp_path)
    assert len(rows) == 1
    assert drops == {"bad_date": 4, "broken_header": 2, "bot": 2, "empty": 1, "scrubbed": 1, "broken_file": 1}


def test_pipermail_senders(tmp_path):
    senders = {
        "Jane.Doe at Example.ORG (Jane Doe)": "jane.doe@example.org",
        "=?iso-8859-1?q?Andr=E9?= <andre@example.org>": "andre@example.org",
        "x at y.example (=?unknown-charset?q?J=FFrg?=)": "x@y.example",
        "=?utf-8?b?QW5kcsOp?=": "André",
        '"Doe, Jane" <jd at example.org>': "jd@example.org",
    }
    months(tmp_path, *(mail("text", sender=sender) for sender in senders))
    assert read("pipermail", tmp_path)[0]["author"].tolist() == list(senders.values())


def test_pipermail_encodings_gzip_and_damage(tmp_path):
    months(tmp_path, mail("café “quoted”"), name="a/2001.txt.gz")
    months(tmp_path, mail("naïve"), name="b/2001.txt", encoding="latin-1")
    months(tmp_path, mail("plain").replace("\n", "\r\n"), name="c/2001.txt")
    months(tmp_path, mail("plain"), name="c/2001.txt.gz")
    many = "".join(mail(f"here is the message that carries the number {n * n}") for n in range(4000))
    whole = gzip.compress(many.encode())
    months(tmp_path, name="d/2001.txt.gz").joinpath("d/2001.txt.gz").write_bytes(whole[: len(whole) // 2])
    rows, drops = read("pipermail", tmp_path)
    texts = dict(rows.groupby("topic")["text"].first())
    assert texts["a"] == "café “quoted”" and texts["b"] == "naïve" and texts["c"] == "plain"
    assert rows["topic"].value_counts()["c"] == 1  # the month is there twice, plain and gzipped
    assert 1000 < rows["topic"].value_counts()["d"] < 4000 and drops == {}


def test_pipermail_downloads_a_list_once(tmp_path, monkeypatch):
    months(tmp_path, mail("from the web"), name="site/pipermail/r-devel/2007-July.txt")
    months(tmp_path, mail("zipped"), name="site/pipermail/r-devel/2007-June.txt.gz")
    page = '<a href="2007-July.txt">t</a> <A HREF="2007-June.txt.gz">t</A> <a href="2007-July/thread.html">x</a>'
    (tmp_path / "site/pipermail/r-devel/index.html").write_text(page)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *args: None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}/pipermail/"
        listing = pipermail.parts(base + "r-devel/")
        assert [part.name for part in listing] == ["r-devel/2007-July", "r-devel/2007-June"]
        texts = [frame["text"][0] for part in listing for frame in part.read(Counter())]
        assert texts == ["from the web", "zipped"]
        for missing in ("nowhere/", "r-devel/1999.txt"):
            with pytest.raises(ValueError, match="cannot fetch"):
                [list(part.read(Counter())) for part in pipermail.parts(base + missing)]
        month = pipermail.parts(base + "r-devel/2007-July.txt")
        server.shutdown()
    assert next(month[0].read(Counter()))["topic"][0] == "r-devel"  # served from data/downloads now
    assert sorted(path.name for path in (tmp_path / "data/downloads/r-devel").iterdir()) == [
        "2007-July.txt", "2007-June.txt.gz",
    ]  # fmt: skip


# --- table


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


# --- the real samples


@pytest.mark.skipif(not (SAMPLES / "zulip").is_dir(), reason="the sample archives are not here")
def test_zulip_sample():
    rows, drops = read("zulip", SAMPLES / "zulip")
    files = list((SAMPLES / "zulip").rglob("*.json"))
    assert len(rows) + sum(drops.values()) == sum(len(json.loads(path.read_bytes())) for path in files)
    assert len(rows) > 0.95 * (len(rows) + drops["empty"]) and drops["bot"] > 200 and set(drops) == {"empty", "bot"}
    cleaned = [clean(text, author) for text, author in zip(rows["text"], rows["author"], strict=True)]
    for leftover in ("</", "<p", "class=", "said:", "https://", "\u200b", "@Member", "```"):
        assert sum(leftover in text for text in cleaned) <= 3, leftover


@pytest.mark.skipif(not (SAMPLES / "pipermail").is_dir(), reason="the sample archives are not here")
def test_pipermail_sample():
    location = SAMPLES / "pipermail" / "r-sig-mac"
    rows, drops = read("pipermail", location)
    separators = sum(path.read_text().count("\nFrom: ") for path in location.glob("*.txt"))
    assert abs(len(rows) + sum(drops.values()) - separators) <= 25  # quoted headers count as well
    lines = [line for text in rows["text"] for line in text.split("\n")]
    assert not [line for line in lines if line.startswith(">") or line.rstrip().endswith("wrote:")]
    for leftover in ("Original Message", "mailing list\n", "scrubbed...", "next part"):
        assert not rows["text"].str.contains(leftover, regex=False).any(), leftover
