"""The split engine: a rule places every post in a split or gives one reason why not."""

from pathlib import Path
from typing import ClassVar

from duckdb import DuckDBPyConnection
from pydantic import Field, model_validator

from ..core.artifacts import (
    file_fingerprint,
    fingerprint_of,
    folder_lock,
    is_current,
    note,
    read_json,
    verify_checksum,
    write_json,
)
from ..core.parameters import Config
from ..corpus.merge import NORMAL
from ..corpus.posts_table import COLUMNS, open_database, query_scalar, write_posts
from .audit import audit_split

VERSION = 5  # raised when the same posts and settings give other files


class Rule(Config):
    """Settings of a split, and the method that assigns posts to splits by them.

    Attributes
    ----------
    splits : names of the splits, in order of precedence
        A text in several splits is kept only in the first of them.
    optional : names of the splits that may be empty
        An empty split has no file.
    """

    splits: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()

    @property
    def min_posts_per_split(self) -> dict[str, int]:
        """The fewest posts that an author may have in a split, by its name; 1 if it is missing."""
        return {}

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment(n, split, reason)`` from the view ``posts``; return facts.

        Every post has one row, with its number ``n``. The reason says why a post is left out; it is
        '' for a used post. The facts go into ``split.json``.
        """
        raise NotImplementedError

    def guarantees(self, facts: dict) -> list[list]:
        """Return the promises that the audit checks: a key of ``audit.CHECKS``, then its values.

        Parameters
        ----------
        facts
            Return value of :meth:`assign`.
        """
        promises = [[check, list(self.splits)] for check in ("authors_apart", "texts_apart")]
        return promises + [["min_posts", *limit] for limit in self.min_posts_per_split.items()]

    def write_assignment(self, connection: DuckDBPyConnection, draw: str) -> None:
        """Make the table ``assignment`` from a draw, without repeated texts and small authors.

        A text in several splits is kept only in the first of them, so the training split, which
        comes first, loses no text. Then authors with too few posts left in a split leave it; their
        texts do not return to the later splits.

        Parameters
        ----------
        connection
            DuckDB connection with the view ``posts``.
        draw
            SQL query that gives one row (n, split, reason) per post. Repeated texts and authors
            with too few posts need not be left out yet. A row with a reason keeps it, and does not
            count as a post.
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


class SharesRule(Rule):
    """Settings of a rule that draws random shares for test and dev; the rest trains.

    Attributes
    ----------
    test, dev : float, shares that are drawn
    seed : int, seed of the draw
    """

    test: float = Field(0.1, gt=0, lt=1)
    dev: float = Field(0.1, gt=0, lt=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _something_is_left(self):
        if self.test + self.dev >= 1:
            raise ValueError(
                f"test ({self.test}) and dev ({self.dev}) must leave something for training"
            )
        return self


class NoSplit(Rule):
    """All posts in one file, for corpora that are described but not trained on."""

    splits = ("all",)

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Assign every post to the split "all"; there are no facts to return."""
        connection.execute(
            "CREATE TABLE assignment AS SELECT n, 'all' AS split, '' AS reason FROM posts"
        )
        return {}


def make_split(posts_path: Path, out_folder: Path, rule: Rule, memory_limit: str = "2GB") -> dict:
    """Write one file ``<split>.parquet`` per split and ``split.json``; return the latter's content.

    Nothing is written where the folder holds undamaged files made from the same posts and rule.
    Else the files of an earlier split are removed first.

    Parameters
    ----------
    posts_path
        Path of the posts table to split.
    out_folder
        Folder into which the files are written.
    rule
        Rule that assigns the posts.
    memory_limit
        Most memory that DuckDB may use.

    Returns
    -------
    dict: ``rule`` and ``settings``; the facts of the rule; ``splits``: {split: {posts, authors,
    topics}}, in numbers; ``unused``: {reason: number of posts}; ``promises``: what
    :func:`~helpers.splits.audit.audit_split` checks.

    Raises
    ------
    ValueError
        Where a split is empty that is not ``optional``.
    AuditError
        Where the files break a promise.
    RuntimeError
        Where the rule does not give every post exactly one row.
    """
    folder = Path(out_folder)
    with folder_lock(folder.parent):
        return _make_split(posts_path, folder, rule, memory_limit)


def _make_split(posts_path, folder, rule, memory_limit):
    """Do what :func:`make_split` does, while nobody else is at work in the folder above."""
    record = folder / "split.json"
    fingerprint = fingerprint_of(VERSION, rule.fingerprint, file_fingerprint(posts_path))
    if is_current(record, fingerprint):
        report = read_json(record)
        files = [folder / f"{name}.parquet" for name in report["splits"]]
        if all(verify_checksum(file) for file in files):
            note(record, *files)
            return report
    record.unlink(missing_ok=True)  # while it is missing the files beside it count for nothing
    for earlier_file in folder.glob("*.parquet*"):
        earlier_file.unlink()

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
        "fingerprint": fingerprint,
    }
    audit_split(folder, report, memory_limit)
    write_json(record, report)
    return read_json(record)


def _number_posts(connection, posts_path):
    """Make the view ``posts`` from a table; return the table's own columns, as SQL.

    ``n`` is the row number of a post in the table; ``id`` is NULL where the table has no ids.
    """
    table = connection.read_parquet(str(posts_path), file_row_number=True)
    columns = ", ".join(name for name in COLUMNS if name in table.columns)
    fields = f"{columns}, file_row_number AS n"
    if "id" not in table.columns:
        fields += ", NULL::VARCHAR AS id"
    table.project(fields).create_view("posts")
    return columns


def _sizes(connection, rule):
    """Count posts, authors and topics of each split, and the unused posts of each reason."""
    wrong = query_scalar(
        connection,
        """
        SELECT count(*) FROM (
            SELECT n FROM (SELECT n FROM posts UNION ALL SELECT n FROM assignment)
            GROUP BY n HAVING count(*) <> 2)""",
    )
    if wrong:
        raise RuntimeError(f"{type(rule).__name__} placed {wrong} posts in no row, or in several")
    table = connection.execute("""
        SELECT split, count(*) AS posts, count(DISTINCT author) AS authors,
               count(DISTINCT topic) AS topics
        FROM assignment JOIN posts USING (n) WHERE reason = '' GROUP BY split""").df()
    sizes = table.set_index("split").to_dict("index")
    reasons = connection.execute("""
        SELECT reason, count(*) FROM assignment WHERE reason <> ''
        GROUP BY reason ORDER BY reason""")
    unused = dict(reasons.fetchall())
    empty = [name for name in rule.splits if name not in sizes and name not in rule.optional]
    if empty:
        used = {name: size["posts"] for name, size in sizes.items()}
        raise ValueError(
            f"nothing is left for {', '.join(empty)}. Posts in splits: {used}; in no split: "
            f"{unused}. Change the shares or dates, or lower the minima"
        )
    return {name: sizes[name] for name in rule.splits if name in sizes}, unused
