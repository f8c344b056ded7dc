"""Tables of a page, made from stored results: see the options in ``docs/build.py``."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import page_rows
import pandas as pd
from page_rows import Choice, Value
from pydantic import Field

from helpers.core.config import Config
from helpers.core.names import GLOSSARY, label
from helpers.core.results import LOWER_IS_BETTER
from helpers.published import claims

MISSING = "–"
Cells = dict[str, list[Value | None]]  # by the name of the row


class Column(Config):
    """A column: a metric with what is chosen otherwise than in the block, and how it is shown."""

    change: dict[str, Any] = Field(default_factory=dict)
    header: str = ""
    value_only: bool = False
    count: str = ""
    mean: bool = False
    ratio_to: str = ""


class Row(Config):
    """A row: what the first column says, and what is chosen otherwise than in the block."""

    name: str
    change: dict[str, Any] = Field(default_factory=dict)


def table(about: dict[str, Any]) -> str:
    """Return the lines of a table of measured values; raise ValueError where one is missing."""
    options = dict(about)
    first = options.pop("first", "system")
    columns = [column_of(column) for column in options.pop("columns")]
    row_options = options.pop("rows", None)
    order = options.pop("order", "value")
    allow_missing = options.pop("allow_missing", False)
    choice = Choice.of(options)
    rows = rows_of_table(choice, columns, row_options)
    cells = {row.name: [cell_of(choice, row, column) for column in columns] for row in rows}
    if len(cells) < len(rows):
        raise ValueError("two rows of one name: give them a `name`")
    texts = {}
    for row in rows:
        texts[row.name] = texts_of(choice, row.name, columns, cells, allow_missing)
    if order == "value":
        rows = sorted(rows, key=lambda row: rank_of(columns, cells[row.name]))
    headers = [first, *(header_of(column, choice) for column in columns)]
    return markdown(headers, [[row.name, *texts[row.name]] for row in rows])


def markdown(headers: list[str], rows: list[list[str]]) -> str:
    """Return the lines of a table in Markdown."""
    lines = [f"| {' | '.join(headers)} |", "|" + "---|" * len(headers)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def column_of(option: str | dict[str, Any]) -> Column:
    """Return the column that an option describes: a metric, "seeds", "accounts", or a dict."""
    if option in ("seeds", "accounts"):
        return Column(count=option, header=option)
    if isinstance(option, str):
        return Column(change={"metric": option})
    shown = {name: option[name] for name in option if name in Column.model_fields}
    change = {name: option[name] for name in option if name not in Column.model_fields}
    return Column.of(shown | {"change": change})


def rows_of_table(
    choice: Choice, columns: list[Column], options: list[str | dict] | None
) -> list[Row]:
    """Return the rows that are asked for, or one for every system that has the first metric."""
    if options is None:
        metrics = [column for column in columns if column.change]
        measured = page_rows.rows_of(choice.but(**metrics[0].change))
        options = list(measured["label"].unique())
    rows = []
    for option in options:
        if isinstance(option, str):
            option = {"system": option}
        change = {name: value for name, value in option.items() if name != "name"}
        rows.append(Row(name=option.get("name") or option["system"], change=change))
    return rows


def cell_of(choice: Choice, row: Row, column: Column) -> Value | None:
    """Return the value of a cell, None where there is none or it is computed from others."""
    if column.count or column.mean:
        return None
    return page_rows.measured(choice.but(**row.change | column.change))


def texts_of(
    choice: Choice, name: str, columns: list[Column], cells: Cells, allow_missing: bool
) -> list[str]:
    """Return the cells of one row as text; raise ValueError where a value must not be missing."""
    texts = []
    for number, (column, value) in enumerate(zip(columns, cells[name])):
        if column.count:
            texts.append(count_of(column.count, cells[name]))
        elif column.mean:
            texts.append(mean_text(column, columns, cells, name))
        elif value is None and not allow_missing:
            column_choice = choice.but(**column.change)
            header = header_of(column, choice)
            where = f"{column_choice.protocol}, {column_choice.split}"
            raise ValueError(f"{column_choice.place}: 0 {header} of {name!r} in {where}")
        elif value is None:
            texts.append(MISSING)
        elif column.ratio_to:
            texts.append(f"{value.value / cells[column.ratio_to][number].value:.2f}")
        else:
            texts.append(value.text(column.value_only))
    return texts


def count_of(what: str, values: list[Value | None]) -> str:
    """Return the number of seeds, or of accounts asked about, of the first value of a row."""
    first = next(value for value in values if value is not None)
    if what == "seeds":
        return str(first.seeds)
    return f"{first.queries:,.0f}"


def mean_text(column: Column, columns: list[Column], cells: Cells, name: str) -> str:
    """Return the mean of a row's values, or how many times that of another row it is."""
    own = mean_of(columns, cells[name])
    if not column.ratio_to:
        return f"{own:.3f}"
    return f"{own / mean_of(columns, cells[column.ratio_to]):.2f}"


def mean_of(columns: list[Column], values: list[Value | None]) -> float:
    """Return the mean of values that are neither differences nor shown as ratios."""
    shown = []
    for column, value in zip(columns, values):
        if value is not None and not value.is_difference and not column.ratio_to:
            shown.append(value.value)
    return sum(shown) / len(shown)


def rank_of(columns: list[Column], values: list[Value | None]) -> float:
    """Return a number by which rows are sorted, the best value of the first metric first."""
    for column, value in zip(columns, values):
        if value is not None:
            lower_is_better = column.change.get("metric") in LOWER_IS_BETTER
            return value.value if lower_is_better else -value.value
    return float("inf")


def header_of(column: Column, choice: Choice) -> str:
    """Return the header of a column: its own, or its metric with what is chosen otherwise."""
    if column.header:
        return column.header
    column_choice = choice.but(**column.change)
    header = label(column_choice.metric)
    if column_choice.protocol != choice.protocol:
        header = label(f"{column_choice.metric}, {column_choice.protocol}")
    if column_choice.split != choice.split:
        header = f"{header}, {label(column_choice.split)}"
    if column_choice.base:
        header = f"{header} minus {column_choice.base}"
    if column.ratio_to:
        header = f"{header} / {column.ratio_to}"
    return header


def claims_of(draws: list[int]) -> pd.DataFrame:
    """Return the comparisons with the papers, under each protocol, from the first draw with it."""
    tables = []
    for draw in draws:
        path = Choice(draw=draw).path
        rows = _verdicts_of(path, path.stat().st_mtime)
        tables.append(rows[rows["ours"] != ""].assign(draw=draw))
    measured = pd.concat(tables)
    first_draw = measured.groupby(["id", "claim", "note"])["draw"].transform("first")
    return measured[measured["draw"] == first_draw]


@lru_cache
def _verdicts_of(path: Path, modified: float) -> pd.DataFrame:
    return claims.verdicts(page_rows.read(path))


def beside_the_papers(draws: list[int]) -> str:
    """Return the lines of the table of measured comparisons, by verdict, then by row."""
    rows = claims_of(draws)
    verdicts = list(claims.WORDS)
    rows = rows.assign(place=[verdicts.index(verdict) for verdict in rows["verdict"]])
    rows = rows.sort_values(["place", "id"], kind="stable")
    lines = []
    for row in rows.itertuples():
        measured_on = f"{row.note}, draw {row.draw}"
        ours = re.sub(r"(\d)-(\d)", r"\1 to \2", row.ours)
        verdict = claims.WORDS[row.verdict]
        lines.append([row.id, row.claim, row.published, ours, measured_on, verdict])
    headers = ["row", "the paper's claim", "published", "ours", "protocol, draw", "verdict"]
    return markdown(headers, lines)


def glossary() -> str:
    """Return the lines of the table of all terms."""
    return markdown(["term", "meaning"], [[term, sentence] for term, sentence in GLOSSARY.items()])


def lines(about: dict[str, Any]) -> str:
    """Return the lines of the table that a block describes."""
    if "verdicts" in about:
        return beside_the_papers(about["verdicts"])
    if "glossary" in about:
        return glossary()
    return table(about)
