"""The book: one page of all notebooks."""

import importlib.util

from bs4 import BeautifulSoup

from helpers.core import paths
from tests.toy_runs import notebook

_spec = importlib.util.spec_from_file_location("book", paths.ROOT / "docs" / "book.py")
book = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(book)


def test_the_book_is_one_page_of_all_notebooks_with_their_code(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    for name in ("00_a", "01_b"):
        text = f"# {name}: long\n\n**Paper.** [next](01_b.ipynb)"
        notebook(tmp_path / f"notebooks/{name}.ipynb", (text,), "print(1)", parameters="")
    page = BeautifulSoup(book.build(tmp_path / "out").read_text(), "html.parser")
    assert [a["href"] for a in page.nav.find_all("a")] == ["#00_a", "#01_b"]
    assert [a.text.strip() for a in page.nav.find_all("a")] == ["00_a", "01_b"]
    assert [a["href"] for a in page.main.find_all("a")] == ["#01_b"] * 2
    assert page.select("details.code[open]"), "a book shows its code"
