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
from ..core.results import INTERVAL, LOWER_IS_BETTER, format_interval

FOLDER = Path(__file__).parent
COLUMNS = ["id", "where", "claim", "published", "ours", "verdict", "note"]
# what a paper says without a table -> its words, and the sign of the difference
SIGNS = {"+": (": higher", 1), "0": (": no difference", 0), "-": (": lower", -1)}
PAPERS = {"khan2021": "Khan et al.", "tyo2021": "Tyo et al.", "sawatphol2022": "Sawatphol et al."}
MARGIN = 0.02  # differences up to this size count as none; all metrics lie between 0 and 1
SMALLEST = 0.005  # a published difference below it counts as none
# verdict -> its words on pages, in the order in which pages list the verdicts
WORDS = {
    "other sign": "the other way",
    "a difference": "a difference, published as none",
    "no difference": f"no difference above {MARGIN}",
    "none, of unknown size": f"no difference above {MARGIN}; the paper gives no size",
    "as published": "as published",
    "none, as published": f"no difference above {MARGIN}, as published",
    "not told apart": "not distinguishable",
    "at chance": "not judged: one of the two does no better than chance",
    "no interval": "no interval was measured",
}
CHANCE = {"EER": 0.5, "AUC": 0.5}  # values of a metric at chance
NEAR_CHANCE = 0.1  # a published value nearer to it counts as chance
AGREE = ("as published", "none, as published")


def verdict(says: float, low: float, high: float) -> str:
    """Compare the interval of a measured difference with the difference that a paper reports.

    Parameters
    ----------
    says : float
        the paper's difference; 1 or -1 where the paper gives only its sign. One below SMALLEST
        counts as none
    low, high : float
        ends of the interval of the measured difference; NaN where it has none

    Returns
    -------
    A key of ``WORDS``. There is *no difference* where the interval lies within MARGIN of 0 (an
    equivalence test); it is as published where the paper's difference does, too.
    """
    if pd.isna(low) or pd.isna(high):
        return "no interval"
    if abs(says) < SMALLEST:
        says = 0
    is_none = -MARGIN <= low and high <= MARGIN
    says_none = abs(says) <= MARGIN
    has_sign = low > 0 or high < 0
    if has_sign and says * low > 0:
        return "as published"
    if is_none and says_none:
        return "none, as published"
    if is_none:
        return "none, of unknown size" if abs(says) == 1 else "no difference"
    if not has_sign:
        return "not told apart"
    return "other sign" if says else "a difference"


def verdicts(results: pd.DataFrame) -> pd.DataFrame:
    """Judge the claims of every row of docs/coverage.md by the results of a run.

    Parameters
    ----------
    results : DataFrame
        tidy rows. Of several seeds and ``max_tokens`` a comparison reads the lowest that both of
        its models have, since an interval belongs to one training; rows without a seed, such as
        differences over all seeds, belong to each.

    Returns
    -------
    Columns ``id, where, claim, published, ours, verdict, note``, where ``where`` holds the headings
    under which the row is shown. There is one row for each claim and protocol in which both models
    were measured; its ``note`` names protocol and split. A row of docs/coverage.md without any has
    one row, whose ``verdict`` is its state ("on own data" becomes "not measurable here") and whose
    ``note`` says what is missing. The table is empty where docs/coverage.md does not exist, as in
    an installed package.
    """
    results = results.sort_values("low", key=pd.isna, kind="stable")  # with an interval first
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

    Parameters
    ----------
    results_of : (split, protocol) -> tidy rows, those with an interval first
    claim : row of claims.csv

    Yields
    ------
    claim, published, ours, verdict, note : str
    """
    for (split, protocol), rows in results_of.items():
        if split != claim.split or not re.fullmatch(claim.protocol, protocol):
            continue
        compared = []
        for part in _settings(rows):
            compared += [(*comparison, part) for comparison in _compare(claim, part)]
        if compared:
            # one with an interval rather than without, then a paired one, then the first setting
            _, ours, low, high, part = min(compared, key=_preference)
            says, published = _published(claim)
            metric = label(claim.metric)
            judgement = verdict(says, low, high)
            if _is_at_chance(claim, part):
                judgement = "at chance"
            of_claim = (f"{metric}{published}", f"{metric} {ours}", judgement)
            yield claim.claim, *of_claim, _where(protocol, claim.split)


def _settings(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of each seed and number of tokens, lowest first; rows without one in each."""
    for tokens in _numbers(rows["max_tokens"]):
        of_tokens = rows[rows["max_tokens"].isna() | (rows["max_tokens"] == tokens)]
        for seed in _numbers(of_tokens["seed"]):
            yield of_tokens[of_tokens["seed"].isna() | (of_tokens["seed"] == seed)]


def _numbers(column: pd.Series) -> list:
    """Return the different numbers of a column, lowest first; [None] where it holds none."""
    numbers = sorted(column.dropna().unique())
    if not numbers:
        return [None]
    return numbers


def _compare(claim: Any, rows: pd.DataFrame) -> Iterator[tuple[bool, str, float, float]]:
    """Yield what some results say of a claim: the paired difference, then both models.

    Without a pair the interval of the difference is made of the ends of both intervals, which makes
    it wider.

    Yields
    ------
    is_paired : bool, ours : str in words, low, high : float, the interval
    """
    difference = _difference(rows, f"{claim.metric}_difference", claim.model, claim.base)
    if difference is not None:
        value, low, high = difference
        yield True, format_interval(value, low, high, "+"), low, high
    model = _interval(rows, claim.metric, claim.model, "")
    base = _interval(rows, claim.metric, claim.base, "")
    if model is not None and base is not None:
        ours = f"{format_interval(*model)} against {format_interval(*base)}"
        yield False, ours, model["low"] - base["high"], model["high"] - base["low"]


def _difference(
    rows: pd.DataFrame, metric: str, model: str, base: str
) -> tuple[float, float, float] | None:
    """Return value, low and high of a paired difference, also if the other model was subtracted."""
    difference = _interval(rows, metric, model, base)
    if difference is not None:
        return tuple(difference)
    difference = _interval(rows, metric, base, model)
    if difference is None:
        return None
    value, low, high = -difference
    return value, high, low


def _is_at_chance(claim: Any, rows: pd.DataFrame) -> bool:
    """Return whether a model does no better than chance that does in the paper.

    A difference from a baseline that has learned nothing says nothing. Where the paper's own value
    is near chance, to be there is what the claim says.
    """
    if claim.metric not in CHANCE or not claim.table:
        return False
    table = _published_table(claim.table)
    chance = CHANCE[claim.metric]
    for model, query in ((claim.model, claim.row), (claim.base, claim.row_base)):
        row = _interval(rows, claim.metric, model, "")
        if row is None or abs(table.query(query)[claim.metric].mean() - chance) < NEAR_CHANCE:
            continue
        is_worse = row["high"] >= chance
        if claim.metric not in LOWER_IS_BETTER:
            is_worse = row["low"] <= chance
        if is_worse:
            return True
    return False


def _preference(comparison):
    is_paired, _, low, _, _ = comparison
    return pd.isna(low), not is_paired


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
