"""The audit of every split: it re-reads the files, whatever wrote them, and counts what breaks a promise."""

from itertools import combinations
from pathlib import Path

import pandas as pd

from helpers.core.artifacts import read_json
from helpers.corpus.near_duplicates import NORMAL
from helpers.corpus.posts_table import open_database, query_scalar

PAIR = "'^(.+)/[ab]$'"  # the id of a text of a given pair
COMMUNITY = {
    "common": "''",
    "community": "split_part(topic, '/', 1)",
}  # SQL of who shares a calendar


class AuditError(ValueError):
    """A split breaks one of its promises; the message names each broken promise and its number."""


def audit_split(
    folder: Path, report: dict | None = None, memory_limit: str = "2GB"
) -> pd.DataFrame:
    """Check the files of a split against all that ``split.json`` (or report) promises: ``check``, ``violations`` (0).

    Raises AuditError that names the checks with violations, ValueError where a file is missing.
    """
    folder = Path(folder)
    report = report or read_json(folder / "split.json")
    files = {name: folder / f"{name}.parquet" for name in report["splits"]}
    if missing := [path.name for path in files.values() if not path.exists()]:
        raise ValueError(
            f"no {', '.join(missing)} in {folder.name}: run the notebook that makes the split"
        )
    with open_database(folder / "audit", memory_limit) as connection:
        tables = " UNION ALL BY NAME ".join(
            [
                "SELECT ? AS split, *, file_row_number AS n FROM read_parquet(?, file_row_number = true)"
            ]
            * len(files)
        )
        values = [value for name, path in files.items() for value in (name, str(path))]
        connection.sql(tables, params=values).create_view("posts")
        connection.register(
            "clusters",
            pd.DataFrame(report.get("clusters", {}).items(), columns=["topic", "cluster"]),
        )
        rows = {
            check: query_scalar(connection, query, values)
            for check, query, values in _queries(report)
        }
        for name, sizes in report["splits"].items():
            counted = connection.execute("""
                SELECT count(*), count(DISTINCT author), count(DISTINCT topic) FROM posts WHERE split = ?""",
                [name]).fetchall()[0]  # fmt: skip
            rows[f"{name} counts differ from split.json"] = int(counted != tuple(sizes.values()))
    if broken := [f"{check}: {violations}" for check, violations in rows.items() if violations]:
        raise AuditError("; ".join(broken))
    return pd.DataFrame(rows.items(), columns=["check", "violations"])


def _queries(report):
    """(check, query of its number of violations, its values) of the view posts(split, n, author, ...)."""
    for promise, argument in report["promises"].items():
        if argument:
            yield from CHECKS[promise](argument)
    for name in report["splits"]:
        yield (
            f"{name} rows out of order (author, then time)",
            """
            SELECT count(*) FROM (
                SELECT author < lag(author) OVER w OR author = lag(author) OVER w AND time < lag(time) OVER w AS wrong
                FROM posts WHERE split = ? WINDOW w AS (ORDER BY n)) WHERE wrong""",
            [name],
        )


def _shared(check, value, splits=(), source="posts"):
    """A check: how many values of an expression are in several of these splits, all where none is named."""
    where = "WHERE list_contains(?, split)" if splits else ""
    return (
        check,
        f"""SELECT count(*) FROM (SELECT {value} AS value FROM {source} {where} GROUP BY value
                                            HAVING count(DISTINCT split) > 1)""",
        [list(splits)] if splits else [],
    )


def _in_order_of_time(calendar):
    posts = f"(SELECT split, time, {COMMUNITY[calendar['periods']]} AS community FROM posts)"
    for early, late in (pair for order in calendar["orders"] for pair in combinations(order, 2)):
        yield (
            f"{late} posts not later than every {early} post",
            f"""
            WITH ends AS (SELECT community, max(time) AS last FROM {posts} WHERE split = ? GROUP BY community)
            SELECT count(*) FROM {posts} JOIN ends USING (community)
            WHERE split = ? AND time <= last""",
            [early, late],
        )


def _by_author(check, violation):
    """A check of each split's authors with a number: HAVING the violation."""
    return lambda numbers: ((check.format(name, number), f"""
        SELECT count(*) FROM (SELECT author FROM posts WHERE split = ? GROUP BY author HAVING {violation} ?)""",
        [name, number]) for name, number in numbers.items())  # fmt: skip


# promise of split.json -> its argument there -> the checks
CHECKS = {
    "authors_apart": lambda splits: [_shared("authors in more than one split", "author", splits)],
    "texts_apart": lambda _: [_shared("texts in more than one split", f"md5_number({NORMAL})")],
    "pairs_whole": lambda _: [
        _shared("authors of one pair in more than one split", f"regexp_extract(id, {PAIR}, 1)")],
    "in_order_of_time": _in_order_of_time,
    "topics_apart": lambda splits: [_shared(f"topics of both {' and '.join(splits)}", "topic", splits)],
    "clusters_apart": lambda splits: [
        _shared(f"clusters of both {' and '.join(splits)}", "cluster", splits,
                "posts LEFT JOIN clusters USING (topic)")],
    "topics_within": lambda splits: [(f"{splits[0]} topics that {splits[1]} lacks", """
        SELECT count(*) FROM (SELECT topic FROM posts WHERE split = ?
                              EXCEPT SELECT topic FROM posts WHERE split = ?)""", list(splits))],
    "min_posts": _by_author("{} authors with fewer than {} posts", "count(*) <"),
    "max_topics": _by_author("{} authors with more than {} topics", "count(DISTINCT topic) >")}  # fmt: skip
