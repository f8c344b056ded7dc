"""Corpus formats: each module here turns one raw format into rows of the posts table.

A source offers ``parts(location, **options) -> list[Part]``. A part is the unit of resuming: what is read from it
is written whole or not at all. Reading yields frames with the columns of the posts table:

=======  ==========================================================
author   text, as the source names the person
time     int64, seconds since 1970-01-01 UTC
topic    text: stream, list, newsgroup, subreddit ...
text     text, the format's own markup and quotes removed unless ``raw``
id       optional text
=======  ==========================================================

Every raw record is either yielded or counted in ``drops[reason]``: nothing is lost silently.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pandas as pd

from helpers.runs import paths

COLUMNS = ["author", "time", "topic", "text"]
SOURCES = ("demo", "zulip", "pipermail", "pushshift", "mud", "newsgroups", "pan", "amazon", "table")
# invented people need no pseudonyms, and a keyed hash would give each machine another demo corpus
INVENTED = ("demo",)


@dataclass(frozen=True)
class Part:
    """One resumable piece of a source.

    name: unique within the source and stable from run to run.
    read: called with a Counter of drops, yields frames of at most some ten thousand rows.
    stamp: another one says that the part must be read again, see :func:`helpers.runs.artifacts.stamp`.
    """

    name: str
    read: Callable[[Counter], Iterator[pd.DataFrame]]
    stamp: str = ""


def open_source(kind: str, location: str | list[str], **options) -> list[Part]:
    """The parts of a corpus.

    Raises ValueError for an unknown kind, an unknown option, a location that is missing or holds nothing to read.
    """
    if kind not in SOURCES:
        raise ValueError(f"unknown source {kind!r}; valid: {', '.join(SOURCES)}")
    found = import_module(f"helpers.sources.{kind}").parts(location, **options)
    if not found:
        raise ValueError(f"source {kind!r}: nothing to read at {location!r}")
    return found


def files(kind: str, location: str | list[str], wanted: Callable[[Path], bool]) -> dict[str, Path]:
    """The files of a source by the names of their parts: the path below the location, or the name of a lone file.

    location: a file, taken as it is, a folder, searched recursively for what is wanted, or a list of these.
    Raises ValueError where a location is missing or two files would have one name.
    """
    found = {}
    for place in [location] if isinstance(location, str | Path) else location:
        root = paths.resolve(place)
        if not root.exists():
            raise ValueError(f"{kind}: {root} is missing")
        below = [path for path in sorted(root.rglob("*")) if path.is_file() and wanted(path)]
        for path in below if root.is_dir() else [root]:
            name = path.relative_to(root).as_posix() if root.is_dir() else path.name
            if name in found:
                raise ValueError(f"{kind}: {found[name]} and {path} have the same name; rename one")
            found[name] = path
    return found


def frame(rows: Iterable[tuple | str], topic: str, drops: Counter) -> Iterator[pd.DataFrame]:
    """One frame of a topic's messages, none where none is left. rows: (author, time, text, id), or a drop's reason."""
    kept = []
    for row in rows:
        if isinstance(row, str):
            drops[row] += 1
        else:
            kept.append(row)
    if kept:
        table = pd.DataFrame(kept, columns=["author", "time", "text", "id"]).astype({"time": "int64"})
        yield table.assign(topic=topic)[[*COLUMNS, "id"]]
