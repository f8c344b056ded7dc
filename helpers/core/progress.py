"""Progress bars: plain tqdm, so that no widget state gets into a notebook; silent under CI and with TQDM_DISABLE.

The kernel of a stage draws its bars into a small file, never into the notebook; the run that started it shows them.
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
WATCHED = "{desc} {elapsed}{postfix}{bar:1}"  # a bar of nothing: with one, tqdm cuts what is wider than the terminal
EVERY = 60  # seconds between two lines about a stage where nobody watches on a terminal


def progress_bar(
    iterable: Iterable | None = None, *, progress: bool = True, **options: Any
) -> tqdm:
    """A bar that vanishes when done. progress: False shows none. options: of :class:`tqdm.tqdm`."""
    if PLACE in os.environ:
        return _InFile(
            iterable, disable=not progress, leave=False, file=StringIO(), **IN_FILE, **options
        )
    off = not progress or bool(os.environ.get("CI") or os.environ.get("TQDM_DISABLE"))
    return tqdm(iterable, disable=off, leave=False, **options)


class _InFile(tqdm):
    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Keep what was drawn last; a bar that is done leaves the file empty."""
        with suppress(OSError):  # a full disk must not end a training here
            Path(os.environ[PLACE]).write_text(str(self) if msg is None else msg)


class Watch(dict):
    """What the kernels of a run draw, by stage: a line each below what it prints, or one printed now and then."""

    def show(self, files: dict[str, Path]) -> None:
        """files: of every stage that runs, by its name; the line of a stage that has ended goes away."""
        for name in self.keys() - files.keys():
            self.pop(name).close()
        gap = 0 if sys.stderr.isatty() else EVERY
        for name, file in files.items():
            if name not in self:
                self[name] = progress_bar(desc=name, bar_format=WATCHED + "\n" * (gap > 0), position=0 if gap else None,
                                          mininterval=gap, delay=gap, miniters=1, dynamic_ncols=True)  # fmt: skip
            with suppress(OSError):  # nothing is drawn yet, or no more
                self[name].set_postfix_str(file.read_text(), refresh=False)
            self[name].update()
