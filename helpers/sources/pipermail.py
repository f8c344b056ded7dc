"""Mailman's monthly text archives (pipermail): mbox-like files, plain or gzipped.

The posts table's topic is the name of the list: that of the folder that holds its monthly files.
Headers of mails are read even where they are garbled.
"""

import email.errors
import email.header
import email.parser
import email.utils
import re
import time
from datetime import datetime, timedelta, timezone

from ..cleaning.email import SCRUBBED, own_paragraphs
from ..cleaning.salutations import NAME, PERSON
from ..cleaning.text import is_bot, mask_mentions, normalise_unicode
from ..core.files import counted_damage, open_text
from . import Part, file_parts, source_files

MAX_MESSAGE_BYTES = 1 << 24  # a larger message is dropped as too_large
# the ending of a monthly file: "2012-March.txt.gz"
MONTH = re.compile(r"\.(?:txt|mbox)(?:\.gz)?$")
# The line above a message: "From jd at example.org  Mon Jul  2 10:15:00 2007". A line of a body may
# begin with "From " too, so the separator must also have a date, and stand between a blank line (or
# the start of the file) and a header. The literal "From " comes first, and look-behinds then check
# what is before it: re finds a literal a hundred times faster than a position.
SEPARATOR = re.compile(
    rb"From (?:(?<=\AFrom )|(?<=\n\nFrom ))[^\n]{0,300}?"
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +[A-Z][a-z]{2} +\d{1,2} +\d{1,2}:\d\d:\d\d +"
    rb"(?:[A-Z+-][A-Z\d]{1,4} +)?\d{4}[ \t]*\n(?=[A-Za-z][A-Za-z\d-]{0,60}:)"
)
LINE_WITH_TEXT = re.compile(rb"^.*\S", re.M)
# "jd@example.org" and "jd at example.org"
ADDRESS = re.compile(r"([^\s<>()\"',;:@]{1,100})(?:@|\s+at\s+)([^\s<>()\"',;:@]{1,200})")
# the name in an attribution: "Jane Doe <jd@example.org> wrote:", also with "jd at example.org",
# with a line break after the address, or without an address; "schrieb Jane Doe:"
ATTRIBUTED = re.compile(
    r"(?:^[> ]*|,\s|[\dM]\s)(schrieb )?((?:[^\W\d_][\w.'?-]{0,20} ?){1,4}?)(?(1):|"
    r"(?<= )(?:(?:<[^<>\n]{3,80}>|\([^()\n]{3,80}\))\s[> ]*(?:wrote|writes)\b"
    r"|(?:wrote|(?:a )?\S{1,2}crit)\s?:))",
    re.M,
)
# the full name below a farewell, also in a quote: "> Best regards," and "> Jane B. Doe" below it
SIGNED = re.compile(
    r"(?:[Rr]egards|[Ss]incerely|[Ww]ishes|[Cc]heers)[,.! ]*\n(?:[> |]*\n)?[> |]*"
    rf"({PERSON}(?:[ \t]+(?:[A-Z]\.[ \t]*)?{NAME}){{1,3}})[ \t]*$",
    re.M,
)
# 1980-01-01: no list is older; an earlier date comes from a clock that was never set
EARLIEST_SECOND = 315_532_800
MAX_UTC_OFFSET = timedelta(hours=15)  # no place on Earth is further from Greenwich


def parts(location: str | list[str]) -> list[Part]:
    """Return one part per monthly file, which is held in memory while it is read.

    Drops counted: broken_file (a file without a message), truncated_file (what precedes the damage
    is kept), too_large, broken_header (no sender), bad_date, bot, scrubbed (the archive
    kept only a link to a removed part), empty (also where only quotes and a signature are there).
    Noted: lines_before_messages; note_cp1252, messages that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a folder (searched recursively for ``.txt``, ``.txt.gz``, ``.mbox``) or a file

    Raises
    ------
    ValueError
        A location is missing, or two files have the same name.
    """
    return file_parts(source_files("pipermail", location, MONTH.search), _rows)


def _rows(path, drops):
    """Yield a post or the reason of a drop per message of a file."""
    content = _content(path, drops)
    separators = list(SEPARATOR.finditer(content))
    if not separators:
        yield "broken_file"
        return
    lines_before = LINE_WITH_TEXT.findall(content[: separators[0].start()])
    if lines_before:
        drops["note_lines_before_messages"] += len(lines_before)
    ends = [separator.start() for separator in separators[1:]] + [len(content)]
    for separator, end in zip(separators, ends):
        if end - separator.start() > MAX_MESSAGE_BYTES:
            yield "too_large"
            continue
        message = content[separator.end() : end]
        text = message.decode("utf-8", "cp1252")
        if text.encode() != message:
            drops["note_cp1252"] += 1
        yield _row(text, path.parent.name)


def _content(path, drops):
    """Return the content of a file up to its damage, with the line ends of Unix."""
    pieces = []
    with open_text(path) as file, counted_damage(drops):
        while piece := file.buffer.read1(1 << 18):
            pieces.append(piece)
    return b"".join(pieces).replace(b"\r\n", b"\n")


def _row(text, topic):
    """Return the values of the post that a message is, or the reason why it is dropped.

    The author is the address of the sender, or the name where there is no address. Names are no
    good labels: on a busy list two people may be called "David" or "J. Smith", and a label that
    mixes two people cannot be learnt. A person with two addresses merely counts as two people.
    """
    head, _, body = text.partition("\n\n")
    fields = email.parser.HeaderParser().parsestr(head + "\n\n")
    name, address = sender_of(decode_words(fields.get("From", "")))
    if not (name or address):
        return "broken_header"
    time = parse_date(fields.get("Date"))
    if time is None:
        return "bad_date"
    if is_bot(address) or is_bot(name):
        return "bot"
    body = normalise_unicode(body)
    own_text = own_paragraphs(body).strip()
    if not own_text and SCRUBBED.search(body):
        return "scrubbed"
    # here, because later steps know only the author's address, not the name
    own_text = mask_mentions(own_text, name)
    message_id = normalise_unicode(decode_words(fields.get("Message-ID", "")).strip("<> "))
    attributed = [match[2] for match in ATTRIBUTED.finditer(body)]
    names = [name, *SIGNED.findall(body), *attributed]
    return normalise_unicode(address or name), time, topic, own_text, message_id, names


def sender_of(value: str) -> tuple[str, str]:
    """Return the name and the address, in lower case, of a From header; "" for what is absent.

    It reads "x at y (Name)", "Name <x at y>" and "Name".
    """
    address = ""
    if match := ADDRESS.search(value):
        address = f"{match[1]}@{match[2]}".lower()
        value = value.replace(match[0], " ")
    name = re.sub(r"[<>\"]|^\W*\(|\)\s*$", " ", value)
    name = re.sub(r"^[\s(]+|[\s)]+$", "", name)
    return " ".join(name.split()), address


def decode_words(value: str) -> str:
    """Return a header as text on one line, with RFC 2047 words ("=?utf-8?q?J=C3=BCrg?=") decoded.

    Where that fails, the header stays encoded.
    """
    value = " ".join(str(value).split())
    if "=?" not in value:
        return value
    try:
        return str(email.header.make_header(email.header.decode_header(value)))
    except (LookupError, ValueError, email.errors.HeaderParseError):
        return value


def parse_date(value: object) -> int | None:
    """Return the time of a Date header in seconds since 1970 UTC, None where there is none.

    None stands for a date that is unreadable, before 1980 or over a day in the future, or that has
    an impossible time zone. A date without a zone, or with a name of a zone that the standard
    library does not know, counts as UTC.
    """
    try:
        parsed = email.utils.parsedate_tz(" ".join(str(value).split()))
        # None: no zone, which email.utils.mktime_tz would take for this machine's zone
        zone = timedelta(seconds=parsed[9] or 0)
        second = int(datetime(*parsed[:6], tzinfo=timezone(zone)).timestamp())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if abs(zone) > MAX_UTC_OFFSET or not EARLIEST_SECOND <= second <= time.time() + 86_400:
        return None
    return second
