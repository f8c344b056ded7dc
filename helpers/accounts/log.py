"""The log of a run: which accounts were asked about, when, and which links were found."""

import json
from datetime import UTC, datetime

import pandas as pd

from ..core.artifacts import folder_lock
from ..core.paths import Run

LINK_COLUMNS = ["account_a", "account_b", "probability"]


def log_answer(run: Run, asked: list[str], links: pd.DataFrame) -> None:
    """Add a line to ``asked.jsonl``.

    Parameters
    ----------
    run : Run
        the run in whose folder the file is
    asked : list of str
        names of the accounts that were asked about
    links : DataFrame
        LINK_COLUMNS of the pairs that are linked
    """
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked": asked,
        "linked": links[LINK_COLUMNS].to_dict("records"),
    }
    with folder_lock(run.folder):
        path = run.folder / "asked.jsonl"
        path.touch(0o600)
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
