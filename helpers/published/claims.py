"""Judge whether the results of a run agree with what the papers say.

A line of ``claims.csv`` is one claim that compares two models. ``id`` is the row of
``docs/coverage.md`` that it belongs to, ``claim`` says it in words. The paper's side is either
``table``, ``row`` and ``row_base``, a published table and pandas queries for the rows of the two
models (of several rows the mean is taken), or only a ``sign``, a key of SIGNS. Our side is
``protocol``, ``model`` and ``base``, regular expressions for identifiers of a run's results, and
``split`` and ``metric``.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from ..core import paths
from ..core.names import label
from ..core.results import INTERVAL, format_interval

FOLDER = Path(__file__).parent
COLUMNS = ["id", "where", "claim", "published", "ours", "verdict", "note"]
# what a paper says without a table -> its words, and the sign of the difference
SIGNS = {"+": (": higher", 1), "0": (": no difference", 0), "-": (": lower", -1)}
PAPERS = {"khan2021": "Khan et al.", "tyo2021": "Tyo et al.", "sawatphol2022": "Sawatphol et al."}
# verdict -> its words on pages, in the order in which pages list the verdicts
WORDS = {
    "other sign": "the other way",
    "a difference": "a difference, published as none",
    "as published": "as published",
    "no difference told": "no difference found",
    "not told apart": "not distinguishable",
}


def verdict(says: float, low: float, high: float) -> str:
    """Compare the interval of a measured difference with the difference that a paper reports.

    Parameters
    ----------
    says : float
        the paper's difference, of which only the sign counts; 0 for no difference
    low, high : float
        ends of the interval of the measured difference

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
    """Judge the claims of every row of docs/coverage.md by the results of a run.

    Parameters
    ----------
    results : DataFrame
        tidy rows. Only rows with an interval are used. Of several seeds only the lowest is used,
        and of several ``max_tokens`` only the smallest, since an interval belongs to one training;
        rows without a seed, such as differences over all seeds, are kept.

    Returns
    -------
    Columns ``id, where, claim, published, ours, verdict, note``, where ``where`` holds the headings
    under which the row is shown. There is one row for each claim and protocol in which both models
    were measured; its ``note`` names protocol and split. A row of docs/coverage.md without any has
    one row, whose ``verdict`` is its state ("on own data" becomes "not measurable here") and whose
    ``note`` says what is missing. The table is empty where docs/coverage.md does not exist, as in
    an installed package.
    """
    for name in ("seed", "max_tokens"):
        is_first = results[name].isna() | (results[name] == results[name].min())
        results = results[results["low"].notna() & is_first]
    results_of = dict(list(results.groupby(["split", "protocol"], sort=False)))
    claims_of_row = defaultdict(list)
    for claim in _claims().itertuples():
        claims_of_row[claim.id].append(claim)
    rows = []
    for row_id, claim, where, state, note in _coverage():
        comparisons = []
        for claim_of_row in claims_of_row[row_id]:
            comparisons += _comparisons(results_of, claim_of_row)
        if not comparisons:
            state = state.replace("on own data", "not measurable here")
            comparisons = [(claim, "", "", state, note)]
        rows += [(row_id, where, *comparison) for comparison in comparisons]
    return pd.DataFrame(rows, columns=COLUMNS)


@cache
def _claims() -> pd.DataFrame:
    """Return the table of claims."""
    return pd.read_csv(FOLDER / "claims.csv", keep_default_na=False)


def _coverage() -> Iterator[list[str]]:
    """Yield the five cells of each row of docs/coverage.md: id, claim, where, state, note."""
    path = (paths.ROOT or paths.PACKAGE) / "docs" / "coverage.md"
    if path.exists():  # an installed package does not have it
        _, _, table = path.read_text("utf-8").partition("\n| id |")
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _comparisons(
    results_of: dict[tuple[str, str], pd.DataFrame], claim: Any
) -> Iterator[tuple[str, ...]]:
    """Yield one comparison for each protocol in which both models of a claim were measured.

    A paired difference is used where the results hold one. Else its interval is taken from the ends
    of the intervals of the two models, which makes it wider.

    Parameters
    ----------
    results_of : (split, protocol) -> tidy rows
    claim : row of claims.csv

    Yields
    ------
    claim, published, ours, verdict, note : str
    """
    metric = label(claim.metric)
    for (split, protocol), rows in results_of.items():
        if split != claim.split or not re.fullmatch(claim.protocol, protocol):
            continue
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
        says, published = _published(claim)
        yield (
            claim.claim,
            f"{metric}{published}",
            f"{metric} {ours}",
            verdict(says, low, high),
            _where(protocol, claim.split),
        )


def _published(claim: Any) -> tuple[float, str]:
    """Return the difference that a paper reports, or only its sign, and the words for it."""
    if not claim.table:
        words, sign = SIGNS[claim.sign]
        return sign, words
    table = _published_table(claim.table)
    value = table.query(claim.row)[claim.metric].mean()
    base_value = table.query(claim.row_base)[claim.metric].mean()
    if pd.isna(value - base_value):
        raise ValueError(f"{claim.table} lacks a row of the claim: {claim.claim}")
    return value - base_value, f" {value:.3f} against {base_value:.3f}"


@cache
def _published_table(name: str) -> pd.DataFrame:
    """Return a table of a paper."""
    return pd.read_csv(FOLDER / f"{name}.csv")


def _interval(rows: pd.DataFrame, metric: str, model: str, base: str) -> pd.Series | None:
    """Return value, low and high of the first row of a metric and pair, None where there is none.

    ``model`` and ``base`` are regular expressions; ``base`` is "" for a metric of one model.
    """
    is_of_pair = rows["model"].str.fullmatch(model) & rows["base"].str.fullmatch(base)
    of_metric = rows[(rows["metric"] == metric) & is_of_pair]
    if of_metric.empty:
        return None
    return of_metric.iloc[0][INTERVAL]


def _where(protocol: str, split: str) -> str:
    """Return protocol and split in words, with the papers' authors for their identifiers."""
    words = label(protocol)
    for identifier, paper in PAPERS.items():
        words = words.replace(identifier, paper)
    return f"{words}, {label(split)}"
