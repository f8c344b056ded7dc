"""The 20 Newsgroups: one file a message with its headers, one folder a group; unpack the ``.tar.gz`` first.

The files have no common encoding, and most predate any. Versions of the collection differ in their headers. The
original of 19,997 messages has dates; "bydate" and the one of 18,828 messages were published without, and a message
without a date is dropped, because a stream of posts is made of times.
"""

import re
from collections import defaultdict
from functools import partial
from pathlib import PurePosixPath

from helpers.cleaning.email import own_paragraphs
from helpers.cleaning.email_headers import decode_header, parse_headers
from helpers.cleaning.text import mask_mentions
from helpers.core.artifacts import file_stats_fingerprint
from helpers.sources import Part, as_list, existing_path, list_files, row_part

LONGEST = 1 << 24  # bytes of a message
NUMBER = re.compile(r"\d+")  # the name of a message's file


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per group, and per half of "bydate".

    location: a folder at or above those of the groups, or a list of these. Messages are files whose name is a
        number; their folder's name is the group, the posts table's topic.
    raw: keep the whole body.
    Drops counted: too_large, no_author, no_date, bad_date (see :func:`helpers.cleaning.email_headers.parse_date`), empty.
    Noted: see :func:`helpers.cleaning.email_headers.decode_header`. Raises ValueError for no folder, or one path twice.
    """
    groups = {}
    for root in (existing_path("newsgroups", place) for place in as_list(location)):
        if not root.is_dir():
            raise ValueError(f"newsgroups: {root} is no folder; unpack it and name the folder")
        for name, messages in _tree(root).items():
            if name in groups:
                raise ValueError(
                    f"newsgroups: two of the locations hold {name}; name the folder above both"
                )
            groups[name] = row_part(
                name,
                partial(_rows, PurePosixPath(name).name, messages, raw),
                file_stats_fingerprint(root),
            )
    return [groups[name] for name in sorted(groups)]


def _rows(group, messages, raw, drops):
    return ("too_large" if path.stat().st_size > LONGEST else _row(decode_header(path.read_bytes(), drops), group, raw)
            for path in messages)  # fmt: skip


def _row(text, group, raw):
    """The values of a post, or the reason for the drop."""
    message = parse_headers(text.replace("\r\n", "\n"))
    if not (message.name or message.address):
        return "no_author"
    if message.time is None:
        return "no_date" if message.date is None else "bad_date"
    # who reads the table knows the address only
    text = (
        message.body if raw else mask_mentions(own_paragraphs(message.body), message.name)
    ).strip()
    return (
        (message.author, message.time, group, text, message.id, message.names) if text else "empty"
    )


def _tree(root):
    """The messages of each group, by the group's path below the root."""
    groups = defaultdict(list)
    for path in list_files(root):
        if NUMBER.fullmatch(path.name):
            folder = path.parent.relative_to(root).as_posix()
            groups[root.name if folder == "." else folder].append(path)
    return groups
