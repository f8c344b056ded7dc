"""Fill the tables of README.md and docs/*.md from the results they name: ``python docs/build.py``.

A table stands between ``<!-- table ... -->`` and ``<!-- end -->``. What follows "table" is YAML: ``file`` (a table of
results), ``protocol``, ``split``, ``columns`` (metrics, or "metric, another protocol"), and perhaps ``rows`` (labels to
show, in this order; else all, the best first), ``base`` (a model: paired differences from it instead of values),
``max_tokens`` (read of each post, where rows say it; else 32) and ``first`` (what the first column is called). Seeds of one label are one row: their mean and standard deviation, with the
interval of the first seed.
"""

import re
import sys
from pathlib import Path

import pandas as pd
import yaml

from helpers.runs.results import LOWER_IS_BETTER

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "helpers/accounts/shipped").glob("*/README.md"))]
BLOCK = re.compile(r"(<!-- table\n(.*?)-->\n).*?(?=<!-- end -->)", re.S)


def read(path: str) -> pd.DataFrame:
    """A table of results; empty text stays text, an empty number is missing."""
    frame = pd.read_csv(ROOT / path, keep_default_na=False, na_values={name: "" for name in ("value", "low", "high")})
    said = frame.label.where(frame.label != "", frame.model)
    return frame.assign(label=said.str.replace(r", seed \d+$", "", regex=True))  # one row for all seeds


def cell(found: pd.DataFrame, sign: str) -> str:
    """The mean of the seeds, their spread, and the interval of the first."""
    if found.empty:
        return ""
    first = found.sort_values("seed").iloc[0]
    mean = f"{found.value.mean():{sign}.3f}"
    spread = f" ± {found.value.std():.3f}" if len(found) > 1 else ""
    to = " to " if sign else " - "
    return mean + spread + (f" ({first.low:.3f}{to}{first.high:.3f})" if pd.notna(first.low) else "")


def table(protocol: str, split: str, columns: list[str], file: str, rows: list[str] | None = None, base: str = "",
          max_tokens: int = 32, first: str = "model") -> str:
    """The lines of one table. Raises ValueError where a label or a column has no result."""
    results = read(file)
    tokens = results.get("max_tokens", pd.Series("", results.index)).astype(str)
    results = results[(results.split == split) & (results.base == base) & tokens.isin(["", str(max_tokens)])]
    lines, ranked = [f"| {' | '.join([first, *columns])} |", "|" + "---|" * (len(columns) + 1)], {}
    for label in rows or results.label[results.protocol == protocol].unique():
        cells = []
        for column in columns:
            metric, _, other = column.partition(", ")
            metric += "_difference" if base else ""
            found = results[(results.label == label) & (results.metric == metric)
                            & (results.protocol == (other or protocol))]  # fmt: skip
            if found.empty and rows or found.seed.duplicated().any():
                raise ValueError(f"{file}: {len(found)} {column} of {label!r} in {protocol}, {split}")
            if column == columns[0]:
                ranked[label] = found.value.mean() * (1 if metric in LOWER_IS_BETTER else -1)
            cells.append(cell(found, "+" if base else ""))
        lines.append((label, f"| {' | '.join([label, *cells])} |"))
    head, body = lines[:2], lines[2:]
    body = [line for label, line in (body if rows else sorted(body, key=lambda one: ranked[one[0]]))]
    return "\n".join([*head, *body]) + "\n"


def filled(text: str) -> str:
    """A page with its tables as the results say."""
    return BLOCK.sub(lambda block: block[1] + table(**yaml.safe_load(block[2])), text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (now := filled(text)) != text:
            page.write_text(now, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: filled", file=sys.stderr)
