"""Posts of one author on one topic joined into documents, for models that read longer texts.

sawatphol2022 compares whole reviews, comments and chapters, while a post of a chat is only a line.
No post is divided between two documents, so that no sentence begins in one and ends in another.
"""

from pathlib import Path

from ..core.artifacts import (
    file_fingerprint,
    fingerprint_of,
    is_current,
    note,
    read_json,
    verify_checksum,
    write_json,
)
from .posts_table import open_database, query_row, write_posts

VERSION = 3  # raised when the same posts and settings give other documents


def join_posts(
    posts_path: Path,
    out_path: Path,
    *,
    max_chars: int = 2000,
    min_chars: int = 200,
) -> dict:
    """Write a posts table of documents; return the counts, also written as ``<out_path>.json``.

    All posts of an author in a topic, in order of time (then text), are joined by newlines to one
    long text. A document begins with the first post that starts at or after a multiple of
    ``max_chars`` characters of this text, and is cut to ``max_chars``. So each post belongs to one
    document, and only the end of a document's last post is lost. A document has the time and the
    topic of its first post; ids are not kept. A result with the same settings is reused.

    Parameters
    ----------
    posts_path
        Path of the posts table to read.
    out_path
        Path of the posts table of documents to write.
    max_chars : int
        Most characters of a document.
    min_chars : int
        Documents of fewer characters are dropped.

    Returns
    -------
    dict of counts: ``documents``, ``authors`` and ``topics`` that are written; ``documents_cut``,
    documents of more than ``max_chars``. ``posts_used`` and ``posts_in_short_documents`` add up to
    all posts; ``characters_used``, ``characters_in_short_documents`` and ``characters_cut`` add up
    to the characters of all posts, without the newlines between them.

    Raises
    ------
    ValueError
        Where not 0 < ``min_chars`` <= ``max_chars``, or no document is left.
    """
    if not 0 < min_chars <= max_chars:
        raise ValueError(f"need 0 < min_chars ({min_chars}) <= max_chars ({max_chars})")
    out_path = Path(out_path)
    record = out_path.with_name(out_path.name + ".json")
    settings = {"max_chars": max_chars, "min_chars": min_chars}
    fingerprint = fingerprint_of(VERSION, settings, file_fingerprint(posts_path))
    if is_current(record, fingerprint) and verify_checksum(out_path):
        note(out_path, record)
        return read_json(record)

    record.unlink(missing_ok=True)  # without its record an old or half-written file is not reused
    with open_database(out_path.with_name(out_path.name + ".work")) as connection:
        connection.read_parquet(str(posts_path)).create_view("posts")
        _join(connection, max_chars)
        report = settings | _count(connection, min_chars)
        if not report["documents"]:
            raise ValueError(f"no author has {min_chars} characters in a topic: {report}")
        query = f"""
            SELECT author, to_timestamp(time) AS time, topic, text
            FROM documents WHERE length(text) >= {min_chars}"""
        write_posts(connection, query, out_path)
    write_json(record, report | {"fingerprint": fingerprint})
    return read_json(record)


def _join(connection, max_chars):
    """Make the table ``documents`` of the view ``posts``."""
    connection.execute(f"""
        CREATE TABLE documents AS
        WITH placed AS (
            SELECT author, epoch(time)::BIGINT AS second, topic, text,
                   coalesce(sum(length(text) + 1) OVER (
                       PARTITION BY author, topic ORDER BY time, text, topic
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                   // {max_chars} AS number
            FROM posts),
        joined AS (
            SELECT author, min(second) AS second,
                   topic,
                   string_agg(text, chr(10) ORDER BY second, text, topic) AS whole,
                   count(*) AS posts, sum(length(text))::BIGINT AS characters
            FROM placed GROUP BY author, topic, number),
        limited AS (SELECT *, left(whole, {max_chars}) AS part FROM joined)
        SELECT author, second AS time, topic, part AS text, posts, characters,
               characters - (length(whole) - length(part)) AS used,
               length(whole) > length(part) AS cut
        FROM limited""")


def _count(connection, min_chars):
    """Return the counts of the table ``documents``; those of ``min_chars`` and more are kept."""
    is_long = f"length(text) >= {min_chars}"
    query = f"""
        SELECT count(*) FILTER ({is_long}) AS documents,
               count(DISTINCT author) FILTER ({is_long}) AS authors,
               count(DISTINCT topic) FILTER ({is_long}) AS topics,
               count(*) FILTER (cut) AS documents_cut,
               coalesce(sum(posts) FILTER ({is_long}), 0) AS posts_used,
               coalesce(sum(posts) FILTER (NOT {is_long}), 0) AS posts_in_short_documents,
               coalesce(sum(used) FILTER ({is_long}), 0) AS characters_used,
               coalesce(sum(characters - used), 0) AS characters_cut,
               coalesce(sum(used) FILTER (NOT {is_long}), 0) AS characters_in_short_documents
        FROM documents"""
    return query_row(connection, query)
