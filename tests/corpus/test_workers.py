"""Jobs by workers: results and bytes of one process; nothing is left running by a kill."""

import multiprocessing
import os
import time
from pathlib import Path

import psutil
import pytest

from helpers import sources
from helpers.core import paths
from helpers.core.paths import Run
from helpers.corpus import workers
from helpers.corpus.collection import CollectConfig, collect
from tests.forks import Fork, wait_until


def refuse(number):
    raise ValueError(f"part {number} is at fault")


def test_daft_gives_the_same_collection_and_errors_and_leaves_no_thread(tmp_path, monkeypatch):
    """Its threads abort a process that ends while they run, after the work: exit status 134."""
    pytest.importorskip("daft")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    options = {"authors": 20, "posts": 400}
    cards = [
        collect(paths.Run(engine), CollectConfig(source="demo", options=options), engine=engine)
        for engine in ("duckdb", "daft")
    ]
    assert cards[0] == cards[1]
    assert workers.run_by_daft(lambda number: number + 1, [(1,), (2,)], 2) == [2, 3], "a closure"
    with pytest.raises(ValueError, match="part [12] is at fault"):
        workers.run_by_daft(refuse, [(1,), (2,)], 2)
    # where the system shows them
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in names if name.startswith("DAFT")]


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
