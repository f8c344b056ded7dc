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
    """A function of a module that runs in a process of its own, in the folder of the project.

    ``place`` gets what it prints; a number that it returns is the exit code; ``variables`` are
    environment variables, beside those of this process.
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
        return self.out.read_text("utf-8", "replace")

    def errors(self):
        return self.err.read_text("utf-8", "replace")


def wait_until(holds, seconds=LIMIT_SECONDS):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def _run(function, arguments, environment, out, err):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(paths.ROOT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    raise SystemExit(function(*arguments))
