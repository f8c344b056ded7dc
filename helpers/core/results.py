"""The results of a run: one file a measurement, and all of them as one tidy table.

A measurement is an artifact like any other: a JSON file in the run's folder ``results``, named by
the fingerprint of its values in ``KEY``. The table has one row per metric and measurement; all code
that prints, plots or compares results reads it by :func:`read_results`. ``results.csv`` is written
from the measurements, for people and other programs.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import Field

from .artifacts import atomic_write, fingerprint_of, folder_lock, read_json, write_json
from .names import distinct, label
from .parameters import Config
from .paths import Run

KEY = ["model", "base", "protocol", "split", "max_tokens", "seed"]
WORDS = ["experiment", "model", "label", "base", "protocol", "split", "metric"]
INTERVAL = ["value", "low", "high"]
COUNTS = ["seed", "training_authors", "queries", "targets", "sample_size", "max_tokens"]
TYPES = dict.fromkeys(WORDS, "str") | dict.fromkeys(INTERVAL, "float")
TYPES |= dict.fromkeys(COUNTS, "Int64") | {"seconds": "float", "device": "str", "data": "str"}
COLUMNS = list(TYPES)
LOWER_IS_BETTER = {"EER", "minDCF", "minDCF_released", "DCF", "Cllr", "minCllr", "mean_rank"}


Count = Annotated[int, Field(strict=False)]  # a scalar of numpy becomes a number of Python


class Measured(Config):
    """What a table of metrics was measured on and how, the arguments of one call of :func:`record`.

    Attributes
    ----------
    model : str
        identifier of the model that was measured
    protocol : str
        name of the protocol by which it was measured
    split : str
        name of the accounts or texts on which it was measured
    label : str
        readable name of the model, of :mod:`helpers.core.names`
    base : str
        for a paired difference, the model that is subtracted; else empty
    seed : int or None
        seed of the training; None for a mean over seeds
    experiment : str
        fingerprint of the model's training; empty for a model without one
    data : str
        fingerprint of the token store that was read; empty without one
    queries, targets : int or None
        numbers of queries and targets
    training_authors : int or None
        number of authors that the model was trained on, where it varies
    sample_size : int or None
        number of posts in a query or target
    max_tokens : int or None
        number of tokens read of each post
    seconds : float or None
        seconds that training or measurement took
    device : str
        name of the device on which it ran
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
    """Write the metrics of one model under one protocol, in one step.

    They replace those of an earlier measurement that agrees in all of :data:`KEY`.

    Parameters
    ----------
    files : Run or Path
        the run, or a folder of measurements
    table : DataFrame
        metrics to store, indexed by their names, with columns ``value``, ``low`` and ``high`` (the
        ends of the interval, NaN without one); other columns are ignored
    **measured : Any
        the fields of :class:`Measured`

    Raises
    ------
    ValueError
        where a field is unknown, missing or of a wrong type
    KeyError
        where the table lacks a column
    """
    fields = Measured.of(measured, "record").model_dump()
    metrics = table[INTERVAL].astype(float).rename_axis("metric").reset_index()
    content = {**fields, "metrics": metrics.to_dict("records")}
    name = fingerprint_of([fields[column] for column in KEY])
    folder = files.results if isinstance(files, Run) else Path(files)
    write_json(folder / f"{name}.json", content)


def read_results(files: Run | Path) -> pd.DataFrame:
    """Read the results of a run that belong to its present models and data, or a whole table.

    Parameters
    ----------
    files : Run or Path
        a run, a folder of measurements, or a table of results, such as ``results.csv``. Of a run,
        rows are left out whose experiment is in no ``models/**/training.json`` of the run any more,
        or whose data is in no ``store.json``; of a path, no row is left out

    Returns
    -------
    Rows with the columns ``COLUMNS``, in the order of their measurement; none where nothing has
    been measured.

    Raises
    ------
    ValueError
        where a measurement is damaged, or the file is not a table of results
    """
    path = files.results if isinstance(files, Run) else Path(files)
    frame = _read_table(path) if path.is_file() else _read_measurements(path)
    if not isinstance(files, Run):
        return frame
    experiments = _fingerprints(files.models.glob("**/training.json"))
    stores = _fingerprints(files.folder.glob("**/store.json"))
    is_current = frame["experiment"].isin(experiments) & frame["data"].isin(stores)
    return frame[is_current].reset_index(drop=True)


def export(files: Run) -> None:
    """Write all results of a run to ``results.csv``, beside the folder of its measurements."""
    with folder_lock(files.results), atomic_write(files.results.with_suffix(".csv")) as partial:
        read_results(files.results).to_csv(partial, index=False)


def _read_measurements(folder):
    """Return the rows of all measurements of a folder."""
    rows = []
    for path in sorted(folder.glob("*.json"), key=os.path.getmtime):
        fields = read_json(path)
        metrics = fields.pop("metrics")
        rows += [fields | metric for metric in metrics]
    return pd.DataFrame(rows, columns=COLUMNS).astype(TYPES)


def _read_table(path):
    """Return the rows of a CSV file."""
    empty_is_missing = {name: [""] for name, kind in TYPES.items() if kind != "str"}
    try:
        frame = pd.read_csv(path, dtype=TYPES, keep_default_na=False, na_values=empty_is_missing)
        return frame[COLUMNS]
    except (ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is not a table of results: {reason}") from None


def _fingerprints(paths):
    """Return the fingerprints in JSON files, and "" for rows that have no fingerprint."""
    return {"", *(read_json(path)["fingerprint"] for path in paths)}


def wide_results(frame: pd.DataFrame, protocol: str, column: str = "value") -> pd.DataFrame:
    """Return the results of one protocol, one row per combination in KEY and one column per metric.

    Rows are sorted by split (test before dev), then by base, then by the first metric, the best
    first. The columns are ``split``, ``model``, ``label`` and ``base``, the metrics in the order in
    which they were recorded, and :data:`COUNTS`; columns other than metrics are left out where all
    their cells are empty.

    Parameters
    ----------
    frame : DataFrame
        rows of :func:`read_results`
    protocol : str
        the protocol whose rows are shown
    column : str
        the column of ``frame`` that gives the cells of the metrics, such as "value" or "low"
    """
    rows = frame[frame["protocol"] == protocol]
    rows = rows.assign(row=rows.groupby(KEY, dropna=False, sort=False).ngroup())
    metrics = list(rows["metric"].unique())
    cells = rows.pivot(index="row", columns="metric", values=column)[metrics]

    about = rows.drop_duplicates("row").set_index("row")
    score = about["value"].where(about["metric"].isin(metrics[:1]))
    about["score"] = score.where(about["metric"].isin(LOWER_IS_BETTER), -score)
    order = ["split", "base", "score", "model"]
    is_ascending = [name != "split" for name in order]  # "test" before "dev", against the alphabet
    about = about.sort_values(order, ascending=is_ascending)

    table = about[["split", "model", "label", "base"]].join(cells).join(about[COUNTS])
    is_filled = [name in metrics or not table[name].isin(["", pd.NA]).all() for name in table]
    return table.loc[:, is_filled].reset_index(drop=True)


def names_of_models(rows: pd.DataFrame) -> dict[str, str]:
    """Map each model of some results to its name: its stored label, else that of names.csv."""
    models = rows.drop_duplicates("model").set_index("model")
    names = {model: label(model) for model in models.index}
    if "label" in models:
        names |= models["label"][models["label"].fillna("") != ""].to_dict()
    return names


def select_results(
    results: pd.DataFrame, metric: str, key: Sequence[str] = ("model", "split")
) -> pd.DataFrame:
    """Select the rows of a tidy results frame with one metric, paired differences left out.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, metric`` and those of ``key``; rows with a ``base`` are
        paired differences
    metric : str
        the metric to select
    key : sequence of str
        columns that must tell any two of the selected rows apart

    Returns
    -------
    The rows, with the name of the system in ``system``, and once more the columns ``value``,
    ``low`` and ``high`` under the name of the metric: ``MRR, MRR_low, MRR_high``.

    Raises
    ------
    ValueError
        where no row has the metric, or two rows have the same values in the columns of ``key``
    """
    rows = results[results["metric"] == metric]
    if "base" in rows:
        rows = rows[rows["base"].fillna("") == ""]
    if rows.empty or rows.duplicated(list(key)).any():
        raise ValueError(
            f"results have none or several rows of the metric {metric!r} for each "
            f"{' and '.join(key)}: choose one seed, or another metric"
        )
    names = names_of_models(rows)
    seeds = rows.drop_duplicates("model").get("seed", [0] * len(names))
    systems = rows["model"].map(dict(zip(names, distinct(names.values(), seeds))))
    interval = {metric: rows["value"], f"{metric}_low": rows["low"], f"{metric}_high": rows["high"]}
    return rows.assign(system=systems, **interval)


def best_row(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Return the row of the best value: the lowest of an error metric, else the highest.

    Parameters
    ----------
    rows : DataFrame
        rows with a column ``value``; of equal values the first row is returned
    metric : str
        identifier of the metric that the values are of
    """
    if metric in LOWER_IS_BETTER:
        return rows.iloc[rows["value"].argmin()]
    return rows.iloc[rows["value"].argmax()]


def format_interval(value: float, low: float, high: float, sign: str = "") -> str:
    """Format a number with its interval: "0.690 (0.658-0.722)".

    Parameters
    ----------
    value : float
        the number; NaN gives an empty text, and a whole number above 1 is written without decimals
        and without its interval
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
