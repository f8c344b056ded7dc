"""Bars: one in a kernel goes to a file and not into its notebook."""

import os

import nbformat
import pytest

from helpers.core import progress
from helpers.core.progress import progress_bar
from helpers.runs.stages import execute, read_stages
from tests.toy_runs import notebook


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.PLACE, str(tmp_path / "03_train.progress"))
    monkeypatch.setitem(progress.IN_FILE, "mininterval", 0)
    return tmp_path / "03_train.progress"


@pytest.fixture
def seen(monkeypatch):
    for name in ("CI", "TQDM_DISABLE"):
        monkeypatch.delenv(name, raising=False)


def test_a_bar_in_a_kernel_keeps_its_last_line_in_a_file(place, capsys):
    with progress_bar(total=8, desc="training") as bar:
        for _ in progress_bar(range(3), desc="embedding"):
            assert place.read_text().startswith("embedding ")
        bar.update(2)
        bar.set_postfix(loss="1.250", dev_MRR="0.500")
        text = place.read_text()
    assert text.startswith("training 2/8, 00:0") and text.endswith("dev_MRR=0.500, loss=1.250")
    assert place.read_text() == "", "a bar that is done shows nothing"
    with progress_bar(range(3), progress=False, desc="hidden"):
        assert place.read_text() == ""
    assert capsys.readouterr() == ("", "")


def test_a_stage_draws_no_bar_into_its_notebook_and_leaves_no_file(toy, seen, monkeypatch):
    stage = read_stages("demo")[0]
    draw = (
        "import os\nfrom pathlib import Path\nfrom tqdm import tqdm\n"
        "from helpers.core.progress import PLACE, progress_bar\n"
        "bar = progress_bar(total=4, desc='training')\n"
        "place = Path(os.environ[PLACE])\nprint(place, place.read_text())\n"
        "bar.close()\nread = list(tqdm(range(3), desc='of a library'))"
    )
    notebook(toy / "notebooks/01_a.ipynb", draw)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    execute(stage)
    (output,) = nbformat.read(stage.output, as_version=4).cells[-1].outputs
    assert output.text.startswith(f"{stage.progress_file} training 0/4, ? left")
    files = sorted(path.name for path in stage.output.parent.glob("[!.]*"))
    assert files == ["01_a.ipynb", "01_a.ipynb.sha256", "01_a.json"]
