"""Pairs of authors who posted the same texts: the plainest sign of a second account, or of a copy.

A posts table holds each text once, so who posted only copies is not in it. This is found out from
the parts of a corpus before they are merged. Texts are the same where their words are, whatever
case, marks and white space are. So are, mostly, those to which some words are added, as "EDIT:
thanks all": a text is told by one of its runs of RUN_WORDS words, that with the lowest hash, which
a few words more at its start or end seldom change.
"""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from ..core.artifacts import atomic_write, write_checksum

RUN_WORDS = 10  # a text of fewer words is told by all of them
MIN_TEXT_CHARS = 20  # of the words of a text; shorter ones are what everybody says
MAX_TEXT_AUTHORS = 20  # a text of more authors is a phrase or a form; it bounds the pairs, too
MIN_TEXTS = 3  # different texts that both authors of a pair posted
# And so large a share of the different texts of one of them. Of 16,000 bloggers, hardly a pair that
# shares texts lies between a tenth and a half.
MIN_SHARE = 0.1
WORDS = r"trim(regexp_replace(lower(text), '[^\pL\pN]+', ' ', 'g'))"  # SQL over `text`
# SQL over `words` of the hash that tells a text; fewer words than a run are one run. MD5 is the
# same in every version of DuckDB: files of two versions may be compared
TEXT = f"""
    list_min(list_transform(range(1, greatest(len(words) - {RUN_WORDS - 2}, 2)),
                            lambda i: md5_number_lower(
                                array_to_string(words[i : i + {RUN_WORDS - 1}], ' '))))"""
COLUMNS = "account_a account_b texts posts_a posts_b".split()
# SQL of the pairs; {0} says which of two authors comes first
PAIRS = f"""
    WITH every AS (SELECT author, text FROM texts_a UNION SELECT author, text FROM texts_b),
    shared AS (SELECT text FROM every WHERE text IS NOT NULL
               GROUP BY text HAVING count(*) <= {MAX_TEXT_AUTHORS}),
    pairs AS (SELECT a.author AS account_a, b.author AS account_b, count(*) AS texts
              FROM shared JOIN texts_a a USING (text) JOIN texts_b b USING (text)
              WHERE {{0}} GROUP BY ALL HAVING count(*) >= {MIN_TEXTS})
    SELECT account_a, account_b, p.texts, a.posts AS posts_a, b.posts AS posts_b
    FROM pairs p JOIN authors_a a ON a.author = account_a
                 JOIN authors_b b ON b.author = account_b
    WHERE p.texts >= {MIN_SHARE} * least(a.texts, b.texts)
    ORDER BY p.texts DESC, account_a, account_b"""


def write_texts(connection: DuckDBPyConnection, parts: list[Path], target: Path) -> None:
    """Write who posted which texts how often, and the checksum of the file.

    Its columns are ``author``, ``text``, a hash that tells it or null for a short one, and
    ``posts``.

    Parameters
    ----------
    connection : DuckDBPyConnection
        does the work
    parts : list of Path
        Parquet files with the columns ``author`` and ``text``
    target : Path
        of the file, which is written whole or not at all
    """
    rows = connection.read_parquet([str(part) for part in parts])
    words = rows.project(f"author, {WORDS} AS text").project(
        "author, length(text) AS chars, string_split(text, ' ') AS words"
    )
    texts = words.aggregate(
        f"author, CASE WHEN chars >= {MIN_TEXT_CHARS} THEN {TEXT} END AS text, count(*) AS posts"
    )
    with atomic_write(target) as partial:
        texts.order("author, text").write_parquet(str(partial))
    write_checksum(target)


def pairs_with_same_texts(
    connection: DuckDBPyConnection, path: Path, second_path: Path | None = None
) -> pd.DataFrame:
    """Return the pairs of authors who share MIN_TEXTS texts, and MIN_SHARE of those of one of them.

    Texts of more than MAX_TEXT_AUTHORS authors do not count.

    Parameters
    ----------
    connection : DuckDBPyConnection
        does the work
    path : Path
        file of :func:`write_texts`
    second_path : Path, optional
        such a file of other authors; pairs are then those of an author of each file

    Returns
    -------
    COLUMNS: two authors, how many different texts both posted, and how many posts each has, those
    with the most texts first
    """
    order = "true"
    if second_path is None:
        second_path = path
        order = "a.author < b.author"
    for name, file in (("a", path), ("b", second_path)):
        connection.read_parquet(str(file)).create_view(f"texts_{name}", replace=True)
        connection.execute(f"""
            CREATE OR REPLACE VIEW authors_{name} AS
            SELECT author, count(text) AS texts, sum(posts)::BIGINT AS posts
            FROM texts_{name} GROUP BY author""")
    return connection.sql(PAIRS.format(order)).df()


def authors_of_texts(path: Path) -> list[str]:
    """Return the different authors of a file of :func:`write_texts`."""
    return pq.read_table(path, columns=["author"])["author"].unique().to_pylist()
