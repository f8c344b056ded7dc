"""Run the notebooks of one run with papermill, continue where a run stopped, and collect the report.

    python -m helpers.runs.reproduce [run]           every stage of params/<run>/, then the report and the results table
    python -m helpers.runs.reproduce [run] --list    the stages, and which of them are current
    python -m helpers.runs.reproduce --publish       execute the committed notebooks in place, at their defaults

An executed notebook and a small JSON that says what it was made from are in ``outputs/<run>/notebooks/``. A notebook
whose input is missing calls :func:`ensure`, which goes through the same stages, so nothing is run twice.
"""

import argparse
import os
import re
import sys
import time
from html import escape
from pathlib import Path

from helpers.runs import artifacts
from helpers.runs import paths
from helpers.runs.stages import Stage, stages

# For the kernels, unless set: idle OpenMP threads that spin slow every other process down, bars flood a saved page.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}


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
    running, failed = (stage.output.with_name(f"{stage.name}.{state}.ipynb") for state in ("running", "failed"))
    stage.output.parent.mkdir(parents=True, exist_ok=True)
    stage.sidecar.unlink(missing_ok=True)  # a stage that is killed half-way is not current
    source, start = paths.NOTEBOOKS / f"{stage.notebook}.ipynb", time.perf_counter()
    try:
        papermill.execute_notebook(source, running, stage.parameters, cwd=paths.NOTEBOOKS, kernel_name="python3",
                                   progress_bar=False, extra_arguments=["--log-level=CRITICAL"])
    except Exception as error:
        if running.exists():
            os.replace(running, failed)
        raise StageFailed(f"{stage.name} failed {_lines(error)}\n  notebook up to there: {shown(failed)}") from None
    except BaseException:  # stopped by the user
        running.unlink(missing_ok=True)
        raise
    seconds = round(time.perf_counter() - start, 1)
    os.replace(running, stage.output)
    failed.unlink(missing_ok=True)
    artifacts.write_json(stage.sidecar, {**vars(stage), "seconds": seconds})
    return seconds


def _lines(error: Exception) -> str:
    """Where and why an execution stopped, in a few lines: the error, and the end of its traceback."""
    if not hasattr(error, "traceback"):  # not an error in a cell: the kernel died, or could not start
        hint = " (often: out of memory)" if type(error).__name__ == "DeadKernelError" else ""
        return f"outside of its cells{hint}: {type(error).__name__}: {error}"
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)).rstrip()
    last = [line for line in text.splitlines() if line.strip() and not line.startswith(error.ename)][-6:]
    return "\n  ".join([f"in cell [{error.exec_count}]: {error.ename}: {error.evalue}", *last])


def shown(path: Path) -> str:
    """A path for people: relative to the repository where it is inside."""
    return str(path.relative_to(paths.ROOT) if path.is_relative_to(paths.ROOT) else path)


def ensure(run: str, notebook: str, made: str | Path, variant: str | None = None) -> None:
    """Have ``made`` there: where it is missing, run ``notebook`` as ``params/<run>/`` says, and say so.

    With ``variant`` only that one is run, else the notebook and all its variants, each unless it is current. Works in
    a notebook (another kernel is started) and from any folder. Raises ValueError on an unknown run, notebook or
    variant, and where the notebook runs but does not make it; StageFailed where it stops.
    """
    made = Path(made)
    if made.exists():
        return
    every = stages(run)
    chosen = [stage for stage in every if stage.name == (f"{notebook}.{variant}" if variant else stage.name)
              and stage.notebook == notebook]
    if not chosen:
        what, there = f"{notebook}.{variant}" if variant else notebook, ", ".join(stage.name for stage in every)
        raise ValueError(f"{shown(made)} is missing, and params/{run}/ has no {what}.yaml; it has: {there}")
    print(f"{notebook} has not been run for {run!r}: running it now", flush=True)
    reused = [stage for stage in chosen if execute(stage) is None]
    if not made.exists():  # what a current stage made was deleted since
        for stage in reused:
            execute(stage, force=True)
    if not made.exists():
        raise ValueError(f"{notebook} has been run for {run!r} but did not make {shown(made)}")


def run_all(run: str) -> Path:
    """Run every stage that is not current, one printed line each; return the path of the report.

    Raises what :func:`helpers.runs.stages.stages` and :func:`execute` raise.
    """
    from helpers.runs import report
    from helpers.runs import results

    todo = stages(run)
    for number, stage in enumerate(todo, 1):
        print(f"[{number}/{len(todo)}] {stage.name} ... ", end="", flush=True)
        try:
            seconds = execute(stage)
        except StageFailed:
            print("failed", flush=True)
            raise
        print("reused" if seconds is None else f"{seconds:.0f} s", flush=True)
    here = paths.Run(run)
    spent = sum(artifacts.read_json(stage.sidecar)["seconds"] for stage in todo)
    intro = f"<p>Run <b>{escape(run)}</b>: {len(todo)} notebooks, {spent / 60:.1f} minutes.</p>"
    if any(stage.parameters.get("source") == "demo" for stage in todo):
        intro += ("<p>Made from the generated demo corpus. It is a measuring instrument, not a result: "
                  "it shows that the code finds what was put in.</p>")
    return report.build([stage.output for stage in todo], here.folder / "report.html", f"authorbook: {run}",
                        intro + results.html(here))


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code: 0, or 1 after a message where something is wrong."""
    from helpers.runs import results

    parser = argparse.ArgumentParser(prog="python -m helpers.runs.reproduce", description="Run the notebooks of one run.")
    parser.add_argument("run", nargs="?", default="demo", help="a folder in params/ (default: demo)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="show the stages and run nothing")
    what.add_argument("--publish", action="store_true", help="execute the committed notebooks in place")
    options = parser.parse_args(arguments)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        if options.publish:
            from helpers.runs.publish import publish

            publish()
        elif options.list:
            for stage in stages(options.run):
                print(f"{stage.name}{'  (current)' if stage.current else ''}")
        else:
            page = run_all(options.run)
            print(f"\n{results.text(paths.Run(options.run))}\n\nreport: {shown(page)}")
    except (ValueError, StageFailed) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
