"""What a corpus of another size would take, from what the steps of a run's collection took."""

import math
from pathlib import Path

import pandas as pd
from pydantic import Field

from helpers.core.artifacts import read_json, write_json
from helpers.core.config import Config

COLUMNS = ["step", "tasks", "seconds", "bytes"]


class Cluster(Config):
    """The machines that a plan is for; a worker is a core, and is taken to be as fast as one was here."""

    cores: int = Field(32, ge=1)  # of a machine
    network: float = Field(1.25e9, gt=0)  # bytes a second of a machine, to and from disk
    hours: float = Field(24, gt=0)  # that the steps which many machines share may take


def record_steps(
    folder: Path,
    read: list[dict],
    used: list[dict],
    files: list[Path],
    merge: float,
    steps: list | None,
) -> None:
    """Write ``steps.json`` of a collection: COLUMNS of every step, its tasks' seconds and the bytes of its files.

    read, used: records of the part files and of their words, which keep their seconds. merge: seconds of it, one step
    unless an engine says ``steps`` of its own.
    """
    size = sum(file.stat().st_size for file in files)
    rows = [[name, len(files), sum(record.get("seconds", 0) for record in records), written]
            for name, records, written in (("read", read, size), ("names", used, 0))]  # fmt: skip
    write_json(folder / "steps.json", {"steps": rows + (steps or [["merge", 1, merge, size]])})


def estimate_resources(
    folder: Path, rows: int, comments: float = 5e9, cluster: Cluster = Cluster()
) -> tuple[pd.DataFrame, dict]:
    """What ``comments`` would take, by rule of three from the collection in ``folder``, which read so many ``rows``.

    Returns a table with a row a step (``core_hours``, ``terabytes`` that it writes, ``hours``) and what it comes to:
    ``machines``, so many that all steps which several tasks share take the cluster's hours; ``hours`` in all;
    ``terabytes`` on disk, ``shuffled`` through files, and ``binds``, the step that takes most of the hours. A step of
    one task takes one machine, as here, however many there are; the others the longer of computing, and of writing and
    reading again. Raises ValueError where no steps are kept, or nothing was read.
    """
    if not rows:
        raise ValueError("nothing was read, so there is no rate")
    table = pd.DataFrame(read_json(Path(folder) / "steps.json")["steps"], columns=COLUMNS)
    table["step"] = table.step.str.replace(r"-\d+$", "", regex=True)
    table = table.groupby("step", sort=False).agg(
        {"tasks": "max", "seconds": "sum", "bytes": "sum"}
    )
    scale = comments / rows
    moved = 2 * table.bytes * scale / cluster.network / 3600
    core_hours = table.seconds * scale / 3600
    shared = table.tasks > 1
    machine_hours = moved.clip(lower=core_hours / cluster.cores)
    machines = max(1, math.ceil(machine_hours[shared].sum() / cluster.hours))
    hours = (machine_hours / machines).where(shared, moved.clip(lower=core_hours))
    shuffled = (
        table.bytes.drop(["read", "merge", "posts", "one table"], errors="ignore").sum()
        * scale
        / 1e12
    )
    out = pd.DataFrame({"core_hours": core_hours, "terabytes": table.bytes * scale / 1e12, "hours": hours,
                        "on": shared.map({True: "all machines", False: "one machine"})})  # fmt: skip
    return out, {"machines": machines, "hours": hours.sum(), "terabytes": out.terabytes.sum(), "shuffled": shuffled,
                 "binds": hours.idxmax()}  # fmt: skip
