"""Files that are whole or absent, and that know what they were made from.

An artifact is written under a temporary name and renamed when complete, so a killed run leaves
either the old file, the new file or a ``*.partial`` that nobody reads. A fingerprint in a small
JSON file beside the data lets a re-run reuse what is current and rebuild what is stale.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def fingerprint_of(*parts: Any) -> str:
    """Return a short hash of JSON-able values; the order of keys does not change it."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_fingerprint(path: str | Path) -> str:
    """Return a short hash of a file's bytes.

    Raises
    ------
    ValueError
        where :func:`write_checksum` has stored another one
    """
    with open(path, "rb") as file:
        fingerprint = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    checksum = _checksum_path(path)
    if checksum.exists() and checksum.read_bytes() != fingerprint.encode():
        raise _damaged(path)
    return fingerprint


def write_checksum(path: str | Path) -> None:
    """Store the fingerprint of a file beside it, so that damage is seen when it is read."""
    with atomic_write(_checksum_path(path)) as partial:
        partial.write_text(file_fingerprint(path))


def verify_checksum(path: str | Path) -> bool:
    """Tell whether a file is there with the bytes that it had at :func:`write_checksum`."""
    try:
        file_fingerprint(path)
    except (FileNotFoundError, ValueError):
        return False
    return _checksum_path(path).exists()


def _checksum_path(path):
    return Path(f"{path}.sha256")


def _damaged(path):
    return ValueError(f"{path} is damaged: delete it and run the notebook that makes it")


def file_stats_fingerprint(path: str | Path) -> str:
    """Return a hash of names, sizes and times of a file or of a folder's files, unread.

    Returns
    -------
    The hash; empty where there is nothing yet.
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


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file or folder that takes its place on success, and goes on an error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    _remove(partial)
    try:
        yield partial
        if path.is_dir():  # a folder cannot replace a folder in one step
            _remove(path)
        _remove(_checksum_path(path))  # of what was there before
        os.replace(partial, path)
    except BaseException:
        _remove(partial)
        raise


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON in one step, readable, its keys in order.

    Parameters
    ----------
    path : str or Path
        the file
    value : Any
        JSON; a dict gets a ``checksum`` of itself
    """
    if isinstance(value, dict):
        value = {**value, "checksum": fingerprint_of(json.loads(json.dumps(value)))}
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read a file of :func:`write_json`.

    Raises
    ------
    ValueError
        which names the file, where it is missing or not as it was written
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: run the notebook that makes it") from None
    except ValueError as error:  # also bytes that are no text
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if isinstance(value, dict) and value.pop("checksum", None) not in (None, fingerprint_of(value)):
        raise _damaged(path)
    return value


def is_current(path: str | Path, fingerprint: str) -> bool:
    """Tell whether a JSON file exists and was made from what has this fingerprint.

    Parameters
    ----------
    path : str or Path
        the file, a dict with a key ``fingerprint``
    fingerprint : str
        of :func:`fingerprint_of`
    """
    try:
        return read_json(path).get("fingerprint") == fingerprint
    except (ValueError, AttributeError):
        return False
