"""Who wrote a mail or a newsgroup message, and when: its From and Date headers, as mail programs garble them."""

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
# "Jane Doe <jd@example.org> wrote:", also with "at", folded after the address or without one; "schrieb Jane Doe:"
ATTRIBUTED = re.compile(
    r"(?:^[> ]*|,\s|[\dM]\s)(schrieb )?((?:[^\W\d_][\w.'?-]{0,20} ?){1,4}?)(?(1):|"
    r"(?<= )(?:(?:<[^<>\n]{3,80}>|\([^()\n]{3,80}\))\s[> ]*(?:wrote|writes)\b|(?:wrote|(?:a )?\S{1,2}crit)\s?:))",
    re.M,
)
EARLIEST = (
    315_532_800  # 1980-01-01: no list is older, an earlier date is a clock that was never set
)


class Message(NamedTuple):
    """A message in parts. name, address: "" where absent. date: the header, None where absent. time: see seconds."""

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

        On a busy list two people called "David" or "J. Smith" are common, and a label that mixes two people cannot be
        learnt, while a person with two addresses only counts as two people.
        """
        return normalise_unicode(self.address or self.name)


def decode_header(message: bytes, notes: Counter) -> str:
    """A message as text, of UTF-8, else of Windows-1252: an archive mixes the encodings of its writers.

    Counts ``note_cp1252`` and, where bytes mean nothing there either and become U+FFFD, ``note_undecodable``.
    """
    try:
        return message.decode()
    except UnicodeDecodeError:
        text = message.decode("cp1252", "replace")
    notes["note_undecodable" if "\ufffd" in text else "note_cp1252"] += 1
    return text


def parse_headers(message: str) -> Message:
    """The headers and the body of a message."""
    head, _, body = message.partition("\n\n")
    fields = email.parser.HeaderParser().parsestr(head + "\n\n")
    number = normalise_unicode(decode_bytes(fields.get("Message-ID", "")).strip("<> "))
    date = fields.get("Date")
    return Message(
        *sender_of(decode_bytes(fields.get("From", ""))),
        date,
        parse_date(date),
        number,
        normalise_unicode(body),
    )


def sender_of(value: str) -> tuple[str, str]:
    """(name, address in lower case) of "x at y (Name)", "Name <x at y>", "Name" or nothing; "" for what is absent."""
    address = ADDRESS.search(value)
    name = re.sub(
        r"[<>\"]|^\W*\(|\)\s*$", " ", value.replace(address[0], " ") if address else value
    )
    name = " ".join(re.sub(r"^[\s(]+|[\s)]+$", "", name).split())
    return name, f"{address[1]}@{address[2]}".lower() if address else ""


def decode_bytes(value) -> str:
    """A header as text: unfolded, RFC 2047 words decoded; a word that cannot be decoded stays as it is."""
    value = " ".join(str(value).split())
    try:
        return (
            str(email.header.make_header(email.header.decode_header(value)))
            if "=?" in value
            else value
        )
    except (LookupError, ValueError, email.errors.HeaderParseError):
        return value


def parse_date(value) -> int | None:
    """A Date header in seconds since 1970 UTC, or None where it is unreadable or absurd.

    Without a time zone, or with one whose name the standard library does not know, it counts as UTC.
    """
    try:
        parsed = email.utils.parsedate_tz(" ".join(str(value).split()))
        zone = timedelta(
            seconds=parsed[9] or 0
        )  # None is no zone: email's mktime_tz would take this machine's
        when = int(datetime(*parsed[:6], tzinfo=timezone(zone)).timestamp())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    # no place on Earth is further from Greenwich
    return (
        when
        if abs(zone) <= timedelta(hours=15) and EARLIEST <= when <= time.time() + 86_400
        else None
    )
