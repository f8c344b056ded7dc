"""Times of tables: dates written as digits, units told apart by size, and what is no time."""

from datetime import UTC, datetime, time, timedelta

import numpy as np
import pandas as pd
import pytest

from helpers.sources.table_columns import EARLIEST, LATEST, unix_seconds


def test_any_second_is_read_back_from_digits_numbers_and_text():
    rng = np.random.default_rng(0)
    times = rng.integers(EARLIEST, LATEST, 2000)
    moments = [datetime.fromtimestamp(moment, UTC) for moment in times.tolist()]
    for scale in (1, 10**3, 10**6):
        numbers = (times * scale).tolist()
        assert list(map(unix_seconds, numbers)) == times.tolist()
        assert list(map(unix_seconds, map(str, numbers))) == times.tolist()
    for unit, form in ((86_400, "%Y%m%d"), (60, "%Y%m%d%H%M"), (1, "%Y-%m-%dT%H:%M:%SZ")):
        texts = [moment.strftime(form) for moment in moments]
        for text, expected in zip(texts, (times // unit * unit).tolist()):
            if expected >= EARLIEST:
                assert unix_seconds(text) == expected
                assert not text.isdigit() or unix_seconds(int(text)) == expected


FORMS = (
    "Jun 19, 2012, 09:05 PM|Tue, 19 Jun 2012 21:05:00 +0000 (Coordinated Universal Time)|"
    "June 19, 2012 9:05:00 pm|19-Jun-2012 21:05:00|Tue, 19 Jun 2012 23:05:00 +0200|"
    "Tue Jun 19 21:05:00 +0000 2012|Tuesday, 19 June 2012 21:05 GMT|2012-06-19 21:05:00 UTC|"
    "2012-06-19T21:05:00 GMT|2012-06-19 21:05:00,123|2012-06-19 09:05:00 PM|"
    "2012-06-19 9:05 p.m.|2012/06/19 21:05|2012-06-19 23:05:00 +0200"
)


@pytest.mark.parametrize("moment", FORMS.split("|"))
def test_forms_of_programs_and_of_mails_are_read(moment):
    assert unix_seconds(moment) == 1_340_139_900


def test_ids_of_posts_are_no_times():
    """A snowflake of Discord or Twitter would be a date from 1970 on."""
    ids = (np.arange(30, 4200, 7) * 86_400_000 + 123_457 << 22) + 5_001
    assert set(map(unix_seconds, ids.tolist())) == {-1}


NO_TIMES = (
    "Jun 2012 09:05|May 2012|June the 19th of 2012|19 Jun 12 21:05|Jun 19|41079.5|2020|"
    "202001|0|1|20201301|20200230|20200101.5|202001012460|20200101126000|00010101|19690101|"
    "31122020|-20200101|99999999|1978-12-31T23:59:59Z|1970-01-01|2101-01-01|1e300|nan|inf|"
    "-inf|0x7fffffff|1.68E+09|1.70782E+09|1,68e+09|1.5330E+12|true|now|13.02.2024 10:00|"
    "today|| "
)


@pytest.mark.parametrize("moment", NO_TIMES.split("|"))
def test_what_is_no_time(moment):
    assert unix_seconds(moment) == -1


def test_typed_times_obey_the_same_bounds():
    texts = ["1970-01-01", "1978-12-31 23:59:59", "1979-01-01", "2100-01-01", "2100-01-02"]
    moments = pd.to_datetime(texts, format="ISO8601")
    assert list(map(unix_seconds, moments)) == [-1, -1, EARLIEST, LATEST, -1]
    assert list(map(unix_seconds, moments.date)) == [-1, -1, EARLIEST, LATEST, -1]


@pytest.mark.parametrize("value", [True, None, [1], timedelta(1), b"\xff", time(21, 5), pd.NaT])
def test_a_value_of_another_type_is_no_time(value):
    assert unix_seconds(value) == -1
