"""Sources: each module reads the archives of one format and yields posts.

A source counts the reason of every record that it drops. It removes only what its format adds to a
text (markup, quotes), and it neither splits nor numbers authors.

A source offers ``parts(location, **options) -> list[Part]``. An interrupted run
resumes at a part: its posts are written whole or not at all. Every raw record is either yielded or
counted in ``drops[reason]``. A reason that begins with "note_" counts records that are kept. To add
a source, add a module to this folder and its name to SOURCES.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..cleaning.authors import escape_surrogates
from ..core import paths
from ..core.artifacts import file_stats_fingerprint
from ..core.files import check_readable
from ..core.messages import printable
from ..core.parameters import check, unknown

COLUMNS = ["author", "time", "topic", "text"]
SOURCES = (
    "demo",
    "zulip",
    "pipermail",
    "pushshift",
    "mud",
    "pan",
    "amazon",
    "git",
    "table",
)
# sources of invented people, who need no pseudonyms: a keyed hash would make the demo corpus differ
# from machine to machine
INVENTED = ("demo",)
# sources in whose archives one name is not the same author: invented people, numbers of authors
NAMED_BY_ARCHIVE = (*INVENTED, "mud")


class Post(NamedTuple):
    """A post as a source reads it.

    Attributes
    ----------
    author : str
        as the source writes the name, see :mod:`helpers.cleaning.authors`
    time : int
        seconds since 1970-01-01 UTC
    topic : str
        stream, list, subreddit ...
    text : str
        the format's own markup and quotes removed
    id : str or None
        of the post, where the source has one
    names : sequence of str
        the display names that headers and mentions hold
    """

    author: str
    time: int
    topic: str
    text: str
    id: str | None = None
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Part:
    """One resumable piece of a source.

    Attributes
    ----------
    name : str
        unique within the source and stable from run to run
    rows : function
        called with a Counter of drops by reason, yields per record either the values of a
        :class:`Post`, of which the last ones may be missing, or the reason (str) of its drop; it
        adds to the Counter what no row stands for. It can be pickled: several processes may read
    stamp : str
        hash of the part's files; when it changes, the part is read again, see
        :func:`helpers.core.artifacts.file_stats_fingerprint`
    """

    name: str
    rows: Callable[[Counter], Iterable[tuple | str]]
    stamp: str = ""

    def read(self, drops: Counter) -> Iterator[Post]:
        """Yield the posts; count the dropped records by reason.

        A post of a negative time is dropped as "bad_time", one whose author, topic or text is blank
        as "empty". Lone surrogates of an author or a topic become escapes, so that two of them
        stay apart.

        Parameters
        ----------
        drops : Counter
            number of dropped records by reason, increased in place
        """
        for row in self.rows(drops):
            if isinstance(row, str):
                drops[row] += 1
            elif row[1] < 0:
                drops["bad_time"] += 1
            elif all(row[column].strip() for column in (0, 2, 3)):
                author, second, topic, *extras = row
                yield Post(escape_surrogates(author), second, escape_surrogates(topic), *extras)
            else:
                drops["empty"] += 1


def open_source(kind: str, location: str | list[str], **options) -> list[Part]:
    """Return the parts of a corpus, one or more.

    Parameters
    ----------
    kind : str
        one of SOURCES
    location : str or list of str
        location of the archives, as ``helpers.sources.<kind>.parts`` takes it
    **options
        keyword arguments of ``helpers.sources.<kind>.parts``

    Raises
    ------
    ValueError
        The kind or an option is unknown, an option has a wrong type or value, or nothing can be
        read there.
    """
    if kind not in SOURCES:
        raise ValueError(f"unknown source {kind!r}; valid: {', '.join(SOURCES)}")
    module = import_module(f".{kind}", __package__)
    opener = module.parts
    defaults = opener.__kwdefaults__ or {}
    message = unknown(options, defaults, f"option of source {kind!r}")
    if message:
        raise ValueError(message)
    hints = {name: opener.__annotations__[name] for name in defaults}
    bounds = getattr(module, "BOUNDS", {})
    options = check({"__annotations__": hints} | defaults | options, defaults, **bounds)

    parts = opener(location, **options)
    if not parts:
        raise ValueError(f"source {kind!r}: nothing to read at {location!r}")
    return parts


def as_list(location: str | Path | list) -> list:
    """Return a location, one place or several, as a list of places."""
    if isinstance(location, str | Path):
        return [location]
    return list(location)


def existing_path(kind: str, place: str | Path) -> Path:
    """Return the path of a place.

    Parameters
    ----------
    kind : str
        name of the source, for the error message
    place : str or Path
        a path; a relative one begins at the project's root folder

    Raises
    ------
    ValueError
        The place is missing.
    """
    path = paths.resolve(place)
    if not path.exists():
        raise ValueError(f"{kind}: {path} is missing")
    return path


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
            f"followed, such as {printable(links_out[0].name)}"
        )
    return files


def source_files(
    kind: str, location: str | list[str], belongs: Callable[[str], object]
) -> dict[str, Path]:
    """Return the files of a source, by the names of their parts.

    The name of a part is the path of its file below the location, or the file's own name where the
    location is that file.

    Parameters
    ----------
    kind : str
        name of the source, for error messages
    location : str or list of str
        files or folders; a folder is searched recursively for files that ``belongs`` accepts
    belongs : function
        called with a file's name, returns whether it is of the source; not asked about a location
        that is itself a file

    Raises
    ------
    ValueError
        A location is missing, two files would have the same name, or a file does not hold what its
        ending says, see :func:`helpers.core.files.check_readable`.
    """
    by_name = {}
    for place in as_list(location):
        root = existing_path(kind, place)
        files = {root.name: root}
        if root.is_dir():
            belonging = [path for path in list_files(root) if belongs(path.name)]
            files = {path.relative_to(root).as_posix(): path for path in belonging}
        for name, path in files.items():
            if name in by_name:
                raise ValueError(
                    f"{kind}: {by_name[name]} and {path} have the same name; rename one"
                )
            check_readable(path)
            by_name[name] = path
    return by_name


def file_parts(
    files: dict[str, Path], rows: Callable[[Path, Counter], Iterable[tuple | str]]
) -> list[Part]:
    """Return one part per file.

    Parameters
    ----------
    files : dict of str to Path
        file of each part, by the part's name
    rows : function
        called with the path and a Counter of drops, yields the rows of a :class:`Part`
    """
    return [
        Part(name, partial(rows, path), file_stats_fingerprint(path))
        for name, path in files.items()
    ]
