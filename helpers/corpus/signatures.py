"""Repeated signatures: the same words at the end of an author's posts, and of nobody else's.

"Best wishes, Jane Doe" or a job title under every post names the author. A model that reads it need
not learn any style, and a verification score built on it is worth nothing. Such a run of words is
cut. What many people write ("thanks!") is not exclusive to one author and stays. Openings are left
alone: the ones only one author uses are mostly habit ("hi, try:"), not names.
"""

import re

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from helpers.corpus.near_duplicates import WHITE

MIN_RUN_WORDS = 1
MAX_RUN_WORDS = 24
MIN_POSTS = 3  # so many posts of an author end with the run ...
MIN_SHARE = 0.03  # ... and so large a part of the author's posts
MIN_EXCLUSIVE = 0.9  # so large a part of the posts that end with it are from such authors ...
MAX_AUTHORS = 6  # ... who are no more than this: one person may write from several addresses ...
AUTHORS_EACH = 200  # ... and one per so many authors: a habit shared by some of a few is no name
MAX_END_CHARS = 1000  # from the end of a post that are looked at
MAX_ROUNDS = 3  # below a signature another one may come to light
# SQL: last words that enough posts of an author have, for a run is never more frequent than its
# last words
FREQUENT = """
    SELECT hash
    FROM (SELECT author, hash, count(*) AS posts, bool_or(fresh) AS fresh FROM ends
          GROUP BY author, hash)
    JOIN floors USING (author) WHERE posts >= floor AND fresh"""


def _escaped(code):
    """Return a character, of which RE2's expression gives the number, as Python's takes it."""
    return re.escape(chr(int(code[1], 16)))


WHITE_SPACE = re.compile(re.sub(r"\\x\{(\w+)\}", _escaped, WHITE))


def find_signatures(connection: DuckDBPyConnection, table: str, posts: int) -> np.ndarray:
    """Return how many words of a signature each post ends with.

    A run of MIN_RUN_WORDS to MAX_RUN_WORDS words is the signature of a post where it

    * ends MIN_POSTS posts or more, and MIN_SHARE or more of all posts of the post's author,
    * follows MIN_POSTS or more different words there (the start of a post is one): it is a unit,
      not the tail of a form letter,
    * and MIN_EXCLUSIVE or more of all posts that end with it are from the authors for whom this
      holds, of whom there is one, or up to one per AUTHORS_EACH authors of the corpus and
      MAX_AUTHORS at most.

    The longest such run counts. The next round, of MAX_ROUNDS at most, looks for what the cut
    brought to light: runs that also end a post of the author that was just cut.

    Parameters
    ----------
    connection
        DuckDB connection.
    table : name of a table or view
        Columns n (0 to posts - 1), author and normal (text as ``near_duplicates.NORMAL`` makes it).
    posts : int
        Rows of the table.

    Returns
    -------
    (posts,) int32
    """
    cuts = np.zeros(posts, np.int32)
    fresh = np.ones(posts, bool)
    for _ in range(MAX_ROUNDS):
        make_endings(connection, table, cuts, fresh)
        mark_signatures(connection, FREQUENT)
        signed = connection.execute(f"""
            WITH exclusive AS ({exclusive_endings("(SELECT count(*) FROM floors)")}),
            labels AS (SELECT hash, author FROM marked SEMI JOIN exclusive USING (hash)
                       WHERE label AND fresh)
            SELECT n, max(words) AS words FROM runs SEMI JOIN labels USING (hash, author)
            GROUP BY n""").fetchnumpy()
        if not len(signed["n"]):
            break
        cuts[signed["n"]] += signed["words"]
        fresh[:] = False
        fresh[signed["n"]] = True
    return cuts


def cut_signature(text: str, words: int) -> str:
    """Return a text without its last ``words`` words, white space before them as it was."""
    if words == 0:
        return text
    starts = [space.start() for space in WHITE_SPACE.finditer(text.rstrip())]
    if not WHITE_SPACE.match(text):
        starts.insert(0, 0)
    if words >= len(starts):
        return ""
    return text[: starts[-words]]


def make_endings(
    connection: DuckDBPyConnection, table: str, cuts: np.ndarray, fresh: np.ndarray
) -> None:
    """Make the tables ``ends``, the last words of each post, and ``floors``, of each author.

    A floor is how many posts of an author must end with a run.

    Parameters
    ----------
    connection, table
        See :func:`find_signatures`.
    cuts : (posts,) int
        How many words were cut from the end of each post.
    fresh : (posts,) bool
        Whether they were cut in the round before.
    """
    state = pa.table({"n": np.arange(len(cuts)), "cut": cuts, "fresh": fresh})
    connection.register("state", state)
    connection.execute(f"""
        CREATE OR REPLACE TABLE ends AS
        SELECT n, author, words, hash(words[-{MIN_RUN_WORDS}:]) AS hash, fresh
        FROM (SELECT n, hash(author) AS author, fresh,
                     words[:greatest(len(words) - cut, 0)] AS words
              FROM (SELECT n, author,
                           string_split(ltrim(right(normal, {MAX_END_CHARS})), ' ') AS words
                    FROM {table})
              JOIN state USING (n))""")
    connection.execute(f"""
        CREATE OR REPLACE TABLE floors AS
        SELECT author, greatest({MIN_POSTS}, ceil({MIN_SHARE} * count(*))) AS floor
        FROM ends GROUP BY author""")


def mark_signatures(connection: DuckDBPyConnection, frequent: str) -> None:
    """Make the table ``runs`` of last words, and ``marked``, which may be an author's signature.

    Parameters
    ----------
    connection
        DuckDB connection with the tables of :func:`make_endings`.
    frequent
        SQL of the hashes of last words; runs that end otherwise are left out.
    """
    connection.execute(f"""
        CREATE OR REPLACE TABLE runs AS
        WITH frequent AS ({frequent}),
        related AS (SELECT n, author, words, fresh,
                           unnest(range({MIN_RUN_WORDS}, least(len(words), {MAX_RUN_WORDS}) + 1))
                               AS size
                    FROM ends SEMI JOIN frequent USING (hash))
        SELECT n, author, size::INT AS words, hash(words[-size:]) AS hash, fresh,
               CASE WHEN len(words) > size THEN hash(words[-size - 1]) ELSE 0 END AS prior
        FROM related""")
    connection.execute(f"""
        CREATE OR REPLACE TABLE marked AS
        WITH used AS (SELECT hash, author, count(*) AS posts, count(DISTINCT prior) AS priors,
                             bool_or(fresh) AS fresh
                      FROM runs GROUP BY hash, author)
        SELECT *, posts >= floor AND priors >= {MIN_POSTS} AS label
        FROM used JOIN floors USING (author)""")


def exclusive_endings(authors: int | str) -> str:
    """Return the SQL of the hashes of runs in ``marked`` that are of one person alone.

    Parameters
    ----------
    authors
        Number of authors of the corpus, or SQL of it.
    """
    return f"""
        SELECT hash FROM marked GROUP BY hash
        HAVING count(*) FILTER (label)
               BETWEEN 1 AND greatest(1, least({MAX_AUTHORS}, {authors} // {AUTHORS_EACH}))
        AND sum(posts) FILTER (label) >= {MIN_EXCLUSIVE} * sum(posts)"""
