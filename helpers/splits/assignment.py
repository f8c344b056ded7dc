"""The split engine: a rule places every post in a split or gives one reason why not; the files are written once."""

from pathlib import Path
from typing import ClassVar

import duckdb
import pyarrow.parquet as pq

from helpers.core.artifacts import (
    file_fingerprint,
    fingerprint_of,
    is_current,
    read_json,
    verify_checksum,
    write_json,
)
from helpers.core.config import Config
from helpers.corpus.near_duplicates import NORMAL
from helpers.corpus.posts_table import SCHEMA, open_database, query_scalar, write_posts
from helpers.splits.audit import audit_split

VERSION = 4  # raised when the same posts and settings give other files


class Rule(Config):
    """Settings of a split, and how they turn posts into an assignment."""

    splits: ClassVar[tuple[str, ...]]  # of a text in several of them the first keeps it
    optional: ClassVar[tuple[str, ...]] = ()  # those that may be empty, and then have no file

    @property
    def least(self) -> dict[str, int]:
        """The fewest posts of an author in a split, by its name."""
        return {}

    def assign(self, connection: duckdb.DuckDBPyConnection) -> dict:
        """Make the table ``assignment(n, split, reason)``, '' of a used post, of the view ``posts``; return facts."""
        raise NotImplementedError

    def promises(self, facts: dict) -> dict:
        """What the files must keep: arguments of :data:`helpers.splits.audit.CHECKS` by name."""
        return {"authors_apart": list(self.splits), "texts_apart": True, "min_posts": self.least}

    def settle(self, connection: duckdb.DuckDBPyConnection, drawn: str) -> None:
        """Make the table ``assignment`` from a query of (n, split, reason) that looked at neither texts nor numbers.

        The first split, which trains, loses no text: what was seen stays seen.
        """
        least = " ".join(f"WHEN '{name}' THEN {self.least.get(name, 1)}" for name in self.splits)
        connection.execute(f"CREATE TABLE drawn AS {drawn}")
        connection.execute(
            f"""
            CREATE TABLE assignment AS
            WITH used AS (SELECT n, author, split, md5_number({NORMAL}) AS hash,
                                 list_position(?, split) AS place
                          FROM drawn JOIN posts USING (n) WHERE reason = ''),
            single AS (SELECT n, author, split, place > min(place) OVER (PARTITION BY hash) AS copy FROM used),
            counted AS (SELECT *, count(*) FILTER (NOT copy) OVER (PARTITION BY author, split) AS left_over FROM single)
            SELECT n, drawn.split, CASE WHEN reason <> '' THEN reason WHEN copy THEN 'texts_of_other_splits'
                             WHEN left_over < CASE drawn.split {least} END
                             THEN 'authors_with_too_few_posts' ELSE '' END AS reason
            FROM drawn LEFT JOIN counted USING (n)""",
            [list(self.splits)],
        )


class NoSplit(Rule):
    """All posts in one file, for corpora only looked at."""

    splits = ("all",)

    def assign(self, connection: duckdb.DuckDBPyConnection) -> dict:
        connection.execute(
            "CREATE TABLE assignment AS SELECT n, 'all' AS split, '' AS reason FROM posts"
        )
        return {}


def make_split(posts_path: Path, out_folder: Path, rule: Rule, memory_limit: str = "2GB") -> dict:
    """Write ``<split>.parquet`` for each split of a rule, and ``split.json``; return the latter. Current: reused.

    It has ``rule`` and ``settings``; facts of the rule; ``splits``: {split: {posts, authors, topics}}; ``unused``:
    {reason: posts}; ``promises``: what :func:`~helpers.splits.audit.audit_split` checks. Raises ValueError where a split that
    must not be is empty, AuditError where the files break a promise.
    """
    folder = Path(out_folder)
    record, files = (
        folder / "split.json",
        {name: folder / f"{name}.parquet" for name in rule.splits},
    )
    fingerprint = fingerprint_of(VERSION, rule.fingerprint, file_fingerprint(posts_path))
    if is_current(record, fingerprint) and all(
        verify_checksum(files[name]) for name in read_json(record)["splits"]
    ):
        return read_json(record)
    record.unlink(missing_ok=True)  # while it is missing the files beside it count for nothing
    available = pq.read_schema(posts_path).names
    columns = ", ".join(name for name in SCHEMA.names if name in available)
    with open_database(folder / "work", memory_limit) as connection:
        table = connection.read_parquet(str(posts_path), file_row_number=True)
        table.project(f"{columns}, file_row_number AS n").create_view("posts")
        facts = rule.assign(connection)
        sizes, unused = _sizes(connection, rule)
        for name in sizes:
            used = "SELECT n FROM assignment WHERE split = ? AND reason = ''"
            write_posts(
                connection,
                f"SELECT {columns} FROM posts SEMI JOIN ({used}) USING (n)",
                files[name],
                [name],
            )
    report = {"rule": type(rule).__name__, "settings": rule.model_dump(), **facts, "splits": sizes, "unused": unused,
              "promises": rule.promises(facts)}  # fmt: skip
    audit_split(folder, report, memory_limit)
    write_json(record, report | {"fingerprint": fingerprint})
    return read_json(record)


def _sizes(connection, rule):
    """({split: {posts, authors, topics}}, {reason: posts}) of the assignment."""
    places, posts = (
        query_scalar(connection, f"SELECT count(DISTINCT n) FROM {table}")
        for table in ("assignment", "posts")
    )
    if not places == posts == query_scalar(connection, "SELECT count(*) FROM assignment"):
        raise RuntimeError(
            f"{type(rule).__name__} placed {places} of {posts} posts, or one of them twice"
        )
    rows = (
        connection.execute("""
        SELECT split, count(*) AS posts, count(DISTINCT author) AS authors, count(DISTINCT topic) AS topics
        FROM assignment JOIN posts USING (n) WHERE reason = '' GROUP BY split""")
        .df()
        .set_index("split")
    )
    unused = connection.execute("""
        SELECT reason, count(*) FROM assignment WHERE reason <> '' GROUP BY reason ORDER BY reason""").fetchall()
    if empty := [name for name in rule.splits if name not in (*rows.index, *rule.optional)]:
        used = rows["posts"].to_dict()
        raise ValueError(f"nothing is left for {', '.join(empty)}. Posts in splits: {used}; in no split: "
                         f"{dict(unused)}. Change the shares or dates, or lower the minima")  # fmt: skip
    return rows.loc[[name for name in rule.splits if name in rows.index]].to_dict("index"), dict(
        unused
    )
