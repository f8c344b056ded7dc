"""Real processes, killed while they read a corpus: nothing is left running."""

import multiprocessing
import os
import time

import psutil

from helpers import sources
from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect
from tests.forks import Fork, wait_until


def read_endlessly(drops):
    os.write(1, b"%d\n" % os.getpid())  # in one piece: two of them write at once
    time.sleep(60)


def collect_endlessly():
    multiprocessing.set_start_method("fork", force=True)  # so that the workers have this source
    sources.open_source = lambda *_, **__: [sources.Part(name, read_endlessly) for name in "abc"]
    collect(Run("demo"), CollectConfig(source="demo"))


def test_workers_end_with_the_process_that_started_them(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    parent = Fork(tmp_path, collect_endlessly)
    wait_until(lambda: parent.printed().count("\n") == 2)
    workers = [psutil.Process(int(line)) for line in parent.printed().split()]
    time.sleep(1.5)
    assert all(worker.is_running() for worker in workers)
    parent.process.kill()
    parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=10)
    for worker in alive:
        worker.kill()
    assert not alive
