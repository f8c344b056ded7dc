"""Run the notebooks of one run with papermill, each when something it is made from has changed.

A notebook whose input is missing calls :func:`ensure`, which goes through the same stages, so nothing is run twice.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from helpers.core import artifacts, paths, progress
from helpers.runs.stages import Stage, stages

HOLDS, ORPHANS = (
    "AUTHORBOOK_HOLDS",
    3,
)  # the variable that names the lock to kernels; seconds until they have ended
FULL = re.compile(
    r"No space left on device|[Ee]rrno 28\b|os error 28\b|Disk quota exceeded|File too large"
)
LOOK = 0.5  # seconds between two looks at how far the running stages are
SET = "--IPKernelApp.exec_lines=__import__('os').environ.__setitem__({!r}, {!r})"  # a variable of one kernel alone
PAPERMILL = {"kernel_name": "python3", "progress_bar": False,  # nor bars of cells: they would flood a saved page
             "extra_arguments": ["--log-level=CRITICAL", SET.format("TQDM_DISABLE", "1")]}  # fmt: skip


class StageFailed(RuntimeError):
    """A notebook stopped with an error; the message is the few lines that a reader needs."""


def execute(stage: Stage, force: bool = False) -> float | None:
    """Run one stage and return its seconds, or None where it is current and ``force`` is not set.

    The executed notebook takes its name when it is whole. Raises StageFailed where a cell fails or the kernel dies;
    the notebook up to there is then ``<stage>.failed.ipynb``.
    """
    import papermill

    if stage.current and not force:
        return None
    running, failed = (
        stage.output.with_name(f"{stage.name}.{state}.ipynb") for state in ("running", "failed")
    )
    stage.output.parent.mkdir(parents=True, exist_ok=True)
    stage.sidecar.unlink(missing_ok=True)  # a stage that is killed half-way is not current
    source, start = paths.NOTEBOOKS / f"{stage.notebook}.ipynb", time.perf_counter()
    place = os.environ.get(progress.PLACE) or str(
        stage.progress.absolute()
    )  # where a kernel asks for it: its own bar
    options = PAPERMILL | {
        "extra_arguments": [*PAPERMILL["extra_arguments"], SET.format(progress.PLACE, place)]
    }
    try:
        papermill.execute_notebook(
            source, running, stage.parameters, cwd=paths.NOTEBOOKS, **options
        )
        os.replace(running, stage.output)
    except Exception as error:
        if running.exists():
            os.replace(running, failed)
        where = f"\n  the notebook up to that cell: {paths.display_path(failed)}"
        raise StageFailed(f"{stage.name} failed {failure(error)}{where}") from None
    finally:  # also where the user stopped it
        for left in (running, stage.progress):
            left.unlink(missing_ok=True)
    seconds = round(time.perf_counter() - start, 1)
    failed.unlink(missing_ok=True)
    artifacts.write_json(stage.sidecar, {**vars(stage), "seconds": seconds})
    return seconds


def disk_full(error: object) -> str:
    """Say in one line what to do about a full disk."""
    return f"the disk is full ({error}): free some space, then give the same command again; finished files are kept"


def failure(error: Exception) -> str:
    """Where and why an execution stopped, in a few lines: the error, and the end of its traceback."""
    if not hasattr(
        error, "traceback"
    ):  # not an error in a cell: the kernel died, or could not start
        hint = " (often: out of memory)" if type(error).__name__ == "DeadKernelError" else ""
        reason = disk_full(error) if FULL.search(str(error)) else f"{type(error).__name__}: {error}"
        return f"outside of its cells{hint}: {reason}"
    if FULL.search(error.evalue):
        return f"in cell [{error.exec_count}]: {disk_full(error.evalue)}"
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)).rstrip()
    last = [
        line for line in text.splitlines() if line.strip() and not line.startswith(error.ename)
    ][-6:]
    return "\n  ".join([f"in cell [{error.exec_count}]: {error.ename}: {error.evalue}", *last])


@contextmanager
def run_lock(run: str, wait: bool = False) -> Iterator[None]:
    """Keep other processes from making the same run; the system lets go of it when this process ends, in any way.

    What this process starts is let in. wait: until another process is done, which is said; otherwise it is an error.
    """
    folder = paths.Run(run).folder
    lock, running = FileLock(folder / ".lock"), folder / ".running"
    if (
        os.environ.get(HOLDS) == lock.lock_file
    ):  # a stage that this run has started, or one of its own threads
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise ValueError(f"another process is executing the run {run!r}: wait until it has ended, stop it, or "
                             f"give this run another name (params/<name>/)") from None  # fmt: skip
        print(
            f"another process is executing the run {run!r}: waiting until it has ended", flush=True
        )
        lock.acquire()
    try:
        if running.exists():  # it was killed: its kernels look for it every second, theirs for them
            time.sleep(ORPHANS)
        running.touch()
        os.environ[HOLDS] = lock.lock_file
        yield
    finally:
        os.environ.pop(HOLDS, None)
        running.unlink(missing_ok=True)
        lock.release()


def ensure(run: str, notebook: str, path: str | Path, variant: str | None = None) -> None:
    """Have the file or folder ``path``: where it is missing, run ``notebook`` as ``params/<run>/`` says, and say so.

    With ``variant`` only that one is run, else the notebook and all its variants, each unless it is current. Works in
    a notebook (another kernel is started) and from any folder. Raises ValueError on an unknown run, notebook or
    variant, on a path outside of the run's folder (a name such as ``../x`` in it), where it is not made; StageFailed.
    """
    path, folder = Path(path), paths.Run(run).folder
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder)):
        raise ValueError(
            f"{paths.display_path(path)} is outside of {paths.display_path(folder)}: use a name without '..' and '/'"
        )
    if path.exists():
        return
    every, name = stages(run), f"{notebook}.{variant}" if variant else notebook
    chosen = [stage for stage in every if name in ((stage.name,) if variant else (stage.notebook,))]
    if not chosen:
        there = ", ".join(stage.name for stage in every)
        raise ValueError(
            f"{paths.display_path(path)} is missing, and params/{run}/ has no {name}.yaml; it has: {there}"
        )
    with run_lock(run, wait=True):
        if not path.exists():  # still: another process may have made it meanwhile
            print(f"{notebook} has not been run for {run!r}: running it now", flush=True)
            reused = [stage for stage in chosen if execute(stage) is None]
        if not path.exists():  # what a current stage made was deleted since
            for stage in reused:
                execute(stage, force=True)
    if not path.exists():
        raise ValueError(
            f"{notebook} has been run for {run!r} but did not make {paths.display_path(path)}"
        )


def run_all(run: str, jobs: int = 1) -> Path:
    """Run every stage that is not current, one printed line each; return the path of the report.

    jobs: stages that run at once, each as soon as what it needs has run. Raises as :func:`stages` and :func:`execute`.
    """
    from helpers.runs import report, summary

    todo = stages(run)
    with run_lock(run):
        _execute_all(todo, jobs)
    files = paths.Run(run)
    seconds = [artifacts.read_json(stage.sidecar)["seconds"] for stage in todo]
    return report.build_report(
        [stage.output for stage in todo],
        files.folder / "report.html",
        f"authorbook: {run}",
        summary.results_html(files, run=run, stages=todo, seconds=seconds),
    )


def _execute_all(todo: list[Stage], jobs: int) -> None:
    """Execute stages, several at once where none needs another; the first failure ends it.

    What most others need goes first, so that the last stages do not wait for each other while a core is idle.
    """
    needed, watch = Counter(name for stage in todo for name in stage.needs), progress.Watch()
    waiting, running, done = sorted(todo, key=lambda stage: -needed[stage.notebook]), {}, []
    pool = ThreadPoolExecutor(jobs)  # left as it is by Ctrl-C: the kernels end with this process
    while waiting or running:
        unfinished = {stage.notebook for stage in (*waiting, *running.values())}
        ready = [stage for stage in waiting if not unfinished & set(stage.needs)]
        for stage in ready[: jobs - len(running)]:
            waiting.remove(stage)
            running[pool.submit(execute, stage)] = stage
        finished, _ = wait(running, LOOK, FIRST_COMPLETED)
        for future in finished:
            done.append(future)
            stage, error = running.pop(future), future.exception()
            how = (
                "failed"
                if error
                else "reused"
                if future.result() is None
                else f"{future.result():.0f} s"
            )
            with progress.tqdm.external_write_mode():
                print(f"[{len(done)}/{len(todo)}] {stage.name} ... {how}", flush=True)
            waiting = [] if error else waiting  # what runs beside it ends first
        watch.show({stage.name: stage.progress for stage in running.values()})
    for future in done:
        future.result()  # raises what failed
