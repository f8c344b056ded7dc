"""The log of a run: who was asked about and when, and what was answered."""

import json
from datetime import UTC, datetime

import pandas as pd

from helpers.core.artifacts import atomic_write
from helpers.core.paths import Run


def log_ranking(run: Run, ranking: pd.DataFrame) -> None:
    """Write a ranking, and who was asked about, to ``rankings.parquet`` and ``asked.jsonl``.

    Parameters
    ----------
    run : Run
        whose folder takes both files.
    ranking : frame
        of :meth:`helpers.accounts.gallery.AccountGallery.rank`.
    """
    path = run.folder / "rankings.parquet"
    with atomic_write(path) as partial:
        ranking.to_parquet(partial, index=False)
    links = ranking[ranking.linked.astype(bool)][["query", "target", "probability"]]
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked": ranking["query"].unique().tolist(),
        "linked": links.to_dict("records"),
    }
    with open(run.folder / "asked.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
