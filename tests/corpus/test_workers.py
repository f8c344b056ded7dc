"""Jobs by workers: results and bytes of one process, also after processes were killed."""

from pathlib import Path

import pytest

from helpers.core import paths
from helpers.corpus import workers
from helpers.corpus.collection import CollectConfig, collect


def test_the_whole_collection_by_daft(tmp_path, monkeypatch):
    pytest.importorskip("daft")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    options = {"authors": 20, "posts": 400}
    cards = [
        collect(paths.Run(engine), CollectConfig(source="demo", options=options), engine=engine)
        for engine in ("duckdb", "daft")
    ]
    assert cards[0] == cards[1]


def refuse(number):
    raise ValueError(f"part {number} is at fault")


def test_an_error_is_that_of_the_job_and_no_thread_of_daft_stays(tmp_path):
    """Its threads abort a process that ends while they run, after the work: exit status 134."""
    pytest.importorskip("daft")
    assert workers.run_by_daft(lambda number: number + 1, [(1,), (2,)], 2) == [2, 3], "a closure"
    with pytest.raises(ValueError, match="part [12] is at fault"):
        workers.run_by_daft(refuse, [(1,), (2,)], 2)
    # where the system shows them
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in names if name.startswith("DAFT")]
