"""Find the columns of author, text, time and topic of a file of posts."""

from pathlib import Path

from ..sources.table import author_names, column_names, listed_names

# kind of column -> its usual names in lower case; of several in one file the first listed is taken
USUAL_NAMES = {
    "author": (
        "author account user username user_name screen_name handle nick nickname sender "
        "from_id from author_id user_id name by poster member"
    ),
    "text": "text message body content comment post msg tweet selftext posting",
    "time": (
        "time date_unixtime date timestamp created_at created created_utc datetime sent written "
        "posted published when ts post_time post_date created_time"
    ),
    "topic": "topic room channel stream subreddit forum thread group list category board",
}
ID_NAMES = ("author_id", "authorid", "from_id", "sender_id", "user_id", "userid")
GUEST_IDS = ("0", "1", "-1")  # of forums: all guests have one
NEEDED = ("author", "text")
NO_TIMES = "none"  # the column of times that a user names to go without times


def column_types(location: str, given: dict) -> dict[str, str | None]:
    """Find the columns of author, text, time and topic.

    Parameters
    ----------
    location : str
        path of the file.
    given : dict
        kind ("author", "text", "time", "topic") -> name of the column; a kind that is missing is
        guessed by USUAL_NAMES. NO_TIMES stands for no column of times.

    Returns
    -------
    Kind -> name of the column; None for a time or topic that was not given and not found.

    Raises
    ------
    ValueError
        Where no column of authors or texts is found, a given column is not in the file, or the file
        cannot be read.
    """
    file = Path(location).name
    columns = column_names(location)
    listed = listed_names(columns)
    types = {}
    for kind in USUAL_NAMES:
        column = given.get(kind) or _guess(kind, columns)
        if kind == "time" and column == NO_TIMES and NO_TIMES not in columns:
            column = None
        if column is None and kind in NEEDED:
            raise ValueError(
                f"{file}: which column is the {kind}? There are {listed}; say --{kind} <column>. "
                "If these are no names, add a first line with the names of the columns, such as "
                "author,time,topic,text"
            )
        if column is not None and column not in columns:
            raise ValueError(f"{file} has no column {column!r}; it has {listed}")
        types[kind] = column
    if not given.get("author"):
        _check_shared_names(location, columns, types["author"])
    _say_guests(location, columns, types["author"])
    return types


def _say_guests(location, columns, author):
    """Print a line where the id of a forum's guests has several names in a column of names."""
    for column in columns:
        is_name = column.lower() in USUAL_NAMES["author"].split()
        if not is_name or column.lower() in ID_NAMES or column == author:
            continue
        pairs = [pair.partition("/") for pair in author_names(location, [author, column])]
        for guest in GUEST_IDS:
            names = [name for account, _, name in pairs if account == guest]
            if len(names) > 1:
                print(
                    f"{Path(location).name}: {len(names):,} names in the column {column} have the "
                    f"{author} {guest}, as guests of a forum have, and count as one account"
                )


def _check_shared_names(location, columns, author):
    """Raise ValueError where a guessed column has fewer names than a column of ids has ids."""
    for column in columns:
        if column.lower() not in ID_NAMES or column == author:
            continue
        shared = len(author_names(location, column)) - len(author_names(location, author))
        if shared > 0:
            raise ValueError(
                f"{Path(location).name}: the column {column} has {shared:,} ids more than {author} "
                f"has names, so accounts share a name: say --author {column}, or --author {author} "
                "where one name is one person"
            )


# Return the column whose name comes first among the usual names of a kind, None for none.
def _guess(kind: str, columns: list[str]) -> str | None:
    first_of_name = {column.lower().strip(): column for column in reversed(columns)}
    for name in USUAL_NAMES[kind].split():
        if name in first_of_name:
            return first_of_name[name]
    return None
