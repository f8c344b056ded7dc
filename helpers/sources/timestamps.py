"""Columns of times, of the many types that tables hold, as seconds since 1970-01-01 UTC."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

# 1979-01-01 in seconds, the year Usenet began: a smaller number is a year, a count or "missing"
EARLIEST = 283_996_800
LATEST = 4_102_444_800  # 2100-01-01: a larger number has a finer unit
MAX_MICROSECONDS = LATEST * 10**6
# .NET's ticks, of 100 ns since the year 1, from 1997 to 2028
MIN_TICKS = 63 * 10**16
MAX_TICKS = 64 * 10**16
TICK_SECONDS_AT_1970 = 62_135_596_800
# nanoseconds are read from 2001 on, and only where they are whole microseconds: other numbers so
# large are more often ids of posts that hold a time (snowflakes)
MIN_NANOSECONDS = 10**18
NANOSECONDS = r"\d{16}000(?:\.0+)?|\d(?:\.\d{1,15})?[eE]\+18"
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


def unix_seconds(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a column of any time type as int64 seconds UTC.

    A time that is unreadable or not between 1979 and 2100 becomes -1. Timestamps without a zone
    count as UTC. Text is ISO 8601, a date with the English name of a month, or a number. A number,
    in text or not, counts since 1970, in seconds, milli-, micro- or nanoseconds: the first
    of these that gives a time before 2100. A number that gives none is a date where it has the
    digits of one: YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss. A lone year such as 2020 becomes -1.

    Numbers of 18 and 19 digits are often ids. So only those between MIN_TICKS and MAX_TICKS are
    read, as .NET's ticks, and those of nanoseconds that are whole microseconds, from September
    2001 on. The others become -1.

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

    # mail programs name the zone once more: "19 Jun 2012 21:05:00 +0000 (UTC)"
    texts = texts.str.replace(r"\s*\([A-Z][\w ]{1,40}\)$", "", regex=True)
    # a text, or a number of any type as text
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    times = _of_numbers(_without_ids(numbers, texts))
    # ISO 8601 begins with a digit; pandas would also read "today"
    is_date = np.isnan(numbers) & texts.str.match(r"\d", na=False).to_numpy(bool)
    if is_date.any():
        times[is_date] = _of_dates(texts[is_date], "ISO8601")
    is_named = texts.str.fullmatch(NAMED_DATE).fillna(False).to_numpy(bool)
    if is_named.any():
        times[is_named] = _of_dates(texts[is_named], "mixed")
    return times


def _without_ids(numbers, texts):
    """Return numbers with .NET's ticks as seconds, and NaN for what may be ids of posts.

    ``texts`` holds all digits of the numbers, which are floats.
    """
    is_ticks = (numbers >= MIN_TICKS) & (numbers < MAX_TICKS)
    numbers = np.where(is_ticks, numbers / 10**7 - TICK_SECONDS_AT_1970, numbers)
    is_long = numbers > MAX_MICROSECONDS
    if is_long.any():
        is_whole = texts[is_long].str.fullmatch(NANOSECONDS).to_numpy(bool)
        is_time = is_whole & (numbers[is_long] >= MIN_NANOSECONDS)
        numbers[is_long] = np.where(is_time, numbers[is_long], np.nan)
    return numbers


def _of_numbers(numbers):
    """Return the times of numbers since 1970, and of dates written as digits such as 20120307."""
    seconds = numbers
    for _ in range(3):  # a number beyond 2100 has a finer unit: milli-, micro- or nanoseconds
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
