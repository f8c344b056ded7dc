"""The audit of every split: it re-reads the files and counts violations of the rule's promises."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pandas as pd

from ..core.artifacts import read_json
from ..corpus.merge import NORMAL
from ..corpus.posts_table import open_database, query_scalar

PAIR = "'^(.+)/[ab]$'"  # finds "file/7" in "file/7/a", the id of one of the two texts of a pair
# ``periods`` of a split by time -> SQL of a post's community, which shares one calendar
COMMUNITY = {"common": "''", "community": "split_part(topic, '/', 1)"}


def _shared(value: str, table: str = "posts") -> str:
    """Return SQL that counts the values of an expression in two or more of the given splits.

    Parameters
    ----------
    value
        SQL expression over the columns of ``table``.
    table
        View or join with a column ``split``. The query's one parameter is the list of splits.
    """
    return f"""
        SELECT count(*) FROM (
            SELECT {value} AS value FROM {table} WHERE list_contains(?, split)
            GROUP BY value HAVING count(DISTINCT split) > 1)"""


# promise in split.json -> text of the check, and SQL that counts violations; the values of a check
# fill the {} of the text and the ? of the SQL
CHECKS = {
    "authors_apart": ("authors in more than one split", _shared("author")),
    "texts_apart": ("texts in more than one split", _shared(f"md5_number({NORMAL})")),
    "pairs_whole": (
        "authors of one pair in more than one split",
        _shared(f"regexp_extract(id, {PAIR}, 1)"),
    ),
    "in_order_of_time": (
        "{1} posts not later than every {0} post",
        """
        WITH ends AS (SELECT community, max(time) AS last FROM dated WHERE split = ?
                      GROUP BY community)
        SELECT count(*) FROM dated JOIN ends USING (community) WHERE split = ? AND time <= last""",
    ),
    "topics_apart": ("topics of both {0[0]} and {0[1]}", _shared("topic")),
    "clusters_apart": (
        "clusters of both {0[0]} and {0[1]}",
        _shared("cluster", "posts LEFT JOIN clusters USING (topic)"),
    ),
    "topics_within": (
        "{0} topics that {1} lacks",
        """
        SELECT count(*) FROM (SELECT topic FROM posts WHERE split = ?
                              EXCEPT SELECT topic FROM posts WHERE split = ?)""",
    ),
    "min_posts": (
        "{0} authors with fewer than {1} posts",
        """
        SELECT count(*) FROM (SELECT author FROM posts WHERE split = ? GROUP BY author
                              HAVING count(*) < ?)""",
    ),
    "max_topics": (
        "{0} authors with more than {1} topics",
        """
        SELECT count(*) FROM (SELECT author FROM posts WHERE split = ? GROUP BY author
                              HAVING count(DISTINCT topic) > ?)""",
    ),
}
# SQL that counts the rows of a split that are not sorted by author, then time
OUT_OF_ORDER = """
    SELECT count(*) FROM (
        SELECT author < lag(author) OVER w
               OR author = lag(author) OVER w AND time < lag(time) OVER w AS wrong
        FROM posts WHERE split = ? WINDOW w AS (ORDER BY n)) WHERE wrong"""
# SQL that gives 1 if posts, authors and topics of a split are not as many as given, else 0
OTHER_COUNTS = """
    SELECT ((count(*), count(DISTINCT author), count(DISTINCT topic)) != (?, ?, ?))::INT
    FROM posts WHERE split = ?"""


class AuditError(ValueError):
    """A split breaks a promise; the message names each broken check and counts its violations."""


def audit_split(
    folder: Path, report: dict | None = None, memory_limit: str = "2GB"
) -> pd.DataFrame:
    """Check the files of a split against everything that its report promises.

    The order of rows and the counts in the report are checked for every split.

    Parameters
    ----------
    folder
        Folder with one ``<split>.parquet`` per split.
    report
        Content of ``split.json``; by default it is read from the folder.
    memory_limit
        Most memory that DuckDB may use.

    Returns
    -------
    One row per check: ``check``, its text, and ``violations``, always 0, as other numbers raise.

    Raises
    ------
    AuditError
        Where a check has violations.
    ValueError
        Where a file is missing.
    """
    folder = Path(folder)
    report = report or read_json(folder / "split.json")
    files = {name: folder / f"{name}.parquet" for name in report["splits"]}
    missing = [str(path) for path in files.values() if not path.exists()]
    if missing:
        raise ValueError(
            f"{', '.join(missing)}: missing; the command that made the split makes it again"
        )
    with open_database(folder / "audit", memory_limit) as connection:
        _create_views(connection, files, report)
        violations = {
            check: query_scalar(connection, query, values)
            for check, query, values in _checks(report)
        }
    broken = [f"{check}: {number}" for check, number in violations.items() if number]
    if broken:
        raise AuditError("; ".join(broken))
    return pd.DataFrame(violations.items(), columns=["check", "violations"])


def _create_views(connection, files, report):
    """Make the views that the checks read.

    They are ``posts(split, n, author, ...)`` with the row number ``n`` within the split's file,
    ``dated(split, time, community)``, and ``clusters(topic, cluster)``, which is empty where the
    report has no clusters.
    """
    table = (
        "SELECT ? AS split, *, file_row_number AS n FROM read_parquet(?, file_row_number = true)"
    )
    values = []
    for name, path in files.items():
        values += [name, str(path)]
    tables = " UNION ALL BY NAME ".join([table] * len(files))
    connection.sql(tables, params=values).create_view("posts")

    calendar = report["promises"].get("in_order_of_time", {"periods": "common"})
    community = COMMUNITY[calendar["periods"]]
    connection.sql(f"SELECT split, time, {community} AS community FROM posts").create_view("dated")
    clusters = report.get("clusters", {}).items()
    connection.register("clusters", pd.DataFrame(clusters, columns=["topic", "cluster"]))


def _checks(report: dict) -> Iterator[tuple[str, str, list]]:
    """Yield the text of each check, the query that counts violations, and the query's values."""
    for promise, argument in report["promises"].items():
        if argument:
            check, query = CHECKS[promise]
            for values in _values_of_checks(promise, argument, report["splits"]):
                yield check.format(*values), query, values
    for name in report["splits"]:
        yield f"{name} rows out of order (author, then time)", OUT_OF_ORDER, [name]
    for name, sizes in report["splits"].items():
        yield f"{name} counts differ from split.json", OTHER_COUNTS, [*sizes.values(), name]


def _values_of_checks(promise, argument, splits):
    """Return one list of query values per check that a promise leads to."""
    if promise in ("texts_apart", "pairs_whole"):
        return [[list(splits)]]
    if promise in ("authors_apart", "topics_apart", "clusters_apart"):
        return [[list(argument)]]
    if promise == "topics_within":
        return [list(argument)]
    if promise == "in_order_of_time":
        pairs = []
        for order in argument["orders"]:
            pairs += combinations(order, 2)
        return pairs
    return [list(limit) for limit in argument.items()]
