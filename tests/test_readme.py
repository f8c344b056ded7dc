"""A table of README that names a file of results holds its numbers, whole and to the digit shown."""

import re

import pandas as pd
import pytest

from helpers.runs import paths

# <!-- file, protocol, split -->, then a table: a row a label, a column a metric, or "metric, another protocol"
TABLE = re.compile(r"<!-- (\S+), ([^,\n]+), (\w+) -->\n((?:\|.+\n)+)")
NUMBER = re.compile(r"\d\.\d{3}")


def tables():
    return TABLE.findall((paths.ROOT / "README.md").read_text(encoding="utf-8"))


def cells(line):
    return [cell.strip().strip("*") for cell in line.strip("| ").split("|")]


def test_there_are_such_tables():
    assert {protocol for _, protocol, *_ in tables()} >= {"ranking", "linking"}


@pytest.mark.parametrize("table", tables(), ids=lambda table: f"{table[1]}, {table[2]}")
def test_every_number_is_a_result(table):
    path, protocol, split, text = table
    results = pd.read_csv(paths.ROOT / path, keep_default_na=False, na_values={"value": "", "low": "", "high": ""})
    results = results[(results.split == split) & (results.base == "")]
    (_, *heads), _, *rows = map(cells, text.splitlines())
    for label, *shown in rows:
        for head, cell in zip(heads, shown, strict=True):
            metric, _, other = head.partition(", ")
            found = results[(results.label == label) & (results.metric == metric)
                            & (results.protocol == (other or protocol))]  # fmt: skip
            assert len(found) == 1, f"{label}, {head}: {len(found)} results"
            every = [f"{value:.3f}" for value in found[["value", "low", "high"]].iloc[0]]
            assert NUMBER.findall(cell) in (every, every[:1]), f"{label}, {head}: {cell} for {every}"
