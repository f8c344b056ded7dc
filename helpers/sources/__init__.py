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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import pandas as pd

COLUMNS = ["author", "time", "topic", "text"]
SOURCES = ("demo", "zulip", "pipermail", "table")
# invented people need no pseudonyms, and a keyed hash would give each machine another demo corpus
INVENTED = ("demo",)


@dataclass(frozen=True)
class Part:
    """One resumable piece of a source.

    name: unique within the source and stable from run to run.
    read: called with a Counter of drops, yields frames of at most some ten thousand rows.
    stamp: another one says that the part must be read again, see :func:`helpers.artifacts.stamp`.
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
