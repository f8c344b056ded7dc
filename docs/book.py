"""The notebooks as one page to read: ``python docs/book.py``, or ``make book``.

The page, ``outputs/book/index.html``, shows the committed notebooks with their stored outputs and
pictures. No cell is executed, and the page needs no network. ``python docs/book.py first``, or
``make first``, executes notebook 00 alone and writes one page, ``outputs/first/start.html``.
"""

import sys
from pathlib import Path

from helpers.core import paths
from helpers.core.artifacts import make_folder
from helpers.runs import report
from helpers.runs.stages import PAPERMILL


def build(out: Path) -> Path:
    """Write all committed notebooks to one page in the folder ``out``, and return its path."""
    notebooks = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    return report.build_report(notebooks, out / "index.html", "authorbook: the notebooks")


def first(out: Path) -> Path:
    """Execute notebook 00 into the folder ``out``; return the path of its page."""
    import papermill

    make_folder(out)
    source = paths.NOTEBOOKS / "00_start_here.ipynb"
    executed = out / source.name
    papermill.execute_notebook(source, executed, cwd=paths.NOTEBOOKS, **PAPERMILL)
    return report.build_report([executed], out / "start.html", "authorbook")


if __name__ == "__main__":
    if sys.argv[1:] == ["first"]:
        page = first(paths.outputs() / "first")
    else:
        page = build(paths.outputs() / "book")
    print(f"open in a browser: {paths.display_path(page)}")
