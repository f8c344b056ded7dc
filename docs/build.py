"""Fill the tables of README.md and docs/*.md from the results they name: ``python docs/build.py``.

A table stands between ``<!-- table ... -->`` and ``<!-- end -->``. What follows "table" is YAML: ``file`` (a table of
results), ``protocol``, ``split``, ``columns`` (metrics, or "metric, another protocol"), and perhaps ``rows`` (labels to
show, in this order; else all, the best first), ``base`` (a model: paired differences from it instead of values),
``max_tokens`` (read of each post, where rows say it; else 32) and ``first`` (what the first column is called). Seeds of
one label are one row: their mean and standard deviation, with the interval of the first seed. With ``splits``, names by
split, the columns are one ``metric`` on each, its mean, and how many times that of the row ``unit`` this is. With
``files`` alone the table holds every row of coverage.md, and a verdict.

Links that open notebooks on Binder and Colab stand between ``<!-- online -->`` and ``<!-- /online -->``: none until
CITATION.cff has a line ``repository-code: https://github.com/<owner>/<name>``.
"""

import re
import sys
from pathlib import Path

import pandas as pd
import yaml

from helpers.runs import results as tables
from helpers.runs.claims import verdicts
from helpers.runs.results import LOWER_IS_BETTER

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "helpers/accounts/shipped").glob("*/README.md"))]
ONLINE = re.compile(r"(<!-- online -->\n).*?(?=<!-- /online -->)", re.S)
OPENED = ["00_start_here", "07_visualize", "13_your_accounts"]
BLOCK = re.compile(r"(<!-- table\n(.*?)-->\n).*?(?=<!-- end -->)", re.S)


def read(path: str, max_tokens: int) -> pd.DataFrame:
    """The rows of a table of results that read so much of a post; empty text stays text, an empty number is missing."""
    frame = pd.read_csv(ROOT / path, keep_default_na=False, na_values={name: "" for name in ("value", "low", "high")})
    said = frame.label.where(frame.label != "", frame.model)
    tokens = frame.get("max_tokens", pd.Series("", frame.index)).astype(str)
    frame = frame.assign(label=said.str.replace(r", seed \d+\b", "", regex=True))  # one row for all seeds
    return frame[tokens.isin(["", str(max_tokens)])]


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
    results = read(file, max_tokens)
    results = results[(results.split == split) & (results.base == base)]
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


def over_splits(file: str, protocol: str, splits: dict[str, str], metric: str, unit: str, max_tokens: int = 32,
                rows: list[str] | None = None) -> str:  # fmt: skip
    """The lines of a table of one metric on several splits, of the models that were measured on all of them.

    Raises ValueError where one of ``rows`` was not.
    """
    results = read(file, max_tokens).query("protocol == @protocol and metric == @metric and base == ''")
    parts = {split: results[results.split == split].set_index("label") for split in splits}
    everywhere = set.intersection(*(set(part.index) for part in parts.values()))
    if missing := sorted({*(rows or []), unit} - everywhere):
        raise ValueError(f"{file}: not measured on all of {', '.join(splits)}: {', '.join(missing)}")
    mean = {label: sum(part.value[[label]].mean() for part in parts.values()) / len(parts) for label in everywhere}
    head = ["model", *splits.values(), "mean", f"times {unit}"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for label in sorted(rows or mean, key=lambda one: -mean[one]):
        cells = [cell(part.loc[[label]].reset_index(), "") for part in parts.values()]
        lines.append(f"| {' | '.join([label, *cells, f'{mean[label]:.3f}', f'{mean[label] / mean[unit]:.2f}'])} |")
    return "\n".join(lines) + "\n"


def beside_the_papers(files: list[str]) -> str:
    """The lines of the table of verdicts; a claim is taken from the first of ``files`` that measures it."""
    found = pd.concat([verdicts(tables.read(ROOT / file)).assign(draw=Path(file).parent.name) for file in files])
    measured = found[found.ours != ""]
    measured = measured[measured.draw == measured.groupby(["id", "claim"]).draw.transform("first")]
    rest = found[~found.id.isin(measured.id)].drop_duplicates("id")
    order = dict(map(reversed, enumerate(found.id.unique())))
    lines = ["| row | the paper says | published | ours | verdict |", "|" + "---|" * 5]
    rows = pd.concat([measured, rest]).sort_values("id", key=lambda ids: ids.map(order), kind="stable")
    for one in rows.itertuples():
        ours = f"{one.ours} ({one.note.replace('_', ' ')}, {one.draw})" if one.ours else ""
        lines.append(f"| {one.id} | {one.claim} | {one.published} | {ours} | {one.verdict} |")
    return "\n".join(lines) + "\n"


def lines(about: dict) -> str:
    """The lines of the table that a block describes."""
    return (beside_the_papers if "files" in about else over_splits if "splits" in about else table)(**about)


def online(address: str) -> str:
    """The lines with the links to Binder and Colab; none without an ``address``, which must be of GitHub."""
    if not address:
        return ""
    if not (place := re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", address)):
        raise ValueError(f"repository-code in CITATION.cff is {address!r}: not https://github.com/<owner>/<name>")
    binder, colab = (", ".join(f"[{name[:2]}]({link.format(place[1], name)})" for name in OPENED) for link in (
        "https://mybinder.org/v2/gh/{}/main?labpath=notebooks%2F{}.ipynb",
        "https://colab.research.google.com/github/{}/blob/main/notebooks/{}.ipynb"))  # fmt: skip
    setup = (f"!git clone -q https://github.com/{place[1]} authorbook && cd authorbook"
             " && pip install -q -c constraints.txt -e .")  # fmt: skip
    return (f"Without installing anything: notebooks {binder} on Binder, whose first start takes minutes. On Colab: "
            f"{colab}; run `{setup}` in a cell of its own, restart the session, then run the notebook.\n")  # fmt: skip


def filled(text: str) -> str:
    """A page with its tables as the results say, and its links as CITATION.cff does."""
    address = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8")).get("repository-code", "")
    text = ONLINE.sub(lambda block: block[1] + online(address), text)
    return BLOCK.sub(lambda block: block[1] + lines(yaml.safe_load(block[2])), text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (now := filled(text)) != text:
            page.write_text(now, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: filled", file=sys.stderr)
