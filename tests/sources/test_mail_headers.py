"""Dates and senders as mail programs garble them."""

import calendar
import time

import pytest

from helpers.sources.pipermail import parse_date, sender_of


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Tue, 6 Apr 93 01:23:45 GMT", "1993-04-06 01:23:45"),
        ("Tue, 06 Apr 1993 01:23:45 -0500", "1993-04-06 06:23:45"),
        ("Tuesday, 6 Apr 93 01:23:45 EST", "1993-04-06 06:23:45"),
        ("Tue Apr  6 01:23:45 1993", "1993-04-06 01:23:45"),
        ("6 Apr 93 01:23:45", "1993-04-06 01:23:45"),
        ("6 Apr 93 01:23:45 MET DST", "1993-04-06 01:23:45"),
        ("Tue, 6 Apr\n\t93 01:23:45 GMT", "1993-04-06 01:23:45"),
        ("", None),
        ("Mon, 99 Apr 93 99:99:99 GMT", None),
        ("6 Apr 93 01:23:45 +1600", None),
        ("6 Apr 2093 01:23:45 GMT", None),
    ],
)
def test_dates(date, expected, monkeypatch):
    for zone in ("UTC", "Asia/Tokyo"):  # a date without a zone is not one of this machine's
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert parse_date(date) == (
            expected and calendar.timegm(time.strptime(expected, "%Y-%m-%d %H:%M:%S"))
        )
    monkeypatch.undo()
    time.tzset()


def test_senders():
    assert sender_of("jd@cs.example.edu (Jane Doe)") == ("Jane Doe", "jd@cs.example.edu")
    assert sender_of('"Jane Doe" <JD@cs.Example.edu>') == ("Jane Doe", "jd@cs.example.edu")
    assert sender_of("root@vax") == ("", "root@vax") and sender_of(" ") == ("", "")
