"""The audit of every split: it re-reads the files, whatever wrote them, and counts what breaks a promise."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pandas as pd

from helpers.cleaning.near_duplicates import NORMAL
from helpers.corpus.table import database, scalar, sql_literal
from helpers.runs.artifacts import read_json

PAIR = "'^(.+)/[ab]$'"  # the id of a text of a given pair
COMMUNITY = {"common": "''", "community": "split_part(topic, '/', 1)"}  # SQL of who shares a calendar


class AuditError(ValueError):
    """A split breaks one of its promises; the message names each broken promise and its number."""


def audit(folder: Path, report: dict | None = None, memory_limit: str = "2GB") -> pd.DataFrame:
    """Check the files of a split against all that ``split.json`` (or report) promises: ``check``, ``violations`` (0).

    Raises AuditError that names the checks with violations, ValueError where a file is missing.
    """
    folder = Path(folder)
    report = report or read_json(folder / "split.json")
    files = {name: folder / f"{name}.parquet" for name in report["splits"]}
    if missing := [path.name for path in files.values() if not path.exists()]:
        raise ValueError(f"no {', '.join(missing)} in {folder.name}: run the notebook that makes the split")
    with database(folder / "audit", memory_limit) as connection:
        connection.execute("CREATE VIEW posts AS " + " UNION ALL BY NAME ".join(f"""
            SELECT {sql_literal(name)} AS split, *, file_row_number AS n
            FROM read_parquet({sql_literal(path)}, file_row_number = true)""" for name, path in files.items()))
        connection.register("clusters", pd.DataFrame(report.get("clusters", {}).items(), columns=["topic", "cluster"]))
        rows = {check: scalar(connection, query) for check, query in _queries(report)}
        for name, sizes in report["splits"].items():
            counted = connection.execute("SELECT count(*), count(DISTINCT author), count(DISTINCT topic) FROM posts "
                                         f"WHERE split = {sql_literal(name)}").fetchall()[0]  # fmt: skip
            rows[f"{name} counts differ from split.json"] = int(counted != tuple(sizes.values()))
    if broken := [f"{check}: {violations}" for check, violations in rows.items() if violations]:
        raise AuditError("; ".join(broken))
    return pd.DataFrame(rows.items(), columns=["check", "violations"])


def _queries(report) -> Iterator[tuple[str, str]]:
    """(check, query of its number of violations) of the view posts(split, n, author, ...)."""
    for promise, argument in report["promises"].items():
        if argument:
            yield from CHECKS[promise](argument)
    for name in report["splits"]:
        yield f"{name} rows out of order (author, then time)", f"""
            SELECT count(*) FROM (
                SELECT author < lag(author) OVER w OR author = lag(author) OVER w AND time < lag(time) OVER w AS wrong
                FROM posts WHERE split = {sql_literal(name)} WINDOW w AS (ORDER BY n)) WHERE wrong"""


def _shared(value, splits=(), source="posts"):
    """A query: how many values of an expression are in several of these splits, all where none is named."""
    where = f"WHERE split IN ({', '.join(map(sql_literal, splits))})" if splits else ""
    return f"""SELECT count(*) FROM (SELECT {value} AS value FROM {source} {where} GROUP BY value
                                     HAVING count(DISTINCT split) > 1)"""


def _in_order_of_time(calendar):
    posts = f"(SELECT split, time, {COMMUNITY[calendar['periods']]} AS community FROM posts)"
    for early, late in combinations(calendar["splits"], 2):
        yield f"{late} posts not later than every {early} post", f"""
            WITH ends AS (SELECT community, max(time) AS last FROM {posts} WHERE split = '{early}' GROUP BY community)
            SELECT count(*) FROM {posts} JOIN ends USING (community) WHERE split = '{late}' AND time <= last"""


def _by_author(check, violation):
    """A check of each split's authors with a number: HAVING the violation."""
    return lambda numbers: ((check.format(name, number), f"""
        SELECT count(*) FROM (SELECT author FROM posts WHERE split = '{name}' GROUP BY author
                              HAVING {violation} {int(number)})""") for name, number in numbers.items())  # fmt: skip


# promise of split.json -> its argument there -> the checks
CHECKS = {
    "authors_apart": lambda _: [("authors in more than one split", _shared("author"))],
    "texts_apart": lambda _: [("texts in more than one split", _shared(f"md5_number({NORMAL})"))],
    "pairs_whole": lambda _: [
        ("authors of one pair in more than one split", _shared(f"regexp_extract(id, {PAIR}, 1)"))],
    "in_order_of_time": _in_order_of_time,
    "topics_apart": lambda splits: [(f"topics of both {' and '.join(splits)}", _shared("topic", splits))],
    "clusters_apart": lambda splits: [(f"clusters of both {' and '.join(splits)}", _shared(
        "cluster", splits, "posts LEFT JOIN clusters USING (topic)"))],
    "topics_within": lambda splits: [(f"{splits[0]} topics that {splits[1]} lacks", f"""
        SELECT count(*) FROM (SELECT topic FROM posts WHERE split = '{splits[0]}'
                              EXCEPT SELECT topic FROM posts WHERE split = '{splits[1]}')""")],
    "min_posts": _by_author("{} authors with fewer than {} posts", "count(*) <"),
    "max_topics": _by_author("{} authors with more than {} topics", "count(DISTINCT topic) >"),
}  # fmt: skip
