"""The results of a run: one tidy table, ``results.csv``, a row per metric of what is in ``KEY``.

Whatever prints, plots or compares results reads this table.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from filelock import FileLock
from pydantic import BeforeValidator

from helpers.core.artifacts import atomic_write, file_fingerprint, read_json, write_checksum
from helpers.core.config import Config
from helpers.core.names import label
from helpers.core.paths import Run
from helpers.core.stored_names import translate_stored

KEY = ["model", "base", "protocol", "split", "max_tokens", "seed"]
WORDS = ["experiment", "model", "label", "base", "protocol", "split", "metric"]
INTERVAL = ["value", "low", "high"]
COUNTS = ["seed", "training_authors", "queries", "targets", "sample_size", "max_tokens"]
TYPES = dict.fromkeys(WORDS, "str") | dict.fromkeys(INTERVAL, "float")
TYPES |= dict.fromkeys(COUNTS, "Int64") | {"seconds": "float", "device": "str", "data": "str"}
COLUMNS = list(TYPES)
LOWER_IS_BETTER = {"EER", "minDCF", "minDCF_released", "DCF", "Cllr", "minCllr", "mean_rank"}


def _plain_number(value: Any) -> Any:
    """Return a scalar of numpy as a number of Python."""
    return value.item() if hasattr(value, "item") else value


Count = Annotated[int, BeforeValidator(_plain_number)]


class Measured(Config):
    """Of what a table of metrics is: one call of :func:`record`.

    Attributes
    ----------
    model : str
        its identifier
    protocol : str
        how it was measured
    split : str
        the accounts or texts it was measured on
    label : str
        the name that people read, of :mod:`helpers.core.names`
    base : str
        the model that is subtracted, of a paired difference
    seed : int or None
        of the training; None for a mean over seeds
    experiment : str
        fingerprint of what the model was trained by
    data : str
        fingerprint of the token store
    queries, targets : int or None
        how many there were
    training_authors : int or None
        authors that the model learned from, where that varies
    sample_size : int or None
        posts in a query or target
    max_tokens : int or None
        tokens read of each post
    seconds : float or None
        that the measurement took
    device : str
        that it ran on
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


def record(files: Run | Path, table: pd.DataFrame, **measured: Any) -> None:
    """Put the metrics of one model under one protocol into the run's table, in one step.

    The rows that agree in all of :data:`KEY` are replaced.

    Parameters
    ----------
    files : Run or Path
        the run, or the path of a table
    table : DataFrame
        indexed by metric, with columns ``value``, ``low`` and ``high`` (NaN without an interval)
    **measured : Any
        the fields of :class:`Measured`

    Raises
    ------
    ValueError
        where a field is unknown, missing or of a wrong type, or the table has other columns
    """
    fields = Measured.of(measured, "record").model_dump()
    missing = sorted(set(INTERVAL) - set(table.columns))
    if missing:
        columns = ", ".join(missing)
        raise ValueError(f"record: the table of {fields['model']!r} lacks the columns {columns}")
    rows = table[INTERVAL].rename_axis("metric").reset_index()
    rows = rows.assign(**fields)[COLUMNS].astype(TYPES)

    path = _path(files)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock_path(path)):  # two notebooks may end at once
        stored = _load(path)
        is_replaced = pd.Series(True, index=stored.index)
        for name in KEY:
            if fields[name] is None:
                is_replaced &= stored[name].isna()
            else:
                is_replaced &= (stored[name] == fields[name]).fillna(False)
        with atomic_write(path) as partial:
            pd.concat([stored[~is_replaced], rows]).to_csv(partial, index=False)
        write_checksum(path)


def read(files: Run | Path, stale: bool = False) -> pd.DataFrame:
    """Read the results of a run that are of today's models and data, or a whole table.

    Parameters
    ----------
    files : Run or Path
        a run, of which rows are left out whose experiment is in no ``models/**/training.json``, or
        whose data in no ``store.json``, any more; or the path of a table, with all its rows
    stale : bool
        return just what is otherwise left out

    Returns
    -------
    Rows with the columns ``COLUMNS``.

    Raises
    ------
    ValueError
        where a table is damaged or is none
    """
    path = _path(files)
    lock = FileLock(_lock_path(path)) if _lock_path(path).exists() else nullcontext()
    with lock:  # a table and its checksum are two files
        frame = translate_stored(_load(path))
    if not isinstance(files, Run):
        return frame[:0] if stale else frame
    experiments = _fingerprints(files.models.glob("**/training.json"))
    stores = _fingerprints(files.folder.glob("**/store.json"))
    is_current = frame["experiment"].isin(experiments) & frame["data"].isin(stores)
    return frame[is_current != stale].reset_index(drop=True)


def _fingerprints(paths):
    """Return the fingerprints in JSON files, and "", which no file has."""
    return {"", *(read_json(path)["fingerprint"] for path in paths)}


def wide(frame: pd.DataFrame, protocol: str, column: str = "value") -> pd.DataFrame:
    """Return one row a (split, model), one column a metric: test first, by base, the best first.

    Around the metrics, in the order in which they were recorded, are ``split``, ``model``,
    ``label``, ``base`` and :data:`COUNTS`, those of them that are filled.

    Parameters
    ----------
    frame : DataFrame
        rows of :func:`read`
    protocol : str
        the one whose rows are shown; its first metric ranks
    column : str
        what the cells hold
    """
    rows = frame[frame["protocol"] == protocol]
    rows = rows.assign(row=rows.groupby(KEY, dropna=False, sort=False).ngroup())
    metrics = list(dict.fromkeys(rows["metric"]))
    cells = rows.pivot(index="row", columns="metric", values=column)[metrics]

    about = rows.drop_duplicates("row").set_index("row")
    order = ["split", "base", "model"]
    if metrics:
        score = rows[rows["metric"] == metrics[0]].set_index("row")["value"]
        about["score"] = score if metrics[0] in LOWER_IS_BETTER else -score
        order.insert(2, "score")
    is_ascending = [name != "split" for name in order]  # test before dev
    about = about.sort_values(order, ascending=is_ascending)

    table = about[["split", "model", "label", "base"]].join(cells).join(about[COUNTS])
    is_filled = [name in metrics or not table[name].isin(["", pd.NA]).all() for name in table]
    return table.loc[:, is_filled].reset_index(drop=True)


def names_of_models(rows: pd.DataFrame) -> dict[str, str]:
    """Map each model of some results to its name: the stored label, else that of its identifier."""
    models = rows.drop_duplicates("model").set_index("model")
    names = {model: label(model) for model in models.index}
    if "label" in models:
        names |= models["label"][models["label"].fillna("") != ""].to_dict()
    return names


def format_interval(value: float, low: float, high: float, sign: str = "") -> str:
    """Write a number with its interval: "0.690 (0.658-0.722)".

    Parameters
    ----------
    value : float
        the number
    low, high : float
        the ends of its interval, NaN where it has none
    sign : str
        "+" for a difference: "+0.042 (0.014 to 0.069)"
    """
    if pd.isna(value):
        return ""
    if value > 1 and value == int(value):
        return f"{value:{sign}.0f}"
    if pd.isna(low) and pd.isna(high):
        return f"{value:{sign}.3f}"
    between = " to " if sign or low < 0 else "-"
    return f"{value:{sign}.3f} ({low:.3f}{between}{high:.3f})"


def _path(files: Run | Path) -> Path:
    if isinstance(files, Run):
        return files.results
    return Path(files)


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _load(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS).astype(TYPES)
    file_fingerprint(path)  # raises where it was damaged
    empty_is_missing = {name: [""] for name, kind in TYPES.items() if kind != "str"}
    try:
        frame = pd.read_csv(path, dtype=TYPES, keep_default_na=False, na_values=empty_is_missing)
        if "training_authors" not in frame:  # a table of before there was such a column
            frame["training_authors"] = pd.array([pd.NA] * len(frame), dtype="Int64")
        return frame[COLUMNS]
    except (ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is not a table of results: {reason}") from None
