"""A small run, for all tests of this room."""

import pytest

from helpers.core import paths
from tests.toy_runs import notebook


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Two notebooks and a run with one variant; each execution adds a line to log.txt."""
    for name in ("notebooks", "params/demo", "outputs"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    log = f"with open({str(tmp_path / 'log.txt')!r}, 'a') as file:\n    print(run, size, os.getcwd(), file=file)"
    notebook(tmp_path / "notebooks/01_a.ipynb", "import os\n" + log, "print(size)")
    notebook(tmp_path / "notebooks/02_b.ipynb", ("# Second",), "import os\n" + log)
    values = {
        "01_a": "size: 3\noptions: {x: 1}",
        "02_b": "",
        "02_b.Z": "size: 9",
        "02_b.T": "size: 8",
    }
    for name, text in values.items():
        (tmp_path / f"params/demo/{name}.yaml").write_text(text)
    return tmp_path
