"""Progress bars: plain tqdm, so that no widget state gets into a notebook.

Bars are silent under CI and with TQDM_DISABLE. The kernel of a stage draws its bars into a small
file, never into the notebook; the run that started it shows them.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

from tqdm import tqdm

PLACE = "AUTHORBOOK_PROGRESS"  # the variable that names the file to a kernel
IN_FILE = {"bar_format": "{desc} {n_fmt}/{total_fmt}, {remaining} left{postfix}", "mininterval": 1}
# a bar of nothing: with one, tqdm cuts what is wider than the terminal
WATCHED_FORMAT = "{desc} {elapsed}{postfix}{bar:1}"
SECONDS_BETWEEN_LINES = 60  # about a stage, where nobody watches on a terminal


def progress_bar(
    iterable: Iterable | None = None, *, progress: bool = True, **options: Any
) -> tqdm:
    """Return a bar that vanishes when done.

    Parameters
    ----------
    iterable : iterable or None
        what is gone through
    progress : bool
        False shows none
    **options : Any
        of :class:`tqdm.tqdm`
    """
    options["leave"] = False
    if PLACE in os.environ:
        return _InFile(iterable, disable=not progress, file=StringIO(), **IN_FILE, **options)
    is_silent = bool(os.environ.get("CI") or os.environ.get("TQDM_DISABLE"))
    return tqdm(iterable, disable=is_silent or not progress, **options)


class _InFile(tqdm):
    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Keep what was drawn last; a bar that is done leaves the file empty."""
        text = str(self) if msg is None else msg
        with suppress(OSError):  # a full disk must not end a training here
            Path(os.environ[PLACE]).write_text(text)


class Watch(dict):
    """The bars of the kernels of a run, by stage: on a terminal a line each, else now and then."""

    def show(self, files: dict[str, Path]) -> None:
        """Show what the kernels draw: stage -> its file, of every stage that runs."""
        for name in self.keys() - files.keys():
            self.pop(name).close()  # the line of a stage that has ended goes away
        for name, file in files.items():
            if name not in self:
                self[name] = _stage_bar(name)
            with suppress(OSError):  # nothing is drawn yet, or no more
                self[name].set_postfix_str(file.read_text(), refresh=False)
            self[name].update()


def _stage_bar(name: str) -> tqdm:
    options = {"bar_format": WATCHED_FORMAT, "mininterval": 0}
    if not sys.stderr.isatty():
        options = {
            "bar_format": WATCHED_FORMAT + "\n",
            "mininterval": SECONDS_BETWEEN_LINES,
            "delay": SECONDS_BETWEEN_LINES,
            "position": 0,
        }
    return progress_bar(desc=name, miniters=1, dynamic_ncols=True, **options)
