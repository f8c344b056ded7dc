"""The notebooks as static pages with a contents page: ``python docs/book.py``, or ``make book``.

The pages in ``outputs/book/`` show the committed notebooks with their stored outputs and pictures.
No cell is executed, and no page needs the network. ``python docs/book.py first``, or ``make
first``, executes notebook 00 alone and writes one page, ``outputs/first/start.html``.
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from helpers.core import paths
from helpers.core.artifacts import make_folder
from helpers.runs import report
from helpers.runs.stages import PAPERMILL

# of a first cell: the question and the answer, which may have several paragraphs
QUESTION_AND_ANSWER = re.compile(r"^\*\*Question.*?(?=^\*\*Paper|^\||\Z)", re.M | re.S)


def title(book: nbformat.NotebookNode) -> str:
    """Return the first line of a notebook."""
    return book.cells[0].source.splitlines()[0].strip("# ")


def front(books: dict) -> nbformat.NotebookNode:
    """Return the contents page as a notebook: title, question and answer of every notebook."""
    cells = []
    for stem, book in books.items():
        match = QUESTION_AND_ANSWER.search(book.cells[0].source)
        text = match[0].strip() if match else ""
        cells.append(nbformat.v4.new_markdown_cell(f"## [{title(book)}]({stem}.ipynb)\n\n{text}"))
    return nbformat.v4.new_notebook(cells=cells)


def build(out: Path) -> Path:
    """Write the pages into the folder ``out``; return the path of the contents page."""
    files = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    books = {path.stem: nbformat.read(path, as_version=4) for path in files}
    titles = {stem: title(book) for stem, book in books.items()}
    make_folder(out)
    for path in files:
        report.build_report([path], out / f"{path.stem}.html", "authorbook", beside=titles)
    with TemporaryDirectory() as folder:
        contents = Path(folder) / "index.ipynb"
        nbformat.write(front(books), contents)
        return report.build_report(
            [contents], out / "index.html", "authorbook: the notebooks", beside=titles
        )


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
