"""Mailman's months: what is read, what is dropped and why; dates as programs garble them."""

import calendar
import gzip
import time

import pytest

from helpers.sources import COLUMNS, pipermail
from helpers.sources.pipermail import parse_date
from tests.factories import read_source as read
from tests.sources.examples import EXAMPLES

HEAD = "From jane at example.org  Mon Jul  2 08:07:46 2007\n"


def mail(
    body, sender="jane at example.org (Jane Doe)", date="Sun, 1 Jul 2007 23:07:46 -0700", more=""
):
    date = f"Date: {date}\n" if date else ""
    sender = f"From: {sender}\n" if sender else ""
    head = f"{HEAD}{sender}{date}Subject: [L] a subject\n\tthat is folded\n{more}"
    return f"{head}Message-ID: <1@x>\n\n{body}\n\n"


def months(folder, *mails, name="r-devel/2007-July.txt", encoding="utf-8"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(mails).encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def test_pipermail_rows(tmp_path):
    second = mail("Second\n\n> quoted\n\nreply. Jane", date="2 Jul 2007 08:00 +0200")
    months(tmp_path, "a line\n\n", mail("First post."), second)
    rows, drops = read("pipermail", tmp_path)
    assert rows[COLUMNS].values.tolist() == [
        ["jane@example.org", 1183356466, "r-devel", "First post."],
        ["jane@example.org", 1183356000, "r-devel", "Second\n\nreply. @self"],
    ]
    assert rows["id"].tolist() == ["1@x", "1@x"] and drops == {"note_lines_before_messages": 1}


def test_pipermail_tells_the_names_of_headers_attributions_and_signatures(tmp_path):
    names = {
        "On Mon, 2 Jul 2007,\nBo Berg <bo at x.org>\nwrote:": ["Bo Berg"],
        "On Mar 9, 2012, at 6:42 PM, R. Jack Lee wrote:": ["R. Jack Lee"],
        "Am 25.03.2012 05:10, schrieb Bob B?rg:": ["Bob B?rg"],
        "Le 07/07/2013 12:46 AM, Ann Ash a ?crit :": ["Ann Ash"],
        "Cy Clay (cyc) writes\nok\nschrieb Ida Ott:\nok": ["Cy Clay", "Ida Ott"],
        "> Best regards,\n>\n> Ann-Lee B. Moser\n\nCheers,\nBo Doe": ["Ann-Lee B. Moser", "Bo Doe"],
        "Console says:\n\nWith regards\nto it": [],
    }
    months(tmp_path, *(mail(f"{lines}\n> theirs\n\nmine") for lines in names))
    for told, (header_name, *others) in zip(names.values(), read("pipermail", tmp_path)[0].names):
        assert header_name == "Jane Doe" and list(map(str.strip, others)) == told


def test_pipermail_separator_is_not_any_line_that_begins_with_from(tmp_path):
    body = "He said so.\n\nFrom what I know it is fine.\nFrom Mon Jul to Aug\n\n"
    body += "From Mon Jul  2 08:07:46 2007\nnot a header"
    months(tmp_path, mail(body), mail("next"))
    rows, _ = read("pipermail", tmp_path)
    assert len(rows) == 2 and "not a header" in rows["text"][0]
    assert "From what I know" in rows["text"][0]


def test_pipermail_counts_every_drop(tmp_path):
    months(
        tmp_path,
        mail("kept"),
        mail("x", date="sometime"),
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
    lost = {"bad_date": 2, "broken_header": 1, "bot": 2, "empty": 1, "scrubbed": 1}
    assert drops == lost | {"broken_file": 1}


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
    many = [mail(f"here is the message that carries the number {n * n}") for n in range(4000)]
    whole = gzip.compress("".join(many).encode())
    (tmp_path / "d").mkdir()
    (tmp_path / "d/2001.txt.gz").write_bytes(whole[: len(whole) // 2])
    rows, drops = read("pipermail", tmp_path)
    texts = dict(rows.groupby("topic")["text"].first())
    assert texts["a"] == "café “quoted”" and texts["b"] == "naïve" and texts["c"] == "plain"
    assert 1000 < rows["topic"].value_counts()["d"] < 4000
    assert drops == {"note_cp1252": 1, "truncated_file": 1}


def test_what_is_too_large_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(pipermail, "MAX_MESSAGE_BYTES", 1000)
    months(tmp_path, *map(mail, ["before the large one", "x" * 1000, "after the large one"]))
    rows, drops = read("pipermail", tmp_path)
    assert rows["text"].tolist() == ["before the large one", "after the large one"]
    assert drops == {"too_large": 1}


@pytest.mark.parametrize(("date", "expected"), EXAMPLES["mail_dates"].items())
def test_dates(date, expected, monkeypatch):
    for zone in ("UTC", "Asia/Tokyo"):  # a date without a zone is not one of this machine's
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert parse_date(date) == (
            expected and calendar.timegm(time.strptime(expected, "%Y-%m-%d %H:%M:%S"))
        )
    monkeypatch.undo()
    time.tzset()
