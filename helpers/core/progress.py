"""Progress bars: plain tqdm, so that no widget state gets into a notebook.

Bars are not shown where the variable CI or TQDM_DISABLE is set. In a notebook they are written as
other text is, since what stands on stderr is framed in red there. In the kernel of a stage, the
text of a bar goes to a small file and not into the notebook; the run that started the stage prints
a line of it now and then.
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

PLACE = "AUTHORBOOK_PROGRESS"  # environment variable that gives a kernel the path of this file
IN_FILE = {"bar_format": "{desc} {n_fmt}/{total_fmt}, {remaining} left{postfix}", "mininterval": 1}
SECONDS_BEFORE_BAR = 1  # in a notebook, where a bar that has ended leaves an empty line

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
    if "ipykernel" in sys.modules:  # this process is the kernel of a notebook
        options = {"file": sys.stdout, "delay": SECONDS_BEFORE_BAR} | options
    is_silent = bool(os.environ.get("CI") or os.environ.get("TQDM_DISABLE"))
    return tqdm(iterable, disable=is_silent or not progress, **options)


class _InFile(tqdm):
    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write the bar's text to the file, in place of the last; tqdm clears it at the end."""
        text = str(self) if msg is None else msg
        with suppress(OSError):  # a full disk must not end a training here
            Path(os.environ[PLACE]).write_text(text, "utf-8")
