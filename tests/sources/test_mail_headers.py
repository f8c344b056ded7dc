"""Dates and senders as mail programs garble them."""

import calendar
import time

import pytest

from helpers.sources.pipermail import parse_date
from tests.sources.examples import EXAMPLES


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
