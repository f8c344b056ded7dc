"""Repeated signatures: the same words at the end of an author's posts, and of nobody else's.

"Best wishes, Jane Doe" or a job title under every post names the author. A model that reads it need not learn any
style, and a verification score built on it is worth nothing. Such a run of words is cut. What many people write
("thanks!") is not exclusive to one author and stays. Openings are left alone: the ones only one author uses are
mostly habit ("hi, try:"), not names.
"""

import re

import numpy as np
import pyarrow as pa

from helpers.cleaning.near_duplicates import WHITE, Words, batches

SHORTEST, LONGEST = 1, 24  # words of one run
POSTS = 3  # so many posts of the author end with it ...
SHARE = 0.03  # ... and so large a part of the author's posts
EXCLUSIVE = 0.9  # so large a part of the posts that end with it are from such authors ...
ACCOUNTS = 6  # ... of whom there are no more than this, for one person may write from several addresses ...
CROWD = 200  # ... and one per so many authors of the corpus: among few people a habit shared by some is no name
REACH = 1000  # characters from the end that are looked at
ROUNDS = 3  # below a signature another one may come to light
SPLIT = re.compile(re.sub(r"\\x\{(\w+)\}", lambda code: re.escape(chr(int(code[1], 16))), WHITE))


def find(connection, table: str, posts: int) -> np.ndarray:
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
        signed = _round(connection, table, cuts, fresh)
        if not len(signed["n"]):
            break
        cuts[signed["n"]] += signed["words"]
        fresh[:] = False
        fresh[signed["n"]] = True
    return cuts


def cut(text: str, words: int) -> str:
    """The text without its last ``words`` words, white space as it was."""
    spaces = [space.start() for space in SPLIT.finditer(text.rstrip())]
    starts = [0] + spaces if not SPLIT.match(text) else spaces
    return text[: starts[-words]] if words and words < len(starts) else "" if words else text


def _round(connection, table, cuts, fresh):
    connection.execute("CREATE OR REPLACE TABLE ends (n BIGINT, author UBIGINT, hash UBIGINT, fresh BOOLEAN)")
    for number, author, words, end, count in _batches(connection, table, cuts):
        hashes = np.zeros(len(number), np.uint64)  # a post shorter than a run counts for its author all the same
        which = np.flatnonzero(count >= SHORTEST)
        hashes[which] = words.hash(end[which] - SHORTEST, SHORTEST)
        last = pa.table({"n": number, "author": author, "hash": hashes, "fresh": fresh[number]})
        connection.execute("INSERT INTO ends SELECT * FROM last")
    connection.execute(f"""
        CREATE OR REPLACE TABLE floors AS
        SELECT author, greatest({POSTS}, ceil({SHARE} * count(*))) AS floor FROM ends GROUP BY author""")
    # a run is never more frequent than its last words: only posts that share those are looked at closely
    related = np.zeros(len(cuts), bool)
    related[connection.execute("""
        WITH used AS (SELECT author, hash, count(*) AS posts, bool_or(fresh) AS fresh FROM ends GROUP BY author, hash),
        frequent AS (SELECT hash FROM used JOIN floors USING (author) WHERE posts >= floor AND fresh)
        SELECT n FROM ends SEMI JOIN frequent USING (hash)""").fetchnumpy()["n"]] = True
    connection.execute("""
        CREATE OR REPLACE TABLE runs
        (n BIGINT, author UBIGINT, words INT, hash UBIGINT, prior UBIGINT, fresh BOOLEAN)""")
    for number, author, words, end, count in _batches(connection, table, cuts):
        keep = np.flatnonzero(related[number])
        for length in range(SHORTEST, LONGEST + 1):
            keep = keep[count[keep] >= length]
            longer = keep[count[keep] > length]
            prior = np.zeros(len(number), np.uint64)
            prior[longer] = words.hash(end[longer] - length - 1, 1)
            hashes, size = words.hash(end[keep] - length, length), np.full(len(keep), length, np.int32)
            closing = pa.table({"n": number[keep], "author": author[keep], "words": size, "hash": hashes,
                                "prior": prior[keep], "fresh": fresh[number[keep]]})  # fmt: skip
            connection.execute("INSERT INTO runs SELECT * FROM closing")
    return connection.execute(f"""
        WITH used AS (SELECT hash, author, count(*) AS posts, count(DISTINCT prior) AS priors, bool_or(fresh) AS fresh
                      FROM runs GROUP BY hash, author),
        marked AS (SELECT *, posts >= floor AND priors >= {POSTS} AS label FROM used JOIN floors USING (author)),
        exclusive AS (SELECT hash FROM marked GROUP BY hash
                      HAVING count(*) FILTER (label)
                           BETWEEN 1 AND greatest(1, least({ACCOUNTS}, (SELECT count(*) // {CROWD} FROM floors)))
                      AND sum(posts) FILTER (label) >= {EXCLUSIVE} * sum(posts)),
        labels AS (SELECT hash, author FROM marked SEMI JOIN exclusive USING (hash) WHERE label AND fresh)
        SELECT n, max(words) AS words FROM runs SEMI JOIN labels USING (hash, author) GROUP BY n""").fetchnumpy()


def _batches(connection, table, cuts):
    """(n, author's hash, Words, the index after the last word that is left, number of words left), batch by batch."""
    query = f"SELECT n, hash(author) AS author, ltrim(right(normal, {REACH})) AS normal FROM {table}"
    for batch in batches(connection, query):
        number, author = (batch.column(name).to_numpy() for name in ("n", "author"))
        words = Words(batch.column("normal"))
        left = np.maximum(words.count - cuts[number], 0)
        yield number, author, words, words.first + left, left
