"""What the papers say, what a run measured, and whether the two agree.

A line of ``claims.csv`` compares two models: its row of ``docs/coverage.md``, what the paper says,
rows of a published table (pandas queries, of several rows the mean) or a sign, and our models
(regular expressions, as runs name them).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from helpers.core import paths
from helpers.core.names import label
from helpers.core.results import INTERVAL, format_interval

FOLDER = Path(__file__).parent
COLUMNS = ["id", "where", "claim", "published", "ours", "verdict", "note"]
SIGNS = {"+": (": higher", 1), "0": (": no difference", 0), "-": (": lower", -1)}
PAPERS = {"khan2021": "Khan et al.", "tyo2021": "Tyo et al.", "sawatphol2022": "Sawatphol et al."}
WORDS = {  # verdicts as pages say them, in the order in which they list them
    "other sign": "the other way",
    "a difference": "a difference, published as none",
    "as published": "as published",
    "no difference told": "no difference found",
    "not told apart": "not distinguishable",
}


def verdict(says: float, low: float, high: float) -> str:
    """Judge the interval of a difference by what a paper says.

    Parameters
    ----------
    says : float
        of the sign that the paper says, 0 for no difference
    low, high : float
        the ends of the measured interval

    Returns
    -------
    A key of ``WORDS``.
    """
    if low <= 0 <= high:
        return "not told apart" if says else "no difference told"
    if not says:
        return "a difference"
    if says * low > 0:
        return "as published"
    return "other sign"


def verdicts(results: pd.DataFrame) -> pd.DataFrame:
    """Judge every row of docs/coverage.md: its claims where both models were measured.

    Parameters
    ----------
    results : DataFrame
        tidy rows. Intervals are those of single runs, so a comparison is one of the first seed, and
        of the fewest tokens; a difference that was stored over all seeds is taken as it is.

    Returns
    -------
    Columns ``id, claim, published, ours, verdict, note`` (the protocol, or what is missing) and
    ``where`` (the headings that show the row); of what was not measured the verdict is the state of
    the row. The table is empty where there is no docs/coverage.md, that is outside of a checkout.
    """
    for name in ("seed", "max_tokens"):
        is_first = results[name].isna() | (results[name] == results[name].min())
        results = results[results["low"].notna() & is_first]
    claims = pd.read_csv(FOLDER / "claims.csv", keep_default_na=False)
    rows = []
    for row_id, claim, where, state, note in _coverage():
        comparisons = []
        for claim_of_row in claims[claims["id"] == row_id].itertuples():
            comparisons += _comparisons(results, claim_of_row)
        if not comparisons:
            state = state.replace("on own data", "not measurable here")
            comparisons = [(claim, "", "", state, note)]
        rows += [(row_id, where, *comparison) for comparison in comparisons]
    return pd.DataFrame(rows, columns=COLUMNS)


def _coverage() -> Iterator[list[str]]:
    """Yield the cells of the rows of docs/coverage.md: id, what, where, state, note."""
    path = paths.ROOT / "docs" / "coverage.md"
    if path.exists():  # only in a checkout
        _, _, table = path.read_text("utf-8").partition("\n| id |")
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _comparisons(results: pd.DataFrame, claim: Any) -> Iterator[tuple[str, ...]]:
    """Yield one comparison a protocol: paired where it was measured so, else of two intervals.

    Yields
    ------
    The cells of the columns from ``claim`` on.
    """
    says, published = _published(claim)
    is_protocol = results["protocol"].str.fullmatch(claim.protocol)
    of_claim = results[is_protocol & (results["split"] == claim.split)]
    metric = label(claim.metric)
    for protocol, rows in of_claim.groupby("protocol", sort=False):
        difference = _interval(rows, f"{claim.metric}_difference", claim.model, claim.base)
        model = _interval(rows, claim.metric, claim.model, "")
        base = _interval(rows, claim.metric, claim.base, "")
        if difference is not None:
            _, low, high = difference
            ours = format_interval(*difference, "+")
        elif model is not None and base is not None:
            low = model["low"] - base["high"]
            high = model["high"] - base["low"]
            ours = f"{format_interval(*model)} against {format_interval(*base)}"
        else:
            continue
        yield (
            claim.claim,
            f"{metric}{published}",
            f"{metric} {ours}",
            verdict(says, low, high),
            _where(protocol, claim.split),
        )


def _published(claim: Any) -> tuple[float, str]:
    """Return the difference that a paper says, or its sign, and the words for it."""
    if not claim.table:
        words, sign = SIGNS[claim.sign]
        return sign, words
    table = pd.read_csv(FOLDER / f"{claim.table}.csv")
    value = table.query(claim.row)[claim.metric].mean()
    base_value = table.query(claim.row_base)[claim.metric].mean()
    return value - base_value, f" {value:.3f} against {base_value:.3f}"


def _interval(rows: pd.DataFrame, metric: str, model: str, base: str) -> pd.Series | None:
    """Return value, low and high of the first row of a metric, None where there is none."""
    is_of_pair = rows["model"].str.fullmatch(model) & rows["base"].str.fullmatch(base)
    of_metric = rows[(rows["metric"] == metric) & is_of_pair]
    if of_metric.empty:
        return None
    return of_metric.iloc[0][INTERVAL]


def _where(protocol: str, split: str) -> str:
    """Return a protocol and a split in words."""
    words = label(protocol)
    for identifier, paper in PAPERS.items():
        words = words.replace(identifier, paper)
    return f"{words}, {label(split)}"
