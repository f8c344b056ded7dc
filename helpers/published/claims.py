"""What the papers say, what a run measured, and whether the two agree.

A line of ``claims.csv`` compares two models: its row of ``docs/coverage.md``, what the paper says,
rows of a published table (pandas queries, of several rows the mean) or a sign, and our models
(regular expressions, as runs name them).
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from helpers.core import paths
from helpers.core.names import label
from helpers.core.results import format_interval

PUBLISHED = Path(__file__).parent
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
    """Judge the interval of a difference by the sign that a paper says, 0 for no difference."""
    if low <= 0 <= high:
        return "not told apart" if says else "no difference told"
    if not says:
        return "a difference"
    return "as published" if says * low > 0 else "other sign"


def verdicts(results: pd.DataFrame) -> pd.DataFrame:
    """Return every row of coverage.md: its claims where both models were measured, else its state.

    results : tidy rows. Intervals are those of single runs, so a comparison is one of the first
    seed, and of the fewest tokens; a difference that was stored over all seeds is taken as it is.

    Returns columns ``id, claim, published, ours, verdict, note`` (the protocol, or what is
    missing) and ``where`` (the headings that show the row).
    """
    for name in ("seed", "max_tokens"):
        is_first = results[name].isna() | (results[name] == results[name].min())
        results = results[results["low"].notna() & is_first]
    claims = pd.read_csv(PUBLISHED / "claims.csv", keep_default_na=False)
    page = (paths.ROOT / "docs" / "coverage.md").read_text("utf-8")
    rows = []
    for line in page.partition("\n| id |")[2].splitlines()[2:]:
        key, what, where, state, note = (cell.strip() for cell in line.strip("|").split("|"))
        state = state.replace("on own data", "not measurable here")
        compared = []
        for claim in claims[claims["id"] == key].itertuples():
            compared += _compared(results, claim)
        if not compared:
            not_measured = {"published": "", "ours": "", "verdict": state, "note": note}
            compared = [{"claim": what} | not_measured]
        rows += [{"id": key, "where": where} | comparison for comparison in compared]
    return pd.DataFrame(rows)


def _compared(results: pd.DataFrame, claim: tuple) -> Iterator[dict]:
    """Yield one comparison a protocol: paired where it was measured so, else of two intervals."""
    says, published = _published(claim)
    is_protocol = results["protocol"].str.fullmatch(claim.protocol)
    of_claim = results[is_protocol & (results["split"] == claim.split)]
    metric = label(claim.metric)
    for protocol, rows in of_claim.groupby("protocol", sort=False):
        difference = _row(rows, f"{claim.metric}_difference", claim.model, claim.base)
        model = _row(rows, claim.metric, claim.model, "")
        base = _row(rows, claim.metric, claim.base, "")
        if difference is not None:
            low, high = difference["low"], difference["high"]
            ours = format_interval(*difference, "+")
        elif model is not None and base is not None:
            low = model["low"] - base["high"]
            high = model["high"] - base["low"]
            ours = f"{format_interval(*model)} against {format_interval(*base)}"
        else:
            continue
        yield {
            "claim": claim.claim,
            "published": f"{metric}{published}",
            "ours": f"{metric} {ours}",
            "verdict": verdict(says, low, high),
            "note": _where(protocol, claim.split),
        }


def _published(claim: tuple) -> tuple[float, str]:
    """Return the difference that a paper says, or its sign, and the words for it."""
    if not claim.table:
        words, sign = SIGNS[claim.sign]
        return sign, words
    table = pd.read_csv(PUBLISHED / f"{claim.table}.csv")
    value = table.query(claim.row)[claim.metric].mean()
    base_value = table.query(claim.row_base)[claim.metric].mean()
    return value - base_value, f" {value:.3f} against {base_value:.3f}"


def _row(rows: pd.DataFrame, metric: str, model: str, base: str) -> pd.Series | None:
    """Return value, low and high of the first row of a metric, None where there is none."""
    is_of_pair = rows["model"].str.fullmatch(model) & rows["base"].str.fullmatch(base)
    found = rows[(rows["metric"] == metric) & is_of_pair]
    if found.empty:
        return None
    return found.iloc[0][["value", "low", "high"]]


def _where(protocol: str, split: str) -> str:
    """Return a protocol and a split in words."""
    words = label(protocol)
    for identifier, paper in PAPERS.items():
        words = words.replace(identifier, paper)
    return f"{words}, {label(split)}"
