"""Run the notebooks of one run with papermill, each when something it is made from has changed.

A notebook whose input is missing calls :func:`ensure`, which goes through the same stages, so
nothing is run twice.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from helpers.core import artifacts, paths, progress
from helpers.runs.stages import Stage, stages

LOCK_VARIABLE = "AUTHORBOOK_HOLDS"  # names the lock that this process holds to its kernels
ORPHAN_SECONDS = 3  # until the kernels of a killed run have ended
LOOK_SECONDS = 0.5  # between two looks at how far the running stages are
TRACEBACK_LINES = 6  # of a failure that is shown
DISK_FULL = re.compile(
    r"No space left on device|[Ee]rrno 28\b|os error 28\b|Disk quota exceeded|File too large"
)
# an option of a kernel that sets a variable of the environment of this kernel alone
SET = "--IPKernelApp.exec_lines=__import__('os').environ.__setitem__({!r}, {!r})"
# no bars, neither of cells nor of libraries: they would flood a saved page
PAPERMILL = {
    "kernel_name": "python3",
    "progress_bar": False,
    "extra_arguments": ["--log-level=CRITICAL", SET.format("TQDM_DISABLE", "1")],
}


class StageFailed(RuntimeError):
    """A notebook stopped with an error; the message is the few lines that a reader needs."""


def execute(stage: Stage, force: bool = False) -> float | None:
    """Run one stage and return its seconds, or None where nothing was to do.

    The executed notebook takes its name when it is whole. Where it fails, the notebook up to the
    failure is ``<stage>.failed.ipynb``.

    Parameters
    ----------
    stage : Stage
        is not run where it is current
    force : bool
        run it anyway

    Raises
    ------
    StageFailed
        where a cell fails or the kernel dies
    """
    import papermill

    if stage.is_current and not force:
        return None
    source = paths.NOTEBOOKS / f"{stage.notebook}.ipynb"
    running = stage.output.with_name(f"{stage.name}.running.ipynb")
    failed = stage.output.with_name(f"{stage.name}.failed.ipynb")
    stage.output.parent.mkdir(parents=True, exist_ok=True)
    stage.sidecar.unlink(missing_ok=True)  # a stage that is killed half-way is not current
    # a kernel that has a notebook run shows the bar of that notebook as its own
    progress_file = os.environ.get(progress.PLACE) or str(stage.progress_file.absolute())
    set_progress_file = SET.format(progress.PLACE, progress_file)
    options = PAPERMILL | {"extra_arguments": [*PAPERMILL["extra_arguments"], set_progress_file]}

    start = time.perf_counter()
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
        running.unlink(missing_ok=True)
        stage.progress_file.unlink(missing_ok=True)
    seconds = round(time.perf_counter() - start, 1)

    failed.unlink(missing_ok=True)
    artifacts.write_json(stage.sidecar, {**vars(stage), "seconds": seconds})
    return seconds


def disk_full(error: object) -> str:
    """Say in one line what to do about a full disk."""
    return (
        f"the disk is full ({error}): free some space, then give the same command again; "
        "finished files are kept"
    )


def failure(error: Exception) -> str:
    """Say in a few lines where and why an execution stopped."""
    if not hasattr(error, "traceback"):  # not in a cell: the kernel died, or could not start
        kind = type(error).__name__
        hint = " (often: out of memory)" if kind == "DeadKernelError" else ""
        reason = f"{kind}: {error}"
        if DISK_FULL.search(reason):
            reason = disk_full(error)
        return f"outside of its cells{hint}: {reason}"

    where = f"in cell [{error.exec_count}]"
    if DISK_FULL.search(error.evalue):
        return f"{where}: {disk_full(error.evalue)}"
    traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    lines = [
        line
        for line in traceback.splitlines()
        if line.strip() and not line.startswith(error.ename)  # which stands on top
    ]
    first = f"{where}: {error.ename}: {error.evalue}"
    return "\n  ".join([first, *lines[-TRACEBACK_LINES:]])


@contextmanager
def run_lock(run: str, wait: bool = False) -> Iterator[None]:
    """Keep other processes from making the same run; what this process starts is let in.

    The system lets go of the lock when this process ends, in any way.

    Parameters
    ----------
    run : str
        its name
    wait : bool
        for another process to end, which is said; otherwise it is an error

    Raises
    ------
    ValueError
        where another process makes the run
    """
    folder = paths.Run(run).folder
    lock = FileLock(folder / ".lock")
    running = folder / ".running"
    if os.environ.get(LOCK_VARIABLE) == lock.lock_file:  # a kernel of this run, or a thread
        yield
        return

    folder.mkdir(parents=True, exist_ok=True)
    busy = f"another process is executing the run {run!r}: "
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise ValueError(
                f"{busy}wait until it has ended, stop it, or give this run another name "
                "(params/<name>/)"
            ) from None
        print(f"{busy}waiting until it has ended", flush=True)
        lock.acquire()
    try:
        if running.exists():  # it was killed: its kernels look for it every second, theirs for them
            time.sleep(ORPHAN_SECONDS)
        running.touch()
        os.environ[LOCK_VARIABLE] = lock.lock_file
        yield
    finally:
        os.environ.pop(LOCK_VARIABLE, None)
        running.unlink(missing_ok=True)
        lock.release()


def ensure(run: str, notebook: str, path: str | Path, variant: str | None = None) -> None:
    """Have a file or folder: where it is missing, run the notebook that makes it, and say so.

    Works in a notebook (another kernel is started) and from any folder.

    Parameters
    ----------
    run : str
        a folder of ``params/``, which says how the notebook is run
    notebook : str
        its name, without its suffix
    path : str or Path
        the file or folder, inside the run's folder
    variant : str or None
        the only one that is run; otherwise the notebook and all its variants are, each unless it
        is current

    Raises
    ------
    ValueError
        on an unknown run, notebook or variant, on a path outside of the run's folder (a name such
        as ``../x`` in it), and where the path is not made
    StageFailed
        where a notebook fails
    """
    path = Path(path)
    folder = paths.Run(run).folder
    shown_path = paths.display_path(path)
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder)):
        raise ValueError(
            f"{shown_path} is outside of {paths.display_path(folder)}: "
            "use a name without '..' and '/'"
        )
    if path.exists():
        return
    todo = _stages_of(run, notebook, variant, shown_path)
    with run_lock(run, wait=True):
        if not path.exists():  # still: another process may have made it meanwhile
            print(f"{notebook} has not been run for {run!r}: running it now", flush=True)
            current = [stage for stage in todo if stage.is_current]
            for stage in todo:
                execute(stage)
            if not path.exists():  # what a current stage made was deleted since
                for stage in current:
                    execute(stage, force=True)
    if not path.exists():
        raise ValueError(f"{notebook} has been run for {run!r} but did not make {shown_path}")


def _stages_of(run: str, notebook: str, variant: str | None, shown_path: str) -> list[Stage]:
    """Return a notebook and all its variants, or a variant alone."""
    stages_of_run = stages(run)
    if variant:
        name = f"{notebook}.{variant}"
        chosen = [stage for stage in stages_of_run if stage.name == name]
    else:
        name = notebook
        chosen = [stage for stage in stages_of_run if stage.notebook == name]
    if not chosen:
        names = ", ".join(stage.name for stage in stages_of_run)
        raise ValueError(
            f"{shown_path} is missing, and params/{run}/ has no {name}.yaml; it has: {names}"
        )
    return chosen


def run_all(run: str, jobs: int = 1) -> Path:
    """Run every stage that is not current, one printed line each; return the path of the report.

    Parameters
    ----------
    run : str
        a folder of ``params/``
    jobs : int
        stages that run at once, each as soon as what it needs has run

    Raises
    ------
    ValueError, StageFailed
        as :func:`stages`, :func:`run_lock` and :func:`execute`
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

    What most others need goes first, so that the last stages do not wait for each other while a
    core is idle.
    """
    needed = Counter()
    for stage in todo:
        needed.update(stage.needs)
    waiting = sorted(todo, key=lambda stage: needed[stage.notebook], reverse=True)
    running = {}
    done = []
    watch = progress.Watch()
    pool = ThreadPoolExecutor(jobs)  # left as it is by Ctrl-C: the kernels end with this process
    while waiting or running:
        unfinished = {stage.notebook for stage in [*waiting, *running.values()]}
        ready = [stage for stage in waiting if unfinished.isdisjoint(stage.needs)]
        for stage in ready[: jobs - len(running)]:
            waiting.remove(stage)
            running[pool.submit(execute, stage)] = stage

        finished, _ = wait(running, LOOK_SECONDS, FIRST_COMPLETED)
        for future in finished:
            done.append(future)
            name = running.pop(future).name
            with progress.tqdm.external_write_mode():
                print(f"[{len(done)}/{len(todo)}] {name} ... {_outcome(future)}", flush=True)
            if future.exception():
                waiting.clear()  # what runs beside it ends first
        watch.show({stage.name: stage.progress_file for stage in running.values()})
    for future in done:
        future.result()  # raises what failed


def _outcome(future: Future) -> str:
    if future.exception():
        return "failed"
    seconds = future.result()
    if seconds is None:
        return "reused"
    return f"{seconds:.0f} s"
