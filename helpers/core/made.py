"""Notes of what a stage makes: files, and rows of results.

The kernel of a stage has an environment variable with the path of its notes. Code that finishes a
file, or finds it up to date and keeps it, notes it there; so does code that records results. From
the notes the run knows, when the stage has ended, what belongs to it. Elsewhere nothing is noted.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

NOTES = "AUTHORBOOK_MADE"  # environment variable that gives a kernel the path of its notes


def note(*paths: str | Path) -> None:
    """Note files, and folders with all their files, as made or kept by the stage that runs."""
    _append(["files", os.path.abspath(path)] for path in paths)


def note_rows(table: str | Path, hashes: dict[str, str]) -> None:
    """Note rows of a table of results as recorded by the stage that runs.

    Parameters
    ----------
    table : str or Path
        path of the table
    hashes : dict of str to str
        key of the rows of one measurement -> hash of these rows
    """
    _append([["rows", os.path.abspath(table), hashes]])


def _append(lines: Iterable[list]) -> None:
    notes = os.environ.get(NOTES)
    if not notes:
        return
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, text.encode())  # in one step, as a stage may have several processes
    finally:
        os.close(file)
