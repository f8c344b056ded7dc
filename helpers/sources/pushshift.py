"""Reddit comments as Pushshift and its successors publish them: monthly dumps ``RC_YYYY-MM``.

A dump holds one JSON object per line. Its fields come in any order and differ from month to month;
``author``, ``created_utc``, ``subreddit``, ``body`` and ``id`` are read. The posts table's topic is
the subreddit. The pages of users, "u_<name>", are one topic, "u_", because their names are those of
people.
"""

import re
from functools import partial
from hashlib import md5

import msgspec

from ..cleaning.code_lines import without_blocks
from ..cleaning.text import is_bot, normalise_unicode
from ..core.files import OPENERS
from . import Part, file_parts, source_files
from .csv_and_json_lines import json_records
from .table_columns import unix_seconds

SUFFIXES = (*OPENERS, ".ndjson", ".jsonl", ".json")
SUBMISSIONS = re.compile(r"RS_|.*_submissions\b")  # dumps of titles and links, not comments
DELETED = ("[deleted]", "[removed]")  # in place of an author or a text
OPENING = 1_119_484_800  # 2005-06-23, when Reddit opened, in seconds UTC


class Comment(msgspec.Struct, gc=False):
    """The fields of a comment that are read."""

    author: str
    created_utc: int | float | str | bool
    subreddit: str
    body: str
    id: str | None = None


def parts(location: str | list[str], *, share: float = 1.0) -> list[Part]:
    """Return one part per file.

    A compressed file can only be read from its start, so an interrupted month is read again whole.
    Memory holds some thousand posts, and the window of 2 GB where a file was packed with
    ``--long=31``.

    Drops counted: broken_json, truncated_file (what precedes the damage is kept), missing_field (no
    author, time, subreddit or text, or one that is no text), deleted (author or body), bot,
    bad_time (unreadable, before Reddit or after 2099), not_drawn (outside of ``share``), empty.
    Noted: note_cp1252, lines with bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively for ``.zst``, ``.bz2``, ``.xz``, ``.gz``,
        ``.ndjson``, ``.jsonl``, ``.json`` and for ``RC_YYYY-MM`` without suffix; files of
        submissions, ``RS_``, are left out)
    share : float
        share of the comments to keep, in (0, 1], chosen by a hash of their ids (sawatphol2022 keeps
        0.1)

    Raises
    ------
    ValueError
        A location is missing, two files have the same name, or share is not in (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"pushshift: share is {share}: it must be above 0, and 1 at most")
    files = source_files("pushshift", location, _is_dump)
    return file_parts(files, partial(_rows, share=share))


def _rows(path, drops, share):
    """Yield a post, or the reason of its drop, for each comment of a file."""
    for comment in json_records(path, Comment, drops, "missing_field"):
        yield _row(comment, share)


def _row(comment, share):
    """Return the values of the post that a comment is, or the reason why it is dropped."""
    author = comment.author
    topic = comment.subreddit
    text = comment.body
    if not author.strip() or not topic.strip():
        return "missing_field"
    if author in DELETED or text in DELETED:
        return "deleted"
    if is_bot(author):
        return "bot"
    time = unix_seconds(comment.created_utc)
    if time < OPENING:
        return "bad_time"
    if share < 1 and _hash(comment.id or text) >= share:
        return "not_drawn"

    if topic.startswith("u_"):
        topic = "u_"
    # "&amp;" last, because "&amp;gt;" stands for a typed "&gt;"
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    text = normalise_unicode(text).expandtabs(4)
    # a spoiler ">!...!<" at the start of a line would pass for a quote
    lines = without_blocks([_uncovered(line) for line in text.split("\n")])
    return author, time, topic, "\n".join(lines), comment.id


def _hash(text):
    """Return a number in [0, 1) that depends on a text alone."""
    digest = md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little") / 2**64


def _uncovered(line):
    """Return a line without the marks of its spoilers: "a >!b!< c" becomes "a b c"."""
    covered, mark, remainder = line.rpartition("!<")
    if ">!" not in covered:
        return line
    return covered.replace(">!", "").replace("!<", "") + remainder


def _is_dump(name):
    """Return whether a name is of a dump of comments."""
    if SUBMISSIONS.match(name):
        return False
    return name.endswith(SUFFIXES) or re.fullmatch(r"RC_[\d-]+", name)
