"""Commands and library calls in processes of their own, with or without a fault."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.faults import calls
from tests.forks import Fork

HERE = Path(__file__).parent
HOOK = HERE / "hook"
# each signal with each target in turn: the process of the command alone, or its kernel as well
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
TARGETS = ("parent", "all")
LIMIT_SECONDS = 300  # no command of these tests takes so long
CALL_VARIABLES = {"TQDM_DISABLE": "1", "AUTHORBOOK_PSEUDONYM_KEY": "00" * 32}


@dataclass(frozen=True)
class Kill:
    """A kill of a command.

    Attributes
    ----------
    at : the moment, see ``hook/sitecustomize.py``; empty where the kill comes after some seconds
    after : seconds after the start, used where ``at`` is empty
    do : the signal
    targets : "parent" for the process of the command alone, "all" for its kernel as well
    """

    at: str = ""
    after: float = 0.0
    do: signal.Signals = signal.SIGKILL
    targets: str = "all"

    def __str__(self):
        when = self.at or f"{self.after:.1f} s"
        return f"{self.do.name} of {self.targets} at {when}"


@dataclass(frozen=True)
class FullDisk:
    """A disk that becomes full.

    Attributes
    ----------
    at : the moment from which nothing new can be written; may be empty
    max_bytes : no file can become larger; 0 for no limit
    """

    at: str = ""
    max_bytes: int = 0

    def __str__(self):
        return f"full disk at {self.at or f'{self.max_bytes} bytes of a file'}"


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes
    ----------
    code : the exit code, negative after a signal
    output : what it printed, errors as well
    killed : whether the kill or the full disk came before its end
    """

    code: int
    output: str
    killed: bool


def environment(folder, log, kill, project):
    """Return the environment of a process whose moments are logged, see :func:`run_command`."""
    variables = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HOOK), str(project)]),
        "AUTHORBOOK_OUTPUTS": str(folder),
        "AUTHORBOOK_PSEUDONYM_KEY": "00" * 32,
        "OMP_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
        "FAULT_FOLDER": str(folder),
        "FAULT_LOG": str(log),
    }
    if isinstance(kill, FullDisk) and kill.max_bytes:
        variables["FAULT_BYTES"] = str(kill.max_bytes)
    if isinstance(kill, Kill) and kill.at:
        variables["FAULT_AT"] = kill.at
        variables["FAULT_DO"] = str(int(kill.do))
        variables["FAULT_TARGETS"] = kill.targets
    return variables


def run_command(arguments, folder, project, kill=None):
    """Run a Python module's command, kill it if told so, and return how it Ended.

    Parameters
    ----------
    arguments : what follows ``python -m``
    folder : its outputs
    project : the project whose package is imported
    kill : a Kill, a FullDisk by the size of a file, None for none
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = begin_log(folder)
    output = folder.with_name(f"{folder.name}.output")
    with open(output, "w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env=environment(folder, log, kill, project),
            cwd=project,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        killed = wait_and_kill(process, kill)
    killed = killed or has_fault(log)
    return Ended(process.returncode, output.read_text("utf-8", "replace"), killed)


def wait_and_kill(process, kill):
    """Wait for the end of a process; kill it where its time has come, and return whether it had."""
    killed = False
    if isinstance(kill, Kill) and not kill.at:
        try:
            process.wait(kill.after)
        except subprocess.TimeoutExpired:
            killed = True
            targets = [psutil.Process(process.pid)]
            if kill.targets == "all":
                targets += targets[0].children(recursive=True)
            for target in targets:
                with suppress(psutil.NoSuchProcess):
                    target.send_signal(kill.do)
    try:
        process.wait(LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return killed


def moments_of(folder):
    """Return the moments of the last command with these outputs, in order, each with its number."""
    counts = {}
    moments = []
    for line in folder.with_name(f"{folder.name}.moments").read_text("utf-8").splitlines():
        counts[line] = counts.get(line, 0) + 1
        moments.append(f"{line} {counts[line]}")
    return moments


def run_call(name, folder, fault=None):
    """Make a call of ``calls.py`` in a process of its own, and return how it Ended.

    Parameters
    ----------
    name : name of the call
    folder : the outputs
    fault : a Kill or a FullDisk, None for none
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = begin_log(folder)
    place = folder.with_name(f"{folder.name}.printed")
    place.mkdir(exist_ok=True)
    details = ["", "", 0]
    if isinstance(fault, Kill):
        details = [fault.at, str(int(fault.do)), 0]
    elif fault:
        details = [fault.at, "full", fault.max_bytes]
    call = Fork(place, calls.make, name, str(folder), str(log), *details, variables=CALL_VARIABLES)
    code = call.wait(LIMIT_SECONDS)
    return Ended(code, call.printed() + call.errors(), has_fault(log))


def begin_log(folder):
    """Return the file that gets the moments of a process with these outputs, which is not there."""
    log = folder.with_name(f"{folder.name}.moments")
    for file in (log, Path(f"{log}.made")):
        file.unlink(missing_ok=True)
    return log


def has_fault(log):
    """Return whether the fault of a process with this log was made."""
    return Path(f"{log}.made").exists()
