"""Who wrote a mail or a newsgroup message, and when: its From and Date headers, as mail programs garble them."""

import email.errors
import email.header
import email.utils
import re
import time
from datetime import datetime, timedelta, timezone

ADDRESS = re.compile(r"([^\s<>()\"',;:@]{1,100})(?:@|\s+at\s+)([^\s<>()\"',;:@]{1,200})")
EARLIEST = 315_532_800  # 1980-01-01: no list is older, an earlier date is a clock that was never set
DAY = 86_400


def sender(value: str) -> tuple[str, str]:
    """(name, address in lower case) of "x at y (Name)", "Name <x at y>", "Name" or nothing; "" for what is absent."""
    found = ADDRESS.search(value)
    name = re.sub(r"[<>\"]|^\W*\(|\)\s*$", " ", value.replace(found[0], " ") if found else value)
    name = " ".join(re.sub(r"^[\s(]+|[\s)]+$", "", name).split())
    return name, f"{found[1]}@{found[2]}".lower() if found else ""


def decoded(value) -> str:
    """A header as text: unfolded, RFC 2047 words decoded; a word that cannot be decoded stays as it is."""
    value = " ".join(str(value).split())
    try:
        return str(email.header.make_header(email.header.decode_header(value))) if "=?" in value else value
    except (LookupError, ValueError, email.errors.HeaderParseError):
        return value


def seconds(value) -> int | None:
    """A Date header in seconds since 1970 UTC, or None where it is unreadable or absurd.

    Without a time zone, or with one whose name the standard library does not know, it counts as UTC.
    """
    try:
        parsed = email.utils.parsedate_tz(" ".join(str(value).split()))
        zone = timedelta(seconds=parsed[9] or 0)  # None is no zone: email's mktime_tz would take this machine's
        found = int(datetime(*parsed[:6], tzinfo=timezone(zone)).timestamp())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if abs(zone) > timedelta(hours=15):  # no place on Earth
        return None
    return found if EARLIEST <= found <= time.time() + DAY else None
