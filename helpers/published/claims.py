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
from . import PAPERS

FOLDER = Path(__file__).parent
COLUMNS = ["id", "where", "claim", "published", "ours", "verdict", "note"]
# what a paper says without a table -> its words, and the sign of the difference
SIGNS = {"+": (": higher", 1), "0": (": no difference", 0), "-": (": lower", -1)}
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
SETTING = ["max_tokens", "seed"]
BASE_INTERVAL = [f"{name}_base" for name in INTERVAL]
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
    results_of : (split, protocol) -> tidy rows
    claim : row of claims.csv

    Yields
    ------
    claim, published, ours, verdict, note : str
    """
    for (split, protocol), rows in results_of.items():
        if split != claim.split or not re.fullmatch(claim.protocol, protocol):
            continue
        sides = _sides(claim, rows)
        candidates = pd.concat([_paired(claim, rows), sides])
        if candidates.empty:
            continue
        candidates["no_interval"] = candidates["difference_low"].isna()
        order = ["no_interval", "is_unpaired", *SETTING]
        best = candidates.sort_values(order, na_position="first", kind="stable").iloc[0]
        says, published = _published(claim)
        judgement = verdict(says, best["difference_low"], best["difference_high"])
        if _is_at_chance(claim, sides[_is_setting(sides, best["max_tokens"], best["seed"])]):
            judgement = "at chance"
        ours = format_interval(*best[INTERVAL], "" if best["is_unpaired"] else "+")
        if best["is_unpaired"]:
            ours += f" against {format_interval(*best[BASE_INTERVAL])}"
        metric = label(claim.metric)
        of_claim = (f"{metric}{published}", f"{metric} {ours}", judgement)
        yield claim.claim, *of_claim, _where(protocol, claim.split)


def _paired(claim: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the paired differences of a claim, those with the other model subtracted turned."""
    metric = f"{claim.metric}_difference"
    turned = _rows_of(rows, metric, claim.base, claim.model)
    turned = turned.assign(value=-turned["value"], low=-turned["high"], high=-turned["low"])
    pairs = pd.concat([_rows_of(rows, metric, claim.model, claim.base), turned])
    return pairs.assign(
        difference_low=pairs["low"], difference_high=pairs["high"], is_unpaired=False
    )


def _sides(claim: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Return both models of a claim side by side, wherever they were measured in one setting.

    The interval of the difference is made of the ends of both intervals, which makes it wider than
    a paired one.
    """
    model = _rows_of(rows, claim.metric, claim.model)
    base = _rows_of(rows, claim.metric, claim.base)
    sides = model.merge(base, "cross", suffixes=("", "_base"))
    sides = sides[_is_setting(sides, sides["max_tokens_base"], sides["seed_base"])]
    return sides.assign(
        difference_low=sides["low"] - sides["high_base"],
        difference_high=sides["high"] - sides["low_base"],
        is_unpaired=True,
    )


def _rows_of(rows: pd.DataFrame, metric: str, model: str, base: str = "") -> pd.DataFrame:
    """Return the rows of a metric and pair; ``model`` and ``base`` are regular expressions."""
    is_of_pair = rows["model"].str.fullmatch(model) & rows["base"].str.fullmatch(base)
    return rows.loc[(rows["metric"] == metric) & is_of_pair, [*SETTING, *INTERVAL]]


def _is_setting(rows: pd.DataFrame, tokens: Any, seed: Any) -> pd.Series:
    """Return which rows have a number of tokens and a seed; what is missing is like any."""
    is_tokens = (rows["max_tokens"] == tokens).fillna(True)
    return is_tokens & (rows["seed"] == seed).fillna(True)


def _is_at_chance(claim: Any, sides: pd.DataFrame) -> bool:
    """Return whether a model does no better than chance that does in the paper.

    A difference from a baseline that has learned nothing says nothing. Where the paper's own value
    is near chance, to be there is what the claim says.
    """
    if claim.metric not in CHANCE or not claim.table or sides.empty:
        return False
    chance = CHANCE[claim.metric]
    side = sides.iloc[0]
    for value, ending in zip(_paper_values(claim), ("", "_base")):
        is_no_better = side[f"low{ending}"] <= chance
        if claim.metric in LOWER_IS_BETTER:
            is_no_better = side[f"high{ending}"] >= chance
        if is_no_better and abs(value - chance) >= NEAR_CHANCE:
            return True
    return False


def _published(claim: Any) -> tuple[float, str]:
    """Return the difference that a paper reports, or only its sign, and the words for it."""
    if not claim.table:
        words, sign = SIGNS[claim.sign]
        return sign, words
    value, base_value = _paper_values(claim)
    if pd.isna(value - base_value):
        raise ValueError(f"{claim.table} lacks a row of the claim: {claim.claim}")
    return value - base_value, f" {value:.3f} against {base_value:.3f}"


def _paper_values(claim: Any) -> list[float]:
    """Return the values of both models of a claim in the paper."""
    table = _published_table(claim.table)
    return [table.query(rows)[claim.metric].mean() for rows in (claim.row, claim.row_base)]


@cache
def _published_table(name: str) -> pd.DataFrame:
    """Return a table of a paper."""
    return pd.read_csv(FOLDER / f"{name}.csv")


def _where(protocol: str, split: str) -> str:
    """Return protocol and split in words, with the papers' authors for their identifiers."""
    words = label(protocol)
    for identifier, paper in PAPERS.items():
        words = words.replace(identifier, paper)
    return f"{words}, {label(split)}"
