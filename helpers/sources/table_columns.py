"""Columns of tables as columns of the posts table: texts, names and times.

Columns also say which rows are posts of programs, or of other people. Ids that were rounded before
they came here are found, since different people look alike then.
"""

import math
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..cleaning.authors import escape_surrogates
from .pipermail import decode_words

# A number that was rounded: a float beyond 2 ** 53, or as spreadsheets show long numbers (1.2E+17).
# The value may be one of several that "/" joins.
ROUNDED = r"(?:^|/)-?(?:\d(?:[.,]\d+)?[eE]\+\d+|\d{17,}\.0+)(?:/|$)"
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
NAMED_DATE = (
    r"(?i)(?=.*\b(?:19|20)\d\d(?![\d:]))(?=(?:.*[^\d:+])?\d{1,2}(?![\d:]))"
    rf"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}}\W+)?(?:\d{{1,2}}[ -])?{MONTH}[ -]"
    r"[\d\s,.:+-]{5,40}(?:[ap]m)?[\d\s:+-]{0,10}(?:UTC|GMT|Z)?"
)
DATE_FORMAT = "%Y%m%d%H%M%S"
# forms of programs beside ISO 8601: "2024-02-13 10:00:00,123", "2024-02-13 10:00 UTC",
# "19 Jun 2012 21:05:00 +0000 (UTC)", "/Date(1707818400000)/" of ASP.NET
FORMS = {
    r"(:\d\d),(\d{1,9})\b": r"\1.\2",
    r"(\d) ?(?:UTC|GMT)$": r"\1Z",
    r"\s*\([A-Z][\w ]{1,40}\)$": "",
    r"^/Date\((\d{1,16})(?:[+-]\d{4})?\)/$": r"\1",
}
ISO_12_HOURS = r"\d{4}-\d\d-\d\d[T ]\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)? ?[aApP]\.?[mM]\.?"
# a number as spreadsheets shorten it, "1.68E+09": ten digits would tell the second
SHORTENED = r"\d(?:[.,]\d{0,8})?[eE]\+?\d{1,2}"
TEXT = pa.large_string()
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
TRUE_WORDS = set("true t yes y 1 1.0".split())
FALSE_WORDS = set("false f no n 0 0.0 none null nan".split()) | {""}


def unix_seconds(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a column of any time type as int64 seconds UTC.

    A time that is unreadable or not between 1979 and 2100 becomes -1. Timestamps without a zone
    count as UTC. Text is ISO 8601, a date with the English name of a month, one of FORMS, or a
    number. A number, in text or not, counts since 1970, in seconds, milli- or microseconds: the
    first of these that gives a time before 2100; longer numbers are often ids. A number that gives
    none is a date where it has the digits of one: YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss. A lone
    year such as 2020 becomes -1.

    Raises
    ------
    ValueError
        The column holds neither times, numbers nor text.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("s", getattr(kind, "tz", None)), safe=False)
        return _within_bounds(pc.fill_null(seconds.cast(pa.int64()), -1).to_numpy())
    if pa.types.is_temporal(kind):  # a duration, or a time of day
        raise ValueError(f"a column of type {kind} holds no times")
    try:
        texts = column.cast(pa.large_string()).to_pandas().str.strip()
    except pa.ArrowException:
        raise ValueError(f"a column of type {kind} holds no times") from None
    if not pa.types.is_floating(kind):
        texts = texts.mask(texts.str.fullmatch(SHORTENED, na=False))

    for form, usual in FORMS.items():
        texts = texts.str.replace(form, usual, regex=True)
    # a text, or a number of any type as text
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    times = _of_numbers(numbers)
    # ISO 8601 begins with a digit; pandas would also read "today"
    is_date = np.isnan(numbers) & texts.str.match(r"\d", na=False).to_numpy(bool)
    if is_date.any():
        times[is_date] = _of_dates(texts[is_date], "ISO8601")
    for form in (NAMED_DATE, ISO_12_HOURS):
        is_of_form = texts.str.fullmatch(form).fillna(False).to_numpy(bool)
        if is_of_form.any():
            times[is_of_form] = _of_dates(texts[is_of_form], "mixed")
    return times


def _of_numbers(numbers):
    """Return the times of numbers since 1970, and of dates written as digits such as 20120307."""
    seconds = numbers
    for _ in range(2):  # a number beyond 2100 has a finer unit: milli- or microseconds
        seconds = np.where(seconds > LATEST, seconds / 1000, seconds)
    times = _within_bounds(np.floor(np.nan_to_num(seconds, nan=-1) + 1e-6))  # 1e-6: undo rounding

    n_digits = np.searchsorted(10.0 ** np.arange(16), numbers, "right")
    is_date = np.isin(n_digits, DATE_DIGITS) & (times < 0)
    if is_date.any():
        digits = pd.Series(numbers[is_date]).map("{:.15g}".format).str.ljust(14, "0")
        times[is_date] = _of_dates(digits, DATE_FORMAT)
    return times


def _of_dates(texts, date_format):
    """Return the times of dates, which are texts of one format."""
    dates = pd.to_datetime(texts, errors="coerce", utc=True, format=date_format)
    # NaT becomes a number far below 0
    return _within_bounds(dates.to_numpy("datetime64[s]").astype(np.int64))


def _within_bounds(times):
    """Return times with -1 in place of those that are not between EARLIEST and LATEST."""
    return np.where((times >= EARLIEST) & (times <= LATEST), times, -1).astype(np.int64)


def joined_texts(
    batch: pa.Table, file_columns: list[str | None], name: str, stem: str
) -> pd.Series | str:
    """Return a column of the posts table as text.

    The values of several columns are joined with "/"; the result is missing where one value is.

    Parameters
    ----------
    batch : Table
        rows of a file
    file_columns : list of str
        the file's columns to join; None stands for ``stem``
    name : str
        the column of the posts table
    stem : str
        the file's name

    Raises
    ------
    ValueError
        A column holds objects, lists or bytes that are no text.
    """
    if file_columns == [None]:
        return stem
    texts = []
    try:
        for file_column in file_columns:
            if file_column is None:
                texts.append(pa.scalar(stem, TEXT))
            else:
                texts.append(_texts_of(batch.column(file_column), name))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {', '.join(map(str, file_columns))} for {name!r} is not text: {error}"
        ) from None
    if len(texts) == 1:
        return texts[0].to_pandas()
    return pc.binary_join_element_wise(*texts, pa.scalar("/", TEXT)).to_pandas()


def _texts_of(column, name):
    """Return a column of any type as texts, for a column of the posts table called ``name``.

    An author's number is written as a person writes it, 10.0 as 10, and a name as mails encode it
    is decoded.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        column = pa.array([value_text(value) for value in column.to_pylist()], TEXT)
    column = column.cast(TEXT)
    column.validate(full=True)  # Parquet may call bytes a text that are not UTF-8
    if name == "author":  # the number of a person may be a text such as "10.0"
        column = pc.utf8_trim_whitespace(column)
        column = pc.replace_substring_regex(column, r"^(-?\d{1,16})\.0$", r"\1")
        if pc.any(pc.match_substring(column, "=?")).as_py():
            names = [decode_words(name or "") for name in column.to_pylist()]
            column = pa.array(names, TEXT)
    return column


def value_text(value: object, is_prose: bool = False) -> str | None:
    """Return a value as text, None where it is neither text, truth value nor finite number.

    Parameters
    ----------
    value : object
        a value of JSON
    is_prose : bool
        The value may be a list of strings and of objects with a "text", which are joined. Lone
        surrogates become "?", and in other values escapes.
    """
    if isinstance(value, list) and is_prose:
        value = "".join([_piece_text(piece) for piece in value])
    if isinstance(value, str) and is_prose:
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, float) and value.is_integer():
        if abs(value) > EXACT_FLOATS:
            return f"{value:.16e}"
        return str(int(value))
    if isinstance(value, int) or isinstance(value, float) and math.isfinite(value):
        return str(value)
    return None


def _piece_text(piece):
    """Return the text of a piece of prose, a string or an object; "" where it has none."""
    if isinstance(piece, dict) and piece.get("type") == "blockquote":
        return ""
    if isinstance(piece, dict):
        piece = piece.get("text")
    if isinstance(piece, str):
        return piece
    return ""


def marks_rows(column: str) -> bool:
    """Return whether a column is called as those that mark posts of bots, or of others."""
    return _bare_name(column) in TRUTH_OF_BOT | ID_OF_BOT | REPOST


def marked_rows(batch: pa.Table) -> tuple[pd.Series, pd.Series]:
    """Return which rows are posts of bots, and which are posts that somebody passed on.

    Parameters
    ----------
    batch : Table
        N rows of a file, of which the columns that :func:`marks_rows` are looked at

    Returns
    -------
    Two columns (N,) bool
    """
    is_of_bot = pd.Series(False, range(len(batch)))
    is_repost = is_of_bot.copy()
    for column in filter(marks_rows, batch.schema.names):
        words = _mark_texts(batch.column(column)).fillna("").str.strip().str.casefold()
        name = _bare_name(column)
        if name in TRUTH_OF_BOT:
            is_of_bot |= words.isin(TRUE_WORDS)
        elif name in ID_OF_BOT:
            is_of_bot |= ~words.isin(FALSE_WORDS)
        else:
            is_repost |= ~words.isin(FALSE_WORDS)
    return is_of_bot, is_repost


def _bare_name(column):
    """Return the name of a column in lower case, letters only."""
    return re.sub(r"[\W_]+", "", column).casefold()


def _mark_texts(column):
    """Return a column that marks rows as texts; of one with objects whether they are there."""
    if pa.types.is_nested(column.type):
        return column.is_valid().to_pandas().astype(str)
    return _texts_of(column, "mark").to_pandas()


def is_blank(texts: pd.Series) -> pd.Series:
    """Return for each text whether it is missing or blank."""
    return texts.fillna("").str.strip() == ""


class RoundedIds:
    """Look for rounded numbers in a file's column of authors, whose rows come in batches.

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

    def are_rounded(self, authors: pd.Series) -> pd.Series:
        """Return for each author of a batch whether it is a rounded number, and keep these."""
        is_rounded = authors.str.contains(ROUNDED, na=False)
        self.rows += len(authors)
        self.rounded += authors[is_rounded].tolist()
        self.long_ids.update(filter(LONG_ID.fullmatch, authors.dropna().unique()))
        return is_rounded

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
