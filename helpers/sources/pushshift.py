"""Reddit comments as Pushshift and its successors publish them: monthly dumps ``RC_YYYY-MM``.

A dump holds one JSON object per line. Its fields come in any order and differ from month to month;
``author``, ``created_utc``, ``subreddit``, ``body`` and ``id`` are read. The posts table's topic is
the subreddit. The pages of users, "u_<name>", are one topic, "u_", because their names are those of
people.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..cleaning.authors import escape_surrogates
from ..cleaning.text import BOT, QUOTE_LINE, normalise_unicode
from ..core.artifacts import file_stats_fingerprint
from ..core.files import OPENERS
from . import COLUMNS, Part, source_files
from .json_lines import NO_JSON, byte_blocks, parse_json
from .timestamps import LATEST

FRAME_ROWS = 16_384  # most rows of one frame
SUFFIXES = (*OPENERS, ".ndjson", ".jsonl", ".json")
SUBMISSIONS = re.compile(r"RS_|.*_submissions\b")  # dumps of titles and links, not comments
REQUIRED = ["author", "created_utc", "subreddit", "body"]
FIELDS = [*REQUIRED, "id"]
OPENING = 1_119_484_800  # 2005-06-23, when Reddit opened, in seconds UTC
LINE_SCHEMA = pa.schema([("line", pa.large_string())])
# a quoted line with the newline before it: a search for "^" would stop at every character
QUOTE = re.compile("\n" + QUOTE_LINE.pattern.strip("^$"))
# "- item" and "2. item"
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])\s")
CODE_INDENT = ("    ", "\t")

# The query parses lines and gives each comment the reason why it is dropped, or NULL.
# - With try(), a line that the parser refuses becomes NULL instead of an error: reason "unread".
# - DuckDB's RE2 reads the expression BOT as Python does for ASCII, and Reddit's names are ASCII.
# - "!" is the first character after the blank: ``text < '!'`` is a fast first test for blank texts.
#   AND binds before OR.
# - Reddit escapes "<", ">" and "&". "&amp;" is replaced last, because "&amp;gt;" stands for a typed
#   "&gt;".
# - ``marked`` says that a text may hold quotes or code.
# - Each step is a query of its own, because a CASE would compute an alias of its own SELECT again.
QUERY = f"""
    WITH parsed AS (
        SELECT line,
            try(json_extract_string(line, {[f"$.{name}" for name in FIELDS]})) AS field
        FROM lines
    ), posts AS (
        SELECT line, field[1] AS author, field[2] AS created, field[4] AS text, field[5] AS id,
            CASE WHEN starts_with(field[3], 'u_') THEN 'u_' ELSE field[3] END AS topic,
            try_cast(created AS DOUBLE) AS time
        FROM parsed
    ), judged AS (
        SELECT *, CASE
            WHEN author IS NULL AND created IS NULL AND topic IS NULL AND text IS NULL
                THEN 'unread'
            WHEN author IS NULL OR created IS NULL OR topic IS NULL OR text IS NULL
                OR author < '!' AND trim(author) = '' OR topic < '!' AND trim(topic) = ''
                THEN 'missing_field'
            WHEN author IN ('[deleted]', '[removed]') OR text IN ('[deleted]', '[removed]')
                THEN 'deleted'
            WHEN regexp_matches(author, '{BOT.pattern.replace("'", "''")}')
                THEN 'bot'
            WHEN time IS NULL OR time NOT BETWEEN {OPENING} AND {LATEST}
                THEN 'bad_time'
            WHEN $share < 1 AND md5_number_lower(coalesce(id, line)) / {2**64} >= $share
                THEN 'not_drawn'
            WHEN text < '!' AND NOT regexp_matches(text, '\\S')
                THEN 'empty'
            END AS reason
        FROM posts
    ), unescaped AS (
        SELECT * REPLACE (CASE
            WHEN NOT contains(text, '&') THEN text
            WHEN contains(text, '&lt;') OR contains(text, '&gt;')
                THEN replace(replace(replace(text, '&lt;', '<'), '&gt;', '>'), '&amp;', '&')
            ELSE replace(text, '&amp;', '&') END AS text)
        FROM judged
    )
    SELECT reason, CASE WHEN reason = 'unread' THEN encode(line) END AS unread, author,
        CASE WHEN reason IS NULL THEN floor(time)::BIGINT END AS time, topic, text, id,
        CASE
            WHEN text < '!' OR starts_with(text, '>') THEN true
            WHEN contains(text, '\n')
                THEN contains(text, '\n>') OR contains(text, '\n ') OR contains(text, '\n\t')
            ELSE false END AS marked
    FROM unescaped"""
# one thread, because parts run side by side; large buffers, because pandas uses large strings
SETTINGS = {"threads": 1, "arrow_large_buffer_size": True}


def parts(location: str | list[str], *, raw: bool = False, share: float = 1.0) -> list[Part]:
    """Return one part per file.

    A compressed file can only be read from its start, so an interrupted month is read again whole.
    Memory holds some thousand posts, and the window of 2 GB where a file was packed with
    ``--long=31``.

    Drops counted: broken_json, truncated_file (what precedes the damage is kept), missing_field,
    deleted (author or body), bot, bad_time (unreadable, before Reddit or after 2099), not_drawn
    (outside of ``share``), empty. Noted: note_cp1252, lines with bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively for ``.zst``, ``.bz2``, ``.xz``, ``.gz``,
        ``.ndjson``, ``.jsonl``, ``.json`` and for ``RC_YYYY-MM`` without suffix; files of
        submissions, ``RS_``, are left out)
    raw : bool
        keep quotes, code and spoiler marks
    share : float
        share of the comments to keep, in (0, 1], chosen by a hash of their ids (sawatphol2022 keeps
        0.1)

    Raises
    ------
    ValueError
        A location is missing, two files hold the same month, or share is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"pushshift: share is {share}: it must be above 0, and 1 at most")
    months = {}
    for name, path in source_files("pushshift", location, _is_dump).items():
        month = name.removesuffix(path.suffix)
        if month in months:
            raise ValueError(f"pushshift: {months[month]} and {path} hold the same month; keep one")
        months[month] = path
    return [
        Part(name, partial(read_comments, path, raw=raw, share=share), file_stats_fingerprint(path))
        for name, path in months.items()
    ]


def read_comments(
    path: Path, drops: Counter, raw: bool = False, share: float = 1.0
) -> Iterator[pd.DataFrame]:
    """Yield the posts of one file in frames of about FRAME_ROWS rows.

    Parameters
    ----------
    path : Path
        path of the dump
    drops : Counter
        number of drops by reason, increased in place; see :func:`parts`
    raw : bool
        keep quotes, code and spoiler marks
    share : float
        share of the comments to keep, in (0, 1], chosen by a hash of their ids
    """
    lines = (line_batch(block) for block in byte_blocks(path, drops))
    with duckdb.connect(config=SETTINGS) as connection:
        for batch in _judged(connection, lines, share):
            unread_lines = batch["unread"].drop_null()
            if len(unread_lines):
                repaired = line_batch(_repaired(unread_lines, drops))
                for repaired_batch in _judged(connection, [repaired], share):
                    yield from _frames(repaired_batch, drops, raw)
            yield from _frames(batch, drops, raw)


def line_batch(block: bytes) -> pa.RecordBatch:
    """Return a block of whole lines as a record batch with one line per row, without copying it.

    The newline stays at the end of each row.
    """
    newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    offsets = np.append(0, newlines + 1)
    column = pa.LargeStringArray.from_buffers(
        len(newlines), pa.py_buffer(offsets), pa.py_buffer(block)
    )
    return pa.record_batch([column], schema=LINE_SCHEMA)


def without_quotes(text: str) -> str:
    """Return a comment without quoted lines, indented code and the marks of spoilers; may be empty.

    Other markup stays: :func:`helpers.cleaning.text.clean_post` removes it for all sources.
    """
    # a spoiler ">!...!<" at the start of a line would pass for a quote; "<" alone is found faster
    if "<" in text and "!<" in text:
        text = "\n".join(_uncovered(line) for line in text.split("\n"))
    if "\t" in text or "    " in text:
        text = "\n".join(_without_code(text.split("\n")))
    return QUOTE.sub("\n", f"\n{text}").strip()


def _without_code(lines):
    """Yield the lines that are not indented code.

    An indented line is code only after a blank line, another line of code or the start of the text.
    Below a list item an indented line continues the item.
    """
    code_may_begin = True
    in_list = False
    for line in lines:
        is_blank = not line.strip()
        is_indented = line.startswith(CODE_INDENT)
        if is_blank or not is_indented or not code_may_begin or in_list:
            yield line
            code_may_begin = is_blank
        if not is_blank and not is_indented:
            in_list = LIST_ITEM.match(line) is not None


def _uncovered(line):
    """Return a line without the marks of its spoilers: "a >!b!< c" becomes "a b c"."""
    covered, mark, remainder = line.rpartition("!<")
    if ">!" not in covered:
        return line
    return covered.replace(">!", "").replace("!<", "") + remainder


def _judged(connection, lines, share):
    """Yield batches of comments with a column of the reason why each is dropped, null for posts.

    One query serves all batches of lines: planning it costs as much as parsing some megabytes.
    """
    reader = pa.RecordBatchReader.from_batches(LINE_SCHEMA, lines)
    query = QUERY.replace("$share", str(float(share)))
    relation = connection.cursor().from_arrow(reader).query("lines", query)
    yield from relation.to_arrow_reader(FRAME_ROWS)


def _repaired(lines, drops):
    """Return lines that DuckDB could not read as clean JSON lines, read by Python's parser.

    Python's parser accepts lone surrogates and bytes that are not UTF-8. Lines that it cannot read
    either are counted.
    """
    repaired = []
    for line in lines.to_pylist():
        if not line.strip():
            continue
        try:
            record = parse_json(line, drops)
        except NO_JSON:
            record = None
        if not isinstance(record, dict):
            drops["broken_json"] += 1
            continue
        texts = {name: record.get(name) for name in FIELDS}
        if all(texts[name] is None for name in REQUIRED):
            drops["missing_field"] += 1
            continue
        for name, value in texts.items():
            if value and name in ("author", "subreddit"):
                value = escape_surrogates(str(value))
            if value:
                texts[name] = normalise_unicode(str(value))
        repaired.append(json.dumps(texts) + "\n")
    return "".join(repaired).encode()


def _frames(batch, drops, raw):
    """Yield the posts of a batch as one frame, or nothing; count the drops by reason."""
    for count in pc.value_counts(batch["reason"]).to_pylist():
        if count["values"] not in (None, "unread"):
            drops[count["values"]] += count["counts"]
    is_post = pc.is_null(batch["reason"])
    if not raw:
        texts = batch["text"]
        is_marked = pc.and_(is_post, batch["marked"])
        plain_texts = [without_quotes(text) for text in texts.filter(is_marked).to_pylist()]
        texts = pc.replace_with_mask(texts, is_marked, pa.array(plain_texts, texts.type))
        batch = batch.set_column(batch.schema.get_field_index("text"), "text", texts)
        n_empty = plain_texts.count("")
        if n_empty:
            drops["empty"] += n_empty
            is_post = pc.and_(is_post, pc.not_equal(texts, ""))
    frame = batch.select([*COLUMNS, "id"]).filter(is_post).to_pandas()
    if len(frame):
        yield frame


def _is_dump(path):
    """Return whether a path has the name of a dump of comments."""
    if SUBMISSIONS.match(path.name):
        return False
    return path.suffix in SUFFIXES or re.fullmatch(r"RC_[\d-]+", path.name)
