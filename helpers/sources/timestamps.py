"""Times as tables hold them, to seconds since 1970-01-01 UTC, a column at a time."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

LATEST = 4_102_444_800  # 2100-01-01 in seconds: a larger number has a finer unit


def seconds(column: pa.Array) -> np.ndarray:
    """A column of any time type as int64 seconds UTC, -1 where unreadable or not between 1970 and 2100."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"))
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), -1)
    if pa.types.is_timestamp(kind):  # held as UTC where it has a zone; without one it counts as UTC
        ticks = pc.fill_null(pc.cast(column, pa.int64()), -1).to_numpy()
        whole = ticks // {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return np.where((whole >= 0) & (whole <= LATEST), whole, -1)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _scaled(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    text = pc.cast(column, pa.large_string()).to_pandas().astype("object").str.strip()
    times = _scaled(pd.to_numeric(text, errors="coerce").to_numpy(np.float64))
    rest = (times < 0) & text.notna().to_numpy()
    if rest.any():
        when = pd.to_datetime(text[rest], errors="coerce", utc=True, format="ISO8601")
        whole = when.dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)  # no time: far below 0
        times[rest] = np.where((whole >= 0) & (whole <= LATEST), whole, -1)
    return times


def _scaled(numbers):
    """Numbers since 1970 as whole seconds: what would lie beyond 2100 is in milli-, micro- or nanoseconds."""
    values = np.array(numbers, np.float64)
    for _ in range(3):
        values = np.where(values > LATEST, values / 1000, values)
    good = (values >= 0) & (values <= LATEST)  # False for nan
    return np.where(good, np.floor(np.where(good, values, 0) + 1e-6), -1).astype(np.int64)  # 1e-6: undo rounding
