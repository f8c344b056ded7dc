"""The audit of every split: it re-reads the files and counts what breaks a promise of the rule."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pandas as pd

from helpers.core.artifacts import read_json
from helpers.corpus.near_duplicates import NORMAL
from helpers.corpus.posts_table import open_database, query_scalar

PAIR = "'^(.+)/[ab]$'"  # the id of a text of a given pair
# SQL of who shares a calendar
COMMUNITY = {"common": "''", "community": "split_part(topic, '/', 1)"}


def _shared(value: str, table: str = "posts") -> str:
    """Return the SQL of how many values of an expression are in several of some splits."""
    return f"""
        SELECT count(*) FROM (
            SELECT {value} AS value FROM {table} WHERE list_contains(?, split)
            GROUP BY value HAVING count(DISTINCT split) > 1)"""


# promise of split.json -> what breaks it, and the SQL of how many do; both take the same values
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
OUT_OF_ORDER = """
    SELECT count(*) FROM (
        SELECT author < lag(author) OVER w
               OR author = lag(author) OVER w AND time < lag(time) OVER w AS wrong
        FROM posts WHERE split = ? WINDOW w AS (ORDER BY n)) WHERE wrong"""
OTHER_COUNTS = """
    SELECT ((count(*), count(DISTINCT author), count(DISTINCT topic)) != (?, ?, ?))::INT
    FROM posts WHERE split = ?"""


class AuditError(ValueError):
    """A split breaks one of its promises; the message names each broken promise and its number."""


def audit_split(
    folder: Path, report: dict | None = None, memory_limit: str = "2GB"
) -> pd.DataFrame:
    """Check the files of a split against all that its report promises.

    Parameters
    ----------
    folder
        Folder of the files.
    report
        Content of ``split.json``, which is read where none is given.
    memory_limit
        Memory of DuckDB.

    Returns
    -------
    A row a check: ``check``, and ``violations``, which are 0.

    Raises
    ------
    AuditError
        Where there are violations, with their checks.
    ValueError
        Where a file is missing.
    """
    folder = Path(folder)
    report = report or read_json(folder / "split.json")
    files = {name: folder / f"{name}.parquet" for name in report["splits"]}
    missing = [path.name for path in files.values() if not path.exists()]
    if missing:
        raise ValueError(
            f"no {', '.join(missing)} in {folder.name}: run the notebook that makes the split"
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
    """Make the views ``posts(split, n, author, ...)`` and ``dated``, and the table ``clusters``."""
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
    """Yield each check, the query of its number of violations, and the query's values."""
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
    """Return the values of each check of a promise."""
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
