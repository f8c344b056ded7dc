"""Measured values and tables for the pages: rows of stored results, chosen by names people read.

What is chosen, by the settings of :class:`Choice`, stands in YAML. ``docs/templates/values.yaml``
has the values that sentences show, one name a line (a name that begins with "_" is only there to
be merged)::

    _d5: &d5 {draw: 5, protocol: ranking, split: test, max_tokens: 128, metric: MRR}
    lead: {<<: *d5, system: Fusion T, base: LSA-WCCN}
    mrr: {<<: *d5, systems: {fusion: Fusion T, lsa: LSA-WCCN}}
    counting: {<<: *d5, systems: ["TF-IDF*", "LSA-WCCN*"]}
    stream: {<<: *d5, system: Stream T, settings: {new: {draw: 5}, old: {draw: 4}}}
    best: {<<: *d5, systems: ["TF-IDF*"], settings: {new: {draw: 5}, old: {draw: 4}}, pick: max}
    posts: {json: outputs/open/data_card.json, key: posts}
    paper: {published: khan2021_table2, row: "model == 'TP_16'", metric: EER}
    papers: {verdicts: [5, 4, 3]}

* ``systems`` makes a :class:`Group`: ``mrr.fusion`` and ``mrr.lsa`` are values, ``mrr`` is an array
  of both. The names of a list are sorted and may be patterns.
* ``settings`` makes a group of one system in several settings, ``stream.new`` and ``stream.old``,
  or with ``systems`` and ``pick`` (min or max) of the lowest or highest system in each.
* ``published`` is the mean of the rows that a pandas query finds in a published table.
* ``verdicts`` counts comparisons with the papers: ``papers.published`` (as published),
  ``papers.none`` (no difference where the paper has one), ``papers.open`` (not distinguishable, or
  no interval) and ``papers.other`` (the other way, or a difference that is published as none).

A table is the text of a block ``{% filter table %}``::

    draw: 5
    protocol: ranking
    split: test
    max_tokens: 128
    allow_missing: true
    rows: [Fusion T, LSA-WCCN]
    columns:
    - seeds
    - MRR
    - {metric: R@8, value_only: true}
    - {metric: MRR, base: "TF-IDF subword, s-norm"}

A column may change what the block chooses, and a row what the column does. In the block:

================  =================================================================================
columns           a list of metrics, "seeds" (how many), "accounts" (how many queries), and dicts
                  of changes and of settings of :class:`Column`
rows              a list of names, or of dicts of ``system``, ``name`` (what the first column says)
                  and changes; otherwise all systems that the first metric was measured of
first             the header of the first column ("system"), at most three words
order             "value", the best of the first metric first, or "given", as in ``rows``
allow_missing     true: "–" where nothing was measured, and a caption says why; otherwise an error
================  =================================================================================
"""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.lib.mixins import NDArrayOperatorsMixin
from pydantic import Field

from helpers.core import results
from helpers.core.names import label
from helpers.core.parameters import Config
from helpers.published import claims

ROOT = Path(__file__).resolve().parents[1]
MISSING = "–"
PICKS = {"max": max, "min": min}
VERDICTS = {
    "published": claims.AGREE,
    "none": ("no difference",),
    "open": ("not told apart", "no interval"),
    "other": ("other sign", "a difference"),
}


class Value(float):
    """A measured value: of one run, or the mean over seeds.

    low, high : the 95% interval of the first seed.
    sd : the standard deviation over seeds, NaN for one.
    queries : how many were ranked.
    is_difference : the first seed's paired difference from another system.
    """

    low = nan
    high = nan
    sd = nan
    seeds = 1
    queries = nan
    is_difference = False

    def __new__(cls, value: float, **about: Any) -> "Value":
        number = super().__new__(cls, value)
        vars(number).update(about)
        return number

    @property
    def value(self) -> float:
        """The number alone."""
        return float(self)

    def text(self, only_value: bool = False) -> str:
        """Return ``0.813 ± 0.004`` of seeds, ``0.721 (0.690 to 0.751)`` of one run."""
        if self.is_integer() and abs(self) > 1:
            return f"{self:,.0f}"
        sign = "+" if self.is_difference else ""
        number = f"{self:{sign}.3f}"
        if only_value:
            return number
        if self.seeds > 1 and not self.is_difference:
            return f"{number} ± {self.sd:.3f}"
        if pd.isna(self.low):
            return number
        return f"{number} ({self.low:.3f} to {self.high:.3f})"


class Group(NDArrayOperatorsMixin):
    """Several values by their names; it compares and computes as an array of them does."""

    def __init__(self, members: dict[str, float]) -> None:
        vars(self).update(members)

    def __iter__(self) -> Iterator[float]:
        return iter(vars(self).values())

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(list(self), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(side) for side in inputs))


class Choice(Config):
    """Which rows are meant, by the names that people read.

    draw : of ``outputs/open``; or ``file``, the path of a table of results.
    protocol, split, metric : as stored: ranking; test, seen, blogs; MRR, R@8.
    system : a name of ``helpers.core.names``.
    base : the system that is subtracted: the paired difference of the first seed.
    max_tokens : tokens read of each post, where rows say it.
    seed : this seed alone; otherwise all seeds are one value.
    training_authors : rows of so many.
    model : a pattern for the identifier, where one name has several rows, such as "* 8".
    """

    draw: int | None = None
    file: str = ""
    protocol: str = ""
    split: str = ""
    metric: str = ""
    system: str = ""
    base: str = ""
    max_tokens: int = 32
    seed: int | None = None
    training_authors: int | None = None
    model: str = "*"

    @property
    def path(self) -> Path:
        """The table of results."""
        return ROOT / (self.file or f"outputs/open/draw-{self.draw}/results.csv")

    def but(self, **changes: object) -> "Choice":
        """Return the same choice but for what changes."""
        return Choice.of(self.model_dump() | changes)

    def __str__(self) -> str:
        minus = f" minus {self.base!r}" if self.base else ""
        place = self.file or f"draw-{self.draw}"
        return f"{self.metric} of {self.system!r}{minus} in {self.protocol}, {self.split} ({place})"


@cache
def read(path: Path) -> pd.DataFrame:
    """Return all rows of a table of results; every row has a label."""
    frame = results.read_results(path)
    return frame.assign(label=frame["label"].where(frame["label"] != "", frame["model"]))


@cache
def rows_of(choice: Choice) -> pd.DataFrame:
    """Return the rows that a choice means, of all systems where it names none."""
    if choice.system:
        rows = rows_of(choice.but(system=""))
        return rows[rows["label"] == choice.system]
    rows = read(choice.path)
    metrics = [choice.metric]
    bases = [""]
    if choice.base:
        metrics.append(f"{choice.metric}_difference")
        bases = {choice.base, *rows["model"][rows["label"] == choice.base]}
    is_meant = rows["base"].isin(bases) & rows["metric"].isin(metrics)
    is_meant &= rows["max_tokens"].isna() | (rows["max_tokens"] == choice.max_tokens)
    for name in ("protocol", "split", "seed", "training_authors"):
        wanted = getattr(choice, name)
        if wanted is not None:
            is_meant &= rows[name] == wanted
    rows = rows[is_meant.fillna(False)]
    return rows.loc[[fnmatchcase(model, choice.model) for model in rows["model"]]]


def measured(choice: Choice, allow_missing: bool = False) -> Value | None:
    """Return what was measured of a system, None where nothing was and that is allowed.

    Raises ValueError where nothing was measured, or one seed has several rows.
    """
    rows = rows_of(choice).sort_values("seed")
    if rows.empty and allow_missing:
        return None
    if rows.empty or rows["seed"].duplicated().any():
        raise ValueError(f"{len(rows)} {choice}")
    if choice.base:
        rows = rows[:1]
    first = rows.iloc[0]
    return Value(
        rows["value"].mean(),
        low=first["low"],
        high=first["high"],
        sd=rows["value"].std(),
        seeds=len(rows),
        queries=first["queries"],
        is_difference=bool(choice.base),
    )


def named_values(text: str) -> dict[str, Any]:
    """Return the values that YAML describes, by their names."""
    options = yaml.safe_load(text)
    return {name: value_of(options[name]) for name in options if not name.startswith("_")}


def value_of(option: dict[str, Any]) -> Any:
    """Return one value, or a group; raise ValueError where something was not measured."""
    if "json" in option:
        return json.loads((ROOT / option["json"]).read_text("utf-8"))[option["key"]]
    if "published" in option:
        table = pd.read_csv(ROOT / "helpers" / "published" / f"{option['published']}.csv")
        return table.query(option["row"])[option["metric"]].mean()
    if "verdicts" in option:
        verdicts = comparisons(option["verdicts"])["verdict"]
        return Group({name: int(verdicts.isin(VERDICTS[name]).sum()) for name in VERDICTS})
    systems = option.pop("systems", None)
    settings = option.pop("settings", None)
    pick = option.pop("pick", None)
    choice = Choice.of(option)
    if settings is None and systems is None:
        return measured(choice)
    if settings is None:
        return values_of_systems(choice, systems)
    members = {}
    for setting, change in settings.items():
        setting_choice = choice.but(**change)
        if systems is None:
            members[setting] = measured(setting_choice)
        else:
            members[setting] = PICKS[pick](values_of_systems(setting_choice, systems))
    return Group(members)


def values_of_systems(choice: Choice, systems: dict[str, str] | list[str]) -> Group:
    """Return the values of several systems, by the keys of a dict or the names of a list."""
    if isinstance(systems, list):
        systems = {system: system for system in expanded(choice, systems)}
    return Group({name: measured(choice.but(system=systems[name])) for name in systems})


def expanded(choice: Choice, patterns: list[str]) -> list[str]:
    """Return the names of measured systems that match one of the patterns, sorted."""
    matching = set()
    for pattern in patterns:
        systems = [system for system in rows_of(choice)["label"] if fnmatchcase(system, pattern)]
        matching.update(systems)
    if not matching:
        raise ValueError(f"no system is called {' or '.join(patterns)}: {choice}")
    return sorted(matching)


class Column(Config):
    """A column: what it chooses otherwise than the block, and how it is shown.

    header : in place of the name of the metric with what the column chooses otherwise.
    value_only : the number without its standard deviation or interval.
    count : "seeds" or "accounts", how many.
    mean : the mean of the row's values that are neither differences nor ratios.
    ratio_to : the name of a row: how many times its value, or its mean, two digits.
    """

    change: dict[str, Any] = Field(default_factory=dict)
    header: str = ""
    value_only: bool = False
    count: str = ""
    mean: bool = False
    ratio_to: str = ""


Cells = dict[str, list[Value | None]]  # by the name of the row


def table(text: str) -> str:
    """Return the lines of a table of measured values; raise ValueError where one is missing."""
    options = yaml.safe_load(text)
    first = options.pop("first", "system")
    order = options.pop("order", "value")
    columns = [column_of(column) for column in options.pop("columns")]
    row_options = options.pop("rows", None)
    allow_missing = options.pop("allow_missing", False)
    choice = Choice.of(options)
    cells = {}
    for name, change in changes_of_rows(choice, columns, row_options).items():
        cells[name] = []
        for column in columns:
            value = None
            if not column.count and not column.mean:
                value = measured(choice.but(**change | column.change), allow_missing)
            cells[name].append(value)
    names = list(cells)
    if order == "value":
        names.sort(key=lambda name: rank_of(columns, cells[name]))
    lines = [[first, *(header_of(column, choice) for column in columns)]]
    for name in names:
        texts = [cell_text(columns, number, cells, name) for number in range(len(columns))]
        lines.append([name, *texts])
    lines = [f"| {' | '.join(line)} |\n" for line in lines]
    return "".join([lines[0], "|---" * (len(columns) + 1), "|\n", *lines[1:]])


def column_of(option: str | dict[str, Any]) -> Column:
    """Return the column that an option describes: a metric, "seeds", "accounts", or a dict."""
    if option in ("seeds", "accounts"):
        return Column(count=option, header=option)
    if isinstance(option, str):
        return Column(change={"metric": option})
    shown = {name: option[name] for name in option if name in Column.model_fields}
    change = {name: option[name] for name in option if name not in shown}
    return Column.of(shown | {"change": change})


def changes_of_rows(
    choice: Choice, columns: list[Column], options: list[str | dict] | None
) -> dict[str, dict[str, Any]]:
    """Return by its name what each row chooses otherwise than the block.

    There is one for every system that has the first metric where ``options`` names none.
    """
    if options is None:
        metrics = [column for column in columns if column.change]
        options = rows_of(choice.but(**metrics[0].change))["label"].unique()
    changes = {}
    for option in options:
        change = dict(option) if isinstance(option, dict) else {"system": option}
        name = change.pop("name", None) or change["system"]
        if name in changes:
            raise ValueError(f"two rows are called {name!r}: give them a `name`")
        changes[name] = change
    return changes


def cell_text(columns: list[Column], number: int, cells: Cells, name: str) -> str:
    """Return the text of one cell of a row, that of a column of this number."""
    column = columns[number]
    value = cells[name][number]
    if column.count:
        first = next(value for value in cells[name] if value is not None)
        return str(first.seeds) if column.count == "seeds" else f"{first.queries:,.0f}"
    if column.mean:
        value = Value(mean_of(columns, cells[name]))
    if value is None:
        return MISSING
    if column.ratio_to and column.mean:
        return f"{value / mean_of(columns, cells[column.ratio_to]):.2f}"
    if column.ratio_to:
        return f"{value / cells[column.ratio_to][number]:.2f}"
    return value.text(column.value_only)


def mean_of(columns: list[Column], values: list[Value | None]) -> float:
    """Return the mean of values that are neither differences nor shown as ratios."""
    shown = []
    for column, value in zip(columns, values):
        if value is not None and not value.is_difference and not column.ratio_to:
            shown.append(value)
    return sum(shown) / len(shown)


def rank_of(columns: list[Column], values: list[Value | None]) -> float:
    """Return a number by which rows are sorted, the best value of the first metric first."""
    for column, value in zip(columns, values):
        if value is not None:
            is_lower_better = column.change.get("metric") in results.LOWER_IS_BETTER
            return value.value if is_lower_better else -value.value
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


@cache
def verdicts_of(draw: int) -> pd.DataFrame:
    """Return the comparisons with the papers that one draw measured."""
    verdicts = claims.verdicts(read(Choice(draw=draw).path))
    return verdicts[verdicts["ours"] != ""].assign(draw=draw)


def comparisons(draws: list[int]) -> pd.DataFrame:
    """Return the comparisons with the papers, under each protocol from the first draw with it.

    They are sorted by verdict, then by row; ``words`` are the verdict in words.
    """
    rows = pd.concat([verdicts_of(draw) for draw in draws])
    rows = rows.drop_duplicates(["id", "claim", "note"])
    verdicts = list(claims.WORDS)
    rows = rows.assign(
        place=rows["verdict"].map(verdicts.index),
        words=rows["verdict"].map(claims.WORDS),
        ours=rows["ours"].str.replace(r"(\d)-(\d)", r"\1 to \2", regex=True),
    )
    return rows.sort_values(["place", "id"], kind="stable")
