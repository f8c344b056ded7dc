"""Say which reasons dropped many rows of a corpus, and what would do, by ``loss_lines.txt``."""

from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import pandas as pd
from jinja2 import Template

from ..cleaning.authors import joined_names
from ..core.messages import printable
from ..sources import COLUMNS, table

MAX_SILENT_SHARE = 0.05  # of the rows; a reason that dropped more is said
DROPPED = "dropped_"  # begins the names of a data card's counts of dropped rows
PLACEHOLDER_AUTHOR = "dropped_placeholder_author"  # one of the names may be a member's
# said however few there are: with a broken row more may be lost than is counted
SAID_REASONS = ("dropped_broken_row", PLACEHOLDER_AUTHOR)
DATA_CARD = Path(__file__).with_name("data_card.csv")
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
    drops = {name: number for name, number in card.items() if name.startswith(DROPPED)}
    max_silent = MAX_SILENT_SHARE * card["rows_read"]
    losses = {name for name, number in drops.items() if number > max_silent}
    losses.update(drops.keys() & SAID_REASONS)
    columns = dict(zip(COLUMNS, COLUMNS)) | columns
    template = Path(__file__).with_name("loss_lines.txt").read_text("utf-8")
    text = Template(template, trim_blocks=True).render(
        card=card,
        losses=losses,
        meaning=pd.read_csv(DATA_CARD, index_col="key").meaning,
        is_table=card["source"] == "table",
        columns=columns,
        name_forms=partial(name_forms, location, columns["author"]),
        bad_time=partial(_bad_time, location, columns["time"]),
        repr=repr,
    )
    return text.splitlines()


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


def _bad_time(location, column):
    """Return a value of a column of a table that is no time, as it is shown; "" for none."""
    return printable(table.bad_time(location, column))[:MAX_VALUE_CHARS]


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
    if len(posts) > len(names):
        names.append(f"{len(posts) - len(names):,} more")
    return ", ".join(names)
