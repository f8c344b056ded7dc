"""Locks of folders: who is kept out, who is let in, who waits, and what a kill leaves."""

import os
import re
import subprocess
import sys
import threading
import time
from contextvars import copy_context

import pytest

from helpers.core import locks, paths
from helpers.core.locks import folder_lock

HOLD = """
import sys
from helpers.core.locks import folder_lock
with folder_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(folder, **variables):
    """A process that holds the lock of a folder, until it may read no more."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        cwd=paths.ROOT,
        env=os.environ | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def in_thread(function, *arguments):
    """What a function returns or raises in a thread of its own."""
    results = []

    def work():
        try:
            results.append(function(*arguments))
        except ValueError as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return results[0]


def enter(folder, wait=False):
    """Enter a folder, and return how many of its locks this thread is inside of."""
    with folder_lock(folder, wait):
        return locks.held_folders().split("\n").count(str(folder))


def test_another_process_is_kept_out_and_told_by_whom(tmp_path):
    process = hold(tmp_path)
    with pytest.raises(ValueError) as refused:
        enter(tmp_path)
    holder = rf"-c \(process {process.pid}, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\)"
    pattern = rf"{re.escape(str(tmp_path))} is in use by {holder}: wait until it has ended"
    assert re.match(pattern, str(refused.value))
    process.communicate()
    assert enter(tmp_path) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock"]
    assert (tmp_path / ".lock").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [None, b"", b"\xff\x00", b"two\nlines"])
def test_a_missing_or_broken_name_of_the_holder_does_no_harm(tmp_path, content):
    with folder_lock(tmp_path):
        name = tmp_path / ".lock.holder"
        if content is None:
            name.unlink()
        else:
            name.write_bytes(content)
        assert "is in use by another process: " in str(in_thread(enter, tmp_path))
    assert enter(tmp_path) == 1


def test_another_thread_is_kept_out_and_the_same_one_enters_again(tmp_path):
    with folder_lock(tmp_path):
        assert enter(tmp_path) == 2
        assert "is in use by" in str(in_thread(enter, tmp_path))
        assert "is in use by" in str(in_thread(enter, tmp_path / "x" / ".."))
    assert in_thread(enter, tmp_path) == 1


def test_who_waits_is_told_for_whom_and_enters_afterwards(tmp_path, capsys):
    entered = []
    with folder_lock(tmp_path):
        thread = threading.Thread(target=lambda: entered.append(enter(tmp_path, wait=True)))
        thread.start()
        time.sleep(0.3)
        assert not entered
    thread.join(10)
    assert entered == [1]
    message = capsys.readouterr().err
    assert f"(process {os.getpid()}, since" in message and message.count("\n") == 1


def test_threads_of_the_holder_are_let_in_one_at_a_time(tmp_path):
    with folder_lock(tmp_path):
        first = copy_context()
        second = copy_context()
        assert in_thread(first.run, enter, tmp_path) == 2
        with folder_lock(tmp_path):
            assert "is in use by" in str(in_thread(second.run, enter, tmp_path))


def test_processes_of_the_holder_are_let_in_one_at_a_time(tmp_path):
    with folder_lock(tmp_path):
        process = hold(tmp_path, **{locks.VARIABLE: locks.held_folders()})
        with pytest.raises(ValueError, match="is in use by"):
            enter(tmp_path)
        process.communicate()
        assert enter(tmp_path) == 2


def test_nobody_waits_for_a_folder_before_one_that_it_holds(tmp_path):
    """Two that hold a folder each, and want that of the other one, would wait forever."""
    first = tmp_path / "a"
    second = tmp_path / "b"
    with folder_lock(second):
        with folder_lock(first, wait=True):
            pass
        process = hold(first)
        with pytest.raises(ValueError, match="a is in use by"):
            enter(first, wait=True)
        process.communicate()


def test_what_a_killed_holder_had_started_is_waited_for_once(tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(locks.time, "sleep", pauses.append)
    process = hold(tmp_path)
    inner = hold(tmp_path, **{locks.VARIABLE: str(tmp_path)})
    for killed in (inner, process):
        killed.kill()
        killed.wait()
    assert {".lock.holder", ".lock-1.holder"} <= {path.name for path in tmp_path.iterdir()}
    with folder_lock(tmp_path):
        assert enter(tmp_path) == 2
    assert enter(tmp_path) == 1
    assert pauses == [locks.ORPHAN_SECONDS]


def test_kernels_of_a_run_that_was_stopped_are_waited_for(tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(locks.time, "sleep", pauses.append)
    with pytest.raises(KeyboardInterrupt), folder_lock(tmp_path):
        raise KeyboardInterrupt
    with pytest.raises(OSError), folder_lock(tmp_path):
        raise OSError
    assert enter(tmp_path) == 1
    assert pauses == [locks.ORPHAN_SECONDS]


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["/x/bin/authorbook", "nearest", "p.csv", "Jane Roe"], "authorbook nearest"),
        ([paths.ROOT / "helpers/runs/__main__.py", "demo"], "python -m helpers.runs demo"),
        ([paths.ROOT / "helpers/__main__.py", "match"], "python -m helpers match"),
        (["/x/ipykernel_launcher.py", "-f", "kernel.json"], "a notebook"),
        (["my_script.py", "Jane Roe"], "my_script.py"),
    ],
)
def test_a_holder_is_named_without_names_of_people(tmp_path, monkeypatch, words, program):
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    with folder_lock(tmp_path):
        assert f" by {program} (process" in str(in_thread(enter, tmp_path))
