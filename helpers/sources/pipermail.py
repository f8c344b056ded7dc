"""Mailman's monthly text archives (pipermail): mbox-like files, plain or gzipped.

The posts table's topic is the name of the list: that of the folder that holds its monthly files.
"""

import re
from functools import partial

from ..cleaning.email import SCRUBBED, own_paragraphs
from ..cleaning.email_headers import parse_headers
from ..cleaning.text import is_bot, mask_mentions
from ..core.files import counted_damage, open_text
from . import Part, file_parts, source_files

MAX_MESSAGE_BYTES = 1 << 24  # a larger message is dropped as too_large
# the ending of a monthly file: "2012-March.txt.gz"
MONTH = re.compile(r"\.(?:txt|mbox)(?:\.gz)?$")
# The line above a message: "From jd at example.org  Mon Jul  2 10:15:00 2007". A line of a body may
# begin with "From " too, so the separator must also have a date, and stand between a blank line (or
# the start of the file) and a header. The literal "From " comes first, and look-behinds then check
# what is before it: re finds a literal a hundred times faster than a position.
SEPARATOR = re.compile(
    rb"From (?:(?<=\AFrom )|(?<=\n\nFrom ))[^\n]{0,300}?"
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +[A-Z][a-z]{2} +\d{1,2} +\d{1,2}:\d\d:\d\d +"
    rb"(?:[A-Z+-][A-Z\d]{1,4} +)?\d{4}[ \t]*\n(?=[A-Za-z][A-Za-z\d-]{0,60}:)"
)
LINE_WITH_TEXT = re.compile(rb"^.*\S", re.M)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """Return one part per monthly file, which is held in memory while it is read.

    Drops counted: broken_file (a file without a message), truncated_file (what precedes the damage
    is kept), too_large, broken_header (no sender or no date), bad_date, bot, scrubbed (the archive
    kept only a link to a removed part), empty (also where only quotes and a signature are there).
    Noted: lines_before_messages; note_cp1252, messages that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a folder (searched recursively for ``.txt``, ``.txt.gz``, ``.mbox``) or a file
    raw : bool
        keep the whole body: quotes, signatures and the author's own name

    Raises
    ------
    ValueError
        A location is missing, or two files have the same name.
    """
    files = source_files("pipermail", location, lambda path: MONTH.search(path.name))
    return file_parts(files, partial(_rows, raw=raw))


def _rows(path, drops, raw):
    """Yield a post or the reason of a drop per message of a file."""
    content = _content(path, drops)
    separators = list(SEPARATOR.finditer(content))
    if not separators:
        yield "broken_file"
        return
    lines_before = LINE_WITH_TEXT.findall(content[: separators[0].start()])
    if lines_before:
        drops["note_lines_before_messages"] += len(lines_before)
    ends = [separator.start() for separator in separators[1:]] + [len(content)]
    for separator, end in zip(separators, ends):
        if end - separator.start() > MAX_MESSAGE_BYTES:
            yield "too_large"
            continue
        message = content[separator.end() : end]
        text = message.decode("utf-8", "cp1252")
        if text.encode() != message:
            drops["note_cp1252"] += 1
        yield _row(text, path.parent.name, raw)


def _content(path, drops):
    """Return the content of a file up to its damage, with the line ends of Unix."""
    pieces = []
    with open_text(path) as file, counted_damage(drops):
        while piece := file.buffer.read1(1 << 18):
            pieces.append(piece)
    return b"".join(pieces).replace(b"\r\n", b"\n")


def _row(text, topic, raw):
    """Return the values of the post that a message is, or the reason why it is dropped."""
    message = parse_headers(text)
    if not (message.name or message.address) or message.date is None:
        return "broken_header"
    if message.time is None:
        return "bad_date"
    if is_bot(message.address) or is_bot(message.name):
        return "bot"
    text = message.body.strip()
    if not raw:
        text = own_paragraphs(message.body).strip()
        if not text and SCRUBBED.search(message.body):
            return "scrubbed"
        # here, because later steps know only the author's address, not the name
        text = mask_mentions(text, message.name)
    return message.author, message.time, topic, text, message.id, message.names
