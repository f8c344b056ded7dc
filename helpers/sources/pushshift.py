"""Reddit comments as Pushshift and its successors publish them: monthly dumps ``RC_YYYY-MM``, one JSON object a line.

Fields come in any order and differ from month to month; ``author``, ``created_utc``, ``subreddit``, ``body`` and
``id`` are read. The posts table's topic is the subreddit.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from helpers.cleaning.text import BOT, QUOTE_LINE, normalise_unicode
from helpers.core.artifacts import file_stats_fingerprint
from helpers.sources import COLUMNS, Part, source_files
from helpers.sources.json_lines import COMPRESSED, NO_JSON, byte_blocks, parse_json

ROWS = 16_384  # of one frame
SUFFIXES = (*COMPRESSED, ".ndjson", ".jsonl", ".json")
SUBMISSIONS = re.compile(r"RS_|.*_submissions\b")  # titles and links, published beside the comments
FIELDS = ["author", "created_utc", "subreddit", "body", "id"]
EARLIEST, LATEST = (
    1_119_484_800,
    4_102_444_800,
)  # 2005-06-23, when Reddit opened, and 2100-01-01, UTC
LINES = pa.schema([("line", pa.large_string())])
QUOTE = re.compile(
    "\n" + QUOTE_LINE.pattern.strip("^$")
)  # to search for "^" would stop at every character
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])\s")

# A line that the parser refuses becomes null instead of an error (try). RE2 reads BOT as Python does for ASCII, which
# Reddit's names are made of. Few texts begin with a character below "!", the first that is no blank. Reddit escapes
# "<", ">" and "&" in what it serves: "&" comes last, because "&amp;gt;" is what somebody typed as "&gt;".
# Each step is a query of its own: within a CASE, an alias of the same SELECT would be computed anew.
QUERY = f"""
    WITH parsed AS (
        SELECT line, try(json_extract_string(line, {[f"$.{name}" for name in FIELDS]})) AS field FROM lines
    ), posts AS (
        SELECT line, field[1] AS author, field[2] AS created, field[3] AS topic, field[4] AS text, field[5] AS id,
            try_cast(created AS DOUBLE) AS time
        FROM parsed
    ), judged AS (
        SELECT *, CASE
            WHEN author IS NULL AND created IS NULL AND topic IS NULL AND text IS NULL THEN 'unread'
            WHEN author IS NULL OR created IS NULL OR topic IS NULL OR text IS NULL
                OR author < '!' AND trim(author) = '' OR topic < '!' AND trim(topic) = '' THEN 'missing_field'
            WHEN author IN ('[deleted]', '[removed]') OR text IN ('[deleted]', '[removed]') THEN 'deleted'
            WHEN regexp_matches(author, '{BOT.pattern.replace("'", "''")}') THEN 'bot'
            WHEN time IS NULL OR time NOT BETWEEN {EARLIEST} AND {LATEST} THEN 'bad_time'
            WHEN $share < 1 AND md5_number_lower(coalesce(id, line)) / {2**64} >= $share THEN 'not_drawn'
            WHEN text < '!' AND NOT regexp_matches(text, '\\S') THEN 'empty' END AS reason
        FROM posts
    ), unescaped AS (
        SELECT * REPLACE (CASE WHEN contains(text, '&') THEN CASE WHEN contains(text, '&lt;') OR contains(text, '&gt;')
            THEN replace(replace(replace(text, '&lt;', '<'), '&gt;', '>'), '&amp;', '&')
            ELSE replace(text, '&amp;', '&') END ELSE text END AS text)
        FROM judged
    )
    SELECT reason, CASE WHEN reason = 'unread' THEN encode(line) END AS unread, author,
        CASE WHEN reason IS NULL THEN floor(time)::BIGINT END AS time, topic, text, id, CASE
        WHEN text < '!' OR starts_with(text, '>') THEN true
        WHEN contains(text, '\n') THEN contains(text, '\n>') OR contains(text, '\n ') OR contains(text, '\n\t')
        ELSE false END AS marked
    FROM unescaped"""
SETTINGS = {
    "threads": 1,
    "arrow_large_buffer_size": True,
}  # the parts run side by side; pandas' text is large


def parts(location: str | list[str], *, raw: bool = False, share: float = 1.0) -> list[Part]:
    """One part per file: a compressed stream has no middle to begin at, so a month is read whole or again.

    location: a file, a folder (searched recursively for ``.zst``, ``.bz2``, ``.xz``, ``.gz``, ``.ndjson``, ``.jsonl``,
        ``.json`` and for ``RC_YYYY-MM`` without suffix; submissions, ``RS_``, are passed over), or a list of these.
    raw: keep quotes, code and spoiler marks. share: of the comments, drawn by their ids (sawatphol2022 takes 0.1).
    Drops counted: broken_json, truncated_file (what precedes the damage is kept), missing_field, deleted (author or
        body), bot, bad_time (unreadable, before Reddit or after 2099), not_drawn, empty. Noted: note_cp1252, lines
        with bytes that are no UTF-8.
    Raises ValueError where a location is missing, two files hold the same month, or share is not in (0, 1].

    Memory is that of some thousand posts, and for ``--long=31`` the 2 GB window that such a file needs by its nature.
    """
    if not 0 < share <= 1:
        raise ValueError(f"pushshift: share is {share}: it must be above 0, and 1 at most")
    months = {}
    for name, path in source_files("pushshift", location, _is_dump).items():
        month = re.sub("|".join(rf"\{suffix}$" for suffix in SUFFIXES), "", name)
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
    """The posts of one file in frames of about ROWS rows."""
    with duckdb.connect(config=SETTINGS) as connection:
        yield from _frames(connection, map(_lines, byte_blocks(path, drops)), drops, raw, share)


def without_quotes(text: str) -> str:
    """A comment without quoted lines and indented code, spoilers uncovered. May be empty.

    The rest of the markup is left to :func:`helpers.cleaning.text.clean_post`, which other sources need for it as well.
    """
    if (
        "<" in text and "!<" in text
    ):  # at the start of a line ">!" would pass for a quote; one letter is found faster
        text = "\n".join(map(_uncovered, text.split("\n")))
    if "\t" in text or "    " in text:
        text = "\n".join(_without_code(text.split("\n")))
    return QUOTE.sub("\n", f"\n{text}").strip()


def _without_code(lines):
    may_begin, listed = True, False
    for line in lines:
        blank, indented = not line.strip(), line.startswith(("    ", "\t"))
        # code cannot interrupt a paragraph, and below a list item the same indent continues the item
        if blank or not indented or not may_begin or listed:
            yield line
            may_begin = blank
        if not blank and not indented:
            listed = LIST_ITEM.match(line) is not None


def _uncovered(line):
    covered, mark, rest = line.rpartition("!<")
    return (
        covered.replace(">!", "").replace("!<", "") if mark and ">!" in covered else covered + mark
    ) + rest


def _frames(connection, lines, drops, raw, share, repaired=False):
    """Frames from record batches of lines. repaired: the lines were rewritten by :func:`_repaired`."""
    source = pa.RecordBatchReader.from_batches(LINES, lines)
    # one query for the whole stream: to plan one costs as much as to parse some megabytes
    query = QUERY.replace("$share", str(float(share)))
    for batch in connection.cursor().from_arrow(source).query("lines", query).to_arrow_reader(ROWS):
        reasons = Counter(
            {
                each["values"]: each["counts"]
                for each in pc.value_counts(batch["reason"]).to_pylist()
            }
        )
        reasons.pop(None, None)
        if unread := reasons.pop("unread", 0):
            if repaired:
                drops["missing_field"] += unread
            else:
                yield from _frames(
                    connection,
                    _second_try(batch["unread"].drop_null(), drops),
                    drops,
                    raw,
                    share,
                    True,
                )
        drops.update(reasons)
        frame = _frame(batch, drops, raw)
        if len(frame):
            yield frame


def _frame(batch, drops, raw):
    kept = pc.is_null(batch["reason"])
    if not raw:
        text, marked = batch["text"], pc.and_(kept, batch["marked"])
        texts = [without_quotes(each) for each in text.filter(marked).to_pylist()]
        text = pc.replace_with_mask(text, marked, pa.array(texts, text.type))
        batch = batch.set_column(batch.schema.get_field_index("text"), "text", text)
        if empty := texts.count(""):
            drops["empty"] += empty
            kept = pc.and_(kept, pc.not_equal(text, ""))
    return batch.select([*COLUMNS, "id"]).filter(kept).to_pandas()


def _lines(block):
    """A block of whole lines as a record batch, without copying it."""
    offsets = np.append(0, np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1)
    column = pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(block)
    )
    return pa.record_batch([column], schema=LINES)


def _second_try(lines, drops):
    """One batch of the lines that Python's more lenient parser reads: lone surrogates, a byte that is no UTF-8."""
    repaired = []
    for line in lines.to_pylist():
        record = None
        with suppress(*NO_JSON):
            record = parse_json(line, drops)
        if isinstance(record, dict):
            values = {name: record.get(name) for name in FIELDS}
            texts = {
                name: value and normalise_unicode(str(value)) for name, value in values.items()
            }
            repaired.append(json.dumps(texts) + "\n")
        elif line.strip():
            drops["broken_json"] += 1
    return [_lines("".join(repaired).encode())]


def _is_dump(path):
    is_named_so = path.suffix in SUFFIXES or re.fullmatch(r"RC_[\d-]+", path.name)
    return bool(is_named_so and not SUBMISSIONS.match(path.name))
