"""The command line of the runs.

python -m helpers.runs [run]           every stage of params/<run>/ that is not current, the report
python -m helpers.runs [run] --list    the stages, and which of them are current
"""

import argparse
import os
import sys

from helpers.core import paths
from helpers.runs.pipeline import DISK_FULL, StageFailed, disk_full, run_all
from helpers.runs.stages import stages

# For the kernels, unless set: idle OpenMP threads that spin slow every other process down.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false"}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Returns
    -------
    0, 1 after a message where something is wrong, 130 where the user stopped it.
    """
    options = _parse(arguments)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if options.jobs > 1:
        threads = max(1, (os.cpu_count() or 1) // options.jobs)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    try:
        if options.list:
            for stage in stages(options.run):
                state = "  (current)" if stage.is_current else ""
                print(f"{stage.name}{state}", flush=True)
        else:
            page = run_all(options.run, options.jobs)
            print(f"\nopen in a browser: {paths.display_path(page)}", flush=True)
    except (ValueError, StageFailed, OSError) as error:
        message = error
        if isinstance(error, OSError) and DISK_FULL.search(str(error)):
            message = disk_full(error)
        print(message, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return 130
    return 0


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m helpers.runs", description="Run the notebooks of one run."
    )
    parser.add_argument(
        "run", nargs="?", default="demo", help="a folder in params/ (default: demo)"
    )
    parser.add_argument("--list", action="store_true", help="show the stages and run nothing")
    parser.add_argument(
        "--jobs", type=int, default=1, help="notebooks that run at once (default: 1)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    os._exit(main())  # a stopped run waits for no stage
