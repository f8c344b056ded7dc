"""The command line of the runs.

python -m helpers.runs [run]           run the stages of params/<run>/ that are not current, and
                                       write the report
python -m helpers.runs [run] [stage]   run one of them, such as 03_train.T, and write no report
python -m helpers.runs [run] --list    list the stages, and say which of them are current
"""

import argparse
import os
from functools import partial

from ..core import artifacts, paths, results
from ..core.messages import run_command
from .stages import read_stages, run_stages


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        words of the command line; by default those that the program was started with

    Returns
    -------
    0; 1 after a message about an error; 130 where the user pressed Ctrl-C.
    """
    options = _parse(arguments)
    # for the kernels; idle OpenMP threads that wait actively slow down every other process
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if options.jobs > 1:
        threads = max(1, (os.cpu_count() or 1) // options.jobs)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    return run_command(partial(_run, options))


def _run(options):
    """List the stages, or run them, and say where the report is if all were run."""
    todo = read_stages(options.run)
    if options.stage:
        todo = [stage for stage in todo if options.stage in (stage.name, stage.notebook)]
        if not todo:
            raise ValueError(f"params/{options.run}/ has no {options.stage}.yaml")
    if options.list:
        for stage in todo:
            state = "  (current)" if stage.is_current else ""
            print(f"{stage.name}{state}", flush=True)
        return
    run_stages(todo, options.jobs)
    if not options.stage:
        page = _write_report(options.run, todo)
        print(f"\nopen in a browser: {paths.display_path(page)}", flush=True)


def _write_report(run, todo):
    """Write the report of a run whose stages have all been executed, and return its path."""
    from . import report, summary

    files = paths.Run(run)
    results.export(files)  # again, as somebody may have deleted it
    seconds = [artifacts.read_json(stage.record)["seconds"] for stage in todo]
    intro = summary.results_html(files, run=run, stages=todo, seconds=seconds)
    notebooks = [stage.output for stage in todo]
    return report.build_report(notebooks, files.folder / "report.html", f"authorbook: {run}", intro)


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m helpers.runs", description="Run the notebooks of one run."
    )
    parser.add_argument(
        "run", nargs="?", default="demo", help="a folder in params/ (default: demo)"
    )
    parser.add_argument("stage", nargs="?", help="such as 03_train.T, the only one (default: all)")
    parser.add_argument("--list", action="store_true", help="show the stages and run nothing")
    parser.add_argument(
        "--jobs", type=int, default=1, help="notebooks that run at once (default: 1)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    os._exit(main())  # unlike sys.exit, does not wait for running stages
