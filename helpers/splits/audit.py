"""What the audits of all splits have in common: they re-read files, whatever wrote them, and name what is broken."""

from helpers.runs.artifacts import is_current
from helpers.cleaning.near_duplicates import NORMAL
from helpers.corpus.table import text

# queries of a number of violations, over a view posts(split, author, text, ...)
SHARED_AUTHORS = """
    SELECT count(*) FROM (SELECT author FROM posts GROUP BY author HAVING count(DISTINCT split) > 1)"""
SHARED_TEXTS = f"""
    SELECT count(*) FROM (SELECT md5_number({NORMAL}) AS hash FROM posts GROUP BY hash
                          HAVING count(DISTINCT split) > 1)"""


class AuditError(ValueError):
    """A split breaks one of its rules; the message names each broken rule and its number."""


def too_few(path, least) -> str:
    """A query: how many authors of a file have fewer than so many posts in it."""
    return f"SELECT count(*) FROM (SELECT author FROM {text(path)} GROUP BY author HAVING count(*) < {int(least)})"


def out_of_order(path) -> str:
    """A query: how many rows of a file should precede the row before them, by author, then time."""
    return f"""
        SELECT count(*) FROM (
            SELECT author < lag(author) OVER w
                   OR (author = lag(author) OVER w AND time < lag(time) OVER w) AS wrong
            FROM (SELECT author, time, file_row_number AS n FROM read_parquet({text(path)}, file_row_number = true))
            WINDOW w AS (ORDER BY n)) WHERE wrong"""


def verdict(rows: list[dict]) -> list[dict]:
    """The rows ``check``, ``value``, ``detail`` of an audit as they are. Raises AuditError naming those not 0."""
    if broken := [row for row in rows if row["value"]]:
        raise AuditError("; ".join(f"{row['check']}: {row['value']} {row['detail']}".strip() for row in broken))
    return rows


def current(folder, fingerprint, names) -> bool:
    """Whether a folder holds a split made from this, with all its files."""
    return is_current(folder / "split.json", fingerprint) and all((folder / f"{name}.parquet").exists() for name in names)
