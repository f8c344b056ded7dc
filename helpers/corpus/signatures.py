"""Repeated signatures: the same words at the end of an author's posts, and of nobody else's.

"Best wishes, Jane Doe" or a job title under every post names the author. A model that reads it need not learn any
style, and a verification score built on it is worth nothing. Such a run of words is cut. What many people write
("thanks!") is not exclusive to one author and stays. Openings are left alone: the ones only one author uses are
mostly habit ("hi, try:"), not names.
"""

import re

import numpy as np
import pyarrow as pa

from helpers.corpus.near_duplicates import WHITE

SHORTEST, LONGEST = 1, 24  # words of one run
POSTS = 3  # so many posts of the author end with it ...
SHARE = 0.03  # ... and so large a part of the author's posts
EXCLUSIVE = 0.9  # so large a part of the posts that end with it are from such authors ...
ACCOUNTS = 6  # ... of whom there are no more than this, for one person may write from several addresses ...
CROWD = 200  # ... and one per so many authors of the corpus: among few people a habit shared by some is no name
REACH = 1000  # characters from the end that are looked at
ROUNDS = 3  # below a signature another one may come to light
# SQL: last words that enough posts of an author have, for a run is never more frequent than its last words
FREQUENT = """SELECT hash FROM (SELECT author, hash, count(*) AS posts, bool_or(fresh) AS fresh FROM ends
              GROUP BY author, hash) JOIN floors USING (author) WHERE posts >= floor AND fresh"""
SPLIT = re.compile(re.sub(r"\\x\{(\w+)\}", lambda code: re.escape(chr(int(code[1], 16))), WHITE))


def find_signatures(connection, table: str, posts: int) -> np.ndarray:
    """How many words to cut from the end of each post, int32 [posts].

    table: a DuckDB table or view with columns n (0 .. posts - 1), author, normal (text as ``near_duplicates.NORMAL``
    makes it). A run of SHORTEST..LONGEST words is cut from a post where it

    * ends >= POSTS posts and >= SHARE of all posts of the post's author,
    * follows >= POSTS different words there (the start of a post is one): a unit, not the tail of a form letter,
    * and >= EXCLUSIVE of all posts that end with it are from the authors for whom this holds, of whom there is one,
      or up to one per CROWD authors of the corpus and ACCOUNTS at most.

    The longest such run is cut. The next round, of ROUNDS at most, looks for what that brought to light: runs that
    also end a post of the author that was just cut.
    """
    cuts, fresh = np.zeros(posts, np.int32), np.ones(posts, bool)
    for _ in range(ROUNDS):
        post_endings(connection, table, cuts, fresh)
        mark_signatures(connection, FREQUENT)
        signed = connection.execute(f"""
            WITH exclusive AS ({exclusive_endings("(SELECT count(*) FROM floors)")}),
            labels AS (SELECT hash, author FROM marked SEMI JOIN exclusive USING (hash) WHERE label AND fresh)
            SELECT n, max(words) AS words FROM runs SEMI JOIN labels USING (hash, author) GROUP BY n""").fetchnumpy()
        if not len(signed["n"]):
            break
        cuts[signed["n"]] += signed["words"]
        fresh[:] = False
        fresh[signed["n"]] = True
    return cuts


def cut_signature(text: str, words: int) -> str:
    """The text without its last ``words`` words, white space as it was."""
    spaces = [space.start() for space in SPLIT.finditer(text.rstrip())]
    starts = [0] + spaces if not SPLIT.match(text) else spaces
    return text[: starts[-words]] if words and words < len(starts) else "" if words else text


def post_endings(connection, table: str, cuts: np.ndarray, fresh: np.ndarray) -> None:
    """Make the tables ``ends``, the last words of every post without what is cut, and ``floors`` of every author."""
    state = pa.table({"n": np.arange(len(cuts)), "cut": cuts, "fresh": fresh})
    connection.execute(f"""
        CREATE OR REPLACE TABLE ends AS SELECT n, author, words, hash(words[-{SHORTEST}:]) AS hash, fresh
        FROM (SELECT n, hash(author) AS author, fresh, words[:greatest(len(words) - cut, 0)] AS words
              FROM (SELECT n, author, string_split(ltrim(right(normal, {REACH})), ' ') AS words FROM {table})
              JOIN state USING (n))""")
    connection.execute(f"""
        CREATE OR REPLACE TABLE floors AS
        SELECT author, greatest({POSTS}, ceil({SHARE} * count(*))) AS floor FROM ends GROUP BY author""")


def exclusive_endings(authors: str) -> str:
    """SQL for the hashes of runs in ``marked`` that are exclusive, where there are so many authors."""
    return f"""SELECT hash FROM marked GROUP BY hash
        HAVING count(*) FILTER (label) BETWEEN 1 AND greatest(1, least({ACCOUNTS}, {authors} // {CROWD}))
        AND sum(posts) FILTER (label) >= {EXCLUSIVE} * sum(posts)"""


def mark_signatures(connection, frequent: str) -> None:
    """Make tables ``runs`` of posts and ``marked`` of authors. frequent: SQL for hashes of the last words of runs."""
    connection.execute(f"""
        CREATE OR REPLACE TABLE runs AS
        WITH frequent AS ({frequent}),
        related AS (SELECT n, author, words, fresh, unnest(range({SHORTEST}, least(len(words), {LONGEST}) + 1)) AS size
                    FROM ends SEMI JOIN frequent USING (hash))
        SELECT n, author, size::INT AS words, hash(words[-size:]) AS hash, fresh,
               CASE WHEN len(words) > size THEN hash(words[-size - 1]) ELSE 0 END AS prior FROM related""")
    connection.execute(f"""
        CREATE OR REPLACE TABLE marked AS
        WITH used AS (SELECT hash, author, count(*) AS posts, count(DISTINCT prior) AS priors, bool_or(fresh) AS fresh
                      FROM runs GROUP BY hash, author)
        SELECT *, posts >= floor AND priors >= {POSTS} AS label FROM used JOIN floors USING (author)""")
