"""The notebooks as static pages, one each and a contents page: ``python docs/book.py``, or ``make book``.

They are shown as they are committed, with their stored outputs and pictures; nothing is executed, nothing is asked of
the network. The pages are in ``outputs/book/``. ``python docs/book.py first``, or ``make first``, executes notebook 00
alone and makes one page of it, ``outputs/first/start.html``.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from helpers.runs import paths, report
from helpers.runs.pipeline import PAPERMILL


def title(book: nbformat.NotebookNode) -> str:
    """The first line of a notebook."""
    return book.cells[0].source.splitlines()[0].strip("# ")


def front(books: dict) -> nbformat.NotebookNode:
    """The contents page as a notebook: of every notebook its title, question and answer."""
    make, cells = nbformat.v4, []
    for stem, book in books.items():
        said = [line for line in book.cells[0].source.splitlines() if line.startswith(("**Question", "**Answer"))]
        cells.append(make.new_markdown_cell("\n\n".join([f"## [{title(book)}]({stem}.ipynb)", *said])))
    return make.new_notebook(cells=cells)


def build(out: Path) -> Path:
    """Write the pages into the folder ``out``; return the path of the contents page."""
    files = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    books = {path.stem: nbformat.read(path, as_version=4) for path in files}
    titles = {stem: title(book) for stem, book in books.items()}
    out.mkdir(parents=True, exist_ok=True)
    for path in files:
        report.build([path], out / f"{path.stem}.html", "authorbook", beside=titles)
    with TemporaryDirectory() as folder:
        contents = Path(folder) / "index.ipynb"
        nbformat.write(front(books), contents)
        return report.build([contents], out / "index.html", "authorbook: the notebooks", beside=titles)


def first(out: Path) -> Path:
    """Execute notebook 00 into the folder ``out``; return the path of its page."""
    import papermill

    out.mkdir(parents=True, exist_ok=True)
    source, executed = paths.NOTEBOOKS / "00_start_here.ipynb", out / "00_start_here.ipynb"
    papermill.execute_notebook(source, executed, cwd=paths.NOTEBOOKS, **PAPERMILL)
    return report.build([executed], out / "start.html", "authorbook")


if __name__ == "__main__":
    page = first(paths.outputs() / "first") if sys.argv[1:] == ["first"] else build(paths.outputs() / "book")
    print(f"open in a browser: {paths.shown(page)}")
