"""Real processes, killed while they read a corpus: nothing is left running."""

import subprocess
import sys
import time

import psutil

from helpers.core import paths

COLLECT = """
import os, sys, time
from helpers import sources
from helpers.corpus.collect import CollectConfig, collect
from helpers.core.paths import Run

def read(drops):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece: two of them write at once
    time.sleep(60)

sources.open_source = lambda *_, **__: [sources.Part(name, read) for name in "abc"]
collect(Run("demo"), CollectConfig(source="demo"))
"""


def test_workers_end_with_the_process_that_started_them(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    parent = subprocess.Popen(
        [sys.executable, "-c", COLLECT], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True
    )
    workers = [psutil.Process(int(parent.stdout.readline())) for _ in range(2)]
    time.sleep(1.5)
    assert all(worker.is_running() for worker in workers)
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=10)
    for worker in alive:
        worker.kill()
    assert not alive
