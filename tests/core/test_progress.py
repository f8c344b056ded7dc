"""Bars: one in a kernel goes to a file and not into its notebook."""

import os

import nbformat
import papermill
import pytest

from helpers.core import progress
from helpers.core.progress import progress_bar
from helpers.runs.stages import execute, read_stages
from tests.toy_runs import notebook


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The file of a kernel's bars."""
    monkeypatch.setenv(progress.PLACE, str(tmp_path / "03_train.progress"))
    monkeypatch.setitem(progress.IN_FILE, "mininterval", 0)
    return tmp_path / "03_train.progress"


@pytest.fixture
def seen(monkeypatch):
    """Bars are wanted, though tests turn them off."""
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


def test_a_bar_that_cannot_be_kept_ends_no_training(place):
    place.mkdir()
    assert list(progress_bar(range(3))) == [0, 1, 2]


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


def test_a_bar_in_a_notebook_is_text_like_any_other_and_leaves_nothing_where_it_is_short(
    tmp_path, seen, monkeypatch
):
    monkeypatch.delenv(progress.PLACE, raising=False)
    lines = [
        "import time",
        "from helpers.core import progress",
        "progress.SECONDS_BEFORE_BAR = 0.1",
        "list(progress.progress_bar(range(3)))",
        "for _ in progress.progress_bar(range(2), desc='training', mininterval=0):",
        "    time.sleep(0.2)",
        "import warnings",
        "warnings.warn('IProgress not found. Please update jupyter and ipywidgets.')",
        "print('done')",
    ]
    path = tmp_path / "bars.ipynb"
    notebook(path, "\n".join(lines))
    book = papermill.execute_notebook(path, None, progress_bar=False, kernel_name="python3")
    outputs = [output for cell in book.cells for output in cell.outputs]
    assert {output.name for output in outputs} == {"stdout"}
    text = "".join("".join(output.text) for output in outputs)
    assert text.count("training: ") >= 1 and text.endswith("done\n")
    assert "3/3" not in text
