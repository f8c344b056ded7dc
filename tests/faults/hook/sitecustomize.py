"""Faults at an exact moment: Python imports this module first where its folder is in PYTHONPATH.

A *moment* is what a process is about to do to a file: open it for writing, rename or delete it,
make a folder. It has a name such as ``os.rename models/TPS/best.safetensors``. Each moment is
appended to a log; when the moment that was asked for comes, the process is killed, or is told
that the disk is full. Child processes count on in the same log. Environment variables say what:

==============  ===================================================================================
FAULT_FOLDER    only what happens below this folder is a moment
FAULT_LOG       the file that gets a line for each moment
FAULT_AT        the name of the moment, and which time it comes: "os.mkdir tokens 2"; may be empty
FAULT_DO        the number of a signal, or "full" for a full disk
FAULT_TARGETS   who gets the signal: "parent", the process of the command; "all", the kernel, too
FAULT_PARENT    the process id of the command; the first process sets it
FAULT_BYTES     no file can become larger, as if the disk were full; 0 for no limit
==============  ===================================================================================
"""

import errno
import os
import re
import resource
import signal
import sys

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.link", "os.truncate")
RANDOM_NAME = re.compile(r"[0-9a-f]{12,}|\d{5,}")  # a fingerprint or a process id within a name


class Faults:
    """An audit hook that logs moments and makes the fault of the environment."""

    def __init__(self):
        self.folder = os.path.abspath(os.environ["FAULT_FOLDER"]) + os.sep
        self.log = os.environ["FAULT_LOG"]
        self.marker = f"{self.log}.made"  # exists once the fault was made
        self.at, _, number = os.environ["FAULT_AT"].rpartition(" ")
        self.number = int(number or 0)
        self.do = os.environ["FAULT_DO"]
        self.targets = os.environ["FAULT_TARGETS"]
        self.parent = int(os.environ["FAULT_PARENT"])

    def __call__(self, event, arguments):
        moment = self.moment_of(event, arguments)
        if moment is None:
            return
        self.write(moment)
        if moment == self.at and self.has_come():
            self.fail()
        elif self.is_full(event, moment):
            raise disk_is_full()

    def write(self, moment):
        """Append a moment to the log, unless no file may grow."""
        line = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(line, f"{moment}\n".encode())
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
        finally:
            os.close(line)

    def moment_of(self, event, arguments):
        """Return the name of a moment, None for an event that changes no file of the folder."""
        if event == "open":
            if not (arguments[2] or 0) & WRITES:
                return None
        elif event not in CHANGES:
            return None
        path = arguments[0]
        if event == "os.rename":
            path = arguments[1]
        if not isinstance(path, str | os.PathLike):
            return None
        path = os.path.abspath(os.fspath(path))
        if not path.startswith(self.folder):
            return None
        return f"{event} {RANDOM_NAME.sub('#', path.removeprefix(self.folder))}"

    def has_come(self):
        """Return whether the moment has come as often as was asked for, the first time only."""
        with open(self.log, encoding="utf-8") as file:
            count = sum(line.rstrip("\n") == self.at for line in file)
        if count < self.number or os.path.exists(self.marker):
            return False
        os.close(os.open(self.marker, os.O_WRONLY | os.O_CREAT, 0o600))
        return True

    def is_full(self, event, moment):
        """Return whether the disk has become full before: nothing new can be written there."""
        if self.do != "full" or event not in ("open", "os.mkdir") or moment.endswith(".lock"):
            return False
        return os.path.exists(self.marker)

    def fail(self):
        if self.do == "full":
            raise disk_is_full()
        os.kill(self.parent, int(self.do))
        if self.targets == "all":
            os.kill(os.getpid(), int(self.do))


def disk_is_full():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def install():
    """Make the fault of the environment in this process."""
    os.environ.setdefault("FAULT_PARENT", str(os.getpid()))
    max_bytes = int(os.environ["FAULT_BYTES"])
    if max_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
    sys.addaudithook(Faults())


if "FAULT_FOLDER" in os.environ:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so begins what a shell runs behind
        signal.signal(signal.SIGINT, signal.default_int_handler)
    install()
