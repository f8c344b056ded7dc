"""From the parts of a corpus to one posts table: duplicates and near-duplicates out, repeated signatures cut, sorted.

DuckDB holds what grows with the corpus and spills to a folder of the run, which is gone afterwards.
"""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.corpus import near_duplicates, signatures
from helpers.corpus.personal_names import mask_known_names
from helpers.corpus.posts_table import READ, SCHEMA, query_scalar, write_posts

ORDER = "time, author, text, topic, id"  # by content, so that the order holds to the last byte
# SQL with min_chars to be put in
CUT = """SELECT p.* REPLACE (coalesce(s.text, p.text) AS text, coalesce(s.normal, p.normal) AS normal)
         FROM unique_posts p LEFT JOIN shortened s USING (n) WHERE s.text IS NULL OR length(s.text) >= {0}"""


def merge_posts(
    connection: duckdb.DuckDBPyConnection,
    scratch: Path,
    parts: list[Path],
    target: Path,
    *,
    min_chars: int,
    near_duplicate: float,
    strip_signatures: bool,
    names: dict,
) -> dict[str, int]:
    """Write the posts table ``target`` (whole or absent) from part files; return the counts of losses by reason.

    Of copies the earliest stays; ties go by author, text, topic, so no order of parts or threads matters.

    parts: Parquet files with the columns of :data:`~helpers.corpus.posts_table.SCHEMA`, time as int64 seconds. names: as
    :func:`helpers.corpus.personal_names.names_to_mask` gives them, masked first, so that texts that differ in a name are copies.
    Dropped are ``duplicate``, ``near_duplicate``, ``short_after_names`` and ``short_after_signature`` posts;
    ``names_masked`` and ``signatures_cut`` count posts and ``signature_words_cut`` words.
    """
    unique, rest = scratch / "unique.parquet", scratch / "rest.parquet"
    connection.read_parquet(list(map(str, parts))).create_view("parts")
    counts = mask_names(connection, scratch / "masked.parquet", names, min_chars)
    total = query_scalar(connection, "SELECT count(*) FROM parts")
    connection.execute(
        f"""
        COPY (SELECT *, {near_duplicates.NORMAL} AS normal FROM parts
              QUALIFY row_number() OVER (PARTITION BY md5_number(normal) ORDER BY {ORDER}) = 1 ORDER BY {ORDER})
        TO ? (FORMAT parquet)""",
        [str(unique)],
    )
    numbered = connection.read_parquet(str(unique), file_row_number=True)
    numbered.project("* EXCLUDE file_row_number, file_row_number AS n").create_view("unique_posts")
    posts = query_scalar(connection, "SELECT count(*) FROM unique_posts")
    counts["duplicate"] = total - posts
    cuts = (
        signatures.find_signatures(connection, "unique_posts", posts)
        if strip_signatures
        else np.zeros(posts, np.int32)
    )
    counts |= cut_signatures(connection, cuts, min_chars)
    # what differed in the signature alone is the same now
    connection.execute(
        f"""
        COPY (FROM ({CUT.format(int(min_chars))}) QUALIFY row_number() OVER (
            PARTITION BY md5_number(normal) ORDER BY n) = 1) TO ? (FORMAT parquet)""",
        [str(rest)],
    )
    connection.read_parquet(str(rest)).create_view("rest")
    left = query_scalar(connection, "SELECT count(*) FROM rest")
    counts["duplicate"] += posts - counts["short_after_signature"] - left
    connection.execute("CREATE TABLE copies (n BIGINT)")
    if near_duplicate:
        near_duplicates.near_pairs(connection, "rest", near_duplicate)
    counts["near_duplicate"] = query_scalar(connection, "SELECT count(*) FROM copies")
    if left > counts["near_duplicate"]:
        columns = (
            SCHEMA.names
            if query_scalar(connection, "SELECT count(nullif(id, '')) FROM rest")
            else SCHEMA.names[:4]
        )
        write_posts(
            connection, f"SELECT {', '.join(columns)} FROM rest ANTI JOIN copies USING (n)", target
        )
    return counts


def mask_names(
    connection: duckdb.DuckDBPyConnection, path: Path, names: dict, min_chars: int
) -> dict[str, int]:
    """Put posts without the names, written to ``path``, in place of the view ``parts``; return counts."""
    starts, masked, short = frozenset(words[0] for words in names), 0, 0
    reader = connection.cursor().sql("FROM parts").to_arrow_reader(READ)
    with pq.ParquetWriter(path, reader.schema) as writer:
        for batch in reader if names else ():
            texts = batch.column("text").to_pylist()
            hidden = [mask_known_names(text, names, starts) for text in texts]
            long = [len(text) >= min_chars for text in hidden]
            masked += sum(map(str.__ne__, texts, hidden))
            short += len(long) - sum(long)
            batch = batch.set_column(
                batch.schema.get_field_index("text"), "text", pa.array(hidden, pa.string())
            )
            writer.write_batch(batch.filter(pa.array(long, pa.bool_())))
    if names:
        connection.read_parquet(str(path)).create_view("parts", replace=True)
    return {"names_masked": masked, "short_after_names": short}


def cut_signatures(
    connection: duckdb.DuckDBPyConnection, cuts: np.ndarray, min_chars: int
) -> dict[str, int]:
    """Make the table ``shortened`` of the posts of which so many words, (posts,), are cut; return counts."""
    connection.execute("CREATE TABLE shortened (n BIGINT, words INT, text VARCHAR, normal VARCHAR)")
    for batch in (
        connection.cursor().sql("FROM unique_posts").to_arrow_reader(1 << 15) if cuts.any() else ()
    ):
        batch = batch.filter(pa.array(cuts[batch.column("n").to_numpy()] > 0))
        if len(batch):
            words = cuts[batch.column("n").to_numpy()]
            texts, normals = ([*map(signatures.cut_signature, batch.column(name).to_pylist(), words.tolist())]
                              for name in ("text", "normal"))  # fmt: skip
            rows = pa.table(
                {"n": batch.column("n"), "words": words, "text": texts, "normal": normals}
            )
            connection.execute("INSERT INTO shortened SELECT * FROM rows")
    names = ("signatures_cut", "signature_words_cut", "short_after_signature")
    short = f"count(*) FILTER (length(text) < {int(min_chars)})"
    counts = connection.execute(
        f"SELECT count(*), coalesce(sum(words), 0)::BIGINT, {short} FROM shortened"
    ).fetchall()
    return dict(zip(names, counts[0], strict=True))
