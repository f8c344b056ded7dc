"""A published notebook holds results and pictures, no metadata and no folders of this machine."""

import base64
import importlib.util
import os
from io import BytesIO

import nbformat
import numpy as np
import pytest
from PIL import Image

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


def test_a_figure_becomes_a_picture_of_few_colours_with_its_title():
    colours = np.full((90, 90, 3), 255, np.uint8)
    colours[:80, :80] = np.random.default_rng(0).integers(60, 250, (80, 80, 3))
    colours[0, 0] = 0  # one pixel of a colour that no other has
    full = BytesIO()
    Image.fromarray(colours).save(full, "png")
    data = {
        publish.PLOTLY: {"layout": {"title": {"text": "A finding:<br>&lt;b&gt;"}}},
        publish.PNG: base64.b64encode(full.getvalue()).decode(),
    }
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data)])
    publish.clean(nbformat.v4.new_notebook(cells=[cell]))
    (output,) = cell.outputs
    assert list(output.data) == [publish.PNG]
    assert output.metadata == {publish.PNG: {"alt": "A finding: <b>"}}
    picture = Image.open(BytesIO(base64.b64decode(output.data[publish.PNG])))
    assert len(picture.getcolors()) <= 256
    reduced = np.asarray(picture.convert("RGB"), int)
    assert (reduced[80:, 80:] == 255).all() and reduced[0, 0].max() < 30
    assert np.abs(reduced - colours).max() < 60
