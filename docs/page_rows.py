"""What a page asks of stored results: rows are chosen by names, seeds become one value."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from math import nan
from pathlib import Path

import pandas as pd

from helpers.core import results
from helpers.core.config import Config

ROOT = Path(__file__).resolve().parents[1]
OF_VALUES = ["label", "model", "base", "seed", "value", "low", "high", "queries"]  # columns read
TOLERANCE = 0.0015  # by which a stored difference may miss that of its rows, which are rounded


@dataclass(frozen=True)
class Value:
    """A measured value: of one run, or the mean over seeds.

    low, high : the 95% interval of the first seed.
    first : the value of the first seed.
    sd : the standard deviation over seeds, NaN for one.
    queries : how many were ranked.
    is_difference : the first seed's paired difference from another system.
    """

    value: float
    low: float = nan
    high: float = nan
    sd: float = nan
    first: float = nan
    seeds: int = 1
    queries: float = nan
    is_difference: bool = False

    def text(self, only_value: bool = False) -> str:
        """Return ``0.813 ± 0.004`` of seeds, ``0.721 (0.690 to 0.751)`` of one run."""
        if self.value == int(self.value) and abs(self.value) > 1:
            return f"{self.value:,.0f}"
        sign = "+" if self.is_difference else ""
        number = f"{self.value:{sign}.3f}"
        if only_value:
            return number
        if self.seeds > 1 and not self.is_difference:
            return f"{number} ± {self.sd:.3f}"
        if pd.isna(self.low):
            return number
        return f"{number} ({self.low:.3f} to {self.high:.3f})"


class Choice(Config):
    """Which rows are meant, by the names that people read.

    draw : of ``outputs/open``; or ``file``, the path of a table of results.
    base : the system that is subtracted.
    max_tokens : tokens read of each post, where rows say it.
    seed : this seed alone.
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

    @property
    def place(self) -> str:
        """The table of results, as an error names it."""
        return self.file or f"draw-{self.draw}"

    def but(self, **changes: object) -> "Choice":
        """Return the same choice but for what changes."""
        return Choice.of(self.model_dump() | changes)


@lru_cache
def _read(path: Path, modified: float) -> pd.DataFrame:
    frame = results.read(path)
    return frame.assign(label=frame["label"].where(frame["label"] != "", frame["model"]))


def read(path: Path) -> pd.DataFrame:
    """Return all rows of a table of results; every row has a label."""
    return _read(path, path.stat().st_mtime)


def rows_of(choice: Choice) -> pd.DataFrame:
    """Return the rows of all systems that a choice means, whichever its ``system`` is."""
    return _rows_of(choice.but(system=""), choice.path.stat().st_mtime)


@lru_cache(maxsize=2000)
def _rows_of(choice: Choice, modified: float) -> pd.DataFrame:
    frame = _read(choice.path, modified)
    chosen = (frame["protocol"] == choice.protocol) & (frame["split"] == choice.split)
    chosen &= frame["max_tokens"].isna() | (frame["max_tokens"] == choice.max_tokens)
    if choice.model != "*":
        chosen &= frame["model"].map(lambda model: fnmatchcase(model, choice.model))
    if choice.seed is not None:
        chosen &= frame["seed"] == choice.seed
    if choice.training_authors is not None:
        chosen &= frame["training_authors"] == choice.training_authors
    if choice.base:
        bases = frame["model"][frame["label"] == choice.base]
        chosen &= (frame["base"] != "") & frame["base"].isin([*bases, choice.base])
        chosen &= frame["metric"].isin([choice.metric, f"{choice.metric}_difference"])
    else:
        chosen &= (frame["base"] == "") & (frame["metric"] == choice.metric)
    return frame.loc[chosen, OF_VALUES]


def measured(choice: Choice) -> Value | None:
    """Return what was measured of a system, None where nothing was.

    Raises ValueError where one seed has several rows, or a difference is not that of its rows.
    """
    return _measured(choice, choice.path.stat().st_mtime)


@cache
def _measured(choice: Choice, modified: float) -> Value | None:
    rows = _rows_of(choice.but(system=""), modified)
    rows = rows[rows["label"] == choice.system].sort_values("seed")
    if rows.empty:
        return None
    if rows["seed"].duplicated().any():
        raise ValueError(f"{choice.place}: {len(rows)} {_words(choice)}")
    first = rows.iloc[0]
    if choice.base:
        _check_difference(choice, first)
        rows = rows[:1]
    return Value(
        value=rows["value"].mean(),
        low=first["low"],
        high=first["high"],
        sd=rows["value"].std(),
        first=first["value"],
        seeds=len(rows),
        queries=float(first["queries"]) if pd.notna(first["queries"]) else nan,
        is_difference=bool(choice.base),
    )


def need(choice: Choice) -> Value:
    """Return what was measured; raise ValueError where nothing was."""
    value = measured(choice)
    if value is None:
        raise ValueError(f"{choice.place}: 0 {_words(choice)}")
    return value


def _check_difference(choice: Choice, stored: pd.Series) -> None:
    rows = rows_of(choice.but(base=""))
    if pd.notna(stored["seed"]):
        rows = rows[rows["seed"] == stored["seed"]]
    values = rows[rows["model"] == stored["model"]]["value"]
    base_values = rows[rows["model"] == stored["base"]]["value"]
    if values.empty or base_values.empty:
        return
    difference = values.mean() - base_values.mean()
    if abs(difference - stored["value"]) > TOLERANCE:
        raise ValueError(
            f"{choice.place}: {_words(choice)} is stored as {stored['value']:+.3f}, "
            f"the rows differ by {difference:+.3f}"
        )


def _words(choice: Choice) -> str:
    minus = f" minus {choice.base!r}" if choice.base else ""
    return f"{choice.metric} of {choice.system!r}{minus} in {choice.protocol}, {choice.split}"
