"""Locks of folders: whoever reads and writes the files of a folder as a set does so alone.

A folder has locks of several levels. Whoever comes from outside needs ``.lock``. Whoever is inside
already needs the lock of the next level, ``.lock-1`` and so on: the holder itself when it calls a
function that locks the folder, too; a thread that runs in a copy of the holder's context; a kernel
that has :func:`held_folders` of the holder in the environment variable ``VARIABLE``. All that is
inside excludes each other by that lock.

Nobody waits for a lock forever. Locks have an order: by folder, then by level. A lock is waited for
only by one who is inside of no folder that comes later, so it comes after all locks that this one,
or whoever let it in, holds. What keeps the holder of the lock busy is inside of that lock, too, so
it can wait only for a lock that comes later still: the waiting ones form no circle. Where the order
forbids to wait, a lock in use is an error.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from filelock import FileLock, Timeout

from .artifacts import make_folder
from .paths import PACKAGE, display_path

# the environment variable that tells a kernel which folders it is let into
VARIABLE = "AUTHORBOOK_HOLDS"
ORPHAN_SECONDS = 3  # after so long, the kernels and workers of a killed holder have ended

# the folders that this thread is inside of, each once per level; a new thread starts anew
_held = ContextVar("held", default=tuple(os.environ.get(VARIABLE, "").splitlines()))


def held_folders() -> str:
    """Return the value of VARIABLE for a kernel that works for this thread."""
    return "\n".join(_held.get())


@contextmanager
def folder_lock(folder: str | Path, wait: bool = False) -> Iterator[None]:
    """Keep all others from a folder while the context lasts, other threads and processes.

    The operating system releases the lock when this process ends, even if it is killed. The folder
    is made if it is missing.

    Parameters
    ----------
    folder : str or Path
        the folder; one folder has one lock, however its path is written
    wait : bool
        if the folder is in use, print a line that says by whom, and wait; by default this is an
        error

    Raises
    ------
    ValueError
        where the folder is in use, and ``wait`` is False or the order of locks forbids to wait
    """
    folder = os.path.realpath(folder)
    held = _held.get()
    level = held.count(folder)
    make_folder(folder)
    path = _lock_path(folder, level)
    lock = FileLock(path, mode=0o600)
    _acquire(lock, path, wait and all(earlier <= folder for earlier in held))
    token = _held.set((*held, folder))
    ended = False
    try:
        _enter(folder, level)
        yield
        ended = True
    except Exception:
        ended = True
        raise
    finally:  # after Ctrl-C some kernels may live a little longer, as after a kill
        if ended:
            _holder_path(path).unlink(missing_ok=True)
        _held.reset(token)
        lock.release()


def _lock_path(folder, level):
    if level == 0:
        return Path(folder, ".lock")
    return Path(folder, f".lock-{level}")


def _holder_path(lock_path):
    # the file that says who holds a lock; it is deleted with the release
    return lock_path.with_name(f"{lock_path.name}.holder")


def _acquire(lock, path, wait):
    """Acquire a lock that is free; otherwise say who holds it, and wait for it or raise."""
    try:
        lock.acquire(blocking=False)
    except Timeout:
        busy = f"{display_path(path.parent)} is in use by {_holder(path)}"
        if not wait:
            raise ValueError(
                f"{busy}: wait until it has ended, stop it, or work in another run"
            ) from None
        print(f"{busy}: waiting until it has ended", file=sys.stderr, flush=True)
        lock.acquire()


def _holder(path):
    """Return who holds a lock, as far as the file beside it is readable."""
    try:
        holder = _holder_path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        holder = ""
    if holder and holder.isprintable():
        return holder
    return "another process"


def _enter(folder, level):
    """Write who holds a lock; after a holder that was killed, first wait for what it had started.

    Kernels and workers check every second whether the process that started them lives, and others
    that they have started check them, so all end within a few seconds.
    """
    path = _holder_path(_lock_path(folder, level))
    was_killed = path.exists()
    path.touch(mode=0o600)
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    path.write_text(f"{_program()} (process {os.getpid()}, since {since})", encoding="utf-8")
    if was_killed:
        time.sleep(ORPHAN_SECONDS)
        inner_path = _holder_path(_lock_path(folder, level + 1))
        while inner_path.exists():  # of those that have ended with it: nobody has to wait again
            inner_path.unlink()
            level += 1
            inner_path = _holder_path(_lock_path(folder, level + 1))


def _program():
    """Return what this process is, without the words of its command line that may be names."""
    program = Path(sys.argv[0])
    folder = Path(os.path.realpath(program)).parent
    if program.name.startswith("ipykernel"):
        return "a notebook"
    words = [program.name]
    if program.name == "__main__.py" and folder.is_relative_to(PACKAGE):
        words = ["python -m", ".".join(folder.relative_to(PACKAGE.parent).parts)]
    if program.name == "authorbook" or len(words) > 1:
        words += sys.argv[1:2]  # the command, or the run
    return " ".join(words)
