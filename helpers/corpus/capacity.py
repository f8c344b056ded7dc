"""Estimate of time, disk and machines for a larger corpus, from the steps of one collection."""

import math
from pathlib import Path

import pandas as pd

from ..core.artifacts import read_json

# the machines of an estimate; a core is assumed to be as fast as one of this collection
CORES = 32
BYTES_PER_SECOND = 1.25e9  # speed of a machine's disk, for reading and for writing
HOURS = 24  # hours that the steps shared by several machines may take together
# name of the step, number of its tasks, sum of their seconds, size of the files that they wrote
COLUMNS = ["step", "tasks", "seconds", "bytes"]
# steps whose files do not pass rows from one partition to another
NOT_SHUFFLED = ["read", "merge", "posts", "one table"]


def step_row(name: str, records: list[dict], files: list[Path]) -> list:
    """Return a step's row for ``steps.json``: the values of COLUMNS.

    Parameters
    ----------
    name
        Name of the step.
    records
        Records of the step's tasks, with the ``seconds`` that each took.
    files
        Existing files that the tasks wrote; may be empty.
    """
    seconds = sum(record["seconds"] for record in records)
    return [name, len(records), seconds, sum(file.stat().st_size for file in files)]


def estimate_resources(folder: Path, rows: int, comments: float = 5e9) -> tuple[pd.DataFrame, dict]:
    """Return the resources that another number of comments would need, in proportion to the rows.

    The hours of a step are those of computing, or those of writing its files and reading them again
    if these are more. A step of one task runs on one core of one machine; a step of several tasks
    is shared by all cores of all machines.

    Parameters
    ----------
    folder
        Folder of the collection, with ``steps.json``.
    rows : int
        Number of rows that this collection read.
    comments : float
        Number of rows that the estimate is for.

    Returns
    -------
    A table with one row per step, the rounds of a step added up: ``core_hours``; ``terabytes`` that
    it writes; ``hours``; ``on``, "one machine" or "all machines".
    A dict of the whole: ``machines``, the fewest with which the shared steps take HOURS or less;
    ``hours``; ``terabytes`` written, and how many of these are ``shuffled``, written by one
    partition and read by another; ``binds``, name of the slowest step.
    """
    steps = pd.DataFrame(read_json(Path(folder) / "steps.json")["steps"], columns=COLUMNS)
    # "marks-0" and "marks-1" are rounds of one step
    steps["step"] = steps["step"].str.replace(r"-\d+$", "", regex=True)
    totals = {"tasks": "max", "seconds": "sum", "bytes": "sum"}
    steps = steps.groupby("step", sort=False).agg(totals)

    scale = comments / rows
    core_hours = steps["seconds"] * scale / 3600
    terabytes = steps["bytes"] * scale / 1e12
    disk_hours = 2 * steps["bytes"] * scale / BYTES_PER_SECOND / 3600
    is_shared = steps["tasks"] > 1
    machine_hours = disk_hours.clip(lower=core_hours / CORES)
    machines = max(1, math.ceil(machine_hours[is_shared].sum() / HOURS))
    hours = disk_hours.clip(lower=core_hours)
    hours[is_shared] = machine_hours[is_shared] / machines

    on = is_shared.map({True: "all machines", False: "one machine"})
    table = pd.DataFrame(
        {"core_hours": core_hours, "terabytes": terabytes, "hours": hours, "on": on}
    )
    total = {
        "machines": machines,
        "hours": hours.sum(),
        "terabytes": terabytes.sum(),
        "shuffled": terabytes.drop(NOT_SHUFFLED, errors="ignore").sum(),
        "binds": hours.idxmax(),
    }
    return table, total
