"""Many workers against one machine: the same counts and bytes, also after processes were killed."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.core import paths
from helpers.core.artifacts import read_json
from helpers.corpus import daft_engine, deduplicate
from helpers.corpus.collect import PART, CollectConfig, collect
from helpers.corpus.posts_table import open_database

SETTINGS = {
    "min_chars": 10,
    "near_duplicate": 0.8,
    "strip_signatures": True,
    "names": {("mary",): True, ("bob", "lee"): False},
}
AUTHORS = [f"u{number:02d}" for number in range(40)]


def write_parts(folder, seed, posts=1000, row_group_size=None):
    """Part files with copies, near copies, names, signatures of one author, and equal times."""
    rng = random.Random(seed)
    words = ["Mary", "bob lee", *(f"w{n}É" if n % 7 == 0 else f"W{n}" for n in range(250))]
    texts, rows = [], []
    for _ in range(posts):
        author = AUTHORS[min(int(rng.expovariate(0.15)), 39)]
        text = [rng.choice(words) for _ in range(rng.randint(3, 30))]
        if texts and rng.random() < 0.5:
            text = list(rng.choice(texts))
            for _ in range(rng.choice([0, 1, 1, 2])):
                text[rng.randrange(len(text))] = rng.choice(words)
        texts.append(text)
        if (
            author in AUTHORS[:6] and rng.random() < 0.5
        ):  # what is left of some is a copy of another post
            text = [
                *text,
                *f"kind regards of {author}".split(),
                *["PS:", author] * (rng.random() < 0.4),
            ]
        rows.append(
            (
                author,
                1_600_000_000 + rng.randrange(300),
                rng.choice("xyz"),
                rng.choice(["  ", " "]).join(text),
                None,
            )
        )
    files = [folder / f"{number}.parquet" for number in range(3)]
    for number, file in enumerate(files):
        pq.write_table(
            pa.table(list(zip(*rows[number::3], strict=True)), schema=PART), file, row_group_size
        )
    return files


def merged(engine, folder, files, **changes):
    """Counts and bytes of the table that an engine writes."""
    target = folder / f"{engine.__name__}.parquet"
    with open_database(folder / "collect" / "merge", "1GB", 2) as connection:
        counts = (engine.merge_partitions if engine is daft_engine else engine.merge_posts)(
            connection, folder / "collect" / "merge", files, target, **SETTINGS | changes
        )
    return {name: number for name, number in counts.items() if name != "steps"}, target.read_bytes()


def make_in_this_process(patch):
    """The steps without Daft, one after the other: they know nothing of who calls them."""
    patch.setattr(
        daft_engine, "map_parts", lambda function, jobs, workers: [function(*job) for job in jobs]
    )
    patch.setattr(daft_engine, "PARTITION_POSTS", 400)


@pytest.fixture
def in_this_process(monkeypatch):
    """Steps that :func:`make_in_this_process` has arranged."""
    make_in_this_process(monkeypatch)


@pytest.mark.parametrize(
    "seed, changes",
    [
        (1, {}),
        (2, {"near_duplicate": 0.5, "names": {}}),
        (3, {"near_duplicate": 0, "strip_signatures": False}),
    ],
)
def test_partitions_give_the_bytes_of_one_machine(tmp_path, in_this_process, seed, changes):
    files = write_parts(tmp_path, seed)
    counts, table = merged(deduplicate, tmp_path, files, **changes)
    assert (counts, table) == merged(daft_engine, tmp_path, files, **changes)
    assert counts["duplicate"] > 50 and bool(counts["names_masked"]) == ("names" not in changes)
    assert bool(counts["signatures_cut"]) == ("strip_signatures" not in changes)
    assert bool(counts["near_duplicate"]) == (changes.get("near_duplicate") != 0)
    assert not (tmp_path / "collect" / "daft").exists()


def test_a_file_is_masked_some_row_groups_at_a_time(tmp_path, in_this_process, monkeypatch):
    files, real, held = write_parts(tmp_path, 4, row_group_size=30), deduplicate.mask_names, []
    alone = {"near_duplicate": 0, "strip_signatures": False}  # the other steps take long
    expected = merged(deduplicate, tmp_path, files, **alone)

    def masked(connection, *settings):
        held.append(connection.sql("SELECT count(*) FROM parts").fetchall()[0][0])
        return real(connection, *settings)

    monkeypatch.setattr(deduplicate, "mask_names", masked)
    monkeypatch.setattr(daft_engine, "PARTITION_POSTS", 60)
    assert merged(daft_engine, tmp_path, files, **alone) == expected
    assert sum(held) == 1000 and max(held) <= 60 and len(held) > len(files)
    monkeypatch.setattr(daft_engine, "MAX_PARTITIONS", 5)
    held.clear()
    assert merged(daft_engine, tmp_path, files, **alone) == expected and len(held) <= 5 + len(files)


@pytest.mark.parametrize("posts", [0, 1, 5])
def test_hardly_any_posts(tmp_path, in_this_process, posts):
    write_parts(tmp_path, 0, 3)
    files = [tmp_path / "few.parquet"]
    rows = [("a", number, "x", f"a text with the number {number}", None) for number in range(posts)]
    pq.write_table(
        pa.table([list(column) for column in zip(*rows)] or [[]] * 5, schema=PART), files[0]
    )
    with open_database(tmp_path / "merge") as connection:
        counts = daft_engine.merge_partitions(
            connection, tmp_path / "merge", files, tmp_path / "posts.parquet", **SETTINGS
        )
    assert (tmp_path / "posts.parquet").exists() == bool(posts)
    assert not posts or pq.read_metadata(tmp_path / "posts.parquet").num_rows == posts
    assert (
        sum(
            counts[name]
            for name in ("duplicate", "near_duplicate", "names_masked", "signatures_cut")
        )
        == 0
    )


def test_a_finished_partition_is_not_made_again_and_a_damaged_one_is(
    tmp_path, in_this_process, monkeypatch
):
    files, made, make = write_parts(tmp_path, 1), [], daft_engine.Partitions.make
    counts = merged(deduplicate, tmp_path, files)

    def dies(run, step, number, **options):
        if step == "bands" and number == 2:
            raise KeyboardInterrupt
        return make(run, step, number, **options)

    monkeypatch.setattr(daft_engine.Partitions, "make", dies)
    with pytest.raises(KeyboardInterrupt):
        merged(daft_engine, tmp_path, files)
    (kept,) = (tmp_path / "collect" / "daft").iterdir()
    damaged = kept / "unique" / "00001.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    monkeypatch.setattr(daft_engine.Partitions, "make", make)
    real = daft_engine.Partitions._unique
    monkeypatch.setattr(
        daft_engine.Partitions, "_unique", lambda *job: made.append(job[-1]) or real(*job)
    )
    assert merged(daft_engine, tmp_path, files) == counts and made == [1]


@pytest.fixture(scope="module")
def died(tmp_path_factory):
    """A folder of parts, and of the partitions of a merge that died before its last steps."""
    folder = tmp_path_factory.mktemp("died")
    files = write_parts(folder, 1)
    make = daft_engine.Partitions.make

    def dies(run, step, number, **options):
        if step == "bands":
            raise KeyboardInterrupt
        return make(run, step, number, **options)

    with pytest.MonkeyPatch.context() as patch:
        make_in_this_process(patch)
        patch.setattr(daft_engine.Partitions, "make", dies)
        with pytest.raises(KeyboardInterrupt):
            merged(daft_engine, folder, files)
    return folder


@pytest.mark.parametrize("changed", [{"names": {("one",): False}}, {"min_chars": 60}, None])
def test_partitions_of_other_settings_or_files_are_not_continued(
    died, tmp_path, in_this_process, changed
):
    folder = shutil.copytree(died, tmp_path / "copy")
    assert list((folder / "collect" / "daft").glob("*/copies/*.json"))
    files = sorted(folder.glob("*.parquet"))
    if changed is None:
        files = write_parts(folder, 2)
    assert merged(daft_engine, folder, files, **changed or {}) == merged(
        deduplicate, folder, files, **changed or {}
    )


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from tests.corpus.test_daft_engine import merged
from helpers.corpus import daft_engine
daft_engine.PARTITION_POSTS = 100
folder = Path({folder!r})
try:
    merged(daft_engine, folder, sorted(folder.glob("[0-2].parquet")), names={{}}, near_duplicate=0,
           strip_signatures=False)
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
    table = merged(
        deduplicate, tmp_path, files, names={}, near_duplicate=0, strip_signatures=False
    )[1]
    command = [sys.executable, "-c", KILLED.format(root=str(paths.ROOT), folder=str(tmp_path))]
    done = None
    for step in ("mask", "posts", ""):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while (
            step
            and process.poll() is None
            and not list(tmp_path.glob(f"collect/daft/*/{step}/*.json"))
        ):
            time.sleep(0.05)
        children = psutil.Process(process.pid).children(recursive=True) if step else []
        if step == "mask":
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
            done = (tmp_path / "helpers.corpus.daft_engine.parquet").read_bytes()
    assert done == table


def steps_of(run):
    """The seconds of each step of a collection."""
    rows = read_json(run.folder / "collect" / "steps.json")["steps"]
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
    assert {"read", "names", "mask", "pairs", "one table"} <= set(steps_of(paths.Run("daft")))


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
    assert steps_of(run)["names"] > 0


def refuse(number):
    raise ValueError(f"part {number} is at fault")


def test_an_error_is_that_of_the_job_and_no_thread_of_daft_stays(tmp_path):
    """Its threads abort a process that ends while they run, after the work: exit status 134."""
    pytest.importorskip("daft")
    assert daft_engine.map_parts(lambda number: number + 1, [(1,), (2,)], 2) == [2, 3], "a closure"
    with pytest.raises(ValueError, match="part [12] is at fault"):
        daft_engine.map_parts(refuse, [(1,), (2,)], 2)
    names = [
        path.read_text() for path in Path("/proc/self/task").glob("*/comm")
    ]  # where the system shows them
    assert not [name for name in names if name.startswith("DAFT")]


ON_RAY = """
import sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from tests.corpus.test_daft_engine import merged, refuse
from helpers.corpus import daft_engine
daft_engine.PARTITION_POSTS = 600
assert daft_engine.map_parts(lambda number: number + 1, [(1,), (2,), (3,)], 2) == [2, 3, 4]
try:
    daft_engine.map_parts(refuse, [(1,), (2,)], 2)
except RuntimeError as error:
    print(error)
folder = Path({folder!r})
merged(daft_engine, folder, sorted(folder.glob("[0-2].parquet")), names={{}}, near_duplicate=0,
       strip_signatures=False)
"""


def test_a_ray_cluster_gives_the_same_bytes(tmp_path, monkeypatch):
    """One that Daft starts on this machine."""
    pytest.importorskip("daft")
    pytest.importorskip("ray")
    monkeypatch.setenv("DAFT_RUNNER", "ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    table = merged(
        deduplicate,
        tmp_path,
        write_parts(tmp_path, 6),
        names={},
        near_duplicate=0,
        strip_signatures=False,
    )[1]
    code = ON_RAY.format(root=str(paths.ROOT), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "is at fault" in done.stdout
    assert (tmp_path / "helpers.corpus.daft_engine.parquet").read_bytes() == table


def test_without_daft_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "daft", None)
    with pytest.raises(ImportError, match="daft is not installed: run `make distributed`"):
        daft_engine.map_parts(print, [(1,)], 1)
