"""Files that are whole or absent, and that know what they were made from.

An artifact is written under a temporary name and renamed when complete, so a killed run leaves either the old
file, the new file or a ``*.partial`` that nobody reads. A fingerprint in a small JSON file beside the data lets a
re-run reuse what is current and rebuild what is stale.
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
    """A short hash of JSON-able values; equal values give equal hashes, whatever the order of their keys."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_fingerprint(path: str | Path) -> str:
    """Hash of a file's bytes, as :func:`fingerprint_of` shortens it. Raises ValueError where its seal is another."""
    with open(path, "rb") as file:
        fingerprint = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    if (kept := _seal(path)).exists() and kept.read_bytes() != fingerprint.encode():
        raise ValueError(f"{path} is damaged: delete it and run the notebook that makes it")
    return fingerprint


def write_checksum(path: str | Path) -> None:
    """Keep the fingerprint of a file beside it, in ``<name>.sha256``, so that damage is seen when it is read."""
    with atomic_write(_seal(path)) as partial:
        partial.write_text(file_fingerprint(path))


def verify_checksum(path: str | Path) -> bool:
    """Is a sealed file there, with the bytes that were sealed?"""
    try:
        return _seal(path).exists() and bool(file_fingerprint(path))
    except (FileNotFoundError, ValueError):
        return False


def _seal(path):
    return Path(f"{path}.sha256")


def file_stats_fingerprint(path: str | Path) -> str:
    """Hash of names, sizes and times of a file or of a folder's files, unread; empty where there is nothing yet."""
    path = Path(path)
    files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.exists() else []
    stats = [(file.relative_to(path).as_posix(), file.stat()) for file in files if file.is_file()]
    return (
        fingerprint_of([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
        if stats
        else ""
    )


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file or folder that takes the place of ``path`` on success, and is removed on an error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    _remove(partial)
    try:
        yield partial
        if path.is_dir():  # a folder cannot replace a folder in one step
            _remove(path)
        _remove(_seal(path))  # of what was there before
        os.replace(partial, path)
    except BaseException:
        _remove(partial)
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON in one step; keys keep their order, text stays readable. A dict gets a ``checksum`` of itself."""
    if isinstance(value, dict):
        value = {**value, "checksum": fingerprint_of(json.loads(json.dumps(value)))}
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read JSON. Raises ValueError that names the file where it is missing or not as it was written."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: run the notebook that makes it") from None
    except ValueError as error:  # also bytes that are no text
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if isinstance(value, dict) and value.pop("checksum", None) not in (None, fingerprint_of(value)):
        raise ValueError(f"{path} is damaged: delete it and run the notebook that makes it")
    return value


def is_current(path: str | Path, fingerprint: str) -> bool:
    """True where the JSON file at ``path`` exists and its ``fingerprint`` is this fingerprint."""
    try:
        return read_json(path).get("fingerprint") == fingerprint
    except (ValueError, AttributeError):
        return False
