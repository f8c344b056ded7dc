"""Jobs that run in several processes of one machine, or on many machines by Daft.

With a Ray cluster set ``DAFT_RUNNER=ray`` and ``RAY_ADDRESS``; every machine must see the outputs
folder at the same place. Daft is an optional package.
"""

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from threading import Thread

from ..core.progress import progress_bar

WORKER_DIED = (
    "a worker process was killed, most often since the memory was full: lower memory_limit, which "
    "each worker may use; finished steps are kept, and the same command continues from there"
)


def run_jobs(function: Callable, jobs: list[tuple], workers: int) -> list:
    """Return ``function(*job)`` of every job, by several processes.

    Parameters
    ----------
    function
        Like the jobs, something that can be pickled where there are several processes.
    jobs
        Arguments of each job; one alone runs in this process.
    workers : int
        Number of processes.
    """
    bar = partial(progress_bar, total=len(jobs), desc="reading", unit="part")
    if workers < 2 or len(jobs) < 2:
        return list(bar(function(*job) for job in jobs))
    with ProcessPoolExecutor(workers, None, exit_with_parent, (os.getpid(),)) as pool:
        return list(bar(pool.map(function, *zip(*jobs, strict=True))))


def run_by_daft(function: Callable, jobs: list[tuple], workers: int) -> list:
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
    RuntimeError
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
            return pool.submit(_run_in_daft, task, workers).result()
        except BrokenProcessPool:  # that child was killed
            raise RuntimeError(WORKER_DIED) from None


class _Worker:
    """The function that runs in a process of Daft; the process is kept for all its jobs."""

    def __init__(self, function, jobs):
        self.function = function
        self.jobs = jobs

    def __call__(self, numbers):
        results = [self.function(*self.jobs[number]) for number in numbers.to_pylist()]
        return [json.dumps(result) for result in results]


def _run_in_daft(task, workers):
    """Return the results of :func:`run_by_daft`; ``task`` is its pickled function and jobs."""
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
        raise RuntimeError(WORKER_DIED) from None
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
