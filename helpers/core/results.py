"""The results of a run: one tidy table, ``results.csv``, one row per metric of what :data:`KEY` tells apart.

Whatever prints, plots or compares results reads this table.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import pandas as pd
from filelock import FileLock
from pydantic import BeforeValidator

from helpers.core.artifacts import atomic_write, file_fingerprint, read_json, write_checksum
from helpers.core.config import Config
from helpers.core.paths import Run
from helpers.core.stored_names import translate_stored

KEY = ["model", "base", "protocol", "split", "max_tokens", "seed"]
TYPES = {
    name: "str" for name in ("experiment", "model", "label", "base", "protocol", "split", "metric")
}
COUNTS = ["seed", "training_authors", "queries", "targets", "sample_size", "max_tokens"]
TYPES |= dict.fromkeys(["value", "low", "high"], "float") | dict.fromkeys(COUNTS, "Int64")
TYPES |= {"seconds": "float", "device": "str", "data": "str"}
COLUMNS = list(TYPES)
LOWER_IS_BETTER = {"EER", "minDCF", "minDCF_released", "DCF", "Cllr", "minCllr", "mean_rank"}

Count = Annotated[
    int, BeforeValidator(lambda value: value.item() if hasattr(value, "item") else value)
]


class Measured(Config):
    """Of what a table of metrics is: one call of :func:`record`.

    label : the name that people read, of :mod:`helpers.core.names`. base : the model that is subtracted.
    training_authors : authors that the model learned from, where that varies. sample_size : posts in a query or
    target. max_tokens : tokens read of each post.
    """

    model: str
    protocol: str
    split: str
    label: str = ""
    base: str = ""
    seed: Count | None = 0
    experiment: str = ""
    data: str = ""
    queries: Count | None = None
    targets: Count | None = None
    training_authors: Count | None = None
    sample_size: Count | None = None
    max_tokens: Count | None = None
    seconds: float | None = None
    device: str = ""


def record(files: Run | Path, table: pd.DataFrame, **measured) -> None:
    """Put the metrics of one model under one protocol into the run's table, in one step.

    The rows that agree in all of :data:`KEY` are replaced.

    files : the run, or the path of a table.
    table : indexed by metric, with columns ``value``, ``low`` and ``high`` (NaN where there is no interval).
    measured : the fields of :class:`Measured`: ``model``, ``protocol`` and ``split``, and what else is known.
    Raises ValueError where a field is unknown, missing or of a wrong type, or the table has other columns.
    """
    fields = Measured.of(measured, "record").model_dump()
    if missing := sorted({"value", "low", "high"} - set(table.columns)):
        raise ValueError(
            f"record: the table of {fields['model']!r} lacks the columns {', '.join(missing)}"
        )
    path = _path(files)
    rows = (
        table[["value", "low", "high"]]
        .rename_axis("metric")
        .reset_index()
        .assign(**fields)[COLUMNS]
        .astype(TYPES)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock(path)):  # two notebooks may end at once
        table = _load(path)
        replaced = pd.Series(True, index=table.index)
        for name in KEY:
            replaced &= (
                table[name].isna()
                if fields[name] is None
                else (table[name] == fields[name]).fillna(False)
            )
        with atomic_write(path) as partial:
            pd.concat([table[~replaced], rows]).to_csv(partial, index=False)
        write_checksum(path)


def read(files: Run | Path, stale: bool = False) -> pd.DataFrame:
    """The results of a run, or every row of a table given by its path.

    A run's rows are left out where their experiment is in no ``models/**/training.json`` or their data in no
    ``store.json`` any more; with ``stale`` just these come. Raises ValueError where a table is damaged or is none.
    """
    path = _path(files)
    with (
        FileLock(_lock(path)) if _lock(path).exists() else nullcontext()
    ):  # a table and its seal are two files
        frame = translate_stored(_load(path))
    if not isinstance(files, Run):
        return frame[:0] if stale else frame
    experiments = {
        "",
        *(read_json(path)["fingerprint"] for path in files.models.glob("**/training.json")),
    }
    stores = {"", *(read_json(path)["fingerprint"] for path in files.folder.glob("**/store.json"))}
    current = frame["experiment"].isin(experiments) & frame["data"].isin(stores)
    return frame[~current if stale else current].reset_index(drop=True)


def wide(frame: pd.DataFrame, protocol: str, column: str = "value") -> pd.DataFrame:
    """One row a (split, model), one column a metric that holds ``column``: test first, by base, the best first.

    Around the metrics, in the order in which they were recorded, are ``split``, ``model``, ``label``, ``base`` and
    :data:`COUNTS`, of these the ones that are known. The first metric ranks.
    """
    rows = frame[frame["protocol"] == protocol]
    rows = rows.assign(row=rows.groupby(KEY, dropna=False, sort=False).ngroup())
    metrics = list(dict.fromkeys(rows["metric"]))
    about = rows.drop_duplicates("row").set_index("row")
    if metrics:
        score = rows.pivot(index="row", columns="metric", values="value")[metrics[0]]
        about["score"] = score if metrics[0] in LOWER_IS_BETTER else -score
    order = ["split", "base", *about.columns.intersection(["score"]), "model"]  # test before dev
    about = about.sort_values(order, ascending=[name != "split" for name in order])
    cells = rows.pivot(index="row", columns="metric", values=column)[metrics]
    made = (
        about[["split", "model", "label", "base"]]
        .join(cells)
        .join(about[COUNTS])
        .reset_index(drop=True)
    )
    return made[
        [name for name in made if name in metrics or not made[name].isin(["", pd.NA]).all()]
    ]


def format_interval(value: float, low: float, high: float, sign: str = "") -> str:
    """``0.690 (0.658-0.722)``, or of a difference, with the sign "+", ``+0.042 (0.014 to 0.069)``."""
    if pd.isna(value):
        return ""
    if value > 1 and value == int(value):
        return f"{value:{sign}.0f}"
    if pd.isna(low) and pd.isna(high):
        return f"{value:{sign}.3f}"
    return f"{value:{sign}.3f} ({low:.3f}{' to ' if sign or low < 0 else '-'}{high:.3f})"


def _path(files: Run | Path) -> Path:
    return files.results if isinstance(files, Run) else Path(files)


def _lock(path):
    return path.with_name(f".{path.name}.lock")


def _load(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS).astype(TYPES)
    file_fingerprint(path)  # raises where it was damaged
    try:
        empty = {name: [""] for name, kind in TYPES.items() if kind != "str"}
        frame = pd.read_csv(path, dtype=TYPES, keep_default_na=False, na_values=empty)
        if "training_authors" not in frame:  # a table of before there was such a column
            frame["training_authors"] = pd.array([pd.NA] * len(frame), dtype="Int64")
        return frame[COLUMNS]
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"{path} is not a table of results: {str(error).splitlines()[0]}"
        ) from None
