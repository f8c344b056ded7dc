"""Corpus formats: each module here turns one raw format into rows of the posts table.

A source offers ``parts(location, *, raw=False, **options) -> list[Part]``. A part is the unit of resuming: what is
read from it is written whole or not at all. Reading yields frames with the columns of the posts table:

=======  ==========================================================
author   text, as the source names the person
time     int64, seconds since 1970-01-01 UTC
topic    text: stream, list, newsgroup, subreddit ...
text     text, the format's own markup and quotes removed unless ``raw``
id       optional text
names    optional text, a line each: display names that headers and mentions of the post tell
=======  ==========================================================

Every raw record is either yielded or counted in ``drops[reason]``: nothing is lost silently. A reason that begins with
"note_" is a fact about records that are kept. A new source is a module of this folder and its name in SOURCES.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from itertools import islice
from pathlib import Path

import pandas as pd

from helpers.core import paths
from helpers.core.artifacts import file_stats_fingerprint
from helpers.core.parameters import check, unknown
from helpers.sources import json_lines

COLUMNS = ["author", "time", "topic", "text"]
SOURCES = ("demo", "zulip", "pipermail", "pushshift", "mud", "newsgroups", "pan", "amazon", "table")
# invented people need no pseudonyms, and a keyed hash would give each machine another demo corpus
INVENTED = ("demo",)
ROWS = 10_000  # of one frame


@dataclass(frozen=True)
class Part:
    """One resumable piece of a source.

    name: unique within the source and stable from run to run.
    read: called with a Counter of drops, yields frames of at most some ten thousand rows.
    stamp: another one says that the part must be read again, see :func:`helpers.core.artifacts.file_stats_fingerprint`.
    """

    name: str
    read: Callable[[Counter], Iterator[pd.DataFrame]]
    stamp: str = ""


def open_source(kind: str, location: str | list[str], **options) -> list[Part]:
    """The parts of a corpus.

    kind : one of SOURCES. location, options : as ``parts`` of the module ``helpers.sources.<kind>`` takes them.
    Raises ValueError where the kind or an option is unknown, an option has another type or value, or nothing is there.
    """
    if kind not in SOURCES:
        raise ValueError(f"unknown source {kind!r}; valid: {', '.join(SOURCES)}")
    opener = import_module(f"helpers.sources.{kind}").parts
    declared = {
        name: each
        for name, each in signature(opener).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }
    if message := unknown(options, declared, f"option of source {kind!r}"):
        raise ValueError(message)
    hints = {"__annotations__": {name: each.annotation for name, each in declared.items()}}
    options = check(hints | {name: each.default for name, each in declared.items()} | options)
    parts = opener(location, **options)
    if not parts:
        raise ValueError(f"source {kind!r}: nothing to read at {location!r}")
    return parts


def as_list(location: str | Path | list) -> list:
    """A location as a list of places."""
    return [location] if isinstance(location, str | Path) else list(location)


def existing_path(kind: str, place: str | Path) -> Path:
    """The path of a place. Raises ValueError where it is missing."""
    root = paths.resolve(place)
    if not root.exists():
        raise ValueError(f"{kind}: {root} is missing")
    return root


def list_files(root: Path) -> list[Path]:
    """The files of a folder at any depth, sorted; how many links lead out of it, and are not followed, is said."""
    there, inside = sorted(root.rglob("*")), Path(os.path.realpath(root))
    out = {
        path
        for path in there
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside)
    }
    if out:
        print(
            f"{paths.display_path(root)}: {len(out)} links that lead out of it are not followed, such as {min(out).name}"
        )
    return [path for path in there if path not in out and path.is_file()]


def source_files(
    kind: str, location: str | list[str], belongs: Callable[[Path], object]
) -> dict[str, Path]:
    """The files of a source by the names of their parts: the path below the location, or the name of a lone file.

    location: a file, taken as it is, a folder, searched recursively for what belongs, or a list of these.
    Raises ValueError where a location is missing, two files would have one name, or one is UTF-16 or not what it says.
    """
    by_name = {}
    for root in (existing_path(kind, place) for place in as_list(location)):
        for path in filter(belongs, list_files(root)) if root.is_dir() else [root]:
            name = path.relative_to(root).as_posix() if root.is_dir() else path.name
            if name in by_name:
                raise ValueError(
                    f"{kind}: {by_name[name]} and {path} have the same name; rename one"
                )
            json_lines.check_readable(kind, path)
            by_name[name] = path
    return by_name


def row_part(
    name: str, rows: Callable[[Counter], Iterable[tuple | str]], stamp: str = "", size: int = ROWS
) -> Part:
    """A part of which ``rows(drops)`` yields the posts and the reasons for drops, as :func:`as_frames` takes them."""
    return Part(name, lambda drops: as_frames(rows(drops), drops, size), stamp)


def file_parts(
    named: dict[str, Path], rows: Callable[[Path, Counter], Iterable[tuple | str]]
) -> list[Part]:
    """One part per file, of which ``rows(path, drops)`` yields the posts, see :func:`row_part`."""
    return [
        row_part(name, partial(rows, path), file_stats_fingerprint(path))
        for name, path in named.items()
    ]


def as_frames(
    rows: Iterable[tuple | str], drops: Counter, size: int = ROWS
) -> Iterator[pd.DataFrame]:
    """Frames of at most ``size`` posts. rows: the values of COLUMNS (and an id, names), or a drop's reason, counted."""
    found = (
        row for row in rows if not isinstance(row, str) or drops.update([row])
    )  # counted, and None: left out
    while some := list(islice(found, size)):
        yield pd.DataFrame(some, columns=[*COLUMNS, "id", "names"][: len(some[0])]).astype(
            {"time": "int64"}
        )
