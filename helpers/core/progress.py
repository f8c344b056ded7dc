"""Progress bars: plain tqdm, so that no widget state gets into a notebook.

Bars are not shown where the variable CI or TQDM_DISABLE is set. In a notebook they are written as
other text is, since what stands on stderr is framed in red there. In the kernel of a stage, the
text of a bar goes to a small file and not into the notebook; the run that started the stage reads
the file and shows the bar.
"""

import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .messages import printable

PLACE = "AUTHORBOOK_PROGRESS"  # environment variable that gives a kernel the path of this file
IN_FILE = {"bar_format": "{desc} {n_fmt}/{total_fmt}, {remaining} left{postfix}", "mininterval": 1}
# the bar of one character is there because tqdm cuts a line to the terminal's width only with a bar
WATCHED_FORMAT = "{desc} {elapsed}{postfix}{bar:1}"
SECONDS_BEFORE_BAR = 1  # in a notebook, where a bar that has ended leaves an empty line
SECONDS_BETWEEN_LINES = 60  # between two lines about one stage, where the output is no terminal

# bars of libraries warn of widgets that are not installed, and show themselves as text then
warnings.filterwarnings("ignore", message="IProgress not found")


def progress_bar(
    iterable: Iterable | None = None, *, progress: bool = True, **options: Any
) -> tqdm:
    """Return a progress bar that disappears when it is done.

    Parameters
    ----------
    iterable : iterable or None
        what the bar iterates over; None for a bar that ``update`` moves
    progress : bool
        whether to show the bar; its methods work in any case
    **options : Any
        other arguments of :class:`tqdm.tqdm`; ``leave`` is ignored
    """
    options["leave"] = False
    if PLACE in os.environ:
        return _InFile(iterable, disable=not progress, file=StringIO(), **IN_FILE, **options)
    if _is_in_notebook():
        options = {"file": sys.stdout, "delay": SECONDS_BEFORE_BAR} | options
    is_silent = bool(os.environ.get("CI") or os.environ.get("TQDM_DISABLE"))
    return tqdm(iterable, disable=is_silent or not progress, **options)


def _is_in_notebook():
    """Return whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    # an import statement, since it waits where another thread has begun to import IPython
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


class _InFile(tqdm):
    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write the bar's text to the file, in place of the last; tqdm clears it at the end."""
        text = str(self) if msg is None else msg
        with suppress(OSError):  # a full disk must not end a training here
            Path(os.environ[PLACE]).write_text(text, "utf-8")


class Watch(dict):
    """The progress bars of the stages that a run has started: stage -> its bar.

    On a terminal each stage has a line that is updated; elsewhere a new line about each stage is
    printed every SECONDS_BETWEEN_LINES.
    """

    def show(self, files: dict[str, Path]) -> None:
        """Show the bars of the stages that run now, and remove those of stages that have ended.

        Parameters
        ----------
        files : dict of str to Path
            stage -> the file to which its kernel writes its bar
        """
        for name in self.keys() - files.keys():
            self.pop(name).close()
        for name, file in files.items():
            if name not in self:
                self[name] = _stage_bar(name)
            with suppress(OSError):  # the kernel has written no bar yet, or the file is gone
                text = file.read_text("utf-8", errors="replace")  # it may be half written
                self[name].set_postfix_str(printable(text), refresh=False)
            self[name].update()


def _stage_bar(name: str) -> tqdm:
    # the bar shows only the name, the time and, as postfix, the text of the kernel's bar
    options = {"bar_format": WATCHED_FORMAT, "mininterval": 0}
    if not sys.stderr.isatty():
        options = {
            "bar_format": WATCHED_FORMAT + "\n",
            "mininterval": SECONDS_BETWEEN_LINES,
            "delay": SECONDS_BETWEEN_LINES,
            "position": 0,
        }
    return progress_bar(desc=name, miniters=1, dynamic_ncols=True, **options)
