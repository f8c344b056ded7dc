"""Bars: one in a kernel goes to a file, not into its notebook; the run that waits shows it."""

import io
import subprocess
import sys
import time

import nbformat
import papermill
import pytest

from helpers.core import paths, progress
from helpers.core.progress import Watch, progress_bar
from helpers.runs.pipeline import execute
from helpers.runs.stages import stages
from tests.toy_runs import notebook


class Terminal(io.StringIO):
    def isatty(self):
        return True


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


def test_a_bar_may_be_asked_for_while_another_thread_imports_ipython():
    bar_meanwhile = (
        "import sys, threading\nfrom helpers.core.progress import progress_bar\n"
        "threading.Thread(target=__import__, args=['IPython']).start()\n"
        "while 'IPython' not in sys.modules: pass\n"
        "print(list(progress_bar(range(3))))"
    )
    run = subprocess.run(
        [sys.executable, "-c", bar_meanwhile], cwd=paths.ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0 and run.stdout == "[0, 1, 2]\n", run.stderr


def test_a_terminal_shows_a_line_a_stage(place, seen, monkeypatch):
    monkeypatch.delenv(progress.PLACE)
    monkeypatch.setattr("sys.stderr", Terminal())
    watch, files = Watch(), {"03_train": place, "10_verify": place.with_name("nothing yet")}
    watch.show(files)
    place.write_text("training 2/8, 00:03 left")
    watch.show(files)
    shown = progress.sys.stderr.getvalue()
    assert "03_train 00:00, training 2/8, 00:03 left" in shown and "10_verify 00:00" in shown
    watch.show({"10_verify": files["10_verify"]})
    assert list(watch) == ["10_verify"]
    watch.show({})
    assert not watch


@pytest.mark.parametrize("variable", ["", "CI", "TQDM_DISABLE"])
def test_without_a_terminal_there_is_a_line_now_and_then_and_none_where_bars_are_off(
    place, seen, monkeypatch, variable
):
    monkeypatch.delenv(progress.PLACE)
    if variable:
        monkeypatch.setenv(variable, "true")
    err = io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.2)
    watch = Watch()
    place.write_text("training 2/8, 00:03 left")
    for _ in range(4):  # looks more often than it speaks
        watch.show({"03_train": place})
        time.sleep(0.12)
    lines = [line for line in err.getvalue().splitlines() if "training" in line]
    assert len(lines) in ((0,) if variable else (1, 2))


def test_a_stage_draws_no_bar_into_its_notebook_and_leaves_no_file(toy, seen):
    stage = stages("demo")[0]
    draw = (
        "import os\nfrom pathlib import Path\nfrom tqdm import tqdm\n"
        "from helpers.core.progress import PLACE, progress_bar\n"
        "bar = progress_bar(total=4, desc='training')\n"
        "place = Path(os.environ[PLACE])\nprint(place, place.read_text())\n"
        "bar.close()\nread = list(tqdm(range(3), desc='of a library'))"
    )
    notebook(toy / "notebooks/01_a.ipynb", draw)
    execute(stage)
    (output,) = nbformat.read(stage.output, as_version=4).cells[-1].outputs
    assert output.text.startswith(f"{stage.progress_file} training 0/4, ? left")
    assert sorted(path.name for path in stage.output.parent.iterdir()) == [
        "01_a.ipynb",
        "01_a.json",
    ]


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
