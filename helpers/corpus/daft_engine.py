"""Merge of the parts into a posts table by many processes or machines.

Daft hands out the partitions of :mod:`helpers.corpus.partitions` to workers. In a partition DuckDB
runs the SQL of the other engine, and rows pass from one partition to another through files: Daft's
own sort and window would keep all rows in memory, while a partition is small enough. This module
needs the optional package ``daft``.

With a Ray cluster set ``DAFT_RUNNER=ray`` and ``RAY_ADDRESS``; every machine must see the outputs
folder at the same place.
"""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from threading import Thread

import duckdb
import numpy as np
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from ..core.artifacts import file_fingerprint, fingerprint_of
from . import signatures
from .partitions import SIGNATURE_STEPS, VERSION, Partitions
from .personal_names import MaskedNames
from .posts_table import SCHEMA, query_scalar, write_posts

PARTITION_POSTS = 50_000  # approximate number of posts of a partition
MAX_PARTITIONS = 4096  # most ranges of authors; with more posts partitions grow
WORKER_DIED = (
    "a worker process was killed, most often since the memory was full: lower memory_limit, which "
    "each worker may use; finished steps are kept, and the same command continues from there"
)


class WorkerDied(RuntimeError):
    """A worker process was killed before its work was done."""


def step_row(name: str, records: list[dict], files: list[Path]) -> list:
    """Return a step's row for ``steps.json``: name, number of tasks, their seconds, bytes of files.

    Parameters
    ----------
    name
        Name of the step.
    records
        Records of the step's tasks, with the ``seconds`` that each took.
    files
        Existing files that the tasks wrote; may be empty.
    """
    seconds = sum(record["seconds"] for record in records)
    return [name, len(records), seconds, sum(file.stat().st_size for file in files)]


def map_parts(function: Callable, jobs: list[tuple], workers: int) -> list:
    """Return ``function(*job)`` of every job, in order, by worker processes or on a Ray cluster.

    Parameters
    ----------
    function
        A function whose results can be written as JSON.
    jobs
        Arguments of each job; one alone runs in this process.
    workers : int
        Most processes; ignored on a Ray cluster, where all processors work.

    Raises
    ------
    ModuleNotFoundError
        The package ``daft`` is missing.
    WorkerDied
        A worker was killed. An error of the function itself is raised as it is, on Ray as the text
        of a RuntimeError.
    """
    os.environ["DO_NOT_TRACK"] = "true"
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")
    import daft

    if len(jobs) < 2:  # starting a worker would take longer
        return [function(*job) for job in jobs]
    # A thread of Daft may abort an interpreter that is ending. So Daft runs in a child process,
    # which ends by os._exit without that. Daft's pickle, unlike Python's, can handle closures.
    task = daft.pickle.dumps((function, jobs))
    with ProcessPoolExecutor(1, initializer=exit_with_parent, initargs=[os.getpid()]) as pool:
        try:
            return pool.submit(_map_by_daft, task, workers).result()
        except BrokenProcessPool:  # that child was killed
            raise WorkerDied(WORKER_DIED) from None


class _Worker:
    """The function that runs in a process of Daft; the process is kept for all its jobs."""

    def __init__(self, function, jobs):
        self.function = function
        self.jobs = jobs

    def __call__(self, numbers):
        results = [self.function(*self.jobs[number]) for number in numbers.to_pylist()]
        return [json.dumps(result) for result in results]


def _map_by_daft(task, workers):
    """Return the results of :func:`map_parts`; ``task`` is its pickled function and jobs."""
    import daft

    function, jobs = daft.pickle.loads(task)
    runner = daft.get_or_create_runner().name
    if runner == "ray":
        import ray

        workers = int(ray.cluster_resources()["CPU"])
    as_udf = daft.udf(
        return_dtype=daft.DataType.string(),
        batch_size=1,
        concurrency=min(workers, len(jobs)),
        use_process=True,
    )
    worker = as_udf(_Worker).with_init_args(function, jobs)
    numbers = daft.from_pydict({"job": list(range(len(jobs)))}).into_batches(1)
    try:
        table = numbers.with_column("result", worker(daft.col("job"))).to_pydict()
    except daft.errors.UDFException as error:  # of the function itself
        raise (error.__cause__ or RuntimeError(str(error))) from None
    except (RuntimeError, OSError, EOFError):  # of the connection to a worker that is gone
        if runner == "ray":  # there also errors of the function itself
            raise
        raise WorkerDied(WORKER_DIED) from None
    results = sorted(zip(table["job"], table["result"], strict=True))
    return [json.loads(result) for _, result in results]


def exit_with_parent(parent: int) -> None:
    """Let this process end within about a second after its parent process, of the given id, ended.

    Otherwise it would wait for ever where the parent is killed.
    """
    Thread(target=_wait_for_end, args=(parent,), daemon=True).start()


def _wait_for_end(parent):
    """End this process once its parent has another id than the given one."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def merge_partitions(
    connection: DuckDBPyConnection,
    scratch: Path,
    parts: list[Path],
    target: Path,
    *,
    min_chars: int,
    near_duplicate: float,
    strip_signatures: bool,
    names: MaskedNames,
) -> dict:
    """Write the same posts table as :func:`helpers.corpus.deduplicate.merge_posts`, byte by byte.

    Each worker may use as much memory as the connection may, and there are as many workers as the
    connection has threads. The files of the partitions are removed at the end.

    Parameters
    ----------
    connection, scratch, parts, target, min_chars, near_duplicate, strip_signatures, names
        See :func:`helpers.corpus.deduplicate.merge_posts`.

    Returns
    -------
    dict: the counts of :func:`helpers.corpus.deduplicate.merge_posts`, and ``steps``, a row of
    :func:`step_row` per step.
    """
    settings = [VERSION, duckdb.__version__, PARTITION_POSTS, MAX_PARTITIONS, min_chars]
    settings += [near_duplicate, strip_signatures, sorted(names.items())]
    fingerprint = fingerprint_of(settings, [file_fingerprint(part) for part in parts])
    folder = scratch.parent / "daft" / fingerprint
    slices, first_authors = _partitions(connection, parts)
    memory_limit = query_scalar(connection, "SELECT current_setting('memory_limit')")
    partitions = Partitions(
        folder, slices, first_authors, names, min_chars, near_duplicate, memory_limit
    )
    workers = query_scalar(connection, "SELECT current_setting('threads')")
    counts, steps = _run_steps(partitions, strip_signatures, workers)

    if counts.pop("posts"):
        began = time.perf_counter()
        tables = [str(partitions.file("table", n)) for n in range(len(first_authors))]
        connection.read_parquet(tables).create_view("tables")
        columns = SCHEMA.names if counts["ids"] else SCHEMA.names[:-1]
        query = f"SELECT {', '.join(columns)} FROM tables"
        write_posts(connection, query, target, is_sorted=True)
        record = {"seconds": time.perf_counter() - began}
        steps.append(step_row("one table", [record], [target]))
    del counts["ids"]
    shutil.rmtree(folder.parent)
    return {**counts, "steps": steps}


def _partitions(connection, parts):
    """Return the partitions of file rows and of authors, with about PARTITION_POSTS posts each.

    Returns
    -------
    List, per partition of file rows, of the file of a part and the numbers of some of its row
    groups; a row group is one frame of a source. List, per partition of authors, of the first
    author of its range; the first is "".
    """
    metadata = {part: pq.read_metadata(part) for part in parts}
    total = sum(part.num_rows for part in metadata.values())
    count = min(total // PARTITION_POSTS + 1, MAX_PARTITIONS)
    slices = []
    for part, file in metadata.items():
        pieces = file.num_rows * count // max(total, 1) + 1
        for row_groups in np.array_split(range(file.num_row_groups), pieces):
            slices.append((part, row_groups.tolist()))

    connection.read_parquet([str(part) for part in parts]).create_view("every")
    rows = connection.execute(
        """
        SELECT min(author)
        FROM (SELECT author, sum(posts) OVER (ORDER BY author) - posts AS before,
                     sum(posts) OVER () AS posts
              FROM (SELECT author, count(*) AS posts FROM every GROUP BY author))
        GROUP BY before * ? // posts ORDER BY 1""",
        [count],
    ).fetchall()
    return slices, ["", *(author for (author,) in rows[1:])]


def _run_steps(partitions, strip_signatures, workers):
    """Run all steps; return the sums of their counts, and a row per step."""
    counts = Counter()
    steps = []
    run_step = partial(_run_step, partitions, workers, counts, steps)
    for step in ("mask", "unique", "posts"):
        run_step(step)
    partitions.authors = counts.pop("authors")
    if strip_signatures:
        for _ in range(signatures.MAX_ROUNDS):
            for step in SIGNATURE_STEPS:
                run_step(step)
            partitions.rounds += 1
            if not counts.pop("signed"):
                break
    run_step("keys")
    run_step("copies")
    if partitions.near_duplicate:
        for step in ("bands", "pairs", "shingles", "near"):
            run_step(step)
    run_step("table")
    return counts, steps


def _run_step(partitions, workers, counts, steps, step):
    """Make all partitions of a step; add to ``counts`` and ``steps`` in place."""
    jobs = [(number,) for number in range(partitions.tasks(step))]
    records = map_parts(partial(partitions.make, step), jobs, workers)
    for record in records:
        counts.update(record["counts"])  # "+" would leave out counts of 0
    files = [partitions.file(step, number) for (number,) in jobs]
    steps.append(step_row(partitions.step_name(step), records, files))
