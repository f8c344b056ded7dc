"""Headers of mails, even garbled ones: who wrote a message, and when."""

import email.errors
import email.header
import email.parser
import email.utils
import re
import time
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from .salutations import NAME, PERSON
from .text import UUCP, normalise_unicode

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


class Message(NamedTuple):
    """The headers and the body of a message.

    Attributes
    ----------
    name, address : str, name and address of the sender, "" where absent
    date : str, the Date header as it is, None where absent
    time : int, its seconds since 1970 UTC, None where unreadable, see :func:`parse_date`
    id : str, the Message-ID without its brackets, "" where absent
    body : str, the text below the headers, quotes included
    """

    name: str
    address: str
    date: str | None
    time: int | None
    id: str
    body: str

    @property
    def names(self) -> str:
        """The sender's name and those in attributions of quotes and in signatures, one per line."""
        attributed = [match[2] for match in ATTRIBUTED.finditer(self.body)]
        return "\n".join(dict.fromkeys([self.name, *SIGNED.findall(self.body), *attributed]))

    @property
    def author(self) -> str:
        """The address of the sender, or the name where there is no address.

        Names are no good labels: on a busy list two people may be called "David" or "J. Smith", and
        a label that mixes two people cannot be learnt. A person with two addresses merely counts as
        two people.
        """
        return normalise_unicode(self.address or self.name)


def parse_headers(message: str) -> Message:
    """Return the headers and the body of a message, which a blank line parts."""
    head, _, body = message.partition("\n\n")
    fields = email.parser.HeaderParser().parsestr(head + "\n\n")
    name, address = sender_of(decode_words(fields.get("From", "")))
    date = fields.get("Date")
    message_id = normalise_unicode(decode_words(fields.get("Message-ID", "")).strip("<> "))
    return Message(name, address, date, parse_date(date), message_id, normalise_unicode(body))


def sender_of(value: str) -> tuple[str, str]:
    """Return the name and the address, in lower case, of a From header; "" for what is absent.

    It reads "x at y (Name)", "Name <x at y>", "host!host!x (Name)" and "Name".
    """
    address = ""
    if match := ADDRESS.search(value):
        address = f"{match[1]}@{match[2]}".lower()
    elif match := UUCP.search(value):
        address = match[0].lower()
    if match:
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
