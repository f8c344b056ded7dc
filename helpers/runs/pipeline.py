"""Run the notebooks of one run with papermill, each only if one of its inputs has changed.

A notebook whose input file is missing calls :func:`ensure`, which runs the notebook that makes it.
Both ways use the same stages, so nothing is run twice.
"""

import os
import re
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from pathlib import Path

from ..core import artifacts, locks, made, paths, progress, results
from ..core.messages import DISK_FULL, disk_full
from .stages import Stage, stages

LOOK_SECONDS = 0.5  # time between two updates of the progress of running stages
TRACEBACK_LINES = 6  # number of lines of a traceback that a message shows, the last ones
# option of a kernel that sets an environment variable in this kernel only, given name and value
SET = "--IPKernelApp.exec_lines=__import__('os').environ.__setitem__({!r}, {!r})"
# no progress bars, neither of papermill nor in the notebooks: they would fill the saved page
PAPERMILL = {
    "kernel_name": "python3",
    "progress_bar": False,
    "extra_arguments": ["--log-level=CRITICAL", SET.format("TQDM_DISABLE", "1")],
}


class StageFailed(RuntimeError):
    """A notebook has stopped with an error; the message says where and why in a few lines."""


def execute(stage: Stage, force: bool = False) -> float | None:
    """Run one stage and return how many seconds it took, or None if it was current.

    The executed notebook gets its final name only when it is complete. If it fails, the notebook up
    to the failure is kept as ``<stage>.failed.ipynb``.

    Parameters
    ----------
    stage : Stage
        the stage to run; if it is current, nothing is done
    force : bool
        run the stage even if it is current

    Raises
    ------
    StageFailed
        where a cell fails or the kernel dies
    """
    import papermill

    if stage.is_current and not force:
        stage.renew_sidecar()
        return None
    source = paths.NOTEBOOKS / f"{stage.notebook}.ipynb"
    running = stage.output.with_name(f"{stage.name}.running.ipynb")
    failed = stage.output.with_name(f"{stage.name}.failed.ipynb")
    artifacts.make_folder(stage.output.parent)
    lost = stage.prepare()  # before the sidecar is removed, which names it if this is killed here
    if lost:
        _say(f"{stage.name} runs again, since this is missing or has changed: {_shortened(lost)}")
    stage.sidecar.unlink(missing_ok=True)  # so that a killed stage does not count as current
    stage.notes_file.unlink(missing_ok=True)

    running.unlink(missing_ok=True)
    running.touch(0o600)  # what is written over it keeps its mode; so with the bar's text
    stage.progress_file.touch(0o600)
    start = time.perf_counter()
    try:
        papermill.execute_notebook(
            source, running, stage.parameters, cwd=paths.NOTEBOOKS, **_kernel_options(stage)
        )
        os.replace(running, stage.output)
    except Exception as error:
        if running.exists() and running.stat().st_size:
            os.replace(running, failed)
        where = f"\n  the notebook up to that cell: {paths.display_path(failed)}"
        raise StageFailed(f"{stage.name} failed {failure(error)}{where}") from None
    finally:  # also where the user stopped it
        running.unlink(missing_ok=True)
        stage.progress_file.unlink(missing_ok=True)
    seconds = round(time.perf_counter() - start, 1)

    failed.unlink(missing_ok=True)
    stage.write_sidecar(seconds)
    return seconds


def _kernel_options(stage):
    """Return papermill's options, with the files to which the kernel writes its bar and notes."""
    # in a kernel that runs another notebook, the bar of that notebook is shown as the kernel's own
    progress_file = os.environ.get(progress.PLACE) or str(stage.progress_file.absolute())
    variables = {
        progress.PLACE: progress_file,
        made.NOTES: str(stage.notes_file.absolute()),
        locks.VARIABLE: locks.held_folders(),
    }
    arguments = [SET.format(name, value) for name, value in variables.items()]
    return PAPERMILL | {"extra_arguments": [*PAPERMILL["extra_arguments"], *arguments]}


def _shortened(names):
    """Return the first name and how many more there are; rows of results are one name."""
    files = [name for name in names if not name.startswith("[")]
    if len(files) < len(names):
        files.append(f"{len(names) - len(files)} measurements in results.csv")
    if len(files) > 2:
        return f"{files[0]} and {len(files) - 1} more"
    return " and ".join(files)


def _say(line):
    """Print a line above the progress bars of running stages."""
    with progress.tqdm.external_write_mode():
        print(line, flush=True)


def failure(error: Exception) -> str:
    """Return a few lines that say where and why the execution of a notebook stopped."""
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
        if line.strip() and not line.startswith(error.ename)  # it is in the first line already
    ]
    first = f"{where}: {error.ename}: {error.evalue}"
    return "\n  ".join([first, *lines[-TRACEBACK_LINES:]])


def ensure(run: str, notebook: str, path: str | Path, variant: str | None = None) -> None:
    """Run the notebook that makes a file or folder if it is missing, and print a line about it.

    This works in a notebook, for which another kernel is started, and from any folder. If another
    process executes the run, it is waited for.

    Parameters
    ----------
    run : str
        name of a run, a folder of ``params/``, whose parameters are used
    notebook : str
        name of the notebook without ``.ipynb``
    path : str or Path
        the file or folder, inside the run's folder; if it exists, nothing is done
    variant : str or None
        the only variant to run; by default the notebook and all its variants are run, except
        current ones. If these alone do not make ``path``, current ones are run again

    Raises
    ------
    ValueError
        on an unknown run, notebook or variant, on a path outside of the run's folder (such as one
        with ``..``), and where the notebook has run but did not make ``path``
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
    with locks.folder_lock(folder, wait=True):
        if not path.exists():  # checked again: another process may have made it
            print(f"{notebook} has not been run for {run!r}: running it now", flush=True)
            current = [stage for stage in todo if stage.is_current]
            for stage in todo:
                execute(stage)
            if not path.exists():  # a current stage had made it, and it was deleted
                for stage in current:
                    execute(stage, force=True)
    if not path.exists():
        raise ValueError(f"{notebook} has been run for {run!r} but did not make {shown_path}")


def _stages_of(run: str, notebook: str, variant: str | None, shown_path: str) -> list[Stage]:
    """Return the stages of a notebook and all its variants, or of one variant alone.

    ``shown_path``, the file that is missing, is named in the error about an unknown notebook.
    """
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
    """Run every stage of a run that is not current, and write the report.

    One line is printed per stage, also for current ones.

    Parameters
    ----------
    run : str
        name of a run, a folder of ``params/``
    jobs : int
        number of stages that may run at the same time; a stage starts when all notebooks that it
        needs have run

    Returns
    -------
    The path of the report.

    Raises
    ------
    ValueError
        as :func:`stages`, and where another process works in the run's folder
    StageFailed
        where a notebook fails; no further stage is started then
    """
    todo = stages(run)
    files = paths.Run(run)
    with locks.folder_lock(files.folder):
        damaged = results.set_aside_damaged(files)
        if damaged:
            print(
                f"{paths.display_path(files.results)} is damaged: it is now {damaged.name}, "
                "and the stages that recorded results run again",
                flush=True,
            )
        _execute_all(todo, jobs)
        return _write_report(run, todo)


# Write the report of a run whose stages have all been executed, and return its path.
def _write_report(run: str, todo: list[Stage]) -> Path:
    from . import report, summary

    files = paths.Run(run)
    about = {
        "run": run,
        "stages": todo,
        "seconds": [artifacts.read_json(stage.sidecar)["seconds"] for stage in todo],
        "incomplete": [stage.name for stage in todo if stage.lost()],
    }
    if about["incomplete"]:
        print(f"the report is not complete: see {', '.join(about['incomplete'])}", flush=True)
    return report.build_report(
        [stage.output for stage in todo],
        files.folder / "report.html",
        f"authorbook: {run}",
        summary.results_html(files, **about),
    )


def _execute_all(todo: list[Stage], jobs: int) -> None:
    """Execute stages, up to ``jobs`` at the same time, none before the notebooks that it needs.

    Notebooks that most stages need go first, so that no core is idle at the end. After a failure no
    stage is started; those that run are waited for, and the error is raised then.
    """
    needed = Counter()
    for stage in todo:
        needed.update(stage.needs)
    waiting = sorted(todo, key=lambda stage: needed[stage.notebook], reverse=True)
    running = {}
    done = []
    watch = progress.Watch()
    pool = ThreadPoolExecutor(jobs)  # not closed on Ctrl-C: the kernels end with this process
    while waiting or running:
        unfinished = {stage.notebook for stage in [*waiting, *running.values()]}
        ready = [stage for stage in waiting if unfinished.isdisjoint(stage.needs)]
        for stage in ready[: jobs - len(running)]:
            waiting.remove(stage)
            running[pool.submit(copy_context().run, execute, stage)] = stage

        finished, _ = wait(running, LOOK_SECONDS, FIRST_COMPLETED)
        for future in finished:
            done.append(future)
            name = running.pop(future).name
            _say(f"[{len(done)}/{len(todo)}] {name} ... {_outcome(future)}")
            if future.exception():
                waiting.clear()  # stages that are running are still waited for
        watch.show({stage.name: stage.progress_file for stage in running.values()})
    for future in done:
        future.result()  # raises what failed


# Say how a stage ended: "failed", "reused" if it was current, else its seconds.
def _outcome(future: Future) -> str:
    if future.exception():
        return "failed"
    seconds = future.result()
    if seconds is None:
        return "reused"
    return f"{seconds:.0f} s"
