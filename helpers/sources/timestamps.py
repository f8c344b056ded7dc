"""Columns of times, of the many types that tables hold, as seconds since 1970-01-01 UTC."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

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
# Nanoseconds before 2000-01-01 are hardly anybody's; numbers of this length are .NET's ticks, of
# 100 nanoseconds since the year 1, or ids of chats, which say a time in another way.
EARLIEST_NANOSECONDS = 946_684_800 * 10**9
TICKS = (6.24e17, 6.63e17)  # 1979 to 2101
TICKS_BEFORE_1970 = 62_135_596_800  # seconds since the year 1


def unix_seconds(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a column of any time type as int64 seconds UTC.

    A time that is unreadable or not between 1979 and 2100 becomes -1. Timestamps without a zone
    count as UTC. Text is ISO 8601, a date with the English name of a month, one of FORMS, or a
    number. A number, in text or not, counts since 1970, in seconds, milli-, micro- or nanoseconds:
    the first of these that gives a time before 2100. Nanoseconds before 2000 are unreadable, since
    ids of chats look so, but for the TICKS of .NET. A number that gives none is a date where it has
    the digits of one: YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss. A lone year such as 2020 becomes
    -1.

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
    for _ in range(3):  # a number beyond 2100 has a finer unit: milli-, micro- or nanoseconds
        seconds = np.where(seconds > LATEST, seconds / 1000, seconds)
    seconds = np.where((numbers > LATEST * 1e6) & (numbers < EARLIEST_NANOSECONDS), -1, seconds)
    is_ticks = (numbers >= TICKS[0]) & (numbers < TICKS[1])
    seconds = np.where(is_ticks, numbers / 1e7 - TICKS_BEFORE_1970, seconds)
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
