"""Times as tables hold them, to seconds since 1970-01-01 UTC, a column at a time."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

EARLIEST = 283_996_800  # 1979-01-01 in seconds, the year of Usenet: a smaller number is a year, a count, "missing"
LATEST = 4_102_444_800  # 2100-01-01: a larger number has a finer unit
CALENDAR = (8, 12, 14)  # digits of YYYYMMDD, YYYYMMDDhhmm and YYYYMMDDhhmmss


def unix_seconds(column: pa.Array) -> np.ndarray:
    """A column of any time type as int64 seconds UTC, -1 where unreadable or not between 1979 and 2100.

    Text is ISO 8601 or a number. A number, in text or not, is a date where it has the digits of one: YYYYMMDD,
    YYYYMMDDhhmm or YYYYMMDDhhmmss. Else it counts since 1970: seconds, milli-, micro- or nanoseconds, by its size. A
    lone year such as 2020 is no time. Raises ValueError where the column holds neither times, numbers nor text.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"))
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind):
        return np.full(len(column), -1)
    if pa.types.is_timestamp(kind):  # held as UTC where it has a zone; without one it counts as UTC
        ticks = pc.fill_null(pc.cast(column, pa.int64()), -1).to_numpy()
        return _within(ticks // {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _moments(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    ):
        raise ValueError(f"a column of type {kind} holds no times")
    text = column.to_pandas().astype("object").str.strip()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
    times, rest = (
        _moments(numbers),
        np.isnan(numbers) & text.str.match(r"\d", na=False).to_numpy(bool),
    )  # no "today"
    if rest.any():
        times[rest] = _whole(
            pd.to_datetime(text[rest], errors="coerce", utc=True, format="ISO8601")
        )
    return times


def _moments(numbers):
    """Dates written as digits, and numbers since 1970: beyond 2100 they are in milli-, micro- or nanoseconds."""
    values = np.array(numbers, np.float64)
    for _ in range(3):
        values = np.where(values > LATEST, values / 1000, values)
    times = _within(np.floor(np.nan_to_num(values, nan=-1) + 1e-6))  # 1e-6: undo rounding
    dated = np.isin(np.searchsorted(10.0 ** np.arange(16), numbers, "right"), CALENDAR) & (
        times < 0
    )
    if dated.any():
        digits = pd.Series(numbers[dated]).map("{:.15g}".format).str.ljust(CALENDAR[-1], "0")
        times[dated] = _whole(
            pd.to_datetime(digits, errors="coerce", utc=True, format="%Y%m%d%H%M%S")
        )
    return times


def _whole(moments):
    return _within(
        moments.dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
    )  # NaT: far below 0


def _within(times):
    return np.where((times >= EARLIEST) & (times <= LATEST), times, -1).astype(np.int64)
