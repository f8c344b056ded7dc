"""Merge of the parts of a corpus into one sorted posts table: copies are dropped, signatures cut.

DuckDB holds everything that grows with the corpus. Beyond its memory it uses files in a folder of
the run, which is removed afterwards.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from . import near_duplicates, signatures
from .personal_names import MaskedNames, mask_known_names
from .posts_table import PAGE_POSTS, SCHEMA, query_scalar, write_posts

# SQL of the order in which the first of several copies is kept; all columns, so there are no ties
EARLIEST_FIRST = "time, author, text, topic, id"
# SQL of posts without signatures; {0} is min_chars: cut posts with fewer characters are left out
CUT = """
    SELECT p.* REPLACE (coalesce(s.text, p.text) AS text, coalesce(s.normal, p.normal) AS normal)
    FROM unique_posts p LEFT JOIN shortened s USING (n)
    WHERE s.text IS NULL OR length(s.text) >= {0}"""


def merge_posts(
    connection: DuckDBPyConnection,
    scratch: Path,
    parts: list[Path],
    target: Path,
    *,
    min_chars: int,
    near_duplicate: float | None,
    strip_signatures: bool,
    names: MaskedNames,
) -> dict[str, int]:
    """Write the posts table from the files of parts, whole or not at all; return counts.

    Of copies the earliest stays; of copies from one second, the first by author, text and topic. So
    the order of parts and threads does not matter. Where no post is left, no table is written.

    Parameters
    ----------
    connection, scratch
        Connection of :func:`helpers.corpus.posts_table.open_database`, and its folder, which
        intermediate files are written to.
    parts : Parquet files with the columns of :data:`~helpers.corpus.posts_table.SCHEMA`
        Time is int64, in seconds.
    target
        Path of the posts table.
    min_chars : int
        Posts that become shorter than this by masking names or cutting signatures are dropped.
    near_duplicate : float or None
        Jaccard similarity from which the later of two posts is dropped; 0 drops only posts with
        equal texts, None not even these.
    strip_signatures : bool
        Whether to cut the last words of posts that only one author repeats.
    names : MaskedNames, see :func:`helpers.corpus.personal_names.names_to_mask`
        Names that are masked before copies are looked for, so that texts which differ only in a
        name are copies.

    Returns
    -------
    dict: numbers of dropped posts, ``duplicate``, ``near_duplicate``, ``short_after_names`` and
    ``short_after_signature``; of changed posts, ``names_masked`` and ``signatures_cut``; and of
    words cut, ``signature_words_cut``.
    """
    keep_copies = near_duplicate is None
    connection.read_parquet([str(part) for part in parts]).create_view("parts")
    counts = mask_names(connection, scratch / "masked.parquet", names, min_chars)
    all_posts = query_scalar(connection, "SELECT count(*) FROM parts")
    unique_posts = _make_unique_posts(connection, scratch / "unique.parquet", keep_copies)

    cuts = np.zeros(unique_posts, np.int32)
    if strip_signatures:
        cuts = signatures.find_signatures(connection, "unique_posts", unique_posts)
    counts |= cut_signatures(connection, cuts, min_chars)
    long_posts = unique_posts - counts["short_after_signature"]

    distinct_posts = _make_distinct_posts(
        connection, scratch / "distinct.parquet", min_chars, keep_copies
    )
    counts["duplicate"] = all_posts - unique_posts + long_posts - distinct_posts
    connection.execute("CREATE TABLE copies (n BIGINT)")
    if near_duplicate:
        near_duplicates.near_pairs(connection, "distinct_posts", near_duplicate)
    counts["near_duplicate"] = query_scalar(connection, "SELECT count(*) FROM copies")
    if distinct_posts > counts["near_duplicate"]:
        _write_table(connection, target)
    return counts


def _write_table(connection, target):
    """Write the posts that are no near copies; the column ``id`` only where there are ids."""
    columns = SCHEMA.names
    if not query_scalar(connection, "SELECT count(nullif(id, '')) FROM distinct_posts"):
        columns = columns[:-1]
    query = f"SELECT {', '.join(columns)} FROM distinct_posts ANTI JOIN copies USING (n)"
    write_posts(connection, query, target)


def _make_unique_posts(connection, path, keep_copies):
    """Write posts without exact copies to a file and make the view ``unique_posts`` of it.

    ``n`` numbers the posts in the order of EARLIEST_FIRST. Returns how many posts there are.
    """
    connection.execute(
        f"""
        COPY (SELECT *, {near_duplicates.NORMAL} AS normal FROM parts
              {_only_first(EARLIEST_FIRST, keep_copies)}
              ORDER BY {EARLIEST_FIRST})
        TO ? (FORMAT parquet)""",
        [str(path)],
    )
    return number_posts(connection, path)


def _only_first(order, keep_copies):
    """Return SQL that keeps the first of equal texts, or all of them."""
    if keep_copies:
        return ""
    return f"QUALIFY row_number() OVER (PARTITION BY md5_number(normal) ORDER BY {order}) = 1"


def number_posts(connection: DuckDBPyConnection, path: Path) -> int:
    """Make the view ``unique_posts`` of a file, with the row number as ``n``; return how many.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Gets the view.
    path : Path
        Parquet file of posts.
    """
    rows = connection.read_parquet(str(path), file_row_number=True)
    rows.project("* EXCLUDE file_row_number, file_row_number AS n").create_view("unique_posts")
    return query_scalar(connection, "SELECT count(*) FROM unique_posts")


def _make_distinct_posts(connection, path, min_chars, keep_copies):
    """Write posts without signatures to a file and make the view ``distinct_posts`` of it.

    Posts that became copies by the cut are left out. Returns how many posts there are.
    """
    connection.execute(
        f"""
        COPY (FROM ({CUT.format(min_chars)}) {_only_first("n", keep_copies)})
        TO ? (FORMAT parquet)""",
        [str(path)],
    )
    connection.read_parquet(str(path)).create_view("distinct_posts")
    return query_scalar(connection, "SELECT count(*) FROM distinct_posts")


def mask_names(
    connection: DuckDBPyConnection,
    path: Path,
    names: MaskedNames,
    min_chars: int,
) -> dict[str, int]:
    """Mask names in the posts of the view ``parts``; return counts.

    The masked posts are written to a file, and the view is replaced by one of it. Without names the
    view stays as it is.

    Parameters
    ----------
    connection
        DuckDB connection with the view ``parts``.
    path
        Path of the Parquet file to write.
    names
        Names to mask, see :func:`helpers.corpus.personal_names.names_to_mask`.
    min_chars : int
        Posts with fewer characters after masking are dropped, also those without names.
    """
    counts = {"names_masked": 0, "short_after_names": 0}
    if not names:
        return counts
    first_words = {words[0] for words in names}
    reader = connection.cursor().sql("FROM parts").to_arrow_reader(PAGE_POSTS)
    column = reader.schema.get_field_index("text")
    with pq.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            texts = batch.column(column).to_pylist()
            masked_texts = [mask_known_names(text, names, first_words) for text in texts]
            changed = [text != masked for text, masked in zip(texts, masked_texts, strict=True)]
            is_long = [len(text) >= min_chars for text in masked_texts]
            counts["names_masked"] += sum(changed)
            counts["short_after_names"] += len(texts) - sum(is_long)
            batch = batch.set_column(column, "text", pa.array(masked_texts, pa.string()))
            writer.write_batch(batch.filter(pa.array(is_long, pa.bool_())))
    connection.read_parquet(str(path)).create_view("parts", replace=True)
    return counts


def cut_signatures(
    connection: DuckDBPyConnection, cuts: np.ndarray, min_chars: int
) -> dict[str, int]:
    """Make the table ``shortened`` of the posts with a signature, without it; return counts.

    Parameters
    ----------
    connection
        DuckDB connection with the view ``unique_posts``.
    cuts : (posts,) int
        Number of words to cut from the end of each post of ``unique_posts``, in order of ``n``.
    min_chars : int
        Posts with fewer characters after the cut are counted, but stay in ``shortened``.
    """
    signed = np.flatnonzero(cuts)
    connection.register("cuts", pa.table({"n": signed, "words": cuts[signed]}))
    connection.create_function("cut_signature", signatures.cut_signature)
    connection.execute("""
        CREATE TABLE shortened AS
        SELECT n, words, cut_signature(text, words) AS text, cut_signature(normal, words) AS normal
        FROM unique_posts JOIN cuts USING (n)""")
    row = connection.execute(f"""
        SELECT count(*), coalesce(sum(words), 0)::BIGINT,
               count(*) FILTER (length(text) < {min_chars}) FROM shortened""").fetchall()[0]
    names = ("signatures_cut", "signature_words_cut", "short_after_signature")
    return dict(zip(names, row, strict=True))
