"""Near-duplicates: posts that are almost equal to an earlier post.

Pairs that may be similar are found by MinHash, and their Jaccard similarity is then computed
exactly. From a template, digest or repost that an author repeats, a model can tell the author
without any style, and one that appears in two splits inflates every score. All functions here work
on *normal* text (:data:`NORMAL`): lower case, each run of white space replaced by one blank. DuckDB
holds what grows with the corpus, which may exceed the memory.
"""

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from rensa import RMinHash

# the characters beside the blank that str.split() takes for white space, in an expression of RE2
OTHER_WHITE = (
    r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
WHITE = rf"[ {OTHER_WHITE}]+"
# WHITE without the single blanks, most of which stand in a text already
UNEVEN_WHITE = rf"[ {OTHER_WHITE}]{{2,}}|[{OTHER_WHITE}]"
NORMAL = f"trim(regexp_replace(lower(text), '{UNEVEN_WHITE}', ' ', 'g'))"  # SQL over `text`

SHINGLE = 3  # words of a shingle
MIN_WORDS = 8  # a shorter post has too few shingles to be called a copy
PERMUTATIONS = 64  # values of a MinHash signature
MAX_MISSED = 0.005  # most similar pairs, as a share, that may have no band in common
# random odd factors, one per permutation, with which band_keys hashes a band
MULTIPLIERS = np.random.default_rng(0).integers(0, 2**63, PERMUTATIONS, np.uint64) * 2 + 1

# SQL over a column `words`: the hashes of all runs of SHINGLE words
SHIFTED_WORDS = ", ".join(f"words[{place}:]" for place in range(1, SHINGLE + 1))
SHINGLES = f"list_transform(list_zip({SHIFTED_WORDS}, true), lambda run: hash(run))"
# SQL over a table {0} with columns n and normal; posts of fewer than MIN_WORDS words are left out
SHINGLED = f"""SELECT n, {SHINGLES} AS shingles
               FROM (SELECT n, string_split(normal, ' ') AS words FROM {{0}})
               WHERE len(words) >= {MIN_WORDS}"""
# SQL of the Jaccard similarity of two columns of lists, {0} and {1}
JACCARD = "len(list_intersect({0}, {1})) / len(list_distinct(list_concat({0}, {1})))"

# SQL of the pairs of posts to compare. To compare all posts that share a key would take quadratic
# time where a form letter is sent a thousand times: each is paired with the first of them and with
# the last three before it
PAIRS = """
    CREATE OR REPLACE TABLE pairs AS
    WITH full_buckets AS (SELECT key FROM bands GROUP BY key HAVING count(*) > 1),
    near AS (SELECT n, [first_value(n) OVER w, lag(n) OVER w, lag(n, 2) OVER w, lag(n, 3) OVER w]
                       AS before
             FROM bands SEMI JOIN full_buckets USING (key)
             WINDOW w AS (PARTITION BY key ORDER BY n)),
    flat AS (SELECT n, unnest(before) AS earlier FROM near)
    SELECT DISTINCT n, earlier FROM flat WHERE earlier < n"""


def minhash(shingles: pa.ListArray) -> np.ndarray:
    """Return the MinHash signatures of texts.

    Parameters
    ----------
    shingles : list array of uint64
        Hashes of each text's shingles.

    Returns
    -------
    (texts, PERMUTATIONS) uint32. The probability that the rows of two texts agree in a column is
    the Jaccard similarity of the texts' sets of shingles.
    """
    hashes = shingles.flatten().to_numpy()
    offsets = np.zeros(len(shingles) + 1, np.uint64)
    np.cumsum(shingles.value_lengths().to_numpy(), out=offsets[1:])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, PERMUTATIONS, 0)
    return np.array(matrix.to_rows(), np.uint32)


def rows_per_band(similarity: float) -> int:
    """Return the largest number of rows per band with which few similar pairs are missed.

    A band is r of the PERMUTATIONS values of a signature, which the literature calls rows. A pair
    of this similarity shares one of the PERMUTATIONS // r bands with probability
    1 - (1 - similarity^r)^(PERMUTATIONS // r), which must be at least 1 - MAX_MISSED. Where no r
    above 1 is enough, it is 1.
    """
    for rows in range(PERMUTATIONS, 1, -1):
        missed = (1 - similarity**rows) ** (PERMUTATIONS // rows)
        if missed <= MAX_MISSED:
            return rows
    return 1


def band_keys(signatures: np.ndarray, rows: int) -> np.ndarray:
    """Return the keys of bands: two texts whose signatures agree in a whole band share its key.

    Parameters
    ----------
    signatures : (texts, PERMUTATIONS) uint32
        Signatures of :func:`minhash`.
    rows : int
        Number of values (columns of ``signatures``) of a band.

    Returns
    -------
    (texts, PERMUTATIONS // rows) uint64; values beyond the last whole band are ignored.
    """
    columns = PERMUTATIONS // rows * rows
    products = signatures[:, :columns] * MULTIPLIERS[:columns]
    return products.reshape(len(signatures), -1, rows).sum(2)


def near_pairs(connection: DuckDBPyConnection, table: str, similarity: float) -> None:
    """Make the table ``copies(n)`` of the posts that are similar to an earlier one.

    The earlier post may itself be a copy: of a chain of versions, each similar to the one before,
    only the first is no copy. Posts of fewer than MIN_WORDS words are never copies.

    Parameters
    ----------
    connection
        DuckDB connection.
    table
        Name of a table or view with columns n (int64, in order of time) and normal (text).
    similarity : float in (0, 1]
        Jaccard similarity from which a post is a copy.
    """
    band_table(connection, table, similarity)
    connection.execute(PAIRS)
    paired_posts = f"(FROM {table} WHERE n IN (SELECT unnest([n, earlier]) FROM pairs))"
    connection.execute(f"""
        CREATE OR REPLACE TABLE copies AS
        WITH paired AS MATERIALIZED ({SHINGLED.format(paired_posts)})
        SELECT DISTINCT p.n
        FROM pairs p JOIN paired a ON a.n = p.n JOIN paired b ON b.n = p.earlier
        WHERE {JACCARD.format("a.shingles", "b.shingles")} >= {float(similarity)}""")


def band_table(connection: DuckDBPyConnection, table: str, similarity: float) -> None:
    """Make the table ``bands(n, key)``, in which posts that may be similar share a key.

    The view ``shingled`` of the posts and their shingles is made too.

    Parameters
    ----------
    connection, table, similarity
        See :func:`near_pairs`.
    """
    rows = rows_per_band(similarity)
    connection.execute(f"CREATE OR REPLACE VIEW shingled AS {SHINGLED.format(table)}")
    connection.execute("CREATE OR REPLACE TABLE bands (n BIGINT, key UBIGINT)")
    for batch in connection.cursor().sql("FROM shingled").to_arrow_reader(1 << 13):
        keys = band_keys(minhash(batch.column("shingles")), rows)
        posts = np.repeat(batch.column("n").to_numpy(), keys.shape[1])
        connection.register("keyed_posts", pa.table({"n": posts, "key": keys.ravel()}))
        connection.execute("INSERT INTO bands FROM keyed_posts")
