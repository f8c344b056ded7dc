"""The steps of a merge over partitions: what is written to the file of each partition.

Every finished partition leaves a file with a checksum, and a JSON record of its counts, so after a
crash a second run makes only what is missing. Who runs the steps, and where, is not decided here:
see :mod:`helpers.corpus.daft_engine`.

Rows have a column ``bucket``: the partition of the next step that reads the row. In the table below
"by author" means that the row goes to the partition of its author.

=============  =========  ========================================================================
step           partition  rows that a partition writes
=============  =========  ========================================================================
mask           file rows  posts without names, by their normal text
unique         text       of posts with the same normal text the first, by author
posts          authors    these posts, sorted by author and time. In later steps ``n`` is the row of
                          a post in this file, and ``id`` is (partition << PLACE_BITS) + n
candidates-0   authors    runs of last words (see ``signatures``) that some author repeats
marks-0        authors    per author and candidate how many posts end with it, and which
signed-0       one        which posts end with a signature, and of how many words, by author
...                       the same three steps for rounds 1 and 2, where they are needed
keys           authors    hashes of the posts' normal texts without signatures, by text
copies         text       posts that are copies without their signatures, by author
bands          authors    keys of the posts' MinHash bands, by key
pairs          band       pairs of posts to compare, by author of the later post
shingles       authors    these pairs with the later post's shingles, by author of the earlier
near           authors    later posts of pairs that are near copies, by author
table          authors    the posts that are left, as ``posts.parquet`` holds them
=============  =========  ========================================================================

A partition of authors is a range of their names in sorted order, so the tables of all partitions,
one after the other, are sorted.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..core.artifacts import (
    atomic_write,
    is_current,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from . import deduplicate, signatures
from .near_duplicates import JACCARD, NORMAL, PAIRS, SHINGLED, band_table
from .personal_names import MaskedNames
from .posts_table import SCHEMA, SORTED_BY, open_database, query_scalar

VERSION = 2  # raised when the same posts give other partitions
ROW_GROUP_ROWS = 10_000  # rows are sorted by bucket, so a reader skips the row groups of others
# lower bits of an id, which hold the post's row in its partition; above them the partition's number
PLACE_BITS = 32
# SQL of the shingles of those posts of a partition that the table ``pairs`` holds
SHINGLED_PAIRS = SHINGLED.format("(FROM cut_posts SEMI JOIN pairs USING (n))")
SIGNATURE_STEPS = ("candidates", "marks", "signed")  # repeated in every round


@dataclass
class Partitions:
    """The partitions of a merge, and the steps that make them.

    A step such as "mask" is the method "_mask": it gets a connection and the number of a partition,
    and returns the query of the partition's rows and a dict of counts.

    Attributes
    ----------
    folder : folder of the files of all steps
    slices : per partition of file rows, the file of a part and some of its row groups
    first_authors : first author of each partition of authors; there are equally many partitions of
        texts and of bands
    names, min_chars, near_duplicate : see :func:`helpers.corpus.deduplicate.merge_posts`
    memory_limit : memory of DuckDB in a worker
    authors : int, number of authors of the corpus, known after the step "posts"
    rounds : int, number of finished rounds of the search for signatures
    """

    folder: Path
    slices: list[tuple[Path, list[int]]]
    first_authors: list[str]
    names: MaskedNames
    min_chars: int
    near_duplicate: float
    memory_limit: str
    authors: int = 0
    rounds: int = 0

    def tasks(self, step: str) -> int:
        """Return the number of partitions of a step."""
        if step == "mask":
            return len(self.slices)
        if step == "signed":
            return 1
        return len(self.first_authors)

    def step_name(self, step: str) -> str:
        """Return the name of a step's folder, with the number of the round for SIGNATURE_STEPS."""
        return f"{step}-{self.rounds}" if step in SIGNATURE_STEPS else step

    def file(self, step: str, number: int) -> Path:
        """Return the path of the file of a partition of a step.

        Parameters
        ----------
        step
            Name of the step.
        number : int
            Number of the partition.
        """
        return self.folder / self.step_name(step) / f"{number:05d}.parquet"

    def make(self, step: str, number: int) -> dict:
        """Write the file and the record of a partition, unless they exist; return the record.

        Parameters
        ----------
        step
            Name of the step.
        number : int
            Number of the partition.
        """
        file = self.file(step, number)
        record = file.with_suffix(".json")
        if is_current(record, step) and verify_checksum(file):
            return read_json(record)
        began = time.perf_counter()
        with (
            open_database(file.with_suffix(".work"), self.memory_limit, 1) as connection,
            atomic_write(file) as temporary,
        ):
            query, counts = getattr(self, f"_{step}")(connection, number)
            connection.execute(
                f"""COPY ({query}) TO ?
                    (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS})""",
                [str(temporary)],
            )
        write_checksum(file)
        seconds = time.perf_counter() - began
        write_json(record, {"fingerprint": step, "counts": counts, "seconds": seconds})
        return read_json(record)

    def _read(self, connection, step_name, bucket=None, view="incoming"):
        """Make a view of the rows of a step's files: of all rows, or of those with this bucket."""
        files = sorted(str(file) for file in (self.folder / step_name).glob("*.parquet"))
        rows = connection.read_parquet(files)
        if bucket is not None:
            rows = rows.filter(f"bucket = {bucket}")
        rows.create_view(view, replace=True)

    def _mask(self, connection, number):
        """Mask names in the posts of some row groups of a file."""
        part, row_groups = self.slices[number]
        connection.register("rows", pq.ParquetFile(part).read_row_groups(row_groups))
        connection.execute("CREATE TABLE file_rows AS FROM rows")
        connection.table("file_rows").create_view("parts")
        masked = self.file("mask", number).with_suffix(".work") / "masked.parquet"
        counts = deduplicate.mask_names(connection, masked, self.names, self.min_chars)
        bucket = f"md5_number_lower({NORMAL}) % {len(self.first_authors)}"
        return f"SELECT *, {bucket} AS bucket FROM parts ORDER BY bucket", counts

    def _unique(self, connection, bucket):
        """Keep the first of all posts with the same normal text."""
        self._read(connection, "mask", bucket)
        numbers = range(len(self.first_authors))
        ranges = pa.table({"first": self.first_authors, "bucket": numbers})
        connection.register("ranges", ranges)
        connection.execute(f"""
            CREATE TABLE kept AS SELECT * EXCLUDE bucket, {NORMAL} AS normal FROM incoming
            QUALIFY row_number() OVER (PARTITION BY md5_number(normal)
                                       ORDER BY {deduplicate.EARLIEST_FIRST}) = 1""")
        copies = query_scalar(
            connection, "SELECT (SELECT count(*) FROM incoming) - count(*) FROM kept"
        )
        query = """
            SELECT k.* EXCLUDE normal, bucket FROM kept k ASOF JOIN ranges r ON author >= first
            ORDER BY bucket"""
        return query, {"duplicate": copies}

    def _posts(self, connection, bucket):
        """Sort the posts of a range of authors."""
        self._read(connection, "unique", bucket)
        authors = query_scalar(connection, "SELECT count(DISTINCT author) FROM incoming")
        query = f"""
            SELECT * EXCLUDE bucket, {NORMAL} AS normal FROM incoming
            ORDER BY {", ".join(SORTED_BY)}"""
        return query, {"authors": authors}

    def _signature_cuts(self, connection, bucket):
        """Make the view ``unique_posts`` of a range of authors; return what is cut from each post.

        Returns
        -------
        (posts,) int32, number of words that all rounds so far cut from each post; (posts,) bool,
        whether the last of them cut any, True for all before the first round.
        """
        posts = deduplicate.number_posts(connection, self.file("posts", bucket))
        cuts = np.zeros(posts, np.int32)
        fresh = np.ones(posts, bool)
        for number in range(self.rounds):
            self._read(connection, f"signed-{number}", bucket)
            signed = connection.execute("SELECT n, words FROM incoming").fetchnumpy()
            cuts[signed["n"]] += signed["words"]
            fresh[:] = False
            fresh[signed["n"]] = True
        return cuts, fresh

    def _candidates(self, connection, bucket):
        """List the runs of last words that an author of the range ends enough posts with."""
        cuts, fresh = self._signature_cuts(connection, bucket)
        signatures.make_endings(connection, "unique_posts", cuts, fresh)
        signatures.mark_signatures(connection, signatures.FREQUENT)
        query = """
            SELECT DISTINCT r.hash, e.hash AS last
            FROM (FROM runs
                  SEMI JOIN (FROM marked WHERE label AND fresh) USING (hash, author)) r
            JOIN ends e USING (n)"""
        return query, {}

    def _marks(self, connection, bucket):
        """Count the posts of each author of the range that end with a candidate, and list them.

        Rows of counts have no ``id``, rows of posts have one.
        """
        cuts, fresh = self._signature_cuts(connection, bucket)
        signatures.make_endings(connection, "unique_posts", cuts, fresh)
        self._read(connection, self.step_name("candidates"))
        signatures.mark_signatures(connection, "SELECT DISTINCT last AS hash FROM incoming")
        connection.execute("CREATE TABLE repeated AS FROM marked SEMI JOIN incoming USING (hash)")
        query = f"""
            SELECT hash, posts, label, NULL::BIGINT AS id, NULL::INT AS words FROM repeated
            UNION ALL
            SELECT hash, NULL, NULL, {bucket << PLACE_BITS} + n, words
            FROM runs SEMI JOIN (FROM repeated WHERE label AND fresh) USING (hash, author)"""
        return query, {}

    def _signed(self, connection, number):
        """List the posts that end with a signature: a candidate that only one person uses."""
        self._read(connection, self.step_name("marks"))
        connection.execute("CREATE VIEW marked AS FROM incoming WHERE id IS NULL")
        connection.execute(f"""
            CREATE TABLE signed AS SELECT id, max(words) AS words FROM incoming
            SEMI JOIN ({signatures.exclusive_endings(self.authors)}) USING (hash)
            WHERE id IS NOT NULL GROUP BY id""")
        query = f"""
            SELECT id >> {PLACE_BITS} AS bucket, id % {1 << PLACE_BITS} AS n, words
            FROM signed ORDER BY id"""
        return query, {"signed": query_scalar(connection, "SELECT count(*) FROM signed")}

    def _cut_signatures(self, connection, bucket):
        """Make the view ``cut_posts`` of the unique posts without signatures; return the counts."""
        cuts, _ = self._signature_cuts(connection, bucket)
        counts = deduplicate.cut_signatures(connection, cuts, self.min_chars)
        connection.execute(f"CREATE VIEW cut_posts AS {deduplicate.CUT.format(self.min_chars)}")
        return counts

    def _keys(self, connection, bucket):
        """List the hashes of the normal texts of posts without signatures."""
        counts = self._cut_signatures(connection, bucket)
        query = f"""
            SELECT md5_number_upper(normal) AS high, md5_number_lower(normal) AS low, time,
                   {bucket << PLACE_BITS} + n AS id, low % {len(self.first_authors)} AS bucket
            FROM cut_posts ORDER BY bucket"""
        return query, counts

    def _copies(self, connection, bucket):
        """List, of the posts with the same hash, all but the first."""
        self._read(connection, "keys", bucket)
        connection.execute(f"""
            CREATE TABLE later AS SELECT id, id >> {PLACE_BITS} AS bucket FROM incoming
            QUALIFY row_number() OVER (PARTITION BY high, low ORDER BY time, id) > 1""")
        copies = query_scalar(connection, "SELECT count(*) FROM later")
        return "FROM later ORDER BY bucket", {"duplicate": copies}

    def _drop_copies(self, connection, bucket):
        """Make the view ``distinct_posts``: ``cut_posts`` of a range of authors without copies."""
        self._cut_signatures(connection, bucket)
        self._read(connection, "copies", bucket, "copied")
        connection.execute(f"""
            CREATE VIEW distinct_posts AS FROM cut_posts
            WHERE n NOT IN (SELECT id - {bucket << PLACE_BITS} FROM copied)""")

    def _bands(self, connection, bucket):
        """List the keys of the MinHash bands of posts."""
        self._drop_copies(connection, bucket)
        band_table(connection, "distinct_posts", self.near_duplicate)
        query = f"""
            SELECT key, time, {bucket << PLACE_BITS} + n AS id,
                   key % {len(self.first_authors)} AS bucket
            FROM bands JOIN distinct_posts USING (n) ORDER BY bucket"""
        return query, {}

    def _pairs(self, connection, bucket):
        """Pair posts that share a band."""
        self._read(connection, "bands", bucket)
        connection.execute("""
            CREATE TABLE bands AS SELECT key, id, dense_rank() OVER (ORDER BY time, id) AS n
            FROM incoming
            SEMI JOIN (SELECT key FROM incoming GROUP BY key HAVING count(*) > 1) USING (key)""")
        connection.execute(PAIRS)
        query = f"""
            WITH ids AS (SELECT DISTINCT n, id FROM bands)
            SELECT a.id AS later, b.id AS earlier, later >> {PLACE_BITS} AS bucket
            FROM pairs p JOIN ids a ON a.n = p.n JOIN ids b ON b.n = p.earlier ORDER BY bucket"""
        return query, {}

    def _shingles(self, connection, bucket):
        """Add the shingles of the later post to each pair."""
        self._cut_signatures(connection, bucket)
        self._read(connection, "pairs", bucket)
        connection.execute(f"""
            CREATE TABLE pairs AS
            SELECT DISTINCT later - {bucket << PLACE_BITS} AS n, earlier FROM incoming""")
        query = f"""
            SELECT {bucket << PLACE_BITS} + n AS later, earlier, shingles,
                   earlier >> {PLACE_BITS} AS bucket
            FROM pairs JOIN ({SHINGLED_PAIRS}) USING (n) ORDER BY bucket"""
        return query, {}

    def _near(self, connection, bucket):
        """List the later posts of those pairs that are similar enough to be copies."""
        self._cut_signatures(connection, bucket)
        self._read(connection, "shingles", bucket)
        connection.execute(f"""
            CREATE VIEW pairs AS SELECT *, earlier - {bucket << PLACE_BITS} AS n FROM incoming""")
        similarity = JACCARD.format("p.shingles", "s.shingles")
        query = f"""
            SELECT DISTINCT later AS id, later >> {PLACE_BITS} AS bucket
            FROM pairs p JOIN ({SHINGLED_PAIRS}) s USING (n)
            WHERE {similarity} >= {self.near_duplicate} ORDER BY bucket"""
        return query, {}

    def _table(self, connection, bucket):
        """Select the posts that are left, sorted, without near copies."""
        self._drop_copies(connection, bucket)
        posts = query_scalar(connection, "SELECT count(*) FROM distinct_posts")
        ids = query_scalar(connection, "SELECT count(nullif(id, '')) FROM distinct_posts")
        near_copies = 0
        condition = ""
        if self.near_duplicate:
            self._read(connection, "near", bucket)
            near_copies = query_scalar(connection, "SELECT count(DISTINCT id) FROM incoming")
            condition = f"WHERE n NOT IN (SELECT id - {bucket << PLACE_BITS} FROM incoming)"
        query = f"""
            SELECT {", ".join(SCHEMA.names)} FROM distinct_posts {condition}
            ORDER BY {", ".join(SORTED_BY)}"""
        counts = {"posts": posts - near_copies, "ids": ids, "near_duplicate": near_copies}
        return query, counts
