"""Stages that run: what is reused, killed, deleted, failed, and what two commands share."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from helpers.core import paths
from helpers.runs import stages as runner
from helpers.runs.__main__ import main
from helpers.runs.stages import StageFailed, execute, read_stages
from tests.forks import wait_until
from tests.toy_runs import log, notebook, params


@pytest.mark.usefixtures("without_kernels")
def test_a_run_resumes_and_reruns_what_changed(toy, capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    names = ["01_a", "02_b", "02_b.T", "02_b.Z"]
    assert re.findall(r"\[\d/4\] (\S+) \.\.\. \d+ s", out) == names and "report.html" in out
    folder = str((toy / "notebooks").resolve())
    assert log(toy) == [["demo", n, folder] for n in "3189"]
    assert {path.stem for path in (toy / "outputs/demo/notebooks").glob("*.ipynb")} == {*names}

    assert main(["demo"]) == 0
    assert capsys.readouterr().out.count("reused") == 4 and len(log(toy)) == 4

    params(toy, "02_b.T", "size: 8  # a comment")
    assert main(["demo"]) == 0
    assert capsys.readouterr().out.count("reused") == 4 and len(log(toy)) == 4

    params(toy, "02_b.T", "size: 7")  # a parameter: only that variant
    assert main(["demo"]) == 0
    assert log(toy)[4:] == [["demo", "7", folder]]

    source = toy / "notebooks/01_a.ipynb"  # a code cell: everything after it too
    source.write_text(source.read_text().replace("print(size)", "print(size, 2)"))
    assert not any(stage.is_current for stage in read_stages("demo"))
    (toy / "outputs/demo/notebooks/02_b.ipynb").unlink()
    assert main(["demo", "--list"]) == 0
    assert "current" not in capsys.readouterr().out

    assert main(["demo", "02_b"]) == 0, "a notebook with its variants"
    assert [size for _, size, _ in log(toy)[5:]] == ["1", "7", "9"]
    assert main(["demo", "02_c"]) == 1
    assert capsys.readouterr().err == "params/demo/ has no 02_c.yaml\n"


MAKE_FILES = """
from helpers.core import artifacts, paths
files = paths.Run(run)
with artifacts.atomic_write(files.folder / f"made/{size}.txt") as partial:
    partial.write_text("a" * size)
with artifacts.atomic_write(files.folder / "shared.txt") as partial:
    partial.write_text("b" * size)
"""


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("name", ["made/3.txt", "shared.txt", "notebooks/01_a.ipynb"])
def test_a_stage_runs_again_where_a_file_that_it_made_is_deleted(toy, name):
    for notebook_name in ("01_a", "02_b"):
        notebook(toy / f"notebooks/{notebook_name}.ipynb", MAKE_FILES)
    assert main(["demo"]) == 0
    path = toy / "outputs/demo" / name
    assert all(stage.is_current for stage in read_stages("demo"))
    path.unlink()
    assert not read_stages("demo")[0].is_current
    assert main(["demo"]) == 0
    assert path.exists() and all(stage.is_current for stage in read_stages("demo"))


@pytest.mark.usefixtures("without_kernels")
def test_a_stage_that_stopped_after_it_made_a_lost_file_again_is_not_current(toy):
    stop = "from pathlib import Path\nassert not Path('stop').exists()"
    notebook(toy / "notebooks/01_a.ipynb", MAKE_FILES, stop)
    assert main(["demo", "01_a"]) == 0
    made = toy / "outputs/demo/made/3.txt"
    made.unlink()
    (toy / "notebooks/stop").touch()
    assert main(["demo", "01_a"]) == 1
    assert made.exists() and not read_stages("demo")[0].is_current


def test_a_failure_is_told_in_two_lines(toy, capsys, request, monkeypatch):
    notebook(toy / "notebooks/03_c.ipynb", "def f():\n    raise KeyError('no such loss')", "f()")
    for path in (toy / "params/demo").iterdir():
        path.unlink()
    params(toy, "03_c", "")
    monkeypatch.setattr(runner, "start_stage", execute)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", os.environ.copy())
        assert main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert "03_c ... failed" in out
    assert err.startswith("03_c failed in cell [") and "]: KeyError: 'no such loss'\n" in err
    assert "03_c.failed.ipynb" in err and len(err.splitlines()) == 2
    folder = toy / "outputs/demo/notebooks"
    assert [path.name for path in folder.glob("03*.ipynb")] == ["03_c.failed.ipynb"]
    assert not (toy / "outputs/demo/report.html").exists()

    request.getfixturevalue("without_kernels")
    notebook(toy / "notebooks/03_c.ipynb", "print('mended')")
    assert main(["demo"]) == 0
    names = ["03_c.ipynb", "03_c.ipynb.sha256", "03_c.json"]
    assert sorted(path.name for path in folder.glob("03*")) == names


@pytest.fixture
def without_reports(monkeypatch):
    """Stages do nothing, and no report is written."""
    monkeypatch.setattr(runner.artifacts, "read_json", lambda path: {"seconds": 1})
    monkeypatch.setattr("helpers.runs.__main__._write_report", lambda *_: Path("page"))


@pytest.mark.usefixtures("without_reports")
def test_stages_that_need_nothing_of_each_other_run_at_once(toy, monkeypatch):
    """02_b asks for what 01_a makes, so it waits for it; 03_c waits for nobody."""
    notebook(toy / "notebooks/02_b.ipynb", 'ensure(run, "01_a", "somewhere")')
    notebook(toy / "notebooks/03_c.ipynb", "print(1)")
    params(toy, "03_c", "")
    running = set()
    at_once = []
    order = []

    def pretend(stage):
        running.add(stage.name)
        at_once.append(set(running))
        time.sleep(0.2)
        running.discard(stage.name)
        order.append(stage.name)

    monkeypatch.setattr(runner, "start_stage", pretend)
    assert main(["demo", "--jobs", "2"]) == 0
    assert {"01_a", "03_c"} in at_once and max(len(names) for names in at_once) == 2
    assert not any({"01_a", "02_b"} <= names for names in at_once)
    assert sorted(order) == ["01_a", "02_b", "02_b.T", "02_b.Z", "03_c"]


def test_the_first_failure_ends_a_run(toy, monkeypatch, capsys):
    started = []

    def fail(stage):
        started.append(stage.name)
        raise StageFailed(f"{stage.name} failed")

    monkeypatch.setattr(runner, "start_stage", fail)
    with pytest.raises(StageFailed):
        runner.run_stages(read_stages("demo"), jobs=2)
    assert sorted(started) == ["01_a", "02_b"] and "02_b.T" not in capsys.readouterr().out


@pytest.mark.usefixtures("without_kernels")
def test_a_full_disk_is_told_in_one_line(toy, capsys):
    notebook(toy / "notebooks/02_b.ipynb", "raise OSError(28, 'No space left on device', 'posts')")
    assert main(["demo"]) == 1
    message = capsys.readouterr().err
    assert re.match(r"02_b failed .*the disk is full: free some space, then give the same", message)
    assert len(message.splitlines()) == 2


# a notebook that makes three files, and waits before the last of them
STEPS = """
import os, time
from pathlib import Path
from helpers.core import artifacts, paths
folder = Path(os.environ["TOY"])

def add_line(name, line):
    with open(folder / name, "a") as file:
        print(line, file=file)

add_line("pids", os.getpid())
for step in range(3):
    path = paths.Run(run).folder / f"model/{step}.txt"
    if path.exists():
        continue
    while step == 2 and not (folder / "go").exists():
        time.sleep(0.01)
    with artifacts.atomic_write(path) as partial:
        partial.write_text(str(step))
    add_line("steps", step)
"""
ENSURE = """
from helpers.core import paths
from helpers.runs.stages import ensure
ensure(run, "01_a", paths.Run(run).folder / "model")
"""


class Project:
    """A checkout of its own, whose run ``demo`` has one notebook that makes three files."""

    def __init__(self, folder):
        self.folder = folder
        self.run = folder / "outputs" / "demo"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(paths.ROOT / "helpers", folder / "helpers", ignore=ignored)
        for name in ("notebooks", "params/demo"):
            (folder / name).mkdir(parents=True)
        params(folder, "01_a", "")
        notebook(folder / "notebooks/01_a.ipynb", STEPS)

    def start(self, *words, launcher=""):
        """Start a command of the runs, as a shell does: with a group of processes of its own."""
        variables = {
            "PYTHONPATH": str(self.folder),
            "AUTHORBOOK_OUTPUTS": str(self.folder / "outputs"),
            "AUTHORBOOK_LAUNCHER": launcher,
            "TOY": str(self.folder),
        }
        # a shell starts what it puts in the background deaf to this signal
        listen = (
            "import runpy, signal, sys\nsys.argv[1:] = sys.argv[2:]\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "runpy.run_module('helpers.runs', run_name='__main__')"
        )
        return subprocess.Popen(
            [sys.executable, "-c", listen, "-", *words],
            env=os.environ | variables,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def lines(self, name):
        path = self.folder / name
        if path.exists():
            return path.read_text().split()
        return []

    def start_and_wait(self, *words):
        command = self.start(*words)
        wait_until(lambda: self.lines("steps") == ["0", "1"])
        return command

    def go(self, *commands):
        """Let notebooks wait no more; check that commands end well, and that no step came twice."""
        (self.folder / "go").touch()
        for command in commands:
            _, errors = command.communicate(timeout=60)
            assert command.returncode == 0, errors
        assert self.lines("steps") == ["0", "1", "2"]


@pytest.fixture
def project(tmp_path):
    yield Project(tmp_path)
    (tmp_path / "go").touch()  # where a test has failed, too


def ends(pid, seconds=10):
    """Does a process that is not ours end within so many seconds?"""
    for _ in range(100 * seconds):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_a_stage_that_is_stopped_or_killed_ends_with_its_kernel_and_continues(project):
    command = project.start_and_wait("demo", "01_a")
    os.killpg(command.pid, signal.SIGINT)
    _, errors = command.communicate(timeout=20)
    assert command.returncode == 130
    assert errors == "\nstopped; the same command continues from here\n"
    assert all(ends(int(pid)) for pid in project.lines("pids"))

    command = project.start("demo", "01_a")
    wait_until(lambda: len(project.lines("pids")) == 2)
    (child,) = psutil.Process(command.pid).children()
    child.kill()
    _, errors = command.communicate(timeout=20)
    assert command.returncode == 1
    assert errors == "01_a was stopped (-9): the same command continues it\n"
    assert all(ends(int(pid)) for pid in project.lines("pids"))
    launcher = """sh -c 'touch "$TOY/launched"; exec "$0" "$@"'"""
    project.go(project.start("demo", "01_a", launcher=launcher))
    assert (project.folder / "launched").exists()


def test_a_stage_outlives_its_command_and_the_same_command_waits_for_it(project):
    command = project.start_and_wait("demo", "01_a")
    command.kill()
    command.wait()
    project.go(project.start("demo", "01_a"))
    assert len(project.lines("pids")) == 1


def test_ensure_runs_what_is_missing_from_inside_a_kernel_once(project):
    notebook(project.folder / "notebooks/02_b.ipynb", ENSURE)
    params(project.folder, "02_b", "")
    project.go(project.start_and_wait("demo", "02_b"))
    text = (project.run / "notebooks/02_b.ipynb").read_text()
    assert "01_a has not been run for 'demo': running it now" in text
    listed, _ = project.start("demo", "--list").communicate()
    assert listed == "01_a  (current)\n02_b  (current)\n"
