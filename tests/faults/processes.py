"""Commands and library calls in processes of their own, with or without a fault."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.faults import calls
from tests.forks import Fork

HOOK = Path(__file__).parent / "hook"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LIMIT_SECONDS = 300  # no command of these tests takes so long


class Fault(NamedTuple):
    """A kill at a moment, or a full disk; see ``hook/sitecustomize.py``.

    Attributes
    ----------
    at : the moment; may be empty
    do : the number of a signal, or "full"
    targets : "parent" for the process of the command alone, "all" for its kernel as well
    max_bytes : no file can become larger, as on a full disk; 0 for no limit
    """

    at: str = ""
    do: str = "full"
    targets: str = "parent"
    max_bytes: int = 0


class Ended(NamedTuple):
    """How a process ended: its exit code, negative after a signal, and all that it printed."""

    code: int
    output: str


def variables_of(folder, fault):
    """Return the environment of a process whose moments are logged, and begin its log."""
    folder.mkdir(parents=True, exist_ok=True)
    log = log_of(folder)
    for file in (log, Path(f"{log}.made")):
        file.unlink(missing_ok=True)
    return {
        "AUTHORBOOK_OUTPUTS": str(folder),
        "AUTHORBOOK_PSEUDONYM_KEY": "00" * 32,
        "OMP_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
        "FAULT_FOLDER": str(folder),
        "FAULT_LOG": str(log),
        "FAULT_AT": fault.at,
        "FAULT_DO": fault.do,
        "FAULT_TARGETS": fault.targets,
        "FAULT_BYTES": str(fault.max_bytes),
    }


def log_of(folder):
    return folder.with_name(f"{folder.name}.moments")


def moments_of(folder):
    """Return the moments of the last process with these outputs, in order, each with its number."""
    counts = {}
    moments = []
    for line in log_of(folder).read_text("utf-8").splitlines():
        counts[line] = counts.get(line, 0) + 1
        moments.append(f"{line} {counts[line]}")
    return moments


def run_command(arguments, folder, project, fault=Fault()):
    """Run ``python -m`` with arguments in a project, and return how it Ended."""
    variables = variables_of(folder, fault)
    variables["PYTHONPATH"] = os.pathsep.join([str(HOOK), str(project)])
    output = folder.with_name(f"{folder.name}.output")
    with open(output, "w") as file:  # a kernel that lives on would keep a pipe open
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            env=os.environ | variables,
            cwd=project,
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
        )
    return Ended(done.returncode, output.read_text("utf-8", "replace"))


def run_call(name, folder, fault=Fault()):
    """Make a call of ``calls.py`` in a process of its own, and return how it Ended."""
    variables = variables_of(folder, fault)
    place = folder.with_name(f"{folder.name}.printed")
    place.mkdir(exist_ok=True)
    call = Fork(place, calls.make, name, variables=variables)
    code = call.wait(LIMIT_SECONDS)
    return Ended(code, call.printed() + call.errors())
