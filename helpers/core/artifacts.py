"""Files that are either complete or absent, with fingerprints of what they were made from.

An artifact is written under a temporary name and renamed when complete, so a killed run leaves
either the old file, the new file or a ``*.partial`` that nothing reads. A fingerprint in a small
JSON file beside the data lets a re-run reuse what is up to date and rebuild what is not. Whoever
reads and writes the files of a folder as a set locks it.

Folders of outputs are private: posts, rankings and reports are for their owner alone, whatever the
umask. A folder that exists keeps its mode, so one who shares the outputs of a run makes its folder.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from . import paths
from .messages import file_error, readable_file

# environment variable with the path of the notes of the stage that runs, see note()
NOTES = "AUTHORBOOK_MADE"


def fingerprint_of(*parts: Any) -> str:
    """Return a short hash of values as JSON; it does not depend on the order of a dict's keys.

    A value that JSON cannot hold is hashed as its ``str``.
    """
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_fingerprint(path: str | Path) -> str:
    """Return a short hash of a file's bytes.

    Raises
    ------
    ValueError
        where :func:`write_checksum` has stored another hash beside it, so that it is damaged
    FileNotFoundError
        where there is no such file
    """
    with open(path, "rb") as file:
        fingerprint = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    checksum = _checksum_path(path)
    if checksum.exists() and checksum.read_bytes() != fingerprint.encode():
        raise file_error(path)
    return fingerprint


def write_checksum(path: str | Path) -> None:
    """Store the fingerprint of a file beside it, so that :func:`file_fingerprint` finds damage."""
    with atomic_write(_checksum_path(path)) as partial:
        partial.write_text(file_fingerprint(path))


def verify_checksum(path: str | Path) -> bool:
    """Return whether a file exists and has the bytes that it had at :func:`write_checksum`."""
    try:
        file_fingerprint(path)
    except (FileNotFoundError, ValueError):
        return False
    return _checksum_path(path).exists()


def _checksum_path(path):
    return Path(f"{path}.sha256")


def file_stats_fingerprint(path: str | Path) -> str:
    """Hash names, sizes and modification times of a file or of all files in a folder.

    The content is not read, so this is fast for large files.

    Returns
    -------
    The hash; "" where there is no file.
    """
    path = Path(path)
    stats = []
    for file in sorted([path, *path.rglob("*")]):
        if file.is_file():
            stat = file.stat()
            name = file.relative_to(path).as_posix()
            stats.append((name, stat.st_size, stat.st_mtime_ns))
    if not stats:
        return ""
    return fingerprint_of(stats)


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it that are missing; in the outputs for their owner alone.

    A folder that exists keeps its mode.
    """
    path = Path(path)
    if not path.is_dir():
        make_folder(path.parent)
        is_output = path.absolute().is_relative_to(paths.outputs().absolute())
        path.mkdir(0o700 if is_output else 0o777, exist_ok=True)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path, and rename what was written there to ``path`` when the block ends.

    The block writes a file or makes a folder at the temporary path. An existing file or folder
    ``path`` is replaced, and its stored checksum removed. If the block raises, what it wrote is
    deleted, and ``path`` stays as it was.
    """
    path = Path(path)
    make_folder(path.parent)
    partial = path.with_name(path.name + ".partial")
    _remove(partial)
    try:
        yield partial
        if path.is_dir():  # a folder cannot replace a folder in one step
            _remove(path)
        _remove(_checksum_path(path))  # it is of the old content
        os.replace(partial, path)
    except BaseException:
        _remove(partial)
        raise
    note(path)


def _remove(path):
    # deletes a file, a link or a whole folder, if it exists
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as indented JSON in one step; the keys of a dict keep their order.

    Parameters
    ----------
    path : str or Path
        path of the file, which is replaced if it exists
    value : Any
        a value that JSON can hold; a dict gets a key ``checksum``, a hash of its other keys
    """
    if isinstance(value, dict):
        value = {**value, "checksum": fingerprint_of(json.loads(json.dumps(value)))}
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read a file of :func:`write_json`, and return its value without the ``checksum``.

    Raises
    ------
    ValueError
        where the file is missing, is not JSON or was changed; the message names the file
    """
    with readable_file(path):
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    if isinstance(value, dict) and value.pop("checksum", None) not in (None, fingerprint_of(value)):
        raise file_error(path)
    return value


def is_current(path: str | Path, fingerprint: str) -> bool:
    """Return whether a JSON file exists, is undamaged and has this fingerprint.

    Parameters
    ----------
    path : str or Path
        path of a file of :func:`write_json` that holds a dict with a key ``fingerprint``
    fingerprint : str
        hash of everything that the file should be made from, of :func:`fingerprint_of`
    """
    try:
        return read_json(path).get("fingerprint") == fingerprint
    except (ValueError, AttributeError):
        return False


def note(*files: str | Path) -> None:
    """Note files, and folders with all their files, as made or kept by the stage that runs.

    Code that finishes a file, or finds it up to date and keeps it, calls this. Where no stage runs,
    nothing is noted.
    """
    notes = os.environ.get(NOTES)
    if notes:
        text = "".join(f"{json.dumps(os.path.abspath(path))}\n" for path in files)
        file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, text.encode())  # in one step, as a stage may have several processes
        finally:
            os.close(file)


def noted(notes: str | Path, folder: str | Path) -> dict[str, int]:
    """Return what is noted in a file and lies in a folder: name of a file there -> its size.

    Parameters
    ----------
    notes : str or Path
        the file with the notes of a stage
    folder : str or Path
        the folder; its hidden files are left out
    """
    folder = os.path.abspath(folder)
    files = set()
    for line in Path(notes).read_text("utf-8").splitlines():
        path = Path(json.loads(line))
        files |= {path, _checksum_path(path), *path.rglob("*")}
    return {
        file.relative_to(folder).as_posix(): file.stat().st_size
        for file in sorted(files)
        if file.is_relative_to(folder) and file.is_file() and not file.name.startswith(".")
    }


def folder_lock(folder: str | Path, wait: bool = True) -> AbstractContextManager[None]:
    """Return a context that keeps all others from a folder, as :func:`lock` does.

    The folder is made if it is missing; one folder has one lock, however its path is written.

    Parameters
    ----------
    folder : str or Path
        the folder
    wait : bool
        whether to wait while the folder is in use
    """
    path = Path(os.path.realpath(folder))
    return lock(path / ".lock", paths.display_path(path), wait)


@contextmanager
def lock(path: str | Path, subject: str, wait: bool = True) -> Iterator[None]:
    """Keep other threads and processes from something while the context lasts.

    The thread that has the lock may enter again. The operating system releases the lock when this
    process ends, even if it is killed.

    Parameters
    ----------
    path : str or Path
        the file of the lock
    subject : str
        what is locked, for messages
    wait : bool
        if it is in use, print a line and wait; otherwise this is an error

    Raises
    ------
    ValueError
        where it is in use, and ``wait`` is False
    """
    make_folder(Path(path).parent)
    file_lock = FileLock(path, mode=0o600, is_singleton=True)
    try:
        file_lock.acquire(blocking=False)
    except Timeout:
        busy = f"{subject} is in use by another process"
        if not wait:
            raise ValueError(f"{busy}: wait until it has ended, or stop it") from None
        print(f"{busy}: waiting until it has ended", file=sys.stderr, flush=True)
        file_lock.acquire()
    try:
        yield
    finally:
        file_lock.release()
