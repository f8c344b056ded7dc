"""Merge of the parts of a corpus into one sorted posts table: copies are dropped, signatures cut.

The steps are SQL, see ``steps.sql``. On one machine their rows lie in tables of one database, which
uses the disk beyond its memory (:class:`Tables`). For many workers they lie in files of partitions
of about PARTITION_POSTS posts (:class:`Files`): a finished file has a checksum, so after a crash
only what is missing is made.

*Copies* have the same normal text: lower case, each run of white space replaced by one blank. Of
copies the earliest stays; of copies from one second, the first by author, text and topic. So the
order of parts and threads does not matter.

*Near copies* are almost equal to an earlier post, which may itself be a copy. Posts that may be
similar are found by MinHash; their Jaccard similarity of runs of three words is then computed
exactly. From a template or digest that an author repeats, a model can tell the author without any
style, and one that appears in two splits inflates every score.

*Signatures* are runs of last words that end many posts of one author and hardly any of others.
"Best wishes, Jane Doe" under every post names the author: a score that rests on it is worth
nothing. What many people write ("thanks!") stays. The longest such run is cut, in MAX_ROUNDS
rounds: before a signature that was cut there may be another one.
"""

import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from rensa import RMinHash

from ..core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    verify_checksum,
    write_checksum,
    write_json,
)
from .personal_names import MaskedNames, mask_known_names
from .posts_table import SCHEMA, SORTED_BY, open_database, write_posts

# the characters beside the blank that str.split() takes for white space, in an expression of RE2
OTHER_WHITE = (
    r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
# runs of white space without the single blanks, most of which stand in a text already
UNEVEN_WHITE = rf"[ {OTHER_WHITE}]{{2,}}|[{OTHER_WHITE}]"
NORMAL = f"trim(regexp_replace(lower(text), '{UNEVEN_WHITE}', ' ', 'g'))"  # SQL over `text`
WORD = rf"[ {OTHER_WHITE}]*[^ {OTHER_WHITE}]+"  # with the white space before it
MAX_ROUNDS = 3  # rounds of the search for signatures
PERMUTATIONS = 64  # values of a MinHash signature
MAX_MISSED = 0.005  # most similar pairs, as a share, that may have no band in common
# random odd factors, one per permutation, with which band_keys hashes a band
MULTIPLIERS = np.random.default_rng(0).integers(0, 2**63, PERMUTATIONS, np.uint64) * 2 + 1

PARTITION_POSTS = 50_000  # approximate number of posts of a partition
MAX_PARTITIONS = 4096  # most ranges of authors; with more posts partitions grow
ROW_GROUP_ROWS = 10_000  # rows are sorted by bucket, so a reader skips the row groups of others
FROM_OWN = ("posts", "shortened", "final")  # steps of which a partition reads its own file
FROM_ALL = ("candidates", "marks")  # ... and all files, whatever the bucket
SHOWN = pa.schema([("author", pa.string()), ("shown", pa.string())])
STEPS_FILE = Path(__file__).with_name("steps.sql")
PIECES = re.split(r"^-- \[(\w+)\].*$", STEPS_FILE.read_text(encoding="utf-8"), flags=re.M)
SQL = dict(zip(PIECES[1::2], PIECES[2::2], strict=True))  # name of a step -> its SQL


@dataclass(frozen=True)
class MergeSettings:
    """Settings of a merge.

    Attributes
    ----------
    min_chars : posts that are shorter once names are masked or signatures cut are dropped
    near_duplicate : Jaccard similarity from which the later of two posts is dropped; 0 drops none
    keep_copies : whether posts with equal texts are kept, too
    strip_signatures : whether signatures are cut
    names : names that are masked first, so that texts which differ only in a name are copies; see
        :func:`helpers.corpus.personal_names.names_to_mask`
    shown_names : names of authors that are replaced, and those that take their place
    """

    min_chars: int
    near_duplicate: float
    keep_copies: bool
    strip_signatures: bool
    names: MaskedNames
    shown_names: dict[str, str] = field(default_factory=dict)


class Tables:
    """The rows of all steps in tables of one database: a single partition.

    Parameters
    ----------
    connection
        Connection of :func:`helpers.corpus.posts_table.open_database`.
    parts : Parquet files with the columns of :data:`~helpers.corpus.posts_table.SCHEMA`
        Time is int64, in seconds.
    settings
        Settings of the merge.
    """

    def __init__(self, connection: DuckDBPyConnection, parts: list[Path], settings: MergeSettings):
        self.connection = connection
        _prepare(connection, settings, [""], 0)
        connection.execute(SQL["views"])
        connection.read_parquet([str(part) for part in parts]).create_view("file_rows")

    def run(self, step: str, round_number: int = 0) -> None:
        """Add the rows of a step to the table of its name.

        Parameters
        ----------
        step
            Name of the step.
        round_number : int
            Number of the repetition.
        """
        _begin_step(self.connection, step, round_number)
        self.connection.execute(f"INSERT INTO {step} BY NAME {SQL[step]}")


@dataclass
class Files:
    """The rows of a step in one file of each partition.

    A partition of authors is a range of their names in sorted order, so the files of the last step,
    one after the other, are sorted.

    Attributes
    ----------
    folder : folder of the files of all steps
    parts : files of the parts; each is a partition of the step that masks names
    first_authors : first author of each partition of authors; there are equally many of others
    settings : settings of the merge
    memory_limit : memory of DuckDB in a worker
    run_jobs : function(function, jobs) that returns function(*job) of each job
    rounds : finished steps, with the numbers of their repetitions
    steps : of each finished step the name, number of partitions, their seconds and bytes
    """

    folder: Path
    parts: list[Path]
    first_authors: list[str]
    settings: MergeSettings
    memory_limit: str
    run_jobs: Callable
    rounds: dict[str, list[int]] = field(default_factory=dict)
    steps: list[list] = field(default_factory=list)

    def run(self, step: str, round_number: int = 0) -> None:
        """Make the files of a step that are missing.

        Parameters
        ----------
        step
            Name of the step.
        round_number : int
            Number of the repetition.
        """
        partitions = len(self.first_authors)
        if step == "masked":
            partitions = len(self.parts)
        elif step == "signed":
            partitions = 1
        jobs = [(step, round_number, number) for number in range(partitions)]
        seconds = self.run_jobs(replace(self, run_jobs=None).make, jobs)
        self.rounds.setdefault(step, []).append(round_number)
        sizes = [self.file(*job).stat().st_size for job in jobs]
        self.steps.append([f"{step}-{round_number}", partitions, sum(seconds), sum(sizes)])

    def file(self, step: str, round_number: int, number: int) -> Path:
        """Return the path of the file of a partition of a step.

        Parameters
        ----------
        step
            Name of the step.
        round_number, number : int
            Number of the repetition, and of the partition.
        """
        return self.folder / f"{step}-{round_number}" / f"{number:05d}.parquet"

    def make(self, step: str, round_number: int, number: int) -> float:
        """Write the file of a partition unless it exists; return the seconds that this took.

        Parameters
        ----------
        step, round_number, number
            See :meth:`file`.
        """
        file = self.file(step, round_number, number)
        if verify_checksum(file):
            return 0.0
        began = time.perf_counter()
        order = "bucket"
        if step == "final":
            order = ", ".join(SORTED_BY)
        with (
            open_database(file.with_suffix(".work"), self.memory_limit, 1) as connection,
            atomic_write(file) as temporary,
        ):
            self.open(connection, number)
            if step == "masked":
                connection.read_parquet(str(self.parts[number])).create_view("file_rows")
            _begin_step(connection, step, round_number)
            connection.execute(
                f"""COPY (FROM ({SQL[step]}) ORDER BY {order}) TO ?
                    (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS})""",
                [str(temporary)],
            )
        write_checksum(file)
        return time.perf_counter() - began

    def open(self, connection: DuckDBPyConnection, number: int | None = None) -> None:
        """Let the finished steps be views of their files: of all rows, or those of a partition.

        Parameters
        ----------
        connection
            New connection.
        number : int, optional
            Number of the partition.
        """
        _prepare(connection, self.settings, self.first_authors, number)
        for step, rounds in self.rounds.items():
            files = []
            for round_number in rounds:
                files += sorted((self.folder / f"{step}-{round_number}").glob("*.parquet"))
            if step in FROM_OWN and number is not None:
                files = [self.file(step, 0, number)]
            rows = connection.read_parquet([str(file) for file in files])
            if step not in FROM_OWN + FROM_ALL and number is not None:
                rows = rows.filter(f"bucket = {number}")
            connection.execute(f"DROP TABLE {step}")
            rows.create_view(step)
        connection.execute(SQL["views"])


def _prepare(connection, settings, first_authors, number):
    """Make the constants, functions and empty tables of the steps."""
    connection.execute(SQL["constants"])
    variables = {
        "min_chars": settings.min_chars,
        "near_duplicate": settings.near_duplicate,
        "number": number,
        "partitions": len(first_authors),
        "word": WORD,
    }
    for name, value in variables.items():
        connection.execute(f"SET VARIABLE {name} = ?", [value])
    ranges = {"first": first_authors, "bucket": range(len(first_authors))}
    connection.register("ranges", pa.table(ranges))
    names = settings.shown_names
    connection.register("shown_names", pa.table([list(names), list(names.values())], SHOWN))
    connection.execute(f"CREATE MACRO normal(text) AS {NORMAL}")
    connection.execute(SQL["tables"])

    if settings.names:
        first_words = {words[0] for words in settings.names}
        mask = partial(mask_known_names, settings.names, first_words)
        connection.create_function("mask_names", mask, ["VARCHAR"], "VARCHAR")
    else:
        connection.execute("CREATE MACRO mask_names(text) AS text")
    if settings.near_duplicate:
        keys = partial(band_keys, rows_per_band(settings.near_duplicate))
        connection.create_function("band_keys", keys, ["UBIGINT[]"], "UBIGINT[]", type="arrow")


def _begin_step(connection, step, round_number):
    """Set the round of a step, and make the runs of words that it needs."""
    connection.execute("SET VARIABLE round = ?", [round_number])
    if step in ("candidates", "marks"):
        connection.execute(SQL["runs"])
    elif step == "signed":
        connection.execute("DROP TABLE IF EXISTS runs")


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


def band_keys(rows: int, shingles: pa.ListArray) -> pa.Array:
    """Return the keys of each text's bands: two texts that agree in a whole band share its key.

    Parameters
    ----------
    rows : int
        Number of values of a MinHash signature that a band has; those beyond the last whole band
        are ignored.
    shingles : list array of uint64
        Hashes of each text's shingles.
    """
    if isinstance(shingles, pa.ChunkedArray):
        shingles = shingles.combine_chunks()
    columns = PERMUTATIONS // rows * rows
    products = minhash(shingles)[:, :columns] * MULTIPLIERS[:columns]
    keys = products.reshape(len(products), -1, rows).sum(2)
    offsets = np.arange(0, keys.size + 1, keys.shape[1], np.int32)
    return pa.ListArray.from_arrays(offsets, keys.ravel())


def merge(
    parts: list[Path],
    target: Path,
    settings: MergeSettings,
    scratch: Path,
    memory_limit: str = "2GB",
    workers: int = 2,
    run_jobs: Callable | None = None,
) -> dict[str, int]:
    """Write the posts table from the files of parts, whole or not at all; return counts.

    Where no post is left, no table is written.

    Parameters
    ----------
    parts : Parquet files with the columns of :data:`~helpers.corpus.posts_table.SCHEMA`
        Time is int64, in seconds.
    target
        Path of the posts table.
    settings
        Settings of the merge.
    scratch
        Folder for intermediate files, which is removed at the end.
    memory_limit
        Memory of DuckDB, which uses the disk beyond it; with ``run_jobs``, of each worker.
    workers : int
        Number of DuckDB's threads.
    run_jobs : function(function, jobs) that returns function(*job) of each job
        Runs the partitions of each step by workers, and ``steps.json`` beside the posts table says
        how long each took. None: all posts are one partition.

    Returns
    -------
    dict: numbers of dropped posts, ``duplicate``, ``near_duplicate``, ``short_after_names`` and
    ``short_after_signature``; of changed posts, ``names_masked`` and ``signatures_cut``; and of
    words cut, ``signature_words_cut``.
    """
    with open_database(scratch / "tables", memory_limit, workers) as connection:
        if run_jobs is None:
            _run_steps(Tables(connection, parts, settings).run, settings)
            counts = _write_final(connection, "left_posts", target)
        else:
            store = _open_files(connection, parts, settings, scratch, memory_limit, run_jobs)
            _run_steps(store.run, settings)
            store.run("final")
            store.open(connection)
            counts = _write_final(connection, "final", target, is_sorted=True)
            write_json(target.with_name("steps.json"), {"steps": store.steps})
    shutil.rmtree(scratch)
    return counts


def _open_files(connection, parts, settings, scratch, memory_limit, run_jobs):
    """Return the files of a merge, in a folder for these settings and parts alone."""
    rules = vars(settings) | {"names": sorted(settings.names.items())}
    stamps = [file_fingerprint(part) for part in parts]
    versions = (SQL, duckdb.__version__, PARTITION_POSTS, MAX_PARTITIONS)
    folder = scratch / fingerprint_of(versions, rules, stamps)
    first_authors = _first_authors(connection, parts)
    return Files(folder, parts, first_authors, settings, memory_limit, run_jobs)


def _run_steps(run, settings):
    """Run all steps but the last; ``run(step, round_number)`` runs one."""
    run("masked")
    run("posts")
    if not settings.keep_copies:
        run("keys")
        run("copies")
    if settings.strip_signatures:
        for round_number in range(MAX_ROUNDS):
            for step in ("candidates", "marks", "signed"):
                run(step, round_number)
        run("shortened")
        if not settings.keep_copies:
            run("keys", 1)
            run("copies", 1)
    if settings.near_duplicate:
        for step in ("bands", "pairs", "shingled", "near_copies"):
            run(step)


def _write_final(connection, table, target, is_sorted=False):
    """Write the posts table, with ids where there are any, unless it is empty; return counts."""
    row = connection.sql(SQL["counts"])
    counts = dict(zip(row.columns, row.fetchall()[0], strict=True))
    posts, ids = connection.execute(
        f"SELECT count(*), count(nullif(id, '')) FROM {table}"
    ).fetchall()[0]
    if posts:
        columns = SCHEMA.names if ids else SCHEMA.names[:-1]
        query = f"SELECT {', '.join(columns)} FROM {table}"
        write_posts(connection, query, target, is_sorted=is_sorted)
    return counts


def _first_authors(connection, parts):
    """Return the first author of each partition of about PARTITION_POSTS posts; the first is ""."""
    connection.read_parquet([str(part) for part in parts]).create_view("every")
    rows = connection.execute(
        """
        SELECT min(author)
        FROM (SELECT author, sum(posts) OVER (ORDER BY author) - posts AS before,
                     sum(posts) OVER () AS posts
              FROM (SELECT author, count(*) AS posts FROM every GROUP BY author))
        GROUP BY before * least(posts // $partition_posts + 1, $max_partitions) // posts
        ORDER BY 1""",
        {"partition_posts": PARTITION_POSTS, "max_partitions": MAX_PARTITIONS},
    ).fetchall()
    return ["", *(author for (author,) in rows[1:])]
