"""What the papers say, what a run measured, and whether the two agree.

A line of ``claims.csv`` compares two models: its row of ``docs/coverage.md``, what the paper says, rows of a published
table (pandas queries, of several rows the mean) or a sign, and our models (regular expressions, as runs name them).
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from helpers.runs import paths
from helpers.runs.results import interval

PUBLISHED = Path(__file__).parents[1] / "figures" / "published"
SIGNS = {"+": (": higher", 1), "0": (": no difference", 0), "-": (": lower", -1)}


def verdict(says: float, low: float, high: float) -> str:
    """What the interval of a difference tells of the sign that a paper says; where it says 0, of there being none."""
    if low <= 0 <= high:
        return "not told apart" if says else "no difference told"
    return "a difference" if not says else "as published" if says * low > 0 else "other sign"


def verdicts(results: pd.DataFrame) -> pd.DataFrame:
    """Every row of coverage.md: its claims where results hold both models of one, else as what is shown of it.

    results : tidy rows; the first seed counts, and the fewest tokens. Returns columns ``id, claim, published, ours,
    verdict, note`` (the protocol, or what is missing) and ``where`` (the headings that show the row).
    """
    for name in ("seed", "max_tokens"):  # the first seed, the fewest tokens of a post
        results = results[results.low.notna() & (results[name].isna() | (results[name] == results[name].min()))]
    claims = pd.read_csv(PUBLISHED / "claims.csv", keep_default_na=False)
    page, rows = (paths.ROOT / "docs" / "coverage.md").read_text("utf-8"), []
    for line in page.partition("\n| id |")[2].splitlines()[2:]:
        key, what, where, state, note = (cell.strip() for cell in line.strip("|").split("|"))
        state = state.replace("on own data", "not measurable here")
        whole = {"claim": what, "published": "", "ours": "", "verdict": state, "note": note}
        told = [one for claim in claims[claims.id == key].itertuples() for one in _compared(results, claim)]
        rows += [{"id": key, "where": where} | one for one in told or [whole]]
    return pd.DataFrame(rows)


def _compared(results: pd.DataFrame, claim: tuple) -> Iterator[dict]:
    """One comparison a protocol: paired where the difference was measured, else both intervals must be apart."""
    said, says = SIGNS.get(claim.sign, ("", 0))
    if claim.table:
        table = pd.read_csv(PUBLISHED / f"{claim.table}.csv")
        one, other = (table.query(rows)[claim.metric].mean() for rows in (claim.row, claim.row_base))
        said, says = f" {one:.3f} against {other:.3f}", one - other
    here = results[(results.split == claim.split) & results.protocol.str.fullmatch(claim.protocol)]
    for protocol, rows in here.groupby("protocol", sort=False):
        values = [rows[(rows.metric == metric) & rows.model.str.fullmatch(model) & rows.base.str.fullmatch(base)]
                  [["value", "low", "high"]].to_numpy()[:1] for metric, model, base in (
                      (f"{claim.metric}_difference", claim.model, claim.base),
                      (claim.metric, claim.model, ""), (claim.metric, claim.base, ""))]  # fmt: skip
        paired, alone = values[0], [*values[1], *values[2]]
        if len(paired):
            (_, low, high), ours = paired[0], interval(*paired[0], "+")
        elif len(alone) == 2:
            (_, *one), (_, *other) = alone
            low, high, ours = one[0] - other[1], one[1] - other[0], " against ".join(interval(*row) for row in alone)
        else:
            continue
        yield {"claim": claim.claim, "published": claim.metric + said, "ours": f"{claim.metric} {ours}",
               "verdict": verdict(says, low, high), "note": f"{protocol}, {claim.split}"}  # fmt: skip
