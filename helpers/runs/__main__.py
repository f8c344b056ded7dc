"""The command line of the runs.

python -m helpers.runs [run]           every stage of params/<run>/ that is not current, and the report
python -m helpers.runs [run] --list    the stages, and which of them are current
python -m helpers.runs --publish       execute the committed notebooks in place, at their defaults
"""

import argparse
import os
import sys

from helpers.core import paths
from helpers.runs.pipeline import FULL, StageFailed, disk_full, run_all
from helpers.runs.publish import publish
from helpers.runs.stages import stages

# For the kernels, unless set: idle OpenMP threads that spin slow every other process down.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false"}


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0, 1 after a message where something is wrong, 130 where the user stopped it."""
    parser = argparse.ArgumentParser(
        prog="python -m helpers.runs", description="Run the notebooks of one run."
    )
    parser.add_argument(
        "run", nargs="?", default="demo", help="a folder in params/ (default: demo)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="show the stages and run nothing")
    what.add_argument(
        "--publish", action="store_true", help="execute the committed notebooks in place"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="notebooks that run at once (default: 1)"
    )
    options = parser.parse_args(arguments)
    threads = (
        {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // options.jobs))}
        if options.jobs > 1
        else {}
    )
    for name, value in (ENVIRONMENT | threads).items():
        os.environ.setdefault(name, value)
    try:
        if options.publish:
            publish()
        elif options.list:
            for stage in stages(options.run):
                print(f"{stage.name}{'  (current)' if stage.current else ''}", flush=True)
        else:
            print(
                f"\nopen in a browser: {paths.display_path(run_all(options.run, options.jobs))}",
                flush=True,
            )
    except (ValueError, StageFailed, OSError) as error:
        print(
            disk_full(error) if isinstance(error, OSError) and FULL.search(str(error)) else error,
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    os._exit(main())  # a stopped run waits for no stage
