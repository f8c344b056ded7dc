"""Columns of tables as columns of the posts table: texts, names and times.

Columns also say which rows are posts of programs, or of other people. Ids that were rounded before
they came here are found, since different people look alike then.
"""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pandas as pd

from ..cleaning.authors import escape_surrogates
from .pipermail import decode_words

# A number that was rounded: a float beyond 2 ** 53, or as spreadsheets show long numbers (1.2E+17).
# The value may be one of several that "/" joins.
ROUNDED = re.compile(r"(?:^|/)-?(?:\d(?:[.,]\d+)?[eE]\+\d+|\d{17,}\.0+)(?:/|$)")
# a whole number that a program took for a float
WHOLE_FLOAT = re.compile(r"(?<![^/])(-?\d{1,16})\.0(?![^/])")
EXACT_FLOATS = 2**53  # whole floats up to here are exact
MAX_ROUNDED_SHARE = 0.01  # of a file's rows; with more rounded authors it is refused
# Spreadsheets keep 15 digits of a number and programs that know only floats about 17, so the last
# digit of a long id is 0 then. Of true ids a tenth ends in 0, so this says nothing of a few.
LONG_ID = re.compile(r"\d{16,}")
MIN_LONG_IDS = 3
MAX_ZERO_SHARE = 0.9
# A float holds 53 bits of a number, and half of the rounded ids need all of them. Ids that hold a
# time and a number of few bits (snowflakes) have more, or fewer where that number is always 0.
FLOAT_BITS = 53
MIN_LONG_BITS = 57  # of an id of which so much is lost that hardly any true id would pass as one
MIN_FLOAT_IDS = 10
MIN_FULL_SHARE = 0.2  # of the ids, with FLOAT_BITS bits
# 1979-01-01 in seconds, the year Usenet began: a smaller number is a year, a count or "missing"
EARLIEST = 283_996_800
LATEST = 4_102_444_800  # 2100-01-01: a larger number has a finer unit
DATE_DIGITS = (8, 12, 14)  # numbers of digits of YYYYMMDD, YYYYMMDDhhmm and YYYYMMDDhhmmss
# a date whose month is an English word, so that day and month are certain: "Tue, 19 Jun 2012
# 21:05:00 +0000", "Jun 19, 2012, 09:05 PM"; it must hold a day and a year of four digits
MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
# or 12 hours, "2012-06-19 9:05 p.m."
NAMED_DATE = re.compile(
    r"(?=.*\b(?:19|20)\d\d(?![\d:]))(?=(?:.*[^\d:+])?\d{1,2}(?![\d:]))"
    rf"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}}\W+)?(?:\d{{1,2}}[ -])?{MONTH}[ -]"
    r"[\d\s,.:+-]{5,40}(?:[ap]m)?[\d\s:+-]{0,10}(?:UTC|GMT|Z)?"
    r"|\d{4}-\d\d-\d\d[T ]\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)? ?[ap]\.?m\.?",
    re.IGNORECASE,
)
# forms of programs beside ISO 8601: "2024-02-13 10:00:00,123", "2024-02-13 10:00 UTC",
# "19 Jun 2012 21:05:00 +0000 (UTC)"
FORMS = {
    r"(:\d\d),(\d{1,9})\b": r"\1.\2",
    r"(\d) ?(?:UTC|GMT)$": r"\1Z",
    r"\s*\([A-Z][\w ]{1,40}\)$": "",
}
# a number as spreadsheets shorten it, "1.68E+09": ten digits would tell the second
SHORTENED = re.compile(r"\d(?:[.,]\d{0,8})?[eE]\+?\d{1,2}")
# columns that tell posts of bots, in lower case and without marks: "is_bot", "author.isBot"
TRUTH_OF_BOT = set(
    "bot isbot accountbot authorbot authorisbot userbot userisbot senderisbot".split()
)
ID_OF_BOT = set("botid viabot".split())  # the same, with the bot's name or number
# columns that are filled, or true, where somebody passed on another's post: "forwarded_from" of
# Telegram, "reblog.id" of Mastodon, "retweeted_status_id" of Twitter
REPOST = set(
    "forwardedfrom forwardedfromid forwardfrom forwardorigin isforwarded fwdfrom reblog reblogid "
    "reblogofid retweetedstatus retweetedstatusid isretweet".split()
)
# columns with names of people, beside that of the authors: "Author" where these are told by
# "AuthorID", "from" beside "from_id", "user.display_name"
NAMES = set(
    "account accountname author authorfullname authorname by displayname from fromname fullname "
    "handle inreplytoscreenname inreplytouser member name nick nickname poster postername "
    "profilename realname recipient replyto screenname sender sendername user userdisplayname "
    "userfullname username userrealname userscreenname".split()
)
TRUE_WORDS = set("true t yes y 1 1.0".split())
FALSE_WORDS = set("false f no n 0 0.0 none null nan".split()) | {""}


def unix_seconds(value: object) -> int:
    """Return a time of any type in seconds UTC, -1 where it is unreadable or not in 1979 to 2100.

    A time without a zone counts as UTC. Text is ISO 8601, a date with the English name of a month,
    one of FORMS, or a number. A number, in text or not, counts since 1970, in seconds, milli- or
    microseconds: the first of these that gives a time before 2100; longer numbers are often ids. A
    number that gives none is a date where it has the digits of one: YYYYMMDD, YYYYMMDDhhmm or
    YYYYMMDDhhmmss. A lone year such as 2020 is no time.
    """
    text = str(value).strip()
    if isinstance(value, str) and SHORTENED.fullmatch(text):
        return -1
    with suppress(ValueError):
        return _of_number(float(text))
    with suppress(ValueError):  # far faster than pandas
        return _of_moment(datetime.fromisoformat(text))
    for form, usual in FORMS.items():
        text = re.sub(form, usual, text)
    date_format = "ISO8601"
    if NAMED_DATE.fullmatch(text):
        date_format = "mixed"
    elif not text[:1].isdigit():  # pandas would also read "today"
        return -1
    return _of_moment(pd.to_datetime(text, errors="coerce", utc=True, format=date_format))


def _of_number(number):
    """Return the time of a number since 1970, or of a date written as digits such as 20120307."""
    seconds = number
    for _ in range(2):  # a number beyond 2100 has a finer unit: milli- or microseconds
        if seconds > LATEST:
            seconds /= 1000
    if EARLIEST <= seconds <= LATEST:
        return int(seconds + 1e-6)  # 1e-6: undo rounding
    digits = f"{number:.15g}"
    with suppress(ValueError):
        if digits.isdigit() and len(digits) in DATE_DIGITS:
            return _of_moment(datetime.fromisoformat(f"{digits[:8]}T{digits[8:]:0<6}"))
    return -1


def _of_moment(moment):
    """Return the seconds of a moment, -1 where they are not between EARLIEST and LATEST, or NaT."""
    with suppress(ValueError):  # NaT has no timestamp
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        if EARLIEST <= seconds <= LATEST:
            return int(seconds)
    return -1


def joined_text(record: dict, file_columns: list[str | None], stem: str) -> str:
    """Return the values of some columns of a row joined with "/", "" where one is missing.

    Parameters
    ----------
    record : dict
        a row of a file: name of a column -> value
    file_columns : list of str
        the file's columns to join; None stands for ``stem``
    stem : str
        the file's name
    """
    texts = []
    for column in file_columns:
        text = stem if column is None else value_text(record.get(column))
        if text is None:
            return ""
        texts.append(text)
    return "/".join(texts)


def author_of(record: dict, file_columns: list[str]) -> str:
    """Return the author of a row, whose values are joined as by :func:`joined_text`; "" for none.

    A number is written as a person writes it, 10.0 as 10, also where it is a text, and a name as
    mails encode it is decoded.

    Parameters
    ----------
    record : dict
        a row of a file: name of a column -> value
    file_columns : list of str
        the file's columns of authors
    """
    name = escape_surrogates(joined_text(record, file_columns, "").strip())
    name = WHOLE_FLOAT.sub(r"\1", name)
    if "=?" in name:
        return decode_words(name)
    return name


def value_text(value: object) -> str | None:
    """Return a value as text, None where it is neither text, truth value nor finite number.

    Of a list of strings and of objects with a "text" these are joined, by blanks where none of them
    begins or ends with one. Bytes that are not UTF-8 are read as cp1252.
    """
    if isinstance(value, list):
        pieces = [_piece_text(piece) for piece in value]
        are_words = all(piece == piece.strip() for piece in pieces)
        value = (" " if are_words else "").join(pieces)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "cp1252")
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        if abs(value) > EXACT_FLOATS:
            return f"{value:.16e}"
        return str(int(value))
    if isinstance(value, int | Decimal) or isinstance(value, float) and math.isfinite(value):
        return str(value)
    return None


def _piece_text(piece):
    """Return the text of a piece of prose, a string or an object; "" where it has none.

    Telegram writes people without a user name by name, in pieces of a type of their own.
    """
    if isinstance(piece, dict) and piece.get("type") == "blockquote":
        return ""
    if isinstance(piece, dict) and piece.get("type") == "mention_name":
        return "@user"
    if isinstance(piece, dict):
        piece = piece.get("text")
    if isinstance(piece, str):
        return piece
    return ""


@lru_cache(maxsize=1000)
def marks_rows(column: str) -> bool:
    """Return whether a column is called as those that mark posts of bots, or of others."""
    return _bare_name(column) in TRUTH_OF_BOT | ID_OF_BOT | REPOST


@lru_cache(maxsize=1000)
def holds_names(column: str) -> bool:
    """Return whether a column is called as those that hold names of people."""
    return _bare_name(column) in NAMES


def row_mark(column: str, value: object) -> str:
    """Return "marked_bot" or "repost" where a value says so of a post, else "".

    Parameters
    ----------
    column : str
        name of the file's column, one that :func:`marks_rows`
    value : object
        a value in it
    """
    name = _bare_name(column)
    word = (value_text(value) or "").strip().casefold()
    if isinstance(value, dict):
        word = str(bool(value)).casefold()
    if name in TRUTH_OF_BOT and word in TRUE_WORDS:
        return "marked_bot"
    if name in ID_OF_BOT and word not in FALSE_WORDS:
        return "marked_bot"
    if name in REPOST and word not in FALSE_WORDS:
        return "repost"
    return ""


@lru_cache(maxsize=10_000)
def _bare_name(column):
    """Return the name of a column in lower case, letters only."""
    return re.sub(r"[\W_]+", "", column).casefold()


class RoundedIds:
    """Look for rounded numbers in a file's column of authors, row by row.

    Parameters
    ----------
    file_columns : list of str
        the file's columns of authors
    """

    def __init__(self, file_columns: list[str]):
        self.column = ", ".join(map(repr, file_columns))
        self.rows = 0
        self.rounded = []
        self.long_ids = set()

    def is_rounded(self, author: str) -> bool:
        """Return whether the author of the next row is a rounded number, and keep it."""
        self.rows += 1
        if LONG_ID.fullmatch(author):
            self.long_ids.add(author)
        if ROUNDED.search(author):
            self.rounded.append(author)
            return True
        return False

    def check(self) -> None:
        """Raise ValueError where many authors of the file are rounded numbers."""
        ending_in_zero = [name for name in self.long_ids if name.endswith("0")]
        floats = [name for name in self.long_ids if int(name).bit_length() >= MIN_LONG_BITS]
        n_ids = len(self.long_ids)
        if len(self.rounded) > MAX_ROUNDED_SHARE * self.rows:
            example = self.rounded[0]
        elif n_ids >= MIN_LONG_IDS and len(ending_in_zero) >= MAX_ZERO_SHARE * n_ids:
            example = min(ending_in_zero)
        elif len(floats) >= MIN_FLOAT_IDS and _were_floats(floats):
            example = min(floats)
        else:
            return
        raise ValueError(
            f"the column {self.column} holds ids that were rounded, such as {example!r}, since "
            "a program took them for numbers, so different people look alike. Export the "
            "ids as text and read them as text (in pandas dtype=str), or take another column; a "
            "spreadsheet keeps them if the column has the format Text before they are read into it"
        )


def _were_floats(ids):
    """Return whether no id has more bits than a float, and many have just as many."""
    n_bits = np.array([_significant_bits(int(name)) for name in ids])
    return n_bits.max() <= FLOAT_BITS and np.mean(n_bits == FLOAT_BITS) > MIN_FULL_SHARE


def _significant_bits(number):
    """Return the bits of a whole number above 0, without the zeros at its end."""
    return (number // (number & -number)).bit_length()
