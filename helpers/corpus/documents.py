"""From posts to documents: what one author wrote on one topic in a row, for models that read pages and not chat lines.

sawatphol2022 compares whole reviews, comments and chapters; a post of a chat is a line. Posts are kept whole, so that
no sentence begins in one document and ends in another of the same author.
"""

from pathlib import Path

from helpers.runs.artifacts import file_fingerprint, fingerprint_of, is_current, read_json, write_json
from helpers.corpus.table import database, text, write

VERSION = 1  # raised when the same posts and settings give other documents
SLICE = 200_000_000  # characters joined at a time: DuckDB cannot spill the strings that it is joining


def join_posts(posts_path, out_path, *, longest=2000, shortest=200, per_topic=True, memory_limit="2GB") -> dict:
    """Write a posts table of documents; return the counts, also written as ``<out_path>.json``.

    The posts of an author in a topic, in order of time (then text), are laid end to end with newlines. A document
    begins with the first post that starts at or after a multiple of ``longest`` characters of this run, and is cut at
    ``longest``. So each post is in one document, and only the end of the last post of a document is lost.
    shortest: documents of fewer characters are dropped. per_topic: otherwise posts are joined across an author's
    topics, and a document has the topic of its first post. Its time is that of its first post; ids are not kept.

    Counts: ``documents``, ``authors``, ``topics``, ``posts_used``, ``posts_in_short_documents``,
    ``characters_used``, ``characters_in_short_documents``, ``characters_cut`` (newlines count nowhere), and
    ``documents_cut``. Both kinds of posts add up to all posts, the three of characters to all characters.
    A result that is current is reused. Raises ValueError for a limit out of order, or where no document is left.
    """
    if not 0 < shortest <= longest:
        raise ValueError(f"need 0 < shortest ({shortest}) <= longest ({longest})")
    out_path = Path(out_path)
    record = out_path.with_name(out_path.name + ".json")
    settings = {"longest": int(longest), "shortest": int(shortest), "per_topic": bool(per_topic)}
    fingerprint = fingerprint_of(VERSION, settings, file_fingerprint(posts_path))
    if is_current(record, fingerprint) and out_path.exists():
        return read_json(record)
    record.unlink(missing_ok=True)  # while it is missing the file beside it counts for nothing
    run = "author, topic" if per_topic else "author"
    with database(out_path.parent / (out_path.name + ".work"), memory_limit) as connection:
        connection.execute("""
            CREATE TABLE documents (author VARCHAR, time BIGINT, topic VARCHAR, text VARCHAR,
                                    posts BIGINT, given BIGINT, kept BIGINT, cut BOOLEAN)""")
        for first, last in _slices(connection, posts_path):
            connection.execute(f"""
                INSERT INTO documents
                WITH placed AS (
                    SELECT author, epoch(time)::BIGINT AS second, topic, text, coalesce(sum(length(text) + 1) OVER (
                               PARTITION BY {run} ORDER BY time, text, topic
                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) // {int(longest)} AS number
                    FROM {text(posts_path)} WHERE author BETWEEN ? AND ?),
                joined AS (
                    SELECT author, min(second) AS second, first(topic ORDER BY second, text, topic) AS topic,
                           string_agg(text, chr(10) ORDER BY second, text, topic) AS whole, count(*) AS posts,
                           sum(length(text))::BIGINT AS given
                    FROM placed GROUP BY {run}, number),
                limited AS (SELECT *, left(whole, {int(longest)}) AS part FROM joined)
                SELECT author, second, topic, part, posts, given,
                       given - (length(whole) - length(part)), length(whole) > length(part)
                FROM limited""", [first, last])
        long = f"length(text) >= {int(shortest)}"
        names = ["documents", "authors", "topics", "posts_used", "posts_in_short_documents", "characters_used",
                 "characters_in_short_documents", "characters_cut", "documents_cut"]  # fmt: skip
        values = connection.execute(f"""
            SELECT count(*) FILTER ({long}), count(DISTINCT author) FILTER ({long}),
                   count(DISTINCT topic) FILTER ({long}), coalesce(sum(posts) FILTER ({long}), 0)::BIGINT,
                   coalesce(sum(posts) FILTER (NOT {long}), 0)::BIGINT, coalesce(sum(kept) FILTER ({long}), 0)::BIGINT,
                   coalesce(sum(kept) FILTER (NOT {long}), 0)::BIGINT, coalesce(sum(given - kept), 0)::BIGINT,
                   count(*) FILTER (cut) FROM documents""").fetchall()[0]
        report = settings | dict(zip(names, values, strict=True))
        if not report["documents"]:
            raise ValueError(f"no author has {shortest} characters{' in a topic' if per_topic else ''}: {report}")
        write(connection, f"SELECT author, time, topic, text FROM documents WHERE {long}", out_path)
    write_json(record, report | {"fingerprint": fingerprint})
    return read_json(record)


def _slices(connection, posts_path):
    """(first, last) author of neighbours who wrote about SLICE characters together, or one author alone."""
    return connection.execute(f"""
        WITH sizes AS (SELECT author, sum(length(text)) AS size FROM {text(posts_path)} GROUP BY author),
        running AS (SELECT author, sum(size) OVER (ORDER BY author) // {SLICE} AS slice FROM sizes)
        SELECT min(author), max(author) FROM running GROUP BY slice ORDER BY slice""").fetchall()
