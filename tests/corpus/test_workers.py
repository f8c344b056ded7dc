"""Jobs by workers: results and bytes of one process, also after processes were killed."""

import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from helpers.core import paths
from helpers.core.artifacts import read_json
from helpers.corpus import workers
from helpers.corpus.collection import CollectConfig, collect
from tests.corpus.test_merge import merged, write_parts

BARE = {"names": {}, "near_duplicate": 0, "strip_signatures": False}


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from functools import partial
from tests.corpus.test_merge import merged
from tests.corpus.test_workers import BARE
from helpers.corpus import merge, workers
merge.PARTITION_POSTS = 100
folder = Path({folder!r})
try:
    merged(folder, sorted(folder.glob("[0-2].parquet")),
           partial(workers.run_by_daft, workers=2), **BARE)
except RuntimeError as error:
    sys.exit(f"stopped: {{error}}")
"""


@pytest.mark.torture
def test_whoever_is_killed_a_rerun_gives_the_same_bytes(tmp_path):
    """By Daft itself: workers are killed within a step, then who started them, then nobody."""
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("daft")
    files = write_parts(
        tmp_path, 6, 1000, 20
    )  # many partitions: some are to be made when the first is there
    table = merged(tmp_path, files, **BARE)[1]
    command = [sys.executable, "-c", KILLED.format(root=str(paths.ROOT), folder=str(tmp_path))]
    done = None
    for step in ("masked", "posts", ""):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while (
            step
            and process.poll() is None
            and not list(tmp_path.glob(f"scratch/*/{step}-0/*.sha256"))
        ):
            time.sleep(0.05)
        children = psutil.Process(process.pid).children(recursive=True) if step else []
        if step == "masked":
            workers = [child for child in children if "udf_worker" in " ".join(child.cmdline())]
            [worker.kill() for worker in workers]
            assert process.wait(60) and workers
            assert "stopped: a worker process was killed, most often" in process.stderr.read()
        elif step:
            process.kill()
            assert children and not psutil.wait_procs(children, timeout=30)[1], (
                "they end with who started them"
            )
            process.wait()
        else:
            assert "abort" not in process.communicate()[1].lower() and process.returncode == 0
            done = (tmp_path / "merged.table").read_bytes()
    assert done == table


def steps_of(run):
    """The seconds of each step of a collection."""
    rows = read_json(run.folder / "steps.json")["steps"]
    return {name: seconds for name, _, seconds, _ in rows}


def test_the_whole_collection_by_daft(tmp_path, monkeypatch):
    pytest.importorskip("daft")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    options = {"authors": 20, "posts": 400}
    cards = [
        collect(paths.Run(engine), CollectConfig(source="demo", options=options), engine=engine)
        for engine in ("duckdb", "daft")
    ]
    assert cards[0] == cards[1]
    assert {"masked-0", "signed-1", "pairs-0", "final-0"} <= set(steps_of(paths.Run("daft")))


@pytest.mark.parametrize("engine", ["duckdb", "daft"])
def test_names_are_counted_by_workers(tmp_path, monkeypatch, engine):
    """A name that a file writes as a word is masked only if it is capitalised, whoever counts."""
    if engine == "daft":
        pytest.importorskip("daft")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)
    (tmp_path / "in").mkdir()
    for number, name in enumerate(["Jane Gravel", "Ann Quill", "Tim Brook"]):
        lines = [
            f"{name},{1_600_000_000 + post},x,"
            f"told {post} and {number} to Jane and to Quill ; a gravel or the brook"
            for post in range(30)
        ]
        (tmp_path / "in" / f"{number}.csv").write_text(
            "\n".join(["author,time,topic,text", *lines])
        )
    run, plain = paths.Run("named"), {"near_duplicate": 0, "strip_signatures": False}
    config = CollectConfig(source="table", location=[str(tmp_path / "in")], **plain)
    card = collect(run, config, workers=2, engine=engine)
    texts = pq.read_table(run.folder / "posts.parquet")["text"].to_pylist()
    assert card["names_masked"] == len(texts) == 90
    assert all(
        "a gravel or the brook" in text and not {"Jane", "Quill"} & {*text.split()}
        for text in texts
    )


def refuse(number):
    raise ValueError(f"part {number} is at fault")


def test_an_error_is_that_of_the_job_and_no_thread_of_daft_stays(tmp_path):
    """Its threads abort a process that ends while they run, after the work: exit status 134."""
    pytest.importorskip("daft")
    assert workers.run_by_daft(lambda number: number + 1, [(1,), (2,)], 2) == [2, 3], "a closure"
    with pytest.raises(ValueError, match="part [12] is at fault"):
        workers.run_by_daft(refuse, [(1,), (2,)], 2)
    names = [
        path.read_text() for path in Path("/proc/self/task").glob("*/comm")
    ]  # where the system shows them
    assert not [name for name in names if name.startswith("DAFT")]


ON_RAY = """
import sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from functools import partial
from tests.corpus.test_merge import merged
from tests.corpus.test_workers import BARE, refuse
from helpers.corpus import merge, workers
merge.PARTITION_POSTS = 600
assert workers.run_by_daft(lambda number: number + 1, [(1,), (2,), (3,)], 2) == [2, 3, 4]
try:
    workers.run_by_daft(refuse, [(1,), (2,)], 2)
except RuntimeError as error:
    print(error)
folder = Path({folder!r})
merged(folder, sorted(folder.glob("[0-2].parquet")),
       partial(workers.run_by_daft, workers=2), **BARE)
"""


def test_a_ray_cluster_gives_the_same_bytes(tmp_path, monkeypatch):
    """One that Daft starts on this machine."""
    pytest.importorskip("daft")
    pytest.importorskip("ray")
    monkeypatch.setenv("DAFT_RUNNER", "ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    table = merged(tmp_path, write_parts(tmp_path, 6), **BARE)[1]
    code = ON_RAY.format(root=str(paths.ROOT), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "is at fault" in done.stdout
    assert (tmp_path / "merged.table").read_bytes() == table
