"""The pages around the notebooks: the book, the copies of ``make lab``, ``make help``."""

import importlib.util
import os
import shutil
import subprocess

import pytest
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


@pytest.fixture
def lab(tmp_path):
    """``make lab`` in a copy of the Makefile, with a jupyter that only repeats what it is told."""
    for folder in ("notebooks", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    for name in ("01_a", "02_b"):
        (tmp_path / f"notebooks/{name}.ipynb").write_text("committed")
    jupyter = tmp_path / "bin" / "jupyter"
    jupyter.write_text('#!/bin/sh\necho jupyter "$@"')
    jupyter.chmod(0o755)
    environment = {
        name: value for name, value in os.environ.items() if name != "AUTHORBOOK_OUTPUTS"
    }

    def run(*settings):
        return subprocess.run(
            ["make", "-s", "-o", ".venv/.ok", "lab", "BIN=bin", *settings],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout

    run.copies = tmp_path / "outputs/lab"
    run.notebooks = tmp_path / "notebooks"
    return run


def test_the_lab_opens_copies_and_passes_its_settings_on(lab):
    root = " --allow-root" if os.getuid() == 0 else ""
    with_settings = " ".join(lab("PORT=1234").split())
    assert with_settings == f"jupyter lab --port 1234{root} outputs/lab"
    assert " ".join(lab().split()) == f"jupyter lab{root} outputs/lab"
    assert sorted(path.name for path in lab.copies.glob("*.ipynb")) == ["01_a.ipynb", "02_b.ipynb"]


def test_a_copy_that_was_changed_stays_and_others_are_renewed(lab):
    lab()
    (lab.copies / "01_a.ipynb").write_text("mine")
    said = lab()
    assert "01_a.ipynb has your changes and is kept" in said
    assert "02_b" not in said and "newer" not in said
    for name in ("01_a", "02_b"):
        (lab.notebooks / f"{name}.ipynb").write_text("newer")
    said = lab()
    assert "notebooks/01_a.ipynb is newer" in said and "02_b" not in said
    assert (lab.copies / "01_a.ipynb").read_text() == "mine"
    assert (lab.copies / "02_b.ipynb").read_text() == "newer"
    assert {path.read_text() for path in lab.notebooks.iterdir()} == {"newer"}
    (lab.copies / "01_a.ipynb").unlink()
    assert "changes" not in lab() and (lab.copies / "01_a.ipynb").read_text() == "newer"


def test_help_names_every_command_once_in_the_order_of_use():
    said = subprocess.run(
        ["make", "-s", "help"], cwd=paths.ROOT, check=True, capture_output=True, text=True
    ).stdout
    named = [line.split()[1] for line in said.splitlines() if line.startswith("make ")]
    assert named == "setup first lab book reproduce train test torture publish clean".split()
    makefile = (paths.ROOT / "Makefile").read_text("utf-8")
    (phony,) = [line for line in makefile.splitlines() if line.startswith(".PHONY:")]
    assert phony.split()[1:] == ["help", *named, "mine"]
