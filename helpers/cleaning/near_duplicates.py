"""Near-duplicates: posts that say almost the same as an earlier one, found with MinHash and checked exactly.

A repeated template, digest or repost is a label that a model can learn instead of a style, and one that appears on
both sides of a split inflates every score. Everything here works on *normal* text (:data:`NORMAL`): lower case,
runs of white space collapsed to one blank. Only hashes are kept, in DuckDB, so a corpus may exceed the memory.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from rensa import RMinHash

# what str.split() takes for white space
WHITE = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
NORMAL = f"trim(regexp_replace(lower(text), '{WHITE}', ' ', 'g'))"  # SQL over a column `text`

SHINGLE = 3  # words
MIN_WORDS = 8  # a shorter post has too few shingles to be called a copy
PERMUTATIONS = 64
CHUNK = 1 << 22  # bytes of text hashed at a time

BASE = 0x9E3779B97F4A7C15 | 1  # odd, so it has an inverse modulo 2^64
BYTES = np.random.default_rng(0).integers(0, 2**64, 256, dtype=np.uint64)
_powers = {}


def _tables(length):
    """BASE^i and BASE^-i modulo 2^64 for 0 <= i < length."""
    if len(_powers.get(BASE, ())) < length:
        for base in (BASE, pow(BASE, -1, 2**64)):
            steps = np.full(max(length, CHUNK), base, np.uint64)
            steps[0] = 1
            _powers[base] = np.cumprod(steps)
    return _powers.values()


def mix(value: np.ndarray) -> np.ndarray:
    """Scramble uint64 so that every bit of the result depends on every bit of the value."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


class Words:
    """The words of a batch of normal texts, and a 64-bit hash of any run of them.

    With ``S[i] = sum_{j<i} BYTES[text[j]] BASE^j (mod 2^64)`` the hash of bytes s..e is ``(S[e] - S[s]) BASE^-s``,
    wherever they stand: one pass over the bytes, then two look-ups per run.

    first: index of each text's first word, [texts]; count: number of its words, [texts].
    """

    def __init__(self, texts: pa.Array):
        texts = texts.cast(pa.large_string())
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        up, self._down = _tables(len(data) + 1)
        self._sum = np.zeros(len(data) + 1, np.uint64)
        np.cumsum(BYTES[data] * up[: len(data)], out=self._sum[1:])
        edge = np.zeros((2, len(data) + 1), bool)  # where a word starts, where one ends
        edge[0, 1:] = edge[1, :-1] = data == 32
        filled = offsets[:-1] < offsets[1:]
        edge[0, offsets[:-1][filled]] = edge[1, offsets[1:][filled]] = True
        self._start, self._end = map(np.flatnonzero, edge)
        bounds = np.searchsorted(self._start, offsets)
        self.first, self.count = bounds[:-1], np.diff(bounds)

    def hash(self, first: np.ndarray, count) -> np.ndarray:
        """uint64 per run of ``count`` words that starts at word ``first``; the run must stay within its text."""
        start, end = self._start[first], self._end[first + count - 1]
        return mix((self._sum[end] - self._sum[start]) * self._down[start])

    def shingles(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(hashes of all runs of SHINGLE words, offsets [texts + 1]) of the texts with these indices."""
        size = np.maximum(self.count[which] - SHINGLE + 1, 0)
        offsets = np.concatenate([[0], np.cumsum(size)])
        first = np.repeat(self.first[which] - offsets[:-1], size) + np.arange(offsets[-1])
        return self.hash(first, SHINGLE), offsets


def batches(connection, query: str, rows: int = 1 << 15) -> Iterator[pa.RecordBatch]:
    """What a query with a column ``normal`` yields, in batches of about CHUNK bytes."""
    for batch in connection.cursor().sql(query).to_arrow_reader(rows):
        size = max(1, int(len(batch) * CHUNK / max(batch.column("normal").nbytes, 1)))
        yield from (batch.slice(start, size) for start in range(0, len(batch), size))


def minhash(shingles: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Signatures [texts, PERMUTATIONS], uint32: P(two agree in a column) = Jaccard similarity of the shingle sets."""
    return np.array(
        RMinHash.digest_matrix_from_flat_token_hashes(shingles, offsets.astype(np.uint64), PERMUTATIONS, 0).to_rows(),
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
    bands = PERMUTATIONS // rows
    keys = np.broadcast_to(np.arange(bands, dtype=np.uint64), (len(signatures), bands))
    for row in np.moveaxis(signatures[:, : bands * rows].reshape(-1, bands, rows), 2, 0):
        keys = mix(keys * np.uint64(BASE) + row)
    return keys


def jaccard(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Exact Jaccard similarity of the shingle sets of each pair of normal texts, [pairs]; 0 where both are empty."""
    keys, pairs = [], []
    for texts in (left, right):
        hashes, offsets = Words(texts).shingles(np.arange(len(texts)))
        pair = np.repeat(np.arange(len(texts)), np.diff(offsets))
        key, first = np.unique(mix(hashes + pair.astype(np.uint64) * np.uint64(BASE)), return_index=True)
        keys.append(key)
        pairs.append(pair[first])
    common = np.intersect1d(*keys, assume_unique=True, return_indices=True)[1]
    both, *sizes = (np.bincount(pair, minlength=len(left)) for pair in (pairs[0][common], *pairs))
    return both / np.maximum(sum(sizes) - both, 1)


def near(connection, table: str, similarity: float) -> None:
    """Make the DuckDB table ``copies(n)``: posts with an earlier post of Jaccard similarity >= ``similarity``.

    table: a table or view with columns n (int64, the order of time) and normal (text). The earlier post may itself
    be a copy: of a chain of ever newer versions only the first stays. Posts below MIN_WORDS words never count.
    Raises ValueError where the similarity is not in (0, 1].
    """
    if not 0 < similarity <= 1:
        raise ValueError(f"near_duplicate must lie in (0, 1], not {similarity!r}")
    rows = rows_per_band(similarity)
    connection.execute("CREATE OR REPLACE TABLE bands (n BIGINT, key UBIGINT)")
    for batch in batches(connection, f"SELECT n, normal FROM {table}"):
        words = Words(batch.column("normal"))
        which = np.flatnonzero(words.count >= MIN_WORDS)
        if len(which):
            keys = band_keys(minhash(*words.shingles(which)), rows)
            number = np.repeat(batch.column("n").to_numpy()[which], keys.shape[1])
            signed = pa.table({"n": number, "key": keys.ravel()})
            connection.execute("INSERT INTO bands SELECT * FROM signed")
    # all against all would be quadratic in a bucket of form letters: the first and the last few before it suffice
    connection.execute("""
        CREATE OR REPLACE TABLE pairs AS
        WITH full_buckets AS (SELECT key FROM bands GROUP BY key HAVING count(*) > 1),
        near AS (SELECT n, [first_value(n) OVER w, lag(n) OVER w, lag(n, 2) OVER w, lag(n, 3) OVER w] AS before
                 FROM bands SEMI JOIN full_buckets USING (key) WINDOW w AS (PARTITION BY key ORDER BY n)),
        flat AS (SELECT n, unnest(before) AS earlier FROM near)
        SELECT DISTINCT n, earlier FROM flat WHERE earlier < n""")
    connection.execute("CREATE OR REPLACE TABLE hits (n BIGINT)")
    query = f"""
        SELECT p.n, a.normal, b.normal AS earlier FROM pairs p JOIN {table} a ON a.n = p.n
        JOIN {table} b ON b.n = p.earlier"""
    for batch in batches(connection, query, 1 << 13):
        alike = jaccard(batch.column("normal"), batch.column("earlier")) >= similarity
        copied = batch.select(["n"]).filter(pa.array(alike))
        connection.execute("INSERT INTO hits SELECT * FROM copied")
    connection.execute("CREATE OR REPLACE TABLE copies AS SELECT DISTINCT n FROM hits")
