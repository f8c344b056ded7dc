"""The notebooks as static pages, one each and a contents page: ``python docs/book.py``, or ``make book``.

They are shown as they are committed, with their stored outputs and pictures; nothing is executed, nothing is asked of
the network. The pages are in ``outputs/book/``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from helpers.runs import paths, report


def front(books: dict) -> nbformat.NotebookNode:
    """The contents page as a notebook: of every notebook its title, question and answer."""
    make, cells = nbformat.v4, []
    for stem, book in books.items():
        said = [line for line in book.cells[0].source.splitlines() if line.startswith(("**Question", "**Answer"))]
        cells.append(make.new_markdown_cell("\n\n".join([f"## [{report.heading(book)}]({stem}.ipynb)", *said])))
    return make.new_notebook(cells=cells)


def build(out: Path) -> Path:
    """Write the pages into the folder ``out``; return the path of the contents page."""
    files = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    books = {path.stem: nbformat.read(path, as_version=4) for path in files}
    titles = {stem: report.heading(book) for stem, book in books.items()}
    out.mkdir(parents=True, exist_ok=True)
    for path in files:
        report.build([path], out / f"{path.stem}.html", "authorbook", beside=titles)
    with TemporaryDirectory() as folder:
        contents = Path(folder) / "index.ipynb"
        nbformat.write(front(books), contents)
        return report.build([contents], out / "index.html", "authorbook: the notebooks", beside=titles)


if __name__ == "__main__":
    print(f"book: {paths.shown(build(paths.outputs() / 'book'))}")
