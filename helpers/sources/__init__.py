"""Corpus formats: archives come in, each in its own format, and rows of the posts table go out.

Every module here reads one format. A source never drops a record without counting why, never
cleans a text beyond what its format adds (markup, quotes), and never splits or numbers authors.

A source offers ``parts(location, *, raw=False, **options) -> list[Part]``. A part is the unit of
resuming: what is read from it is written whole or not at all. Reading yields frames with the
columns of the posts table:

=======  ===========================================================================
author   text, as the source names the person
time     int64, seconds since 1970-01-01 UTC
topic    text: stream, list, newsgroup, subreddit ...
text     text, the format's own markup and quotes removed unless ``raw``
id       optional text
names    optional text, a line each: display names that headers and mentions hold
=======  ===========================================================================

Every raw record is either yielded or counted in ``drops[reason]``. A reason that begins with
"note_" is a fact about records that are kept. A new source is a module of this folder and its name
in SOURCES.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
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
FRAME_ROWS = 10_000  # of one frame, at most


@dataclass(frozen=True)
class Part:
    """One resumable piece of a source.

    Attributes
    ----------
    name : str
        unique within the source and stable from run to run
    read : function
        called with a Counter of drops, yields frames of at most some ten thousand rows
    stamp : str
        a changed one says that the part must be read again, see
        :func:`helpers.core.artifacts.file_stats_fingerprint`
    """

    name: str
    read: Callable[[Counter], Iterator[pd.DataFrame]]
    stamp: str = ""


def open_source(kind: str, location: str | list[str], **options) -> list[Part]:
    """Return the parts of a corpus.

    Parameters
    ----------
    kind : str
        one of SOURCES
    location : str or list of str
        as ``parts`` of the module ``helpers.sources.<kind>`` takes it
    **options
        of the source, those of ``parts`` as well

    Raises
    ------
    ValueError
        The kind or an option is unknown, an option has another type or value, or nothing is there.
    """
    if kind not in SOURCES:
        raise ValueError(f"unknown source {kind!r}; valid: {', '.join(SOURCES)}")
    opener = import_module(f"helpers.sources.{kind}").parts
    defaults = opener.__kwdefaults__
    message = unknown(options, defaults, f"option of source {kind!r}")
    if message:
        raise ValueError(message)
    hints = {name: opener.__annotations__[name] for name in defaults}
    options = check({"__annotations__": hints} | defaults | options)

    parts = opener(location, **options)
    if not parts:
        raise ValueError(f"source {kind!r}: nothing to read at {location!r}")
    return parts


def as_list(location: str | Path | list) -> list:
    """Return a location as a list of places."""
    if isinstance(location, str | Path):
        return [location]
    return list(location)


def existing_paths(kind: str, location: str | list[str]) -> list[Path]:
    """Return the path of each place of a location.

    Parameters
    ----------
    kind : str
        the source, for the message
    location : str or list of str
        relative ones begin at the project

    Raises
    ------
    ValueError
        A place is missing.
    """
    roots = [paths.resolve(place) for place in as_list(location)]
    for root in roots:
        if not root.exists():
            raise ValueError(f"{kind}: {root} is missing")
    return roots


def list_files(root: Path) -> list[Path]:
    """Return the files of a folder at any depth, sorted.

    Links that lead out of the folder are not followed; how many there are is printed.
    """
    files = []
    links_out = []
    real_root = os.path.realpath(root)
    for path in sorted(root.rglob("*")):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(real_root):
            links_out.append(path)
        elif path.is_file():
            files.append(path)
    if links_out:
        print(
            f"{paths.display_path(root)}: {len(links_out)} links that lead out of it are not "
            f"followed, such as {links_out[0].name}"
        )
    return files


def source_files(
    kind: str, location: str | list[str], belongs: Callable[[Path], object]
) -> dict[str, Path]:
    """Return the files of a source by the names of their parts.

    The name is the path below the location, or the name of a lone file.

    Parameters
    ----------
    kind : str
        the source, for messages
    location : str or list of str
        a file, taken as it is, or a folder, searched recursively for what belongs
    belongs : function
        whether a path is a file of the source

    Raises
    ------
    ValueError
        A location is missing, two files would have one name, or a file is UTF-16 or not packed as
        its ending says.
    """
    by_name = {}
    for root in existing_paths(kind, location):
        files = {root.name: root}
        if root.is_dir():
            belonging = [path for path in list_files(root) if belongs(path)]
            files = {path.relative_to(root).as_posix(): path for path in belonging}
        for name, path in files.items():
            if name in by_name:
                raise ValueError(
                    f"{kind}: {by_name[name]} and {path} have the same name; rename one"
                )
            json_lines.check_readable(kind, path)
            by_name[name] = path
    return by_name


def row_part(
    name: str,
    rows: Callable[[Counter], Iterable[tuple | str]],
    stamp: str = "",
    max_rows: int = FRAME_ROWS,
) -> Part:
    """Return a part whose posts come one by one.

    Parameters
    ----------
    name : str
        of the part
    rows : function
        called with a Counter of drops, yields what :func:`as_frames` takes
    stamp : str
        of the part
    max_rows : int
        of one frame
    """
    return Part(name, lambda drops: as_frames(rows(drops), drops, max_rows), stamp)


def file_parts(
    files: dict[str, Path], rows: Callable[[Path, Counter], Iterable[tuple | str]]
) -> list[Part]:
    """Return one part per file.

    Parameters
    ----------
    files : dict of paths
        by the names of the parts
    rows : function
        called with the path and a Counter of drops, yields what :func:`as_frames` takes
    """
    return [
        row_part(name, partial(rows, path), file_stats_fingerprint(path))
        for name, path in files.items()
    ]


def as_frames(
    rows: Iterable[tuple | str], drops: Counter, max_rows: int = FRAME_ROWS
) -> Iterator[pd.DataFrame]:
    """Yield frames of posts; count what is dropped.

    Parameters
    ----------
    rows : iterable
        the values of COLUMNS (then, optionally, an id and names), or the reason of a drop
    drops : Counter
        of the reasons
    max_rows : int
        of one frame
    """
    posts = _posts(rows, drops)
    while frame_rows := list(islice(posts, max_rows)):
        columns = [*COLUMNS, "id", "names"][: len(frame_rows[0])]
        yield pd.DataFrame(frame_rows, columns=columns).astype({"time": "int64"})


def _posts(rows, drops):
    """Yield the rows that are posts; a post without author, topic or text is empty."""
    for row in rows:
        if isinstance(row, str):
            drops[row] += 1
        elif all(row[column].strip() for column in (0, 2, 3)):
            yield row
        else:
            drops["empty"] += 1
