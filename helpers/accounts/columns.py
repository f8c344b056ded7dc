"""Which column of a file is the author, the text, the time, the topic, and who its authors are."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from helpers.core.paths import resolve

# what columns are often called, best first, in lower case
CALLED = {
    "author": "author account user username user_name screen_name handle nick nickname sender from author_id user_id"
              " name by poster member",
    "text": "text message body content comment post msg tweet selftext posting",
    "time": "time date timestamp created_at created created_utc datetime sent written posted published when ts",
    "topic": "topic room channel stream subreddit forum thread group list category board",
}  # fmt: skip


def column_types(location: str, given: dict) -> dict:
    """The file's column for each of author, text, time and topic: as given, else by what it is often called.

    Time and topic are None where there is none. Raises ValueError where author or text cannot be told, or nothing read.
    """
    there = list(map(str, read_columns(location, nrows=100).columns))
    if len(there) == 1 and ";" in there[0]:
        raise ValueError(
            f"{Path(location).name} is separated by ';': save it with commas, or tabs as .tsv"
        )
    lower = {name.lower().strip(): name for name in reversed(there)}
    found = {kind: given.get(kind) or next((lower[name] for name in called.split() if name in lower), None)
             for kind, called in CALLED.items()}  # fmt: skip
    for kind, column in found.items():
        if column is None and kind in ("author", "text"):
            names = ", ".join(map(repr, there)) or "none"
            raise ValueError(f"{Path(location).name}: which column is the {kind}? There are {names}; "
                             f"say {kind.upper()}=<column>, or --{kind} <column>")  # fmt: skip
        if column is not None and column not in there:
            raise ValueError(
                f"{Path(location).name} has no column {column!r}; it has {', '.join(map(repr, there))}"
            )
    return found


def read_columns(
    location: str, nrows: int | None = None, usecols: list[str] | None = None
) -> pd.DataFrame:
    """The first rows, or some columns, of a file as text. Raises ValueError where it cannot be read."""
    path = resolve(location)
    kind = path.name.lower().removesuffix(".gz")
    try:
        if kind.endswith(".parquet"):
            return (
                pq.read_schema(path).empty_table()
                if nrows
                else pq.read_table(path, columns=usecols)
            ).to_pandas()
        if kind.endswith((".jsonl", ".ndjson")):
            return pd.read_json(path, lines=True, nrows=nrows, dtype=False)
        return pd.read_csv(path, nrows=nrows, usecols=usecols, dtype=str, sep="\t" if kind.endswith(".tsv") else ",",
                           encoding_errors="replace", on_bad_lines="skip", keep_default_na=False)  # fmt: skip
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from None
