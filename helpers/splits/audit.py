"""The audit of every split: it re-reads the files and counts violations of the rule's promises.

A promise is a list that the rule writes into ``split.json``: the name of a check, then its values.
"""

from pathlib import Path

import pandas as pd

from ..core.artifacts import read_json
from ..corpus.merge import NORMAL
from ..corpus.posts_table import open_database, query_scalar

PAIR = "'^(.+)/[ab]$'"  # finds "file/7" in "file/7/a", the id of one of the two texts of a pair
# ``periods`` of a split by time -> SQL of a post's community, which shares one calendar
COMMUNITY = {"common": "''", "community": "split_part(topic, '/', 1)"}


# SQL that counts the values of an expression in two or more of the given splits
SHARED = """
    SELECT count(*) FROM (
        SELECT {} AS value FROM posts LEFT JOIN clusters USING (topic)
        WHERE list_contains(?, split) GROUP BY value HAVING count(DISTINCT split) > 1)"""
# SQL that counts the authors of a split who are beyond a limit
AUTHORS = """
    SELECT count(*) FROM (SELECT author FROM posts WHERE split = ? GROUP BY author HAVING {} ?)"""
# check -> its text, and SQL that counts violations; the values of a promise fill the {} of the text
# and the ? of the SQL
CHECKS = {
    "authors_apart": ("authors in more than one split", SHARED.format("author")),
    "texts_apart": ("texts in more than one split", SHARED.format(f"md5_number({NORMAL})")),
    "pairs_whole": (
        "authors of one pair in more than one split",
        SHARED.format(f"regexp_extract(id, {PAIR}, 1)"),
    ),
    "topics_apart": ("topics of both {0[0]} and {0[1]}", SHARED.format("topic")),
    "clusters_apart": ("clusters of both {0[0]} and {0[1]}", SHARED.format("cluster")),
    "in_order_of_time": (
        "{1} posts not later than every {0} post",
        """
        WITH ends AS (SELECT community, max(time) AS last FROM posts WHERE split = ? GROUP BY ALL)
        SELECT count(*) FROM posts JOIN ends USING (community) WHERE split = ? AND time <= last""",
    ),
    "topics_within": (
        "{0} topics that {1} lacks",
        """
        SELECT count(*) FROM (SELECT topic FROM posts WHERE split = ?
                              EXCEPT SELECT topic FROM posts WHERE split = ?)""",
    ),
    "min_posts": ("{0} authors with fewer than {1} posts", AUTHORS.format("count(*) <")),
    "max_topics": (
        "{0} authors with more than {1} topics",
        AUTHORS.format("count(DISTINCT topic) >"),
    ),
    "sorted": (
        "{0} rows out of order (author, then time)",
        """
        SELECT count(*) FROM (
            SELECT (author, time) < lag((author, time)) OVER (ORDER BY n) AS wrong
            FROM posts WHERE split = ?) WHERE wrong""",
    ),
    "size": (
        "{1} counts differ from split.json",
        "SELECT abs(count(*) - ?) FROM posts WHERE split = ?",
    ),
}


class AuditError(ValueError):
    """A split breaks a promise; the message names each broken check and counts its violations."""


def audit_split(
    folder: Path, report: dict | None = None, memory_limit: str = "2GB"
) -> pd.DataFrame:
    """Check the files of a split against everything that its report promises.

    The order of rows and the number of posts in the report are checked for every split.

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
    files = [folder / f"{name}.parquet" for name in report["splits"]]
    missing = [str(path) for path in files if not path.exists()]
    if missing:
        raise ValueError(
            f"{', '.join(missing)}: missing; the command that made the split makes it again"
        )
    promises = [*report["promises"], *(["sorted", name] for name in report["splits"])]
    promises += [["size", sizes["posts"], name] for name, sizes in report["splits"].items()]
    violations = {}
    with open_database(folder / "audit", memory_limit) as connection:
        _create_views(connection, files, report)
        for name, *values in promises:
            text, query = CHECKS[name]
            violations[text.format(*values)] = query_scalar(connection, query, values)
    broken = [f"{check}: {number}" for check, number in violations.items() if number]
    if broken:
        raise AuditError("; ".join(broken))
    return pd.DataFrame(violations.items(), columns=["check", "violations"])


def _create_views(connection, files, report):
    """Make the views ``posts`` and ``clusters(topic, cluster)`` that the checks read.

    Beside the columns of the files, ``posts`` has ``split``, ``community``, and the row number
    ``n`` within the file. ``clusters`` is empty where the report has none.
    """
    community = COMMUNITY[report["settings"].get("periods", "common")]
    connection.sql(
        f"""
        SELECT *, parse_filename(filename, true) AS split, file_row_number AS n,
               {community} AS community
        FROM read_parquet(?, filename = true, file_row_number = true, union_by_name = true)""",
        params=[[str(path) for path in files]],
    ).create_view("posts")
    clusters = report.get("clusters", {}).items()
    connection.register("clusters", pd.DataFrame(clusters, columns=["topic", "cluster"]))
