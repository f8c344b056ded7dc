"""The results of a run as a table: one row per metrics file, one table per protocol, as text and as HTML."""

import re
from html import escape

from helpers.runs.artifacts import read_json
from helpers.runs.paths import Run

FIRST = ["model", "base", "split"]
MEASURED = (r"MRR|R@\d+|mean_rank|AUC|EER|minDCF|Cllr|c@1|F_0\.5u|F1|Brier|accuracy|overall|hardest AUC|"
            r"gain|low|high")  # fmt: skip
LAST = ["queries", "targets", "pairs", "sample_size", "seed", "seeds"]


def current(run: Run) -> tuple[list[dict], int]:
    """The metrics of a run, and how many were left out because the model or the data they measured are gone.

    A row names the training it measured (``training``, where it was one) and the token store (``data``).
    """
    found = [read_json(path) for path in sorted(run.metrics.glob("*.json"))]
    trainings = {_made_from(path) for path in run.models.glob("**/training.json")}
    stores = {_made_from(path) for path in run.folder.glob("**/store.json")}
    kept = [row for row in found if row.get("training") in {None, *trainings} and row.get("data") in {None, *stores}]
    return kept, len(found) - len(kept)


def _made_from(path):
    return read_json(path)["fingerprint"]


def tables(run: Run) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Per protocol the columns that its metrics files hold, and the rows: by split, the best first."""
    found: dict[str, list[dict]] = {}
    for metrics in current(run)[0]:
        found.setdefault(str(metrics.get("protocol", "")), []).append(metrics)
    made = {}
    for protocol, rows in sorted(found.items()):
        names = {name for row in rows for name in row}
        measured = sorted((name for name in names if re.fullmatch(MEASURED, name)), key=_rank)
        columns = [name for name in [*FIRST, *measured, *LAST] if name in names]
        rows.sort(key=_order)
        made[protocol] = columns, [[_cell(row.get(name)) for name in columns] for row in rows]
    return made


def _order(row: dict) -> tuple:
    best = -(row.get("MRR") or row.get("overall") or 0), row.get("EER") or 0
    return str(row.get("split", "")), *best, str(row.get("model", ""))


def _rank(name: str) -> tuple:
    """MRR first, then R@k by k, then the rest by name."""
    k = re.fullmatch(r"R@(\d+)", name)
    return (0, 0, "") if name == "MRR" else (1, int(k[1]), "") if k else (2, 0, name)


def _cell(value) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def text(run: Run) -> str:
    """The results as aligned text: words to the left, numbers to the right; "no metrics" where there are none."""
    blocks = []
    for protocol, (columns, rows) in tables(run).items():
        widths = [max(map(len, column)) for column in zip(columns, *rows)]
        lines = [
            "  ".join(value.ljust(width) if name in FIRST else value.rjust(width)
                      for name, value, width in zip(columns, row, widths)).rstrip()
            for row in [columns, ["-" * width for width in widths], *rows]
        ]
        blocks.append("\n".join([*([protocol] if protocol else []), *lines]))
    return "\n\n".join([*blocks, *_left_out(run)]) or "no metrics"


def html(run: Run) -> str:
    """The results as HTML tables, one per protocol."""
    blocks = []
    for protocol, (columns, rows) in tables(run).items():
        kinds = [' class="word"' if name in FIRST else "" for name in columns]
        head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, columns))
        body = "".join("<tr>" + "".join(f"<td{kind}>{escape(value)}</td>" for kind, value in zip(kinds, row)) + "</tr>"
                       for row in rows)
        blocks.append(f'<div class="wide"><table class="results"><caption>{escape(protocol)}</caption>'
                    f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")
    blocks += [f"<p>{note}</p>" for note in _left_out(run)]
    return "\n".join(blocks) or "<p>No metrics yet.</p>"


def _left_out(run):
    stale = current(run)[1]
    return [f"{stale} results of earlier models or data are left out"] if stale else []
