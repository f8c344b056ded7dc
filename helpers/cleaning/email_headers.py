"""Who wrote a mail or a newsgroup message, and when: its headers, as mail programs garble them."""

import email.errors
import email.header
import email.parser
import email.utils
import re
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from helpers.cleaning.text import normalise_unicode

ADDRESS = re.compile(r"([^\s<>()\"',;:@]{1,100})(?:@|\s+at\s+)([^\s<>()\"',;:@]{1,200})")
# "Jane Doe <jd@example.org> wrote:", also with "at", folded after the address or without one;
# "schrieb Jane Doe:"
ATTRIBUTED = re.compile(
    r"(?:^[> ]*|,\s|[\dM]\s)(schrieb )?((?:[^\W\d_][\w.'?-]{0,20} ?){1,4}?)(?(1):|"
    r"(?<= )(?:(?:<[^<>\n]{3,80}>|\([^()\n]{3,80}\))\s[> ]*(?:wrote|writes)\b"
    r"|(?:wrote|(?:a )?\S{1,2}crit)\s?:))",
    re.M,
)
# 1980-01-01: no list is older, an earlier date is a clock that was never set
EARLIEST_SECOND = 315_532_800
MAX_UTC_OFFSET = timedelta(hours=15)  # no place on Earth is further from Greenwich


class Message(NamedTuple):
    """A message in parts.

    Attributes
    ----------
    name, address : str, of the sender, "" where absent
    date : str, the header, None where absent
    time : int, seconds since 1970 UTC, see :func:`parse_date`
    id : str, of the message
    body : str
    """

    name: str
    address: str
    date: str | None
    time: int | None
    id: str
    body: str

    @property
    def names(self) -> str:
        """The names, a line each, that the header and the attributions of quotes tell."""
        return "\n".join([self.name, *(match[2] for match in ATTRIBUTED.finditer(self.body))])

    @property
    def author(self) -> str:
        """The address, or the name where there is none.

        On a busy list two people called "David" or "J. Smith" are common. A label that mixes two
        people cannot be learnt, while a person with two addresses only counts as two people.
        """
        return normalise_unicode(self.address or self.name)


def decode_header(message: bytes, notes: Counter) -> str:
    """Return a message as text, of UTF-8, else of Windows-1252: an archive mixes encodings.

    Parameters
    ----------
    message : bytes
        The message as the archive holds it.
    notes : Counter
        Counts ``note_cp1252`` and, where bytes mean nothing there either and become U+FFFD,
        ``note_undecodable``.
    """
    try:
        return message.decode()
    except UnicodeDecodeError:
        text = message.decode("cp1252", "replace")
    notes["note_undecodable" if "\ufffd" in text else "note_cp1252"] += 1
    return text


def parse_headers(message: str) -> Message:
    """Return the headers and the body of a message."""
    head, _, body = message.partition("\n\n")
    fields = email.parser.HeaderParser().parsestr(head + "\n\n")
    name, address = sender_of(decode_bytes(fields.get("From", "")))
    date = fields.get("Date")
    message_id = normalise_unicode(decode_bytes(fields.get("Message-ID", "")).strip("<> "))
    return Message(name, address, date, parse_date(date), message_id, normalise_unicode(body))


def sender_of(value: str) -> tuple[str, str]:
    """Return the name and the address, in lower case, of a From header; "" for what is absent.

    It reads "x at y (Name)", "Name <x at y>" and "Name".
    """
    match = ADDRESS.search(value)
    address = ""
    if match:
        address = f"{match[1]}@{match[2]}".lower()
        value = value.replace(match[0], " ")
    name = re.sub(r"[<>\"]|^\W*\(|\)\s*$", " ", value)
    name = re.sub(r"^[\s(]+|[\s)]+$", "", name)
    return " ".join(name.split()), address


def decode_bytes(value: object) -> str:
    """Return a header as text: unfolded, its RFC 2047 words decoded where they can be."""
    value = " ".join(str(value).split())
    if "=?" not in value:
        return value
    try:
        return str(email.header.make_header(email.header.decode_header(value)))
    except (LookupError, ValueError, email.errors.HeaderParseError):
        return value


def parse_date(value: object) -> int | None:
    """Return a Date header in seconds since 1970 UTC, None where it is unreadable or absurd.

    Without a time zone, or with one whose name the standard library does not know, it counts as
    UTC.
    """
    try:
        parsed = email.utils.parsedate_tz(" ".join(str(value).split()))
        # None is no zone: email's mktime_tz would take this machine's
        zone = timedelta(seconds=parsed[9] or 0)
        second = int(datetime(*parsed[:6], tzinfo=timezone(zone)).timestamp())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if abs(zone) > MAX_UTC_OFFSET or not EARLIEST_SECOND <= second <= time.time() + 86_400:
        return None
    return second
