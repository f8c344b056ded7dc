"""Read files of posts, and find their columns of author, text, time and topic."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from helpers.core.paths import resolve

# kind of column -> its usual names in lower case; of several in one file the first listed is taken
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
        path of the file.
    given : dict
        kind ("author", "text", "time", "topic") -> name of the column; a kind that is missing is
        guessed by USUAL_NAMES.

    Returns
    -------
    Kind -> name of the column; None for a time or topic that was not given and not found.

    Raises
    ------
    ValueError
        Where no column of authors or texts is found, a given column is not in the file, the file is
        separated by semicolons, or it cannot be read.
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


# Return the column whose name comes first among the usual names of a kind, None for none.
def _guess(kind: str, columns: list[str]) -> str | None:
    first_of_name = {column.lower().strip(): column for column in reversed(columns)}
    for name in USUAL_NAMES[kind].split():
        if name in first_of_name:
            return first_of_name[name]
    return None


def read_columns(
    location: str, nrows: int | None = None, usecols: list[str] | None = None
) -> pd.DataFrame:
    """Read a CSV, TSV, JSON lines or Parquet file.

    Values of CSV and TSV files stay text, and malformed rows of these are skipped. A name without
    one of the endings .tsv, .jsonl, .ndjson and .parquet, before .gz, is read as CSV.

    Parameters
    ----------
    location : str
        path of the file.
    nrows : int, optional
        number of rows to read from the start; by default all. Of a Parquet file, any number gives
        an empty table that has the columns.
    usecols : list[str], optional
        columns to read; by default all. Ignored for JSON lines, and for Parquet with ``nrows``.

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
