"""The comparisons of benchmarks/speed.py: their ways, their rows, and what a ratio is."""

import importlib

import pandas as pd
import pytest

from helpers.core import paths

FOLDER = paths.ROOT / "benchmarks"


@pytest.fixture(scope="module")
def speed():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        module = importlib.import_module("speed")
        yield module


def test_a_ratio_is_that_of_rates_in_the_same_repeat(speed):
    # the second repeat of both was disturbed
    took = {"loop": [4.0, 8.0, 4.0], "here": [1.0, 1.6, 2.0]}
    amounts = {"loop": 10, "here": 20}
    rows = []
    for way, amount in amounts.items():
        for repeat, seconds in enumerate(took[way]):
            rows.append(("c", "s", way, repeat, seconds, seconds / 2, amount, "MB"))
    frame = pd.DataFrame(rows, columns=speed.COLUMNS)
    table = speed.ratios(frame.assign(threads=2)).set_index("way")
    assert table.loc["here", ["value", "low", "high", "rate"]].tolist() == [8.0, 4.0, 10.0, 12.5]
    assert speed.ratios(frame.assign(threads=1)).rate.tolist() == [5.0, 25.0], "of processor time"
    assert (table.loc["loop", ["value", "low", "high"]] == 1).all() and (table.repeats == 3).all()
