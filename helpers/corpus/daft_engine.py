"""The posts table by many processes or machines: the steps of ``deduplicate.merge`` as functions over partitions.

Daft hands partitions to workers, DuckDB works inside of one with the SQL of the other engine, and what moves between
partitions goes through files. Daft's own sort and window keep all rows in memory, which a corpus outgrows; a partition
fits by design. Every finished partition leaves its file, sealed, beside a JSON record of what it counted, so whoever
dies, a re-run does only what is missing. An optional part: it needs the package ``daft``.

======================  =========  ==================================================================================
step                    partition  rows that it writes, ``bucket`` says for which partition of the next
======================  =========  ==================================================================================
mask                    file rows  posts without names, by their normal text
unique                  text       the first of the same normal text, by author
posts                   authors    sorted by author and time: ``id`` is the partition and the place in it
candidates-0, marks-0   authors    runs of last words that some author repeats; all posts that end with one of them
signed-0 (to -2)        one        how many words to cut from which post: the signatures
keys                    authors    what is left of the posts, by normal text
copies                  text       posts that are copies now, by author
bands                   authors    MinHash bands, by their key
pairs                   band       posts to be compared, by author of the later one
shingles                authors    the same with the later one's shingles, by author of the earlier one
near                    authors    posts that are near copies, by author
table                   authors    the posts that are left, as ``posts.parquet`` holds them
======================  =========  ==================================================================================

Partitions of authors are ranges of names, so that their tables, one after the other, are sorted. With a Ray cluster
set ``DAFT_RUNNER=ray`` and ``RAY_ADDRESS``; every machine must see the outputs folder at the same place.
"""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    is_current,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)
from helpers.corpus import deduplicate, near_duplicates, signatures
from helpers.corpus.posts_table import SCHEMA, open_database, query_scalar, write_posts

VERSION = 2  # raised when the partitions of the same posts are others
POSTS, MOST = (
    50_000,
    4096,
)  # posts of a partition, and the most ranges of authors: beyond them they grow
GROUP = 10_000  # rows of a row group: a reader of one bucket skips those of others
SPAN = 32  # bits of an id for the place in its partition


def map_parts(function: Callable, jobs: list[tuple], workers: int) -> list:
    """``function(*job)``, JSON-able, for every job by ``workers`` processes, or all processors of a Ray cluster.

    Raises ImportError without Daft, RuntimeError where a worker died, and what the function raises, on Ray as text.
    """
    os.environ |= {"DO_NOT_TRACK": "true"} | {
        "DAFT_PROGRESS_BAR": os.environ.get("DAFT_PROGRESS_BAR", "0")
    }
    try:
        import daft
    except ImportError:
        raise ImportError(
            "engine 'daft' needs an optional package: pip install -c constraints.txt daft"
        ) from None
    if len(jobs) < 2:  # starting a worker would take longer
        return [function(*job) for job in jobs]
    # a thread of Daft that waits for an interpreter which ends aborts it, so Daft runs in a process that leaves by
    # os._exit, as all do that are forked; its pickle takes closures
    with ProcessPoolExecutor(1, initializer=end_with, initargs=[os.getpid()]) as pool:
        return pool.submit(_hand_out, daft.pickle.dumps((function, jobs)), workers).result()


def _hand_out(task, workers):
    import daft

    function, jobs = daft.pickle.loads(task)
    if daft.get_or_create_runner().name == "ray":
        import ray

        workers = int(ray.cluster_resources()["CPU"])

    @daft.udf(
        return_dtype=daft.DataType.string(),
        batch_size=1,
        concurrency=min(workers, len(jobs)),
        use_process=True,
    )
    class Worker:  # of a class, the processes are kept for all jobs
        def __init__(self): ...  # which Daft asks for

        def __call__(self, numbers):
            return [json.dumps(function(*jobs[number])) for number in numbers.to_pylist()]

    numbers = daft.from_pydict({"job": list(range(len(jobs)))})
    try:
        done = numbers.into_batches(1).with_column("done", Worker(daft.col("job"))).to_pydict()
    except daft.errors.UDFException as error:
        raise (error.__cause__ or RuntimeError(str(error))) from None
    return [json.loads(text) for _, text in sorted(zip(done["job"], done["done"], strict=True))]


def end_with(parent: int) -> None:
    """End this process soon after the one that started it, which may be killed; else it would wait for ever."""

    def look():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=look, daemon=True).start()


def merge_partitions(
    connection: duckdb.DuckDBPyConnection,
    scratch: Path,
    parts: list[Path],
    target: Path,
    *,
    min_chars: int,
    near_duplicate: float,
    strip_signatures: bool,
    names: dict,
) -> dict[str, Any]:
    """As :func:`helpers.corpus.deduplicate.merge_posts`, to the same bytes; ``steps`` of the result says what a step took.

    A worker may use as much memory as the connection, and there are as many workers as it has threads.
    """
    limit, workers = (
        query_scalar(connection, f"SELECT current_setting('{name}')")
        for name in ("memory_limit", "threads")
    )
    made = [VERSION, duckdb.__version__, POSTS, MOST, min_chars, near_duplicate, strip_signatures]
    folder = (
        scratch.parent
        / "daft"
        / fingerprint_of(made, sorted(names.items()), [*map(file_fingerprint, parts)])
    )
    run = Partitions(
        folder, *_partitions(connection, parts), names, min_chars, near_duplicate, limit
    )
    counts, steps = Counter(), []

    def step(name, tasks=len(run.firsts)):
        records = map_parts(
            partial(run.make, name), [(number,) for number in range(tasks)], workers
        )
        steps.append(
            [
                name,
                len(records),
                *(sum(record[key] for record in records) for key in ("seconds", "bytes")),
            ]
        )
        for record in records:
            counts.update(record["counts"])  # a sum of counters would forget what is 0

    step("mask", len(run.slices))
    step("unique")
    step("posts")
    run = replace(run, authors=counts.pop("authors"))
    while strip_signatures and run.rounds < signatures.ROUNDS:
        step(f"candidates-{run.rounds}")
        step(f"marks-{run.rounds}")
        step(f"signed-{run.rounds}", 1)
        run, strip_signatures = replace(run, rounds=run.rounds + 1), counts.pop("signed")
    for name in (
        "keys",
        "copies",
        *(("bands", "pairs", "shingles", "near") if near_duplicate else ()),
        "table",
    ):
        step(name)
    if counts["posts"]:
        began = time.perf_counter()
        connection.read_parquet(
            [str(run.file("table", n)) for n in range(len(run.firsts))]
        ).create_view("tables")
        columns = ", ".join(SCHEMA.names if counts["ids"] else SCHEMA.names[:4])
        write_posts(connection, f"SELECT {columns} FROM tables", target, is_sorted=True)
        steps.append(["one table", 1, time.perf_counter() - began, target.stat().st_size])
    shutil.rmtree(folder.parent)
    return {name: count for name, count in counts.items() if name not in ("posts", "ids")} | {
        "steps": steps
    }


def _partitions(connection, parts):
    """Row groups of files, about POSTS posts together, and the authors with whom ranges of as many begin, "" the first.

    A row group is what a source yields at once, some ten thousand posts.
    """
    connection.read_parquet(list(map(str, parts))).create_view("every")
    groups = {part: pq.read_metadata(part) for part in parts}
    total = sum(each.num_rows for each in groups.values())
    count = min(total // POSTS + 1, MOST)
    slices = [(part, some.tolist()) for part, each in groups.items() for some in
              np.array_split(range(each.num_row_groups), each.num_rows * count // max(total, 1) + 1)]  # fmt: skip
    rows = connection.execute(
        """
        SELECT min(author) FROM (SELECT author, sum(posts) OVER (ORDER BY author) - posts AS before,
                                        sum(posts) OVER () AS posts
                                 FROM (SELECT author, count(*) AS posts FROM every GROUP BY author))
        GROUP BY before * ? // posts ORDER BY 1""",
        [count],
    ).fetchall()
    return slices, ["", *(author for (author,) in rows[1:])]


@dataclass(frozen=True)
class Partitions:
    """What the workers know of a run: a method a step, which returns the query of its rows and what it counted."""

    folder: Path
    slices: list[tuple[Path, list[int]]]  # a file and some of its row groups
    firsts: list[str]  # author of each range; there are as many partitions of texts and of bands
    names: dict
    min_chars: int
    near_duplicate: float
    memory_limit: str
    authors: int = 0  # of all posts
    rounds: int = 0  # in which signatures were looked for so far

    def file(self, step: str, number: int) -> Path:
        return self.folder / step / f"{number:05d}.parquet"

    def make(self, step: str, number: int) -> dict:
        """Write the file and the record of a step's partition, unless both are there; return the record."""
        file = self.file(step, number)
        record = file.with_suffix(".json")
        if is_current(record, step) and verify_checksum(file):
            return read_json(record)
        began = time.perf_counter()
        with (
            open_database(file.with_suffix(".work"), self.memory_limit, 1) as connection,
            atomic_write(file) as temporary,
        ):
            query, counts = getattr(self, step.split("-")[0])(connection, number)
            connection.execute(f"COPY ({query}) TO ? (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {GROUP})",
                               [str(temporary)])  # fmt: skip
        write_checksum(file)
        write_json(record, {"fingerprint": step, "counts": counts, "seconds": time.perf_counter() - began,
                            "bytes": file.stat().st_size})  # fmt: skip
        return read_json(record)

    def _read(self, connection, step, rows="true", view="given"):
        """Make a view of rows of all files of a step."""
        files = sorted(map(str, (self.folder / step).glob("*.parquet")))
        connection.read_parquet(files).filter(rows).create_view(view, replace=True)

    def mask(self, connection, number):
        part, groups = self.slices[number]
        rows = pq.ParquetFile(part).read_row_groups(groups)
        connection.execute("CREATE TABLE given AS FROM rows")
        connection.table("given").create_view("parts")
        masked = self.file("mask", number).with_suffix(".work") / "masked.parquet"
        counts = deduplicate.mask_names(connection, masked, self.names, self.min_chars)
        bucket = f"md5_number_lower({near_duplicates.NORMAL}) % {len(self.firsts)}"
        return f"SELECT *, {bucket} AS bucket FROM parts ORDER BY bucket", counts

    def unique(self, connection, bucket):
        self._read(connection, "mask", f"bucket = {bucket}")
        connection.register(
            "ranges", pa.table({"first": self.firsts, "bucket": range(len(self.firsts))})
        )
        connection.execute(f"""
            CREATE TABLE kept AS SELECT * EXCLUDE bucket, {near_duplicates.NORMAL} AS normal FROM given
            QUALIFY row_number() OVER (PARTITION BY md5_number(normal) ORDER BY {deduplicate.ORDER}) = 1""")
        return (
            """SELECT k.* EXCLUDE normal, bucket FROM kept k ASOF JOIN ranges r ON author >= first ORDER BY bucket
               """,
            {
                "duplicate": query_scalar(
                    connection, "SELECT (SELECT count(*) FROM given) - count(*) FROM kept"
                )
            },
        )

    def posts(self, connection, bucket):
        self._read(connection, "unique", f"bucket = {bucket}")
        return (
            f"""SELECT * EXCLUDE bucket, {near_duplicates.NORMAL} AS normal FROM given
                   ORDER BY author, time, text, topic, id
               """,
            {"authors": query_scalar(connection, "SELECT count(DISTINCT author) FROM given")},
        )

    def _cuts(self, connection, bucket):
        """The view ``unique_posts`` of a range of authors, and the words that the rounds cut from each post."""
        numbered = connection.read_parquet(str(self.file("posts", bucket)), file_row_number=True)
        numbered.project("* EXCLUDE file_row_number, file_row_number AS n").create_view(
            "unique_posts"
        )
        posts = query_scalar(connection, "SELECT count(*) FROM unique_posts")
        cuts, fresh = np.zeros(posts, np.int32), np.ones(posts, bool)
        for number in range(self.rounds):
            self._read(connection, f"signed-{number}", f"bucket = {bucket}")
            signed = connection.execute("SELECT n, words FROM given").fetchnumpy()
            cuts[signed["n"]] += signed["words"]
            fresh = np.isin(np.arange(posts), signed["n"])
        return cuts, fresh

    def candidates(self, connection, bucket):
        signatures.post_endings(connection, "unique_posts", *self._cuts(connection, bucket))
        signatures.mark_signatures(connection, signatures.FREQUENT)
        return (
            """SELECT DISTINCT r.hash, e.hash AS last
                  FROM (FROM runs SEMI JOIN (FROM marked WHERE label AND fresh) USING (hash, author)) r
                  JOIN ends e USING (n)""",
            {},
        )

    def marks(self, connection, bucket):
        signatures.post_endings(connection, "unique_posts", *self._cuts(connection, bucket))
        self._read(connection, f"candidates-{self.rounds}")
        signatures.mark_signatures(connection, "SELECT DISTINCT last AS hash FROM given")
        connection.execute("CREATE TABLE repeated AS FROM marked SEMI JOIN given USING (hash)")
        return (
            f"""SELECT hash, posts, label, NULL::BIGINT AS id, NULL::INT AS words FROM repeated UNION ALL
                   SELECT hash, NULL, NULL, {bucket << SPAN} + n, words
                   FROM runs SEMI JOIN (FROM repeated WHERE label AND fresh) USING (hash, author)""",
            {},
        )

    def signed(self, connection, number):
        self._read(connection, f"marks-{self.rounds}")
        connection.execute("CREATE VIEW marked AS FROM given WHERE id IS NULL")
        connection.execute(f"""
            CREATE TABLE signed AS SELECT id, max(words) AS words FROM given
            SEMI JOIN ({signatures.exclusive_endings(self.authors)}) USING (hash) WHERE id IS NOT NULL GROUP BY id""")
        return (
            f"""SELECT id >> {SPAN} AS bucket, id % {1 << SPAN} AS n, words FROM signed ORDER BY id
                   """,
            {"signed": query_scalar(connection, "SELECT count(*) FROM signed")},
        )

    def _cut(self, connection, bucket):
        """The view ``cut_posts``: unique posts without their signatures; return the counts."""
        cuts, _ = self._cuts(connection, bucket)
        counts = deduplicate.cut_signatures(connection, cuts, self.min_chars)
        connection.execute(f"CREATE VIEW cut_posts AS {deduplicate.CUT.format(self.min_chars)}")
        return counts

    def keys(self, connection, bucket):
        return (
            f"""SELECT md5_number_upper(normal) AS high, md5_number_lower(normal) AS low, time,
                          {bucket << SPAN} + n AS id, low % {len(self.firsts)} AS bucket
                   FROM cut_posts ORDER BY bucket""",
            self._cut(connection, bucket),
        )

    def copies(self, connection, bucket):
        self._read(connection, "keys", f"bucket = {bucket}")
        connection.execute(f"""
            CREATE TABLE later AS SELECT id, id >> {SPAN} AS bucket FROM given
            QUALIFY row_number() OVER (PARTITION BY high, low ORDER BY time, id) > 1""")
        return "FROM later ORDER BY bucket", {
            "duplicate": query_scalar(connection, "SELECT count(*) FROM later")
        }

    def _rest(self, connection, bucket):
        """The view ``rest``: posts of a range of authors without copies."""
        self._cut(connection, bucket)
        self._read(connection, "copies", f"bucket = {bucket}", "copied")
        connection.execute(f"""CREATE VIEW rest AS FROM cut_posts
                               WHERE n NOT IN (SELECT id - {bucket << SPAN} FROM copied)""")

    def bands(self, connection, bucket):
        self._rest(connection, bucket)
        near_duplicates.band_table(connection, "rest", self.near_duplicate)
        return (
            f"""SELECT key, time, {bucket << SPAN} + n AS id, key % {len(self.firsts)} AS bucket
                   FROM bands JOIN rest USING (n) ORDER BY bucket""",
            {},
        )

    def pairs(self, connection, bucket):
        self._read(connection, "bands", f"bucket = {bucket}")
        connection.execute("""
            CREATE TABLE bands AS SELECT key, id, dense_rank() OVER (ORDER BY time, id) AS n
            FROM given SEMI JOIN (SELECT key FROM given GROUP BY key HAVING count(*) > 1) USING (key)""")
        connection.execute(near_duplicates.PAIRS)
        return (
            f"""WITH ids AS (SELECT DISTINCT n, id FROM bands)
                   SELECT a.id AS later, b.id AS earlier, later >> {SPAN} AS bucket
                   FROM pairs p JOIN ids a ON a.n = p.n JOIN ids b ON b.n = p.earlier ORDER BY bucket""",
            {},
        )

    def shingles(self, connection, bucket):
        self._cut(connection, bucket)
        self._read(connection, "pairs", f"bucket = {bucket}")
        connection.execute(
            f"CREATE TABLE pairs AS SELECT DISTINCT later - {bucket << SPAN} AS n, earlier FROM given"
        )
        shingled = near_duplicates.SHINGLED.format("(FROM cut_posts SEMI JOIN pairs USING (n))")
        return (
            f"""SELECT {bucket << SPAN} + n AS later, earlier, shingles, earlier >> {SPAN} AS bucket
                   FROM pairs JOIN ({shingled}) USING (n) ORDER BY bucket""",
            {},
        )

    def near(self, connection, bucket):
        self._cut(connection, bucket)
        self._read(connection, "shingles", f"bucket = {bucket}")
        connection.execute(
            f"CREATE VIEW pairs AS SELECT *, earlier - {bucket << SPAN} AS n FROM given"
        )
        shingled = near_duplicates.SHINGLED.format("(FROM cut_posts SEMI JOIN pairs USING (n))")
        return (
            f"""SELECT DISTINCT later AS id, later >> {SPAN} AS bucket FROM pairs p JOIN ({shingled}) s USING (n)
                   WHERE {near_duplicates.JACCARD.format("p.shingles", "s.shingles")} >= {self.near_duplicate}
                   ORDER BY bucket""",
            {},
        )

    def table(self, connection, bucket):
        self._rest(connection, bucket)
        ids, before = connection.execute(
            "SELECT count(nullif(id, '')), count(*) FROM rest"
        ).fetchall()[0]
        near = 0
        if self.near_duplicate:
            self._read(connection, "near", f"bucket = {bucket}")
            near = query_scalar(connection, "SELECT count(DISTINCT id) FROM given")
        others = f"WHERE n NOT IN (SELECT id - {bucket << SPAN} FROM given)" if near else ""
        return (
            f"""SELECT {", ".join(SCHEMA.names)} FROM rest {others} ORDER BY author, time, text, topic, id
                   """,
            {"posts": before - near, "ids": ids, "near_duplicate": near},
        )
