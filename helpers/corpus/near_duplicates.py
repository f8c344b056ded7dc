"""Near-duplicates: posts that say almost the same as an earlier one, found with MinHash and checked exactly.

A repeated template, digest or repost is a label that a model can learn instead of a style, and one that appears on
both sides of a split inflates every score. Everything here works on *normal* text (:data:`NORMAL`): lower case,
runs of white space collapsed to one blank. DuckDB holds what grows with the corpus, which may exceed the memory.
"""

import numpy as np
import pyarrow as pa
from rensa import RMinHash

# what str.split() takes for white space
WHITE = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
NORMAL = f"trim(regexp_replace(lower(text), '{WHITE}', ' ', 'g'))"  # SQL over a column `text`

SHINGLE = 3  # words
MIN_WORDS = 8  # a shorter post has too few shingles to be called a copy
PERMUTATIONS = 64
MULTIPLIERS = (
    np.random.default_rng(0).integers(0, 2**63, PERMUTATIONS, np.uint64) * 2 + 1
)  # one a permutation

RUNS = ", ".join(f"words[{place}:]" for place in range(1, SHINGLE + 1))
SHINGLES = (
    f"list_transform(list_zip({RUNS}, true), lambda run: hash(run))"  # SQL over a column `words`
)
SHINGLED = f"""SELECT n, {SHINGLES} AS shingles FROM (SELECT n, string_split(normal, ' ') AS words FROM {{0}})
               WHERE len(words) >= {MIN_WORDS}"""  # SQL over a table with columns n and normal
JACCARD = "len(list_intersect({0}, {1})) / len(list_distinct(list_concat({0}, {1})))"  # SQL over two columns of lists

# all against all would be quadratic in a bucket of form letters: the first and the last few before it suffice
PAIRS = """
    CREATE OR REPLACE TABLE pairs AS WITH full_buckets AS (SELECT key FROM bands GROUP BY key HAVING count(*) > 1),
    near AS (SELECT n, [first_value(n) OVER w, lag(n) OVER w, lag(n, 2) OVER w, lag(n, 3) OVER w] AS before
             FROM bands SEMI JOIN full_buckets USING (key) WINDOW w AS (PARTITION BY key ORDER BY n)),
    flat AS (SELECT n, unnest(before) AS earlier FROM near)
    SELECT DISTINCT n, earlier FROM flat WHERE earlier < n"""


def minhash(shingles: pa.ListArray) -> np.ndarray:
    """Signatures [texts, PERMUTATIONS], uint32: P(two agree in a column) = Jaccard similarity of the shingle sets."""
    flat, ends = (
        shingles.flatten().to_numpy(),
        np.cumsum(shingles.value_lengths().to_numpy(), dtype=np.uint64),
    )
    offsets = np.concatenate([np.zeros(1, np.uint64), ends])
    return np.array(
        RMinHash.digest_matrix_from_flat_token_hashes(flat, offsets, PERMUTATIONS, 0).to_rows(),
        np.uint32,
    )


def rows_per_band(similarity: float) -> int:
    """The most rows per band with which a pair this similar shares a band with probability >= 0.995.

    With r rows in PERMUTATIONS // r bands that probability is 1 - (1 - similarity^r)^(PERMUTATIONS // r).
    """
    rows = range(PERMUTATIONS, 0, -1)
    return next((r for r in rows if (1 - similarity**r) ** (PERMUTATIONS // r) <= 0.005), 1)


def band_keys(signatures: np.ndarray, rows: int) -> np.ndarray:
    """One uint64 per band of ``rows`` columns, [texts, bands]: equal where a whole band is."""
    used = PERMUTATIONS // rows * rows
    return (signatures[:, :used] * MULTIPLIERS[:used]).reshape(len(signatures), -1, rows).sum(2)


def near_pairs(connection, table: str, similarity: float) -> None:
    """Make the DuckDB table ``copies(n)``: posts with an earlier post of Jaccard similarity >= ``similarity`` > 0.

    table: a table or view with columns n (int64, the order of time) and normal (text). The earlier post may itself
    be a copy: of a chain of ever newer versions only the first stays. Posts below MIN_WORDS words never count.
    """
    band_table(connection, table, similarity)
    connection.execute(PAIRS)
    connection.execute(f"""
        CREATE OR REPLACE TABLE copies AS SELECT DISTINCT p.n
        FROM pairs p JOIN shingled a ON a.n = p.n JOIN shingled b ON b.n = p.earlier
        WHERE {JACCARD.format("a.shingles", "b.shingles")} >= {float(similarity)}""")


def band_table(connection, table: str, similarity: float) -> None:
    """Make the table ``bands(n, key)`` of a table as :func:`near_pairs` takes it: posts that share a key may be alike."""
    rows = rows_per_band(similarity)
    connection.execute(f"CREATE OR REPLACE VIEW shingled AS {SHINGLED.format(table)}")
    connection.execute("CREATE OR REPLACE TABLE bands (n BIGINT, key UBIGINT)")
    for batch in connection.cursor().sql("FROM shingled").to_arrow_reader(1 << 13):
        keys = band_keys(minhash(batch.column("shingles")), rows)
        signed = pa.table(
            {"n": np.repeat(batch.column("n").to_numpy(), keys.shape[1]), "key": keys.ravel()}
        )
        connection.execute("INSERT INTO bands SELECT * FROM signed")
