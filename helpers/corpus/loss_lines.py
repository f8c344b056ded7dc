"""Say which reasons dropped many rows of a corpus, and what would do."""

from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd

from ..cleaning.authors import joined_names
from ..core.messages import printable
from ..sources import table

MAX_SILENT_SHARE = 0.05  # of the rows; a reason that dropped more is said
DROPPED = "dropped_"  # begins the names of a data card's counts of dropped rows
# said however few there are: with them more may be lost than is counted
TRUNCATED_FILE = "dropped_truncated_file"
BROKEN_ROW = "dropped_broken_row"
PLACEHOLDER_AUTHOR = "dropped_placeholder_author"  # one of the names may be a member's
ROWS_IN_QUOTES = "note_rows_in_quotes"
NAME_FORMS = "note_name_forms"  # where these are several people, they have become one
DATA_CARD = Path(__file__).with_name("data_card.csv")
COLUMN_REASONS = {"empty_author": "author", "empty_text": "text", "bot": "author"}
ISO_DATES = (
    "Day and month are not guessed, Excel's numbers of days and numbers that a spreadsheet "
    "shortened are no times, and a long number may be an id: write dates as 2024-02-13 10:00 (in "
    "Excel by the format yyyy-mm-dd hh:mm), name another column, or go without times (--time none, "
    'in notebook 01 {"time": None}).'
)
REMEDIES = {
    "broken_json": "Write one JSON object a line.",
    "broken_row": (
        "Save the file again with quotes around its texts, and each quote within a text twice "
        '(""), not behind a backslash as MySQL writes it (its option ESCAPED BY \'"\').'
    ),
    "rounded_author": "Export the ids as text.",
    "marked_bot": "Rename that column if it says something else.",
    "repost": "Rename that column if it says something else.",
}
NO_TIMES = (
    "Name the right column with --time <column>, in notebook 01 `columns`. Without times it works "
    'too (--time none, in notebook 01 {"time": None}): then hours say nothing, and nothing can be '
    "split by time."
)
MAX_VALUE_CHARS = 40  # of a value that is shown
MAX_EXAMPLES = 3  # names that are shown


def loss_lines(card: dict, location: str | list[str], columns: dict) -> list[str]:
    """Return one line for each reason that dropped more than MAX_SILENT_SHARE of the rows.

    Damaged files, broken rows of CSV files, posts under a name that stands for nobody and names of
    tables that count as one are said however few there are.

    Parameters
    ----------
    card : dict
        source, rows_read and numbers of dropped rows, as in a data card
    location : str or list of str
        where the source was read
    columns : dict
        of a table: column of the posts table -> column of the file; a missing one has the same name
    """
    n_rows = card["rows_read"]
    lines = []
    for name, number in card.items():
        if name == TRUNCATED_FILE:
            lines.append(
                f"Damaged or cut files: {number:,}. The posts before the damage are kept, those "
                "after it are missing: get the file again."
            )
        elif name == NAME_FORMS and number and card["source"] == "table":
            examples = name_forms(location, columns.get("author", "author"))
            lines.append(
                f"{number:,} names differ from another one only in case, spaces, unseen marks or "
                f"form, and count as one account with it, such as {examples}. If they are several "
                "people, give each another name."
            )
        elif name == ROWS_IN_QUOTES:
            lines.append(
                f"{number:,} rows are kept that seem to hold the rows after them, as if a quote "
                "was left open: look for a text that is far too long."
            )
        elif name in (BROKEN_ROW, PLACEHOLDER_AUTHOR) or _is_large_loss(name, number, n_rows):
            words = _words(name.removeprefix(DROPPED), card, location, columns)
            lines.append(f"{number:,} of {n_rows:,} rows were dropped: {words}")
    return lines


def _is_large_loss(name, number, n_rows):
    """Return whether an entry of a data card is a reason that dropped many of the rows."""
    return name.startswith(DROPPED) and number > MAX_SILENT_SHARE * n_rows


def nothing_left(card: dict, location: str | list[str], columns: dict) -> str:
    """Say why a corpus has no posts.

    Parameters
    ----------
    card, location, columns
        as in :func:`loss_lines`; the card's location is the one to show
    """
    place = card["location"] or card["source"]
    n_rows = card["rows_read"]
    if n_rows:
        lines = " ".join(loss_lines(card, location, columns))
        return f"nothing is left of {n_rows:,} posts of {place}: {lines}"
    return f"{place} holds no posts: is it the right file or folder, and not a header alone?"


def _words(reason, card, location, columns):
    """Return why rows were dropped: a sentence, and for a table more."""
    meaning = pd.read_csv(DATA_CARD, index_col="key").meaning
    words = meaning.get(f"{DROPPED}{reason}", reason.replace("_", " "))
    if f"{DROPPED}{reason}" == PLACEHOLDER_AUTHOR:
        words += f" ({card['placeholder_names']})"
    if card["source"] == "table":
        return _table_words(reason, f"{words}.", location, columns)
    return f"{words}."


def _table_words(reason, words, location, columns):
    """Return why rows of a table were dropped, with the column that was read and what would do."""
    if reason == "bad_time":
        column = columns.get("time", "time")
        value = printable(table.bad_time(location, column))[:MAX_VALUE_CHARS]
        if value:
            return f'the time in column {column!r} cannot be read, such as "{value}". {ISO_DATES}'
        return f"column {column!r} has no time there. {NO_TIMES}"
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


def name_forms(location: str | list[str], column: str | list[str]) -> str:
    """Return examples of names of a table that count as one.

    Parameters
    ----------
    location : str or list of str
        where the table was read
    column : str or list of str
        the file's columns of authors
    """
    names = table.author_names(location, column)
    forms = defaultdict(list)
    for name, author in joined_names(Counter(names)).items():
        forms[author].append(f'"{printable(name)[:MAX_VALUE_CHARS]}"')
    examples = [" and ".join(names[:MAX_EXAMPLES]) for names in forms.values()]
    return ", ".join(examples[:MAX_EXAMPLES])


def placeholder_names(posts: Counter) -> str:
    """Return the most frequent names that stand for nobody, each with its number of posts."""
    names = [
        f'{number:,} of "{printable(name)[:MAX_VALUE_CHARS]}"'
        for name, number in posts.most_common(MAX_EXAMPLES)
    ]
    return ", ".join(names)
