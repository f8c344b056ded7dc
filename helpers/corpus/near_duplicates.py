"""Near-duplicates: posts that say almost the same as an earlier one, by MinHash, checked exactly.

A repeated template, digest or repost is a label that a model can learn instead of a style, and one
that appears on both sides of a split inflates every score. Everything here works on *normal* text
(:data:`NORMAL`): lower case, runs of white space collapsed to one blank. DuckDB holds what grows
with the corpus, which may exceed the memory.
"""

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from rensa import RMinHash

# what str.split() takes for white space
WHITE = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
)
NORMAL = f"trim(regexp_replace(lower(text), '{WHITE}', ' ', 'g'))"  # SQL over a column `text`

SHINGLE = 3  # words
MIN_WORDS = 8  # a shorter post has too few shingles to be called a copy
PERMUTATIONS = 64
MAX_MISSED = 0.005  # of the pairs that are similar enough, see rows_per_band
# one a permutation
MULTIPLIERS = np.random.default_rng(0).integers(0, 2**63, PERMUTATIONS, np.uint64) * 2 + 1

# SQL over a column `words`
SHIFTED_WORDS = ", ".join(f"words[{place}:]" for place in range(1, SHINGLE + 1))
SHINGLES = f"list_transform(list_zip({SHIFTED_WORDS}, true), lambda run: hash(run))"
# SQL over a table with columns n and normal
SHINGLED = f"""SELECT n, {SHINGLES} AS shingles
               FROM (SELECT n, string_split(normal, ' ') AS words FROM {{0}})
               WHERE len(words) >= {MIN_WORDS}"""
# SQL over two columns of lists
JACCARD = "len(list_intersect({0}, {1})) / len(list_distinct(list_concat({0}, {1})))"

# all against all would be quadratic in a bucket of form letters: the first and the last few before
# it suffice
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
    """Return MinHash signatures of texts.

    Parameters
    ----------
    shingles : list array of uint64
        Hashes of each text's shingles.

    Returns
    -------
    (texts, PERMUTATIONS) uint32: the probability that two rows agree in a column is the Jaccard
    similarity of their sets of shingles.
    """
    hashes = shingles.flatten().to_numpy()
    offsets = np.zeros(len(shingles) + 1, np.uint64)
    np.cumsum(shingles.value_lengths().to_numpy(), out=offsets[1:])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, PERMUTATIONS, 0)
    return np.array(matrix.to_rows(), np.uint32)


def rows_per_band(similarity: float) -> int:
    """Return the most rows a band with which similar pairs share a band often enough.

    With r rows in PERMUTATIONS // r bands, a pair of this similarity shares a band with probability
    1 - (1 - similarity^r)^(PERMUTATIONS // r), which is to be 1 - MAX_MISSED or more.
    """
    for rows in range(PERMUTATIONS, 1, -1):
        missed = (1 - similarity**rows) ** (PERMUTATIONS // rows)
        if missed <= MAX_MISSED:
            return rows
    return 1


def band_keys(signatures: np.ndarray, rows: int) -> np.ndarray:
    """Return keys that are equal where a whole band of two signatures is.

    Parameters
    ----------
    signatures : (texts, PERMUTATIONS) uint32
        See :func:`minhash`.
    rows : int
        Columns of a band.

    Returns
    -------
    (texts, bands) uint64
    """
    columns = PERMUTATIONS // rows * rows
    products = signatures[:, :columns] * MULTIPLIERS[:columns]
    return products.reshape(len(signatures), -1, rows).sum(2)


def near_pairs(connection: DuckDBPyConnection, table: str, similarity: float) -> None:
    """Make the table ``copies(n)``: the posts that are alike to an earlier one.

    The earlier post may itself be a copy: of a chain of ever newer versions only the first stays.
    Posts below MIN_WORDS words never count.

    Parameters
    ----------
    connection
        DuckDB connection.
    table
        Name of a table or view with columns n (int64, the order of time) and normal (text).
    similarity : float in (0, 1]
        Jaccard similarity from which posts are alike.
    """
    band_table(connection, table, similarity)
    connection.execute(PAIRS)
    connection.execute(f"""
        CREATE OR REPLACE TABLE copies AS SELECT DISTINCT p.n
        FROM pairs p JOIN shingled a ON a.n = p.n JOIN shingled b ON b.n = p.earlier
        WHERE {JACCARD.format("a.shingles", "b.shingles")} >= {float(similarity)}""")


def band_table(connection: DuckDBPyConnection, table: str, similarity: float) -> None:
    """Make the table ``bands(n, key)``: posts that share a key may be alike.

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
