"""The demo corpus as a CSV file of a user's own, with one banned account that came back."""

from collections import Counter
from pathlib import Path

import pandas as pd

from ..core.artifacts import atomic_write
from . import open_source

# columns of the posts table -> columns of the CSV file
COLUMN_NAMES = {"author": "nick", "time": "written", "topic": "room", "text": "message"}
SEED = 5


def write_demo_csv(
    path: str | Path,
    evader: str = "demo-0013",
    accounts: int = 60,
    posts: int = 6000,
) -> None:
    """Write the demo corpus as a CSV file in which one account goes on as "newcomer".

    Parameters
    ----------
    path : str | Path
        path of the CSV file
    evader : str
        account whose posts after its median time are written under the name "newcomer"
    accounts, posts : int
        number of authors and total number of posts of the demo corpus
    """
    frames = []
    for part in open_source("demo", "", seed=SEED, authors=accounts, posts=posts):
        frames.extend(part.read(Counter()))
    frame = pd.concat(frames, ignore_index=True)
    is_evader = frame.author == evader
    banned = frame.time[is_evader].median()
    frame.loc[is_evader & (frame.time > banned), "author"] = "newcomer"
    frame["time"] = pd.to_datetime(frame.time, unit="s", utc=True)
    with atomic_write(path) as partial:
        frame.rename(columns=COLUMN_NAMES).to_csv(partial, index=False)
