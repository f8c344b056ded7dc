"""The split engine: a rule places every post in a split or gives one reason why not."""

from pathlib import Path
from typing import ClassVar

from duckdb import DuckDBPyConnection

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
from helpers.corpus.posts_table import SCHEMA, open_database, write_posts
from helpers.splits.audit import audit_split

VERSION = 4  # raised when the same posts and settings give other files


class Rule(Config):
    """Settings of a split, and how they turn posts into an assignment.

    Attributes
    ----------
    splits : names of the splits; of a text in several of them the first keeps it
    optional : names of splits that may be empty, and then have no file
    """

    splits: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()

    @property
    def min_posts_per_split(self) -> dict[str, int]:
        """The fewest posts of an author in a split, by its name."""
        return {}

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment(n, split, reason)`` of the view ``posts``; return facts.

        The reason says why a post is in no split; it is '' of a used post.
        """
        raise NotImplementedError

    def guarantees(self, facts: dict) -> dict:
        """Return what the files must keep: arguments of :data:`helpers.splits.audit.CHECKS`."""
        return {
            "authors_apart": list(self.splits),
            "texts_apart": True,
            "min_posts": self.min_posts_per_split,
        }

    def write_assignment(self, connection: DuckDBPyConnection, draw: str) -> None:
        """Make the table ``assignment`` of a draw, without texts of other splits and small authors.

        The first split, which trains, loses no text: what was seen stays seen.

        Parameters
        ----------
        connection
            DuckDB connection with the view ``posts``.
        draw
            SQL of (n, split, reason), which looked at neither texts nor numbers of posts.
        """
        min_posts = [self.min_posts_per_split.get(name, 1) for name in self.splits]
        connection.execute(f"CREATE TABLE drawn AS {draw}")
        connection.execute(
            f"""
            CREATE TABLE assignment AS
            WITH used AS (SELECT n, author, split, md5_number({NORMAL}) AS hash,
                                 list_position($splits, split) AS place
                          FROM drawn JOIN posts USING (n) WHERE reason = ''),
            single AS (SELECT n, author, split, place,
                              place > min(place) OVER (PARTITION BY hash) AS copy FROM used),
            counted AS (SELECT *, count(*) FILTER (NOT copy) OVER (PARTITION BY author, split)
                                  AS left_over FROM single)
            SELECT n, drawn.split,
                   CASE WHEN reason <> '' THEN reason WHEN copy THEN 'texts_of_other_splits'
                        WHEN left_over < $min_posts[place] THEN 'authors_with_too_few_posts'
                        ELSE '' END AS reason
            FROM drawn LEFT JOIN counted USING (n)""",
            {"splits": list(self.splits), "min_posts": min_posts},
        )


class NoSplit(Rule):
    """All posts in one file, for corpora only looked at."""

    splits = ("all",)

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Use every post."""
        connection.execute(
            "CREATE TABLE assignment AS SELECT n, 'all' AS split, '' AS reason FROM posts"
        )
        return {}


def make_split(posts_path: Path, out_folder: Path, rule: Rule, memory_limit: str = "2GB") -> dict:
    """Write ``<split>.parquet`` of each split of a rule, and ``split.json``; return the latter.

    What is current is reused.

    Parameters
    ----------
    posts_path
        Posts table.
    out_folder
        Folder of the files.
    rule
        Rule of the splits.
    memory_limit
        Memory of DuckDB.

    Returns
    -------
    dict: ``rule`` and ``settings``; facts of the rule; ``splits``: {split: {posts, authors,
    topics}}; ``unused``: {reason: posts}; ``promises``: what
    :func:`~helpers.splits.audit.audit_split` checks.

    Raises
    ------
    ValueError
        Where a split that must not be is empty.
    AuditError
        Where the files break a promise.
    """
    folder = Path(out_folder)
    record = folder / "split.json"
    fingerprint = fingerprint_of(VERSION, rule.fingerprint, file_fingerprint(posts_path))
    if is_current(record, fingerprint):
        report = read_json(record)
        if all(verify_checksum(folder / f"{name}.parquet") for name in report["splits"]):
            return report
    record.unlink(missing_ok=True)  # while it is missing the files beside it count for nothing

    with open_database(folder / "work", memory_limit) as connection:
        columns = _number_posts(connection, posts_path)
        facts = rule.assign(connection)
        sizes, unused = _sizes(connection, rule)
        query = f"""
            SELECT {columns} FROM posts
            SEMI JOIN (SELECT n FROM assignment WHERE split = ? AND reason = '') USING (n)"""
        for name in sizes:
            write_posts(connection, query, folder / f"{name}.parquet", [name])
    report = {
        "rule": type(rule).__name__,
        "settings": rule.model_dump(),
        **facts,
        "splits": sizes,
        "unused": unused,
        "promises": rule.guarantees(facts),
    }
    audit_split(folder, report, memory_limit)
    write_json(record, report | {"fingerprint": fingerprint})
    return read_json(record)


def _number_posts(connection, posts_path):
    """Make the view ``posts``, with its place ``n`` and an id, or NULL; return the columns."""
    table = connection.read_parquet(str(posts_path), file_row_number=True)
    columns = ", ".join(name for name in SCHEMA.names if name in table.columns)
    fields = f"{columns}, file_row_number AS n"
    if "id" not in table.columns:
        fields += ", NULL::VARCHAR AS id"
    table.project(fields).create_view("posts")
    return columns


def _sizes(connection, rule):
    """Return ({split: {posts, authors, topics}}, {reason: posts}) of the assignment."""
    posts, placed, rows = connection.execute("""
        SELECT (SELECT count(*) FROM posts), count(DISTINCT n), count(*)
        FROM assignment""").fetchone()
    if not placed == posts == rows:
        raise RuntimeError(
            f"{type(rule).__name__} placed {placed} of {posts} posts, or one of them twice"
        )
    table = connection.execute("""
        SELECT split, count(*) AS posts, count(DISTINCT author) AS authors,
               count(DISTINCT topic) AS topics
        FROM assignment JOIN posts USING (n) WHERE reason = '' GROUP BY split""").df()
    sizes = table.set_index("split").to_dict("index")
    unused = connection.execute("""
        SELECT reason, count(*) FROM assignment WHERE reason <> ''
        GROUP BY reason ORDER BY reason""").fetchall()
    unused = dict(unused)
    empty = [name for name in rule.splits if name not in sizes and name not in rule.optional]
    if empty:
        used = {name: size["posts"] for name, size in sizes.items()}
        raise ValueError(
            f"nothing is left for {', '.join(empty)}. Posts in splits: {used}; in no split: "
            f"{unused}. Change the shares or dates, or lower the minima"
        )
    return {name: sizes[name] for name in rule.splits if name in sizes}, unused
