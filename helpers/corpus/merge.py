"""Merge of the parts of a corpus into one sorted posts table: copies are dropped, signatures cut.

The steps are SQL, see ``merge.sql``. Their rows lie in tables of one database, which uses the disk
beyond its memory.

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
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from rensa import RMinHash

from ..cleaning.text import drop_edge_marks, mask_addresses
from .personal_names import MaskedNames, mask_known_names, mask_nicks, words_in, words_of_names
from .posts_table import open_database, query_row, write_posts

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

SHOWN = pa.schema([("author", pa.string()), ("shown", pa.string())])
STEPS_FILE = Path(__file__).with_name("merge.sql")
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
    nicks : names of one word, which are masked, too, see
        :func:`helpers.corpus.personal_names.nicks_of`
    mask_topics : whether names, nicks and addresses are masked in topics, too
    shown_names : names of authors that are replaced, and those that take their place
    """

    min_chars: int
    near_duplicate: float
    keep_copies: bool
    strip_signatures: bool
    names: MaskedNames
    nicks: dict[str, bool] = field(default_factory=dict)
    mask_topics: bool = False
    shown_names: dict[str, str] = field(default_factory=dict)


def open_tables(connection: DuckDBPyConnection, parts: list[Path], settings: MergeSettings) -> None:
    """Make the constants, functions and empty tables of the steps, and a view of the parts.

    Parameters
    ----------
    connection
        Connection of :func:`helpers.corpus.posts_table.open_database`.
    parts : Parquet files with the columns of :data:`~helpers.corpus.posts_table.COLUMNS`
        Time is int64, in seconds.
    settings
        Settings of the merge.
    """
    connection.execute(SQL["constants"])
    variables = {
        "min_chars": settings.min_chars,
        "near_duplicate": settings.near_duplicate,
        "word": WORD,
    }
    for name, value in variables.items():
        connection.execute(f"SET VARIABLE {name} = ?", [value])
    names = settings.shown_names
    connection.register("shown_names", pa.table([list(names), list(names.values())], SHOWN))
    connection.execute(f"CREATE MACRO normal(text) AS {NORMAL}")
    connection.execute(SQL["tables"])

    first_words = {words[0] for words in settings.names}
    telling_words = words_of_names(first_words, settings.nicks)
    mask = partial(_mask, settings, first_words, telling_words)
    if settings.names or settings.nicks:
        connection.create_function("mask_names", mask, ["VARCHAR"], "VARCHAR")
    else:
        connection.execute("CREATE MACRO mask_names(text) AS text")
    if settings.mask_topics:
        mask_topic = cache(partial(_mask_topic, mask))
        connection.create_function("mask_topic", mask_topic, ["VARCHAR"], "VARCHAR")
    else:
        connection.execute("CREATE MACRO mask_topic(topic) AS topic")
    if settings.near_duplicate:
        keys = partial(band_keys, rows_per_band(settings.near_duplicate))
        connection.create_function("band_keys", keys, ["UBIGINT[]"], "UBIGINT[]", type="arrow")
    connection.execute(SQL["views"])
    connection.read_parquet([str(part) for part in parts]).create_view("file_rows")


def _mask(settings, first_words, telling_words, text):
    if telling_words.isdisjoint(words_in(text)):
        return text  # as most posts, it names nobody
    return mask_known_names(settings.names, first_words, mask_nicks(settings.nicks, text))


def _mask_topic(mask, topic):
    return mask(drop_edge_marks(mask_addresses(topic)))


def run_step(connection: DuckDBPyConnection, step: str, round_number: int = 0) -> None:
    """Add the rows of a step to the table of its name.

    Parameters
    ----------
    connection
        Connection with the tables of :func:`open_tables`.
    step
        Name of the step.
    round_number : int
        Number of the repetition.
    """
    connection.execute("SET VARIABLE round = ?", [round_number])
    if step == "marks":
        connection.execute(SQL["runs"])
    connection.execute(f"INSERT INTO {step} BY NAME {SQL[step]}")


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
) -> dict[str, int]:
    """Write the posts table from the files of parts, whole or not at all; return counts.

    Where no post is left, no table is written.

    Parameters
    ----------
    parts : Parquet files with the columns of :data:`~helpers.corpus.posts_table.COLUMNS`
        Time is int64, in seconds.
    target
        Path of the posts table.
    settings
        Settings of the merge.
    scratch
        Folder for intermediate files, which is removed at the end.
    memory_limit
        Memory of DuckDB, which uses the disk beyond it.
    workers : int
        Number of DuckDB's threads.

    Returns
    -------
    dict: numbers of dropped posts, ``duplicate``, ``near_duplicate``, ``short_after_names`` and
    ``short_after_signature``; of changed posts, ``names_masked`` and ``signatures_cut``; and of
    words cut, ``signature_words_cut``.
    """
    with open_database(scratch, memory_limit, workers) as connection:
        open_tables(connection, parts, settings)
        _run_steps(partial(run_step, connection), settings)
        counts = query_row(connection, SQL["counts"])
        posts, ids = connection.execute(
            "SELECT count(*), count(nullif(id, '')) FROM left_posts"
        ).fetchall()[0]
        if posts:
            query = "SELECT author, to_timestamp(time) AS time, topic, text"
            if ids:
                query += ", id"
            write_posts(connection, f"{query} FROM left_posts", target)
    return counts


def _run_steps(run, settings):
    """Run all steps; ``run(step, round_number)`` runs one."""
    run("masked")
    run("posts")
    if not settings.keep_copies:
        run("keys")
        run("copies")
    if settings.strip_signatures:
        for round_number in range(MAX_ROUNDS):
            run("marks", round_number)
            run("signed", round_number)
        run("shortened")
        if not settings.keep_copies:
            run("keys", 1)
            run("copies", 1)
    if settings.near_duplicate:
        for step in ("bands", "pairs", "shingled", "near_copies"):
            run(step)
