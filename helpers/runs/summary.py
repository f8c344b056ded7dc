"""Show the results of a run in words: findings, comparison with the papers, and tables."""

import json
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path

import pandas as pd
from jinja2 import Template
from pandas.io.formats.style import Styler

from ..core.names import GLOSSARY, label
from ..core.paths import Run
from ..core.results import (
    INTERVAL,
    format_interval,
    names_of_models,
    read_results,
    wide_results,
)
from ..published.claims import AGREE, MARGIN, WORDS, verdicts


def styled(frame: pd.DataFrame, number_format: str | None = None) -> Styler:
    """Style a table for a notebook, with all text escaped.

    Names of authors and topics may hold HTML, which ``frame.style`` alone would leave as it is, in
    cells and in the names of rows and columns.

    Parameters
    ----------
    frame : DataFrame
        the table; missing values become empty cells
    number_format : str or None
        format of the numbers, such as "{:.1%}"; by default they have three digits
    """
    # these classes keep MathJax from typesetting "$" in a name as a formula
    styler = frame.style.set_table_attributes('class="tex2jax_ignore mathjax_ignore"')
    for axis in (0, 1):
        styler = styler.format_index(precision=3, escape="html", axis=axis)
    return styler.format(number_format, precision=3, na_rep="", escape="html")


def difference_table(rows: pd.DataFrame, index: list[str], metrics: list[str]) -> pd.DataFrame:
    """Return paired differences with their intervals as texts, one column for each metric.

    Parameters
    ----------
    rows : DataFrame
        tidy rows of results; those without a ``base`` are left out
    index : list of str
        columns that tell the rows of the table apart, such as ``label`` and ``base``
    metrics : list of str
        metrics to show, without "_difference"
    """
    rows = rows[rows["base"] != ""]
    cells = [format_interval(*row, sign="+") for row in rows[INTERVAL].to_numpy()]
    rows = rows.assign(cell=cells, metric=rows["metric"].str.removesuffix("_difference"))
    table = rows.pivot(index=index, columns="metric", values="cell")[metrics]
    return table.rename_axis(columns=None)


def folded(title: str, frame: pd.DataFrame) -> "HTML":  # noqa: F821
    """Return a table for a notebook, folded under its title, with all text escaped.

    Parameters
    ----------
    title : str
        title, which is all that is shown until the table is unfolded
    frame : DataFrame
        the table; its index is not shown
    """
    from IPython.display import HTML

    table = styled(frame).hide(axis="index").to_html()
    return HTML(f"<details><summary>{escape(title)}</summary>{table}</details>")


def readable(
    frame: pd.DataFrame, hide: tuple[str, ...] = (), names: dict[str, str] | None = None
) -> pd.DataFrame:
    """Replace the identifiers of a table of results by words.

    Parameters
    ----------
    frame : DataFrame
        result of :func:`helpers.core.results.wide_results`
    hide : tuple of str
        columns to leave out; those that the table lacks are ignored
    names : dict, optional
        name of each model; by default those of the table's rows

    Returns
    -------
    The table with the name of the system in a first column, in place of ``model`` and ``label``.
    """
    names = names or names_of_models(frame)
    words = frame.drop(columns=[name for name in ("model", "label", *hide) if name in frame])
    words.insert(0, "system", frame["model"].map(names))
    if "split" in words:
        words["split"] = words["split"].map(label)
    if "base" in words:
        words["base"] = [names.get(base, label(base)) for base in words["base"]]
    return words.rename(columns=label)


def results_html(files: Run, **about: object) -> str:
    """Return HTML with the results of a run: findings, comparison with the papers, all tables.

    Findings are those of the lowest seed; the tables hold all seeds.

    Parameters
    ----------
    files : Run
        the run whose results are shown
    **about : object
        ``run``, its name; ``stages``, its stages; and ``seconds``, the duration of each stage
    """
    results = read_results(files)
    with_value = results[results["value"].notna()]
    rows = json.loads(with_value.to_json(orient="records"))
    seeds = [row["seed"] for row in rows if row["seed"] is not None]
    first_seed = min(seeds, default=None)  # chosen by number, not by its results
    rows = [row for row in rows if row["seed"] in (first_seed, None)]
    template = Path(__file__).with_name("results.html").read_text("utf-8")
    return Template(template, autoescape=True).render(
        pick=partial(_pick, rows),
        tables=list(_tables(results)),
        claims=verdicts(results).to_dict("records"),
        interval=format_interval,
        label=label,
        glossary=GLOSSARY,
        words=WORDS,
        agree=AGREE,
        margin=MARGIN,
        **about,
    )


def _pick(rows: list[dict], **cells: object) -> list[dict]:
    """Return the rows that hold the given values in the given columns."""
    return [row for row in rows if cells.items() <= row.items()]


def _tables(results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a title and a table of text for the models of each protocol, then the differences."""
    results = results.assign(sign=results["base"].ne("").map({True: "+", False: ""}))
    results["shown"] = [format_interval(*cell) for cell in results[[*INTERVAL, "sign"]].to_numpy()]
    for (sign, protocol), rows in results.groupby(["sign", "protocol"]):
        table = wide_results(rows, protocol, "shown").astype(object)
        title = label(protocol)
        if sign:
            title += ": differences from base"
        table = readable(table, names=names_of_models(results))
        yield title, table.where(table.notna(), "").astype(str)
