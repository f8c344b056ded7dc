"""Lines of logs of IRC channels, in the layouts that clients, bouncers and bots write.

A line begins with a time, as one of "[10:15]", "10:15:30", "2012-03-07 10:15:30" and "Mar 07
10:15:30". "<nick> text" follows, or between tabs, as WeeChat writes it, the nick and the text. What
follows else is an action ("* nick waves"), or an event such as a join. Lines without a time are
dates ("--- Day changed Wed Mar 07 2012") or unread. Pages of HTML with a ``<li>`` for each line are
read too.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import partial
from pathlib import Path

from ..core.files import bare_path, open_text

MAX_LINE_CHARS = 1 << 14  # IRC sends at most 512 bytes a line
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
MONTH = "(?:" + "|".join(month.title() for month in MONTHS) + ")"

# "20120307", "2012-03-07", "2012/03/07" in the path of a file, and eggdrop's "07Mar2012"
PATH_DATE = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<gap>[-_./]?)(?P<month>0\d|1[0-2])(?P=gap)"
    r"(?P<day>[0-3]\d)(?!\d)"
    rf"|(?<!\d)(?P<day_first>[0-3]\d)(?P<name>{MONTH})(?P<year_last>(?:19|20)\d\d)(?!\d)"
)
# "--- Log opened Wed Mar 07 10:15:30 2012", "[00:00] --- Wed Mar  7 2012", "Session Start: ..."
DATE_LINE = re.compile(
    r"(?:\[\d\d:\d\d(?::\d\d)?\] )?(?:---|===|\*{3,4}|Session\b)[^<>]{0,40}?"
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}},? (?P<name>{MONTH})[a-z]{{0,6}} {{1,2}}"
    r"(?P<day>\d{1,2}),?(?: \d\d:\d\d(?::\d\d)?)? (?P<year>\d{4})\b"
)
# the time of a line, after the number that pages put before it; "[10:15 PM]", "10:15:30+01:00"
STAMP = re.compile(
    r"(?:#\s)?[\[(]?"
    rf"(?:(?P<date>\d{{4}}-\d\d-\d\d)[T ]|(?P<name>{MONTH}) {{1,2}}(?P<day>\d{{1,2}}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d{1,9})?)?"
    r"(?: ?(?P<half>[AaPp])[Mm])?(?P<zone>Z|[+-]\d\d:?\d\d)?[\])]?(?=\s|$)"
)
# "<nick> text", with the mark of an operator or a blank before the nick
SPOKEN = re.compile(r"\s{1,3}<[\s@+%&~!]?(?P<nick>[^\s<>]{1,64})>(?:\s(?P<text>.*))?$")
# WeeChat's "\tnick\ttext"; its events have an arrow or "--" in place of the nick
TABBED = re.compile(r"\t[@+%&~!]?(?P<nick>(?!-->|<--|--\t|=!=|\s?\*)[^\s<>]{1,64})\t(?P<text>.*)$")
# "* jane waves", but not "* jane is now known as joe" and "* jane (~jane@example.org) has left"
ACTION = re.compile(
    r"(?:\s{1,3}\*{1,3}|\s?Action:|\t \*\t)\s?(?P<nick>(?!\*)[^\s:]{1,64})\s"
    r"(?![(\[]\S{1,99}@)(?!(?:is now known as|sets? (?:mode|the topic)|changes? topic"
    r"|(?:has )?(?:joined|left|quit|parted)|was kicked|gives|removes)\b)"
)
# "[00:02] *** jane left": three stars are an event in most layouts
STARRED = re.compile(r"\s{1,3}\*\*\*\s")
# "*** jane left", "* Joins: jane (~jane@example.org)", "-!- jane is now known as joe"
EVENT_NICK = re.compile(
    r"\s{1,3}(?:\*{1,3}|-!-|-->|<--)\s+(?:Joins: |Parts: |Quits: )?(?P<nick>[^\s:]{2,64})\s"
    r"(?:[(\[]\S{1,99}@|(?:has )?(?:joined|left|quit|parted)\b|is now known as )"
)
# bold, colours and other marks of a client
FORMATTING = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|[\x02\x0f\x11\x16\x1d\x1e\x1f]")
TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Line:
    """A line of a log.

    Attributes
    ----------
    kind : str
        "spoken", "action" or "event"; else the reason why it cannot be read: "unread_line",
        "long_line", "no_date", "bad_time"
    nick : str
        who speaks, acts, joins or leaves
    text : str
        what is spoken, without the marks of colours
    time : int
        seconds since 1970 UTC
    """

    kind: str
    nick: str = ""
    text: str = ""
    time: int = 0


def date_in_path(path: Path) -> date | None:
    """Return the last date in the names of a file and its next two folders, None without one."""
    for match in reversed(list(PATH_DATE.finditer("/".join(path.parts[-3:])))):
        month = match["month"] or MONTHS.index(match["name"].lower()) + 1
        year = match["year"] or match["year_last"]
        day = _date(year, month, match["day"] or match["day_first"])
        if day is not None:
            return day
    return None


def read_lines(path: Path, zone: tzinfo, drops: Counter) -> Iterator[Line]:
    """Yield the lines of a log but blank ones; of a damaged file those before the damage.

    Drops counted: truncated_file. Noted: note_cp1252, lines with bytes that are not UTF-8.

    Parameters
    ----------
    path : Path
        path of the file, which may be packed; its date holds until a line tells another one
    zone : tzinfo
        time zone of the times that name none
    drops : Counter
        number of drops by reason, increased in place
    """
    day = date_in_path(path)
    is_page = bare_path(path).suffix.lower() in (".html", ".htm")
    for text in _texts(path, drops):
        if text is None:
            yield Line("long_line")
            continue
        if is_page:
            if not text.lstrip().startswith("<li"):
                continue
            text = html.unescape(TAG.sub("", text)).lstrip()
        text = FORMATTING.sub("", text).rstrip()
        if not text:
            continue
        date_line = DATE_LINE.match(text.removeprefix("# "))
        if date_line:
            month = MONTHS.index(date_line["name"].lower()) + 1
            day = _date(date_line["year"], month, date_line["day"]) or day
            yield Line("event")
        else:
            yield _line(text, day, zone)


def _texts(path, drops):
    """Yield the lines of a file as text, None for one that is too long."""
    is_too_long = False
    try:
        with open_text(path) as file:
            for text in iter(partial(file.readline, MAX_LINE_CHARS), ""):
                is_whole = text.endswith(("\n", "\r"))
                if is_too_long or not is_whole and len(text) == MAX_LINE_CHARS:
                    if not is_too_long:
                        yield None
                    is_too_long = not is_whole
                    continue
                yield _decoded(text, drops)
    except EOFError:
        drops["truncated_file"] += 1


def _decoded(text, drops):
    """Return a text whose surrogates, which stand for bytes that are not UTF-8, became letters."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        drops["note_cp1252"] += 1
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "cp1252")
    return text


def _line(text, day, zone):
    """Return what a line without a date of its own says; ``day`` is that of the lines above."""
    stamp = STAMP.match(text)
    if not stamp:
        return Line("unread_line")
    remainder = text[stamp.end() :]
    spoken = SPOKEN.match(remainder) or TABBED.match(remainder)
    if not spoken:
        action = ACTION.match(remainder)
        if action and not STARRED.match(remainder):
            return Line("action", action["nick"])
        event = EVENT_NICK.match(remainder)
        return Line("event", event["nick"] if event else "")
    if day is None and stamp["date"] is None:
        return Line("no_date")
    time = _time(stamp, day, zone)
    if time is None:
        return Line("bad_time")
    return Line("spoken", spoken["nick"], spoken["text"] or "", time)


def _time(stamp, day, zone):
    """Return the time of a match of STAMP in seconds since 1970 UTC, None where there is none."""
    if stamp["date"]:
        day = _date(*stamp["date"].split("-"))
    elif stamp["name"]:
        day = _date(day.year, MONTHS.index(stamp["name"].lower()) + 1, stamp["day"])
    hour = int(stamp["hour"])
    if stamp["half"]:
        hour = hour % 12 + 12 * "ap".index(stamp["half"].lower())
    if stamp["zone"]:
        zone = _fixed_zone(stamp["zone"])
    if day is None or zone is None:
        return None
    try:
        moment = datetime(
            day.year,
            day.month,
            day.day,
            hour,
            int(stamp["minute"]),
            int(stamp["second"] or 0),
            tzinfo=zone,
        )
    except ValueError:
        return None
    return int(moment.timestamp())


def _fixed_zone(offset):
    """Return the zone of "Z", "+0100" or "+01:00", None for one that is not on Earth."""
    if offset == "Z":
        return timezone.utc
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    if minutes >= 24 * 60:
        return None
    return timezone(timedelta(minutes=minutes if offset[0] == "+" else -minutes))


def _date(year, month, day):
    """Return a date of numbers or digits, None where there is no such day."""
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
