"""The runner on toy notebooks: order, resume, failures, ensure, locks, a full disk."""

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from helpers.core import locks, paths
from helpers.runs import pipeline
from helpers.runs.__main__ import main
from helpers.runs.pipeline import ensure, execute
from helpers.runs.stages import stages
from tests.forks import Fork, wait_until
from tests.toy_runs import log, notebook, params


@pytest.mark.usefixtures("without_kernels")
def test_what_a_run_makes_is_for_its_owner_alone(toy):
    before = os.umask(0o022)
    try:
        assert main(["demo"]) == 0
    finally:
        os.umask(before)
    made = list((toy / "outputs").rglob("*"))
    assert len(made) > 8 and not [path for path in made if path.stat().st_mode & 0o077]


@pytest.mark.usefixtures("without_kernels")
def test_a_run_resumes_and_reruns_what_changed(toy, capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"\[(\d/4)\] (\S+) \.\.\. \d+ s", out) == [
        ("1/4", "01_a"),
        ("2/4", "02_b"),
        ("3/4", "02_b.T"),
        ("4/4", "02_b.Z"),
    ]
    assert "report.html" in out
    folder = str((toy / "notebooks").resolve())
    assert log(toy) == [["demo", n, folder] for n in "3189"]
    assert [path.name for path in sorted((toy / "outputs/demo/notebooks").glob("*.ipynb"))] == [
        "01_a.ipynb",
        "02_b.T.ipynb",
        "02_b.Z.ipynb",
        "02_b.ipynb",
    ]

    assert main(["demo"]) == 0
    assert capsys.readouterr().out.count("reused") == 4 and len(log(toy)) == 4

    params(toy, "02_b.T", "size: 7")  # a parameter: only that variant
    assert main(["demo"]) == 0
    assert log(toy)[4:] == [["demo", "7", folder]]

    source = toy / "notebooks/01_a.ipynb"  # a code cell: everything after it too
    source.write_text(source.read_text().replace("print(size)", "print(size, 2)"))
    assert not any(stage.is_current for stage in stages("demo"))
    (toy / "outputs/demo/notebooks/02_b.ipynb").unlink()
    assert main(["demo", "--list"]) == 0
    assert "current" not in capsys.readouterr().out


def test_a_failure_is_told_in_a_few_lines(toy, capsys, request):
    notebook(toy / "notebooks/03_c.ipynb", "def f():\n    raise KeyError('no such loss')", "f()")
    params(toy, "03_c", "")
    for name in ("01_a", "02_b", "02_b.T", "02_b.Z"):
        (toy / f"params/demo/{name}.yaml").unlink()
    assert main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert "03_c ... failed" in out
    assert (
        err.startswith("03_c failed in cell [")
        and "KeyError: 'no such loss'" in err
        and "raise KeyError" in err
    )
    assert "papermill" not in err and "\x1b" not in err and len(err.splitlines()) < 12
    folder = toy / "outputs/demo/notebooks"
    assert [path.name for path in folder.iterdir()] == ["03_c.failed.ipynb"]
    assert not (toy / "outputs/demo/report.html").exists()

    request.getfixturevalue("without_kernels")
    notebook(toy / "notebooks/03_c.ipynb", "print('mended')")
    assert main(["demo"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["03_c.ipynb", "03_c.json"]


def test_ensure_runs_what_is_missing_from_inside_a_kernel_once(toy, capsys, request):
    made = toy / "outputs/demo/made.txt"
    first = toy / "notebooks/01_a.ipynb"
    first.write_text(first.read_text().replace("print(size)", f"open({str(made)!r}, 'w').close()"))
    patch = (
        "import pathlib\nfrom helpers.core import paths\nfrom helpers.runs import pipeline\n"
        f"paths.NOTEBOOKS = pathlib.Path({str(first.parent)!r})\n"
        f"paths.PARAMS = pathlib.Path({str(toy / 'params')!r})\nimport os; os.chdir('/')"
    )
    call = f"pipeline.ensure(run, '01_a', {str(made)!r}); assert os.getcwd() == '/'"
    notebook(toy / "notebooks/02_b.ipynb", patch, call)
    for name in ("02_b.T", "02_b.Z"):
        (toy / f"params/demo/{name}.yaml").unlink()
    with locks.folder_lock(toy / "outputs/demo"):  # its kernels are let in
        execute(stages("demo")[1])
    assert made.exists() and len(log(toy)) == 1
    text = (toy / "outputs/demo/notebooks/02_b.ipynb").read_text()
    assert "01_a has not been run for 'demo': running it now" in text
    assert main(["demo"]) == 0  # the same sidecars: nothing is executed again
    assert capsys.readouterr().out.count("reused") == 2 and len(log(toy)) == 1

    request.getfixturevalue("without_kernels")
    ensure("demo", "01_a", made)  # there: nothing happens
    made.unlink()
    ensure("demo", "01_a", made)  # deleted since: made again
    assert made.exists() and len(log(toy)) == 2


@pytest.mark.usefixtures("without_kernels")
def test_ensure_says_what_it_cannot_do(toy):
    with pytest.raises(ValueError, match="copy params/demo to params/new"):
        ensure("new", "01_a", toy / "outputs/new/x")
    folder = toy / "outputs/demo"
    with pytest.raises(ValueError, match="params/demo/ has no 02_b.Q.yaml; it has: 01_a, 02_b"):
        ensure("demo", "02_b", folder / "x", variant="Q")
    with pytest.raises(ValueError, match="did not make"):
        ensure("demo", "02_b", folder / "x", variant="T")
    for path in (toy / "log.txt", folder / "models" / "../../../log.txt", folder / "models" / "/"):
        with pytest.raises(ValueError, match="outside of .*demo"):
            ensure("demo", "02_b", path)
    assert {line[1] for line in log(toy)} == {"8"}


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

    monkeypatch.setattr(pipeline, "execute", pretend)
    monkeypatch.setattr(pipeline.artifacts, "read_json", lambda path: {"seconds": 1})
    monkeypatch.setattr("helpers.runs.report.build_report", lambda *_: "page")
    assert pipeline.run_all("demo", jobs=2) == "page"
    assert {"01_a", "03_c"} in at_once and max(len(names) for names in at_once) == 2
    assert not any({"01_a", "02_b"} <= names for names in at_once)
    assert sorted(order) == ["01_a", "02_b", "02_b.T", "02_b.Z", "03_c"]


def test_what_most_others_need_goes_first(toy, monkeypatch):
    """03_c and 04_d wait for 01_b, so it goes before 01_a and 02_b."""
    notebook(toy / "notebooks/01_b.ipynb", "print(1)")
    for name in ("03_c", "04_d"):
        notebook(toy / f"notebooks/{name}.ipynb", 'ensure(run, "01_b", "somewhere")')
        params(toy, name, "")
    params(toy, "01_b", "")
    order = []
    monkeypatch.setattr(pipeline, "execute", lambda stage: order.append(stage.name))
    monkeypatch.setattr(pipeline.artifacts, "read_json", lambda path: {"seconds": 1})
    monkeypatch.setattr("helpers.runs.report.build_report", lambda *_: "page")
    pipeline.run_all("demo")
    assert order == ["01_b", "01_a", "02_b", "02_b.T", "02_b.Z", "03_c", "04_d"]


def test_the_first_failure_ends_a_run(toy, monkeypatch, capsys):
    def fail(stage):
        raise pipeline.StageFailed("02_b failed")

    monkeypatch.setattr(pipeline, "execute", fail)
    with pytest.raises(pipeline.StageFailed):
        pipeline.run_all("demo", jobs=2)
    assert "03" not in capsys.readouterr().out


def python(code, *arguments, **options):
    """A process that runs this code; what it prints can be read."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *(str(argument) for argument in arguments)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
        **options,
    )


def ends(process, seconds=10):
    """Does a process that is not ours end within so many seconds?"""
    for _ in range(100 * seconds):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if "zombie" in psutil.Process(process).status():
            return True
        time.sleep(0.01)
    return False


HERE = """
import pathlib, sys
from helpers.core import locks, paths
from helpers.runs import pipeline, stages
toy = pathlib.Path(sys.argv[1])
paths.NOTEBOOKS, paths.PARAMS = toy / "notebooks", toy / "params"
"""


def use_project(toy):
    """Make this process, a fork, use the notebooks and parameters of a folder."""
    paths.NOTEBOOKS = toy / "notebooks"
    paths.PARAMS = toy / "params"


def execute_second_stage(toy):
    use_project(toy)
    execute(stages("demo")[1])


def hold_run(toy):
    use_project(toy)
    sys.argv = ["a test"]
    with locks.folder_lock(paths.Run("demo").folder):
        print("held", flush=True)
        time.sleep(60)


def test_a_kernel_ends_with_the_run_that_is_killed(toy):
    """A stage whose notebook has another made: both kernels end."""
    sleep = (
        "import os, time\n"
        "with open(os.environ['PIDS'], 'a') as file:\n    print(os.getpid(), file=file)\n"
    )
    notebook(toy / "notebooks/01_a.ipynb", sleep + "time.sleep(60)")
    patch = HERE.replace("sys.argv[1]", repr(str(toy)))
    made = str(toy / "outputs/demo/x")
    notebook(
        toy / "notebooks/02_b.ipynb",
        sleep + patch + f"pipeline.ensure(run, '01_a', {made!r})",
    )
    pids = toy / "pids.txt"
    parent = Fork(toy, execute_second_stage, toy, variables={"PIDS": str(pids)})
    while not pids.exists() or len(pids.read_text().split()) < 2:
        time.sleep(0.01)
        assert parent.process.is_alive(), parent.errors()
    parent.process.kill()
    parent.wait()
    assert all(ends(int(pid)) for pid in pids.read_text().split())


def test_a_run_that_is_stopped_ends_at_once_and_so_does_its_kernel(toy):
    pids = toy / "pids.txt"
    sleep = (
        f"import os, time\nprint(os.getpid(), file=open({str(pids)!r}, 'w'), flush=True)\n"
        "time.sleep(60)"
    )
    notebook(toy / "notebooks/01_a.ipynb", sleep)
    # a shell starts what it puts in the background deaf to this signal, and a child is as deaf as
    # its parent
    listen = (
        "import runpy, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.argv[1:] = ['demo']\n"
    )
    run = python(
        HERE + listen + "runpy.run_module('helpers.runs', run_name='__main__')",
        toy,
        stderr=subprocess.PIPE,
    )
    while not pids.exists() or not pids.read_text():
        time.sleep(0.01)
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=20)
    assert run.returncode == 130 and said.endswith(
        "stopped; the same command continues from here\n"
    )
    assert ends(int(pids.read_text()))


def test_a_run_is_made_by_one_process_at_a_time(toy, capsys, request, monkeypatch):
    request.getfixturevalue("without_kernels")
    monkeypatch.setattr(locks, "ORPHAN_SECONDS", 0.1)
    holder = Fork(toy, hold_run, toy)
    wait_until(lambda: holder.printed() == "held\n")
    assert main(["demo"]) == 1
    assert re.match(
        r"\S+/outputs/demo is in use by a test \(process \d+, since .*\): wait until it has ended",
        capsys.readouterr().err,
    )
    assert not log(toy)
    made = toy / "outputs/demo/made.txt"

    def in_a_notebook():
        with contextlib.suppress(ValueError):  # it makes nothing
            ensure("demo", "02_b", made, variant="T")

    waiting = threading.Thread(target=in_a_notebook)
    waiting.start()
    time.sleep(0.3)
    assert waiting.is_alive() and not log(toy)
    holder.process.kill()  # the system lets go of what a killed process held
    holder.wait()
    waiting.join(20)
    assert not waiting.is_alive() and log(toy)
    assert "waiting until it has ended" in capsys.readouterr().err
    assert main(["demo"]) == 0


def test_two_notebooks_of_a_run_do_not_make_one_file_at_once(toy, monkeypatch):
    """02_b and its variants run at once, and find that what 01_a made has been deleted."""
    notebook(toy / "notebooks/02_b.ipynb", 'ensure(run, "01_a", "somewhere")')
    made = toy / "outputs/demo/made.txt"
    executions = []

    def pretend(stage, force=False):
        if stage.name != "01_a":
            return ensure("demo", "01_a", made)
        executions.append(stage.name)
        time.sleep(0.2)
        if len(executions) > 1:
            made.touch()

    monkeypatch.setattr(pipeline, "execute", pretend)
    monkeypatch.setattr(pipeline.artifacts, "read_json", lambda path: {"seconds": 1})
    monkeypatch.setattr("helpers.runs.report.build_report", lambda *_: "page")
    assert pipeline.run_all("demo", jobs=3) == "page"
    assert len(executions) == 2


def test_a_full_disk_is_told_in_one_line(toy, capsys, request, monkeypatch):
    notebook(
        toy / "notebooks/02_b.ipynb",
        "raise OSError(28, 'No space left on device', 'posts.parquet.partial')",
    )
    assert main(["demo"]) == 1
    message = capsys.readouterr().err
    assert re.match(
        r"02_b failed in cell \[3\]: the disk is full: free some space, then give the same",
        message,
    )
    assert len(message.splitlines()) == 2
    request.getfixturevalue("without_kernels")
    params(toy, "01_a", "size: 4")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pipeline.artifacts, "write_json", full)
    assert main(["demo"]) == 1
    assert capsys.readouterr().err.startswith("the disk is full: free some space")
