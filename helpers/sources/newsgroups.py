"""The 20 Newsgroups: one file a message with its headers, one folder a group, in a tree or a ``.tar.gz`` of it.

The files have no common encoding, and most predate any. Versions of the collection differ in their headers. The
original of 19,997 messages has dates; "bydate" and the one of 18,828 messages were published without, and a message
without a date is dropped, because a stream of posts is made of times.
"""

import re
import tarfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path, PurePosixPath

import pandas as pd

from helpers.cleaning.email import own_words
from helpers.cleaning.email_headers import decode, parse
from helpers.cleaning.text import mask_name
from helpers.runs.artifacts import stamp
from helpers.sources import Part, below, existing, frames, places

LONGEST, ARCHIVE = 1 << 24, 1 << 31  # bytes of a message, and of all messages of an archive
NUMBER = re.compile(r"\d+")  # the name of a message's file


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per group, and per half of "bydate".

    location: a folder at or above those of the groups, a ``.tar.gz`` or ``.tar`` that holds one, or a list of these.
        Messages are files whose name is a number; their folder's name is the group, the posts table's topic.
    raw: keep the whole body.
    Drops counted: too_large, no_author, no_date, bad_date (see :func:`helpers.cleaning.email_headers.seconds`), empty.
    Noted: see :func:`helpers.cleaning.email_headers.decode`. Raises ValueError where a location is missing, an archive
    is unreadable or two groups have the same path, or an archive holds more than memory should.
    """
    groups = {}
    for root in (existing("newsgroups", place) for place in places(location)):
        for name, messages in (_tree(root) if root.is_dir() else _archive(root)).items():
            if name in groups:
                raise ValueError(f"newsgroups: two of the locations hold {name}; name the folder above both")
            groups[name] = Part(name, partial(read, PurePosixPath(name).name, messages, raw=raw), stamp(root))
    return [groups[name] for name in sorted(groups)]


def read(group: str, messages: list[Path | bytes], drops: Counter, raw: bool = False) -> Iterator[pd.DataFrame]:
    """The posts of one group. messages: files, or what they hold."""
    contents = map(_content, messages)
    return frames(("too_large" if content is None else _row(decode(content, drops), group, raw)
                   for content in contents), drops)  # fmt: skip


def _content(message):
    if isinstance(message, Path):
        return message.read_bytes() if message.stat().st_size <= LONGEST else None
    return message


def _row(text, group, raw):
    """The values of a post, or the reason for the drop."""
    message = parse(text.replace("\r\n", "\n"))
    if not (message.name or message.address):
        return "no_author"
    if message.time is None:
        return "no_date" if message.date is None else "bad_date"
    # who reads the table knows the address only
    text = (message.body if raw else mask_name(own_words(message.body), message.name)).strip()
    return (message.author, message.time, group, text, message.id, message.names) if text else "empty"


def _tree(root):
    """The messages of each group, by the group's path below the root."""
    groups = defaultdict(list)
    for path in below(root):
        if NUMBER.fullmatch(path.name):
            folder = path.parent.relative_to(root).as_posix()
            groups[root.name if folder == "." else folder].append(path)
    return groups


class _Member(tarfile.TarInfo):
    """A header of an archive; tarfile takes the long names that some come with into memory, whatever their size."""

    @classmethod
    def frombuf(cls, *header):
        member = super().frombuf(*header)
        if member.size > LONGEST and member.type not in (*tarfile.REGULAR_TYPES, tarfile.GNUTYPE_SPARSE):
            raise tarfile.ReadError(f"a header of {member.size:,} bytes")
        return member


def _archive(path):
    """The same of an archive, held in memory as a compressed one has no middle to begin at; too large ones are None."""
    groups, room = defaultdict(list), ARCHIVE
    try:
        with tarfile.open(path, tarinfo=_Member) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and NUMBER.fullmatch(name.name):
                    content = archive.extractfile(member).read() if member.size <= LONGEST else None
                    groups[str(name.parent)].append((name.name, content))
                    room -= len(content or b"")
                if room < 0:
                    raise ValueError(f"newsgroups: {path} holds more than {ARCHIVE:,} bytes of messages; unpack it and "
                                     "name the folder")  # fmt: skip
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"newsgroups: cannot read {path}: {error}") from None
    return {name: [content for _, content in sorted(messages, key=itemgetter(0))] for name, messages in groups.items()}
