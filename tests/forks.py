"""Functions of tests in processes of their own, which are there within milliseconds.

One process imports what takes seconds, torch above all, and is forked for each of them.
"""

import multiprocessing
import os
import signal
import time
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

import psutil

from helpers.core import paths

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.forks_preload"])
LIMIT_SECONDS = 120  # no function of a test takes so long


class Fork:
    """A function that runs in a process of its own, in the folder of the project.

    Parameters
    ----------
    place : the folder that gets what it prints
    function : a function of a module; a number that it returns is the exit code
    arguments : of the function
    variables : environment variables, beside those of this process
    """

    def __init__(self, place, function, *arguments, variables=()):
        self.out = Path(place) / "out"
        self.err = Path(place) / "err"
        self.out.touch()
        self.err.touch()
        with mock.patch.dict(os.environ, PYTHONPATH=str(paths.ROOT)):  # what it imports is there
            forkserver.ensure_running()
        environment = os.environ | dict(variables)
        work = (function, arguments, environment, self.out, self.err)
        self.process = CONTEXT.Process(target=_run, args=work)
        self.process.start()
        self.pid = self.process.pid

    def wait(self, seconds=LIMIT_SECONDS):
        """Wait for its end and return the exit code, negative after a signal.

        A process that takes longer than so many seconds is killed with all that it has started.
        """
        self.process.join(seconds)
        if self.process.is_alive():
            started = psutil.Process(self.pid).children(recursive=True)
            for process in [self.process, *started]:
                process.kill()
            self.process.join()
        return self.process.exitcode

    def printed(self):
        """Return what it has printed so far."""
        return self.out.read_text("utf-8", "replace")

    def errors(self):
        """Return what it has printed to its stream of errors so far."""
        return self.err.read_text("utf-8", "replace")


def wait_until(holds, seconds=LIMIT_SECONDS):
    """Wait until a function returns something true, and fail after so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def _run(function, arguments, environment, out, err):
    """Call a function with an environment, and with the two streams in files."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(paths.ROOT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    raise SystemExit(function(*arguments))
