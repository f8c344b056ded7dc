"""A published notebook holds results and pictures, no metadata and no folders of this machine."""

import importlib.util
import os

import nbformat
import pytest

from helpers.core import paths
from tests.toy_runs import notebook

_spec = importlib.util.spec_from_file_location("publish", paths.ROOT / "docs" / "publish.py")
publish = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(publish)


def test_a_published_notebook_is_clean(toy, monkeypatch):
    monkeypatch.setattr(publish, "RENDERER", "plotly_mimetype")
    monkeypatch.setenv("PLOTLY_RENDERER", "")
    path = toy / "notebooks/01_a.ipynb"
    notebook(
        path,
        "import sys, os\nprint('warn', file=sys.stderr)",
        f"print({str(paths.ROOT / 'x')!r})",
        "",
        "os.path.join(os.path.expanduser('~'), 'y')",
    )
    (toy / "notebooks/02_b.ipynb").unlink()
    publish.publish()
    book = nbformat.read(path, as_version=4)
    assert [cell.execution_count for cell in book.cells] == [1, 2, 3, None, 4]
    assert [[o.get("text") or o.data["text/plain"] for o in c.outputs] for c in book.cells] == [
        [],
        [],
        ["x\n"],
        [],
        ["'~/y'"],
    ]
    assert book.metadata.kernelspec == publish.KERNELSPEC
    assert [dict(cell.metadata) for cell in book.cells] == [
        {"tags": ["parameters"]},
        {},
        {},
        {},
        {},
    ]

    before = path.read_bytes()
    notebook(toy / "notebooks/00_bad.ipynb", "1 / 0")
    with pytest.raises(
        ValueError, match="00_bad failed and was not changed, in cell .*ZeroDivisionError"
    ):
        publish.publish()
    assert path.read_bytes() == before and os.environ["PLOTLY_RENDERER"] == "plotly_mimetype"
