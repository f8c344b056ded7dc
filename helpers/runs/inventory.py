"""The inventory of a stage: the files and the rows of results that it made, each with a hash.

Name of a file, relative to the run's folder -> its ``size``, ``times`` and ``sha256``; key of the
rows of a measurement -> hash of these rows. A file with its old size and times is not read again,
so that the inventory of a large run is checked in no time. The times are those of the last change
of the content and of the last change of the file's properties; nobody can set the latter back.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePath

from ..core import results
from ..core.artifacts import read_json
from ..core.paths import Run

# needed only to continue a training: a complete one is not repeated because this was deleted
SPARE = "last.safetensors"


def take_inventory(files: Run, notes: Path, notebook: Path) -> dict[str, dict | str]:
    """Return the inventory of what is noted, see :mod:`helpers.core.made`, and is still there.

    What lies outside of the run's folder is left out, and so are hidden files, SPARE, and what all
    stages share: the table of results, of which only rows belong to a stage, and the executed
    notebooks.

    Parameters
    ----------
    files : Run
        the run of the stage
    notes : Path
        the notes of the stage's kernel; they may be missing
    notebook : Path
        the stage's own executed notebook
    """
    noted = set()
    rows = {}
    if notes.exists():
        for line in notes.read_text().splitlines():
            kind, path, *hashes = json.loads(line)
            if kind == "files":
                noted.add(Path(path))
            elif path == os.path.abspath(files.results):
                rows.update(*hashes)

    folder = Path(os.path.abspath(files.folder))
    inventory = {f"{files.notebooks.name}/{notebook.name}": _describe(notebook)}
    for path in sorted(_files(noted)):
        if path.is_relative_to(folder):
            name = path.relative_to(folder).as_posix()
            if not name.startswith((files.results.name, f"{files.notebooks.name}/")):
                inventory[name] = _describe(path)
    return inventory | rows


def _files(noted):
    """Return the files that exist of those noted, all files of folders, and their checksums."""
    paths = set()
    for path in noted:
        paths |= {path, Path(f"{path}.sha256"), *path.rglob("*")}
    return {path for path in paths if path.is_file() and not path.name.startswith((".", SPARE))}


def _describe(path: Path) -> dict:
    """Return size, times and hash of a file."""
    size, *times = _stat(path)
    return {"size": size, "times": times, "sha256": _hash(path, size, *times)}


def _stat(path):
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


# Hash the bytes of a file; size and times stand for them, so that they are read once.
@cache
def _hash(path, size, *times):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def find_lost(files: Run, inventory: dict, others: Iterable[dict]) -> list[str]:
    """Return the names of an inventory that are missing now or are not what they were.

    What is as another inventory of the run says is not lost: a later stage wrote it again.

    Parameters
    ----------
    files : Run
        the run of the stage
    inventory : dict
        result of :func:`take_inventory`
    others : iterable of dict
        the inventories of other stages, which are only taken from it where something has changed
    """
    rows = results.row_hashes(files)
    lost = [name for name in inventory if not _is_sound(files, rows, name, inventory[name])]
    if lost:
        for other in others:
            lost = [
                name
                for name in lost
                if name not in other or not _is_sound(files, rows, name, other[name])
            ]
    return lost


def _is_sound(files, rows, name, entry):
    if isinstance(entry, str):
        return rows.get(name) == entry
    path = files.folder / name
    if not path.is_file():
        return False
    size, *times = _stat(path)
    if size != entry["size"]:
        return False
    return times == entry["times"] or _hash(path, size, *times) == entry["sha256"]


def with_present_times(files: Run, inventory: dict) -> dict:
    """Return an inventory with the present times of files that still have their content.

    So the files of a run that was copied are read once, and not at every check.

    Parameters
    ----------
    files : Run
        the run of the stage
    inventory : dict
        result of :func:`take_inventory`, of which nothing is lost
    """
    present = dict(inventory)
    for name, entry in inventory.items():
        if isinstance(entry, dict) and _is_sound(files, {}, name, entry):
            _, *times = _stat(files.folder / name)
            present[name] = entry | {"times": times}
    return present


def files_to_remove(files: Run, inventory: dict, lost: list[str]) -> list[str]:
    """Return the files by which code would take lost ones for up to date, or for to be continued.

    They are the JSON records in the folder of a lost file or above it, and SPARE. A record that is
    whole but not the one of the inventory is of other work, such as a training that a user put in
    the place of this one: what is done about its folder is left to the code that writes there.

    Parameters
    ----------
    files : Run
        the run of the stage
    inventory : dict
        result of :func:`take_inventory`
    lost : list of str
        result of :func:`find_lost`
    """
    lost_files = [PurePath(name) for name in lost if isinstance(inventory[name], dict)]
    lost_records = [path for path in lost_files if path.suffix == ".json"]
    kept_folders = {path.parent for path in lost_records if _is_whole(files.folder / path)}
    kept_folders.add(PurePath(files.notebooks.name))  # nothing is made from executed notebooks
    folders = {path.parent for path in lost_files} - kept_folders

    # a training whose record alone is lost needs no step more
    restarted = {path.parent for path in lost_files if path not in lost_records} - kept_folders
    to_remove = [(folder / SPARE).as_posix() for folder in restarted]
    for name in inventory:
        above = PurePath(name).parent
        if name.endswith(".json") and above not in kept_folders:
            if any(folder.is_relative_to(above) for folder in folders):
                to_remove.append(name)
    return to_remove


def _is_whole(record):
    try:
        read_json(record)
    except ValueError:
        return False
    return True
