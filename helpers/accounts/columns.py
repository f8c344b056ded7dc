"""Which column of a file is the author, the text, the time, the topic, and who its authors are."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from helpers.core.paths import resolve

# what columns are often called, best first, in lower case
USUAL_NAMES = {
    "author": (
        "author account user username user_name screen_name handle nick nickname sender from "
        "author_id user_id name by poster member"
    ),
    "text": "text message body content comment post msg tweet selftext posting",
    "time": (
        "time date timestamp created_at created created_utc datetime sent written posted "
        "published when ts"
    ),
    "topic": "topic room channel stream subreddit forum thread group list category board",
}
NEEDED = ("author", "text")


def column_types(location: str, given: dict) -> dict[str, str | None]:
    """Find the columns of author, text, time and topic.

    Parameters
    ----------
    location : str
        of the file.
    given : dict
        column by kind; a kind that is missing is guessed by what its column is often called.

    Returns
    -------
    The column of each kind; None for time or topic where there is none.

    Raises
    ------
    ValueError
        Where author or text cannot be told, a column is not there, or the file cannot be read.
    """
    file = Path(location).name
    columns = [str(column) for column in read_columns(location, nrows=100).columns]
    if len(columns) == 1 and ";" in columns[0]:
        raise ValueError(f"{file} is separated by ';': save it with commas, or tabs as .tsv")
    listed = ", ".join(repr(column) for column in columns)
    types = {}
    for kind in USUAL_NAMES:
        column = given.get(kind) or _guess(kind, columns)
        if column is None and kind in NEEDED:
            raise ValueError(
                f"{file}: which column is the {kind}? There are {listed or 'none'}; "
                f"say {kind.upper()}=<column>, or --{kind} <column>"
            )
        if column is not None and column not in columns:
            raise ValueError(f"{file} has no column {column!r}; it has {listed}")
        types[kind] = column
    return types


def _guess(kind: str, columns: list[str]) -> str | None:
    first_of_name = {column.lower().strip(): column for column in reversed(columns)}
    for name in USUAL_NAMES[kind].split():
        if name in first_of_name:
            return first_of_name[name]
    return None


def read_columns(
    location: str, nrows: int | None = None, usecols: list[str] | None = None
) -> pd.DataFrame:
    """Read a CSV, TSV, JSON lines or Parquet file as text.

    Parameters
    ----------
    location : str
        of the file.
    nrows : int, optional
        the first rows only; of a Parquet file no row, but its columns.
    usecols : list[str], optional
        columns; by default all.

    Raises
    ------
    ValueError
        Where the file cannot be read.
    """
    path = resolve(location)
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            if nrows:
                return pq.read_schema(path).empty_table().to_pandas()
            return pq.read_table(path, columns=usecols).to_pandas()
        if name.endswith((".jsonl", ".ndjson")):
            return pd.read_json(path, lines=True, nrows=nrows, dtype=False)
        return pd.read_csv(
            path,
            nrows=nrows,
            usecols=usecols,
            dtype=str,
            sep="\t" if name.endswith(".tsv") else ",",
            encoding_errors="replace",
            on_bad_lines="skip",
            keep_default_na=False,
        )
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from None
