"""Signatures: words that end many posts of one author and hardly any of other authors.

"Best wishes, Jane Doe" or a job title under every post names the author. A model that reads it need
not learn any style, and a verification score that rests on it is worth nothing. So such a run of
words is cut. What many people write ("thanks!") stays. The first words of posts stay too: those
that only one author uses are mostly a habit ("hi, try:"), not a name.
"""

import re

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from .near_duplicates import WHITE
from .posts_table import query_scalar

MIN_RUN_WORDS = 1  # words of a run of last words, at least and at most
MAX_RUN_WORDS = 24
# For the rule see find_signatures
MIN_POSTS = 3  # fewest posts of an author that end with the run
MIN_SHARE = 0.03  # smallest share of the author's posts that end with it
MIN_EXCLUSIVE = 0.9  # smallest share, of all posts that end with it, from authors who sign with it
MAX_AUTHORS = 6  # most authors who sign with it: one person may write from several addresses
AUTHORS_EACH = 200  # ... and one per so many authors of the corpus: a small one shares habits
MAX_END_CHARS = 1000  # characters at the end of a post that are searched
MAX_ROUNDS = 3  # most rounds: before a signature that was cut there may be another one
# SQL of the hashes of last MIN_RUN_WORDS words that enough posts of an author end with: longer runs
# need not be looked for elsewhere, because a run is never more frequent than its own last words
FREQUENT = """
    SELECT hash
    FROM (SELECT author, hash, count(*) AS posts, bool_or(fresh) AS fresh FROM ends
          GROUP BY author, hash)
    JOIN floors USING (author) WHERE posts >= floor AND fresh"""
# SQL of the last words of the posts of a table {0}, those of a signature and the one before it,
# without the words that earlier rounds cut; the table ``state`` says how many these are
ENDS = f"""
    SELECT n, author, words[-{MAX_RUN_WORDS + 1}:] AS words, hash(words[-{MIN_RUN_WORDS}:]) AS hash,
           fresh
    FROM (SELECT n, hash(author) AS author, fresh,
                 words[:greatest(len(words) - cut, 0)] AS words
          FROM (SELECT n, author,
                       string_split(ltrim(right(normal, {MAX_END_CHARS})), ' ') AS words
                FROM {{0}})
          JOIN state USING (n))"""
# SQL of the posts of the last round that end with a frequent run of {0} words
LONGER = """
    WITH longer AS (SELECT n, author, words, hash(words[-{0}:]) AS hash, fresh
                    FROM {1} WHERE len(words) >= {0}),
    frequent AS (SELECT hash
                 FROM (SELECT author, hash, count(*) AS posts, bool_or(fresh) AS fresh
                       FROM longer GROUP BY author, hash)
                 JOIN floors USING (author) WHERE posts >= floor AND fresh)
    SELECT * FROM longer SEMI JOIN frequent USING (hash)"""
# SQL of the counts of ``runs`` by author
MARKED = f"""
    WITH used AS (SELECT hash, author, count(*) AS posts, count(DISTINCT prior) AS priors,
                         bool_or(fresh) AS fresh
                  FROM runs GROUP BY hash, author)
    SELECT *, posts >= floor AND priors >= {MIN_POSTS} AS label
    FROM used JOIN floors USING (author)"""
# SQL of the runs of {0} words that end the posts of a table {1}
RUNS = """
    SELECT n, author, {0}::INT AS words, hash, fresh,
           CASE WHEN len(words) > {0} THEN hash(words[-{0} - 1]) ELSE 0 END AS prior
    FROM {1}"""


def _escaped(code):
    """Return, escaped for ``re``, the character whose hexadecimal number is group 1 of a match."""
    return re.escape(chr(int(code[1], 16)))


# WHITE for Python's ``re``, which does not know RE2's \x{2028}
WHITE_SPACE = re.compile(re.sub(r"\\x\{(\w+)\}", _escaped, WHITE))


def find_signatures(connection: DuckDBPyConnection, table: str, posts: int) -> np.ndarray:
    """Return, for each post, the number of its last words that are a signature.

    A run of MIN_RUN_WORDS to MAX_RUN_WORDS words is the signature of a post where it

    * ends MIN_POSTS posts or more, and MIN_SHARE or more of all posts of the post's author,
    * follows MIN_POSTS or more different words in these posts (the start of a post counts as one),
      so it is a unit and not the end of a form letter,
    * and is used by few people: MIN_EXCLUSIVE or more of all posts that end with it are from
      authors for whom the first two points hold. There may be one such author; and up to one per
      AUTHORS_EACH authors of the corpus, but no more than MAX_AUTHORS.

    The longest such run is cut. Up to MAX_ROUNDS rounds are made. A later round looks only for runs
    that also end a post of the author that was cut in the round before.

    Parameters
    ----------
    connection
        DuckDB connection.
    table : name of a table or view
        Columns n (0 to posts - 1), author and normal (text as ``near_duplicates.NORMAL`` makes it).
    posts : int
        Number of rows of the table.

    Returns
    -------
    (posts,) int32, in order of n; 0 where a post has no signature.
    """
    cuts = np.zeros(posts, np.int32)
    make_endings(connection, table, cuts, np.ones(posts, bool))
    for _ in range(MAX_ROUNDS):
        _mark_frequent_runs(connection)
        signed = connection.execute(f"""
            WITH exclusive AS ({exclusive_endings("(SELECT count(*) FROM floors)")}),
            labels AS (SELECT hash, author FROM marked SEMI JOIN exclusive USING (hash)
                       WHERE label AND fresh)
            SELECT n, max(words) AS words FROM runs SEMI JOIN labels USING (hash, author)
            GROUP BY n""").fetchnumpy()
        if not len(signed["n"]):
            break
        cuts[signed["n"]] += signed["words"]
        _renew_endings(connection, table, cuts, signed["n"])
    return cuts


def _renew_endings(connection, table, cuts, signed):
    """Bring the table ``ends`` to the next round, in which only these posts are fresh."""
    state = pa.table({"n": signed, "cut": cuts[signed], "fresh": np.ones(len(signed), bool)})
    connection.register("state", state)
    connection.execute("DELETE FROM ends WHERE n IN (SELECT n FROM state)")
    connection.execute("UPDATE ends SET fresh = false WHERE fresh")
    connection.execute(f"INSERT INTO ends {ENDS.format(table)}")


def _mark_frequent_runs(connection):
    """Make the tables of :func:`mark_signatures`, without the runs that cannot be a signature.

    A run is frequent only where the run without its first word is. So longer runs are made only of
    the posts, those of all authors, whose shorter run some author uses often enough.
    """
    shorter = "ends"
    connection.execute("DROP TABLE IF EXISTS runs")
    for size in range(MIN_RUN_WORDS, MAX_RUN_WORDS + 1):
        posts = f"ends_{size}"
        connection.execute(f"CREATE OR REPLACE TABLE {posts} AS {LONGER.format(size, shorter)}")
        if size == MIN_RUN_WORDS:
            connection.execute(f"CREATE TABLE runs AS {RUNS.format(size, posts)}")
        else:
            connection.execute(f"INSERT INTO runs {RUNS.format(size, posts)}")
            connection.execute(f"DROP TABLE {shorter}")
        shorter = posts
        if not query_scalar(connection, f"SELECT count(*) FROM {shorter}"):
            break  # no run is frequent, so no longer one is
    connection.execute(f"DROP TABLE {shorter}")
    connection.execute(f"CREATE OR REPLACE TABLE marked AS {MARKED}")


def cut_signature(text: str, words: int) -> str:
    """Return a text without its last ``words`` words and the white space before them.

    The rest of the text stays as it is; it is empty where there are no more words.

    Parameters
    ----------
    text : str
        A post.
    words : int
        Number of words to cut; 0 returns the text as it is.
    """
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
    """Make the tables ``ends``, with the last words of each post, and ``floors``.

    The floor of an author is how many of the author's posts must end with a run to make it a
    signature. Words that earlier rounds cut are left out of ``ends``.

    Parameters
    ----------
    connection, table
        See :func:`find_signatures`.
    cuts : (posts,) int
        Number of words that earlier rounds cut from the end of each post.
    fresh : (posts,) bool
        Whether the round before cut any of them; True for all posts in the first round.
    """
    state = pa.table({"n": np.arange(len(cuts)), "cut": cuts, "fresh": fresh})
    connection.register("state", state)
    connection.execute(f"CREATE OR REPLACE TABLE ends AS {ENDS.format(table)}")
    connection.execute(f"""
        CREATE OR REPLACE TABLE floors AS
        SELECT author, greatest({MIN_POSTS}, ceil({MIN_SHARE} * count(*))) AS floor
        FROM ends GROUP BY author""")


def mark_signatures(connection: DuckDBPyConnection, frequent: str) -> None:
    """Make the tables ``runs``, the runs that end each post, and ``marked``, their counts.

    ``marked`` has a row per run and author; its ``label`` says whether the author uses the run
    often enough, and after enough different words, for a signature.

    Parameters
    ----------
    connection
        DuckDB connection with the tables of :func:`make_endings`.
    frequent
        SQL of hashes of last MIN_RUN_WORDS words; posts with other last words are left out.
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
    connection.execute(f"CREATE OR REPLACE TABLE marked AS {MARKED}")


def exclusive_endings(authors: int | str) -> str:
    """Return the SQL of the hashes of those runs in ``marked`` that only few authors use.

    For the rule see the third point of :func:`find_signatures`.

    Parameters
    ----------
    authors
        Number of authors of the corpus, or SQL of that number.
    """
    return f"""
        SELECT hash FROM marked GROUP BY hash
        HAVING count(*) FILTER (label)
               BETWEEN 1 AND greatest(1, least({MAX_AUTHORS}, {authors} // {AUTHORS_EACH}))
        AND sum(posts) FILTER (label) >= {MIN_EXCLUSIVE} * sum(posts)"""
