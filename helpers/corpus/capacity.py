"""What a corpus of another size would take, from what the steps of a collection took."""

import math
from pathlib import Path

import pandas as pd

from helpers.core.artifacts import read_json

# the machines of an estimate; a core is taken to be as fast as one was here
CORES = 32
BYTES_PER_SECOND = 1.25e9  # of a machine, to and from disk
HOURS = 24  # that the steps which many machines share may take
COLUMNS = ["step", "tasks", "seconds", "bytes"]
# steps whose files are no exchange between tasks
NOT_SHUFFLED = ["read", "merge", "posts", "one table"]


def step_row(name: str, records: list[dict], files: list[Path]) -> list:
    """Return a step's row of ``steps.json``, the values of COLUMNS.

    Parameters
    ----------
    name
        Name of the step.
    records
        Records of the tasks, with the ``seconds`` that each took.
    files
        Files that the tasks wrote.
    """
    seconds = sum(record["seconds"] for record in records)
    return [name, len(records), seconds, sum(file.stat().st_size for file in files)]


def estimate_resources(folder: Path, rows: int, comments: float = 5e9) -> tuple[pd.DataFrame, dict]:
    """Return what another number of comments would take, by rule of three.

    A step of one task takes one machine, as here, however many there are. A step takes the longer
    of computing, and of writing and reading again.

    Parameters
    ----------
    folder
        Folder of the collection, with ``steps.json``.
    rows : int
        Number of rows that the collection read.
    comments
        Number that the estimate is for.

    Returns
    -------
    A table with a row a step: ``core_hours``, ``terabytes`` that it writes, ``hours``, and ``on``.
    A dict: ``machines``, as many as let all steps that several tasks share take HOURS; ``hours`` in
    all; ``terabytes`` on disk, ``shuffled`` through files; and ``binds``, the slowest step.
    """
    steps = pd.DataFrame(read_json(Path(folder) / "steps.json")["steps"], columns=COLUMNS)
    steps["step"] = steps["step"].str.replace(r"-\d+$", "", regex=True)  # rounds of one step
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
