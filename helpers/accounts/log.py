"""The log of a run: which accounts were asked about, when, and which links were found."""

import json
from datetime import UTC, datetime

import pandas as pd

from ..core.artifacts import atomic_write, folder_lock
from ..core.paths import Run
from .answers import LINKED


def as_ranking(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of an answer as a ranking that can be logged.

    Parameters
    ----------
    pairs : DataFrame
        ``pairs`` of :class:`helpers.accounts.answers.Answer`
    """
    ranking = pairs.rename(columns={"account_a": "query", "account_b": "target"})
    return ranking.drop(columns="reason").assign(linked=pairs.state == LINKED)


def log_ranking(run: Run, ranking: pd.DataFrame) -> None:
    """Write a ranking to ``rankings.parquet``, and add its queries and links to ``asked.jsonl``.

    Parameters
    ----------
    run : Run
        the run in whose folder both files are; an earlier ``rankings.parquet`` is replaced.
    ranking : DataFrame
        result of :meth:`helpers.accounts.gallery.AccountGallery.rank`.
    """
    with folder_lock(run.folder):
        _write_ranking(run, ranking)


# Write both files of :func:`log_ranking`.
def _write_ranking(run, ranking):
    path = run.folder / "rankings.parquet"
    with atomic_write(path) as partial:
        ranking.to_parquet(partial, index=False)
    links = ranking[ranking.linked.astype(bool)][["query", "target", "probability"]]
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked": ranking["query"].unique().tolist(),
        "linked": links.to_dict("records"),
    }
    path = run.folder / "asked.jsonl"
    path.touch(0o600)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
