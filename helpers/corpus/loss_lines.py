"""Say which reasons dropped many rows of a corpus, and what would do."""

from pathlib import Path

import pandas as pd

from ..core.terminal import printable
from ..sources import table

MAX_SILENT_SHARE = 0.05  # of the rows; a reason that dropped more is said
DROPPED = "dropped_"  # begins the names of a data card's counts of dropped rows
OTHER_VALUE = "dropped_other_value"  # rows that were not asked for
DATA_CARD = Path(__file__).with_name("data_card.csv")
COLUMN_REASONS = {"empty_author": "author", "empty_text": "text", "bot": "author"}
ISO_DATES = "Day and month are not guessed: write dates as 2024-02-13 10:00."
REMEDIES = {
    "broken_json": "Write one JSON object a line.",
    "broken_row": "Save the file again with quotes around its texts.",
    "rounded_author": "Export the ids as text.",
}
MAX_VALUE_CHARS = 40  # of a value that is shown


def loss_lines(card: dict, location: str | list[str], columns: dict) -> list[str]:
    """Return one line for each reason that dropped more than MAX_SILENT_SHARE of the rows.

    Parameters
    ----------
    card : dict
        source, rows_read and numbers of dropped rows, as in a data card
    location : str or list of str
        where the source was read
    columns : dict
        of a table: column of the posts table -> column of the file; a missing one has the same name
    """
    meaning = pd.read_csv(DATA_CARD, index_col="key").meaning
    n_rows = card["rows_read"] - card.get(OTHER_VALUE, 0)
    lines = []
    for name, number in card.items():
        if not name.startswith(DROPPED) or name == OTHER_VALUE:
            continue
        if number <= MAX_SILENT_SHARE * n_rows:
            continue
        reason = name.removeprefix(DROPPED)
        words = f"{meaning.get(name, reason.replace('_', ' '))}."
        if card["source"] == "table":
            words = _table_words(reason, words, location, columns)
        lines.append(f"{number:,} of {n_rows:,} rows were dropped: {words}")
    return lines


def _table_words(reason, words, location, columns):
    """Return why rows of a table were dropped, with the column that was read and what would do."""
    if reason == "bad_time":
        column = columns.get("time", "time")
        value = printable(table.bad_time(location, column))[:MAX_VALUE_CHARS]
        if value:
            return f'the time in column {column!r} cannot be read, such as "{value}". {ISO_DATES}'
        return f"column {column!r} has no time there."
    if reason in COLUMN_REASONS:
        kind = COLUMN_REASONS[reason]
        column = columns.get(kind, kind)
        return (
            f"{words} Column {column!r} was read for the {kind}; name another one if it is not "
            f"that: --{kind} <column>, in notebook 01 `columns`."
        )
    if reason in REMEDIES:
        words += f" {REMEDIES[reason]}"
    return words
