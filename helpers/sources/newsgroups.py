"""The 20 Newsgroups: one file per message with its headers, one folder per group.

Unpack the ``.tar.gz`` first. The files have no common encoding. Take the original collection of
19,997 messages, which has dates: "bydate" and the collection of 18,828 messages were published
without them, and a message without a date is dropped, because every post needs a time.
"""

import re
from collections import defaultdict
from functools import partial
from pathlib import PurePosixPath

from ..cleaning.email import own_paragraphs
from ..cleaning.email_headers import decode_header, parse_headers
from ..cleaning.text import mask_mentions
from ..core.artifacts import file_stats_fingerprint
from . import Part, existing_paths, list_files, row_part

MAX_MESSAGE_BYTES = 1 << 24  # a larger file is dropped as too_large
MESSAGE_FILE = re.compile(r"\d+")  # the whole name of a message's file is a number: "51060"


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """Return one part per group; of "bydate" one per group in its training and its test half.

    Drops counted: too_large, no_author, no_date, bad_date (see
    :func:`helpers.cleaning.email_headers.parse_date`), empty (also where only quotes and a
    signature are there). Noted: see
    :func:`helpers.cleaning.email_headers.decode_header`.

    Parameters
    ----------
    location : str or list of str
        a folder at or above those of the groups. Messages are files whose name is a number; their
        folder's name is the group, the posts table's topic.
    raw : bool
        keep the whole body: quotes, signatures and the author's own name

    Raises
    ------
    ValueError
        A location is no folder, or two locations hold one group.
    """
    groups = {}
    for root in existing_paths("newsgroups", location):
        if not root.is_dir():
            raise ValueError(f"newsgroups: {root} is no folder; unpack it and name the folder")
        stamp = file_stats_fingerprint(root)
        for name, files in _files_by_group(root).items():
            if name in groups:
                raise ValueError(
                    f"newsgroups: two of the locations hold {name}; name the folder above both"
                )
            topic = PurePosixPath(name).name
            groups[name] = row_part(name, partial(_rows, topic, files, raw), stamp)
    return [groups[name] for name in sorted(groups)]


def _files_by_group(root):
    """Return the files of each group's messages, by the group's path below the root."""
    groups = defaultdict(list)
    for path in list_files(root):
        if MESSAGE_FILE.fullmatch(path.name):
            folder = path.parent.relative_to(root).as_posix()
            groups[root.name if folder == "." else folder].append(path)
    return groups


def _rows(topic, files, raw, drops):
    """Yield a post, or the reason of its drop, for each message of a group."""
    for path in files:
        if path.stat().st_size > MAX_MESSAGE_BYTES:
            yield "too_large"
        else:
            yield _row(decode_header(path.read_bytes(), drops), topic, raw)


def _row(text, topic, raw):
    """Return the values of the post that a message is, or the reason why it is dropped."""
    message = parse_headers(text.replace("\r\n", "\n"))
    if not (message.name or message.address):
        return "no_author"
    if message.date is None:
        return "no_date"
    if message.time is None:
        return "bad_date"
    text = message.body
    if not raw:
        # here, because later steps know only the author's address, not the name
        text = mask_mentions(own_paragraphs(text), message.name)
    return message.author, message.time, topic, text.strip(), message.id, message.names
