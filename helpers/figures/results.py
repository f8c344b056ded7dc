"""Figures of the table of results: select the rows of one metric, and draw one bar per system."""

import pandas as pd
import plotly.graph_objects as go

from ..core.names import distinct, label
from ..core.results import INTERVAL, LOWER_IS_BETTER, format_interval, names_of_models
from .style import colour_map, error_bars, escape_html, html_label, set_title


def select_results(
    results: pd.DataFrame, metric: str, key: tuple[str, ...] = ("model", "split")
) -> pd.DataFrame:
    """Select the rows of a tidy results frame with one metric, paired differences left out.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, metric`` and those of ``key``; rows with a ``base`` are
        paired differences
    metric : str
        the metric to select
    key : tuple of str
        columns that must tell any two of the selected rows apart

    Returns
    -------
    The rows, with two more columns that hold the name of the system: ``plain`` for titles, and
    ``name``, escaped, for traces and axes.

    Raises
    ------
    ValueError
        where no row has the metric, or two rows have the same values in the columns of ``key``
    """
    rows = results[results.metric == metric]
    if "base" in rows:
        rows = rows[rows.base.fillna("") == ""]
    if rows.empty:
        metrics = ", ".join(sorted(set(results.metric)))
        raise ValueError(f"no row of the metric {metric!r}: results hold {metrics}")
    columns = list(key)
    twice = rows[rows.duplicated(columns)]
    if len(twice):
        row = ", ".join(str(cell) for cell in twice.iloc[0][columns])
        raise ValueError(f"{metric} of {row} is there twice: choose one seed")

    names = names_of_models(rows)
    models = rows.drop_duplicates("model")
    seeds = models.seed if "seed" in models else [0] * len(models)
    plain = rows.model.map(dict(zip(names, distinct(names.values(), seeds))))
    return rows.assign(plain=plain, name=plain.map(escape_html))


def best_system(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Return the row of the best value: the lowest of an error metric, else the highest.

    Parameters
    ----------
    rows : DataFrame
        rows with a column ``value``; of equal values the first row is returned
    metric : str
        identifier of the metric that the values are of
    """
    if metric in LOWER_IS_BETTER:
        return rows.loc[rows.value.idxmin()]
    return rows.loc[rows.value.idxmax()]


def result_bars(results: pd.DataFrame, metric: str, note: str = "", split: str = "") -> go.Figure:
    """Draw one bar per system and split, with its interval, the best system on top.

    The order and the title are those of one split: test if it is there, else the first split that
    is not dev, else dev. Systems without a value for this split are at the bottom.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, split, metric, value, low, high`` and optionally
        ``targets``, the number of targets, for the title
    metric : str
        the metric to draw
    note : str
        text in brackets after the title
    split : str
        the only split to draw; by default all are drawn
    """
    if split:
        results = results[results.split == split]
    rows = select_results(results, metric)
    splits = list(dict.fromkeys(rows.split))
    judges = [name for name in ("test", *splits) if name in splits and name != "dev"]
    is_judged = rows.split == (judges or ["dev"])[0]
    judged = rows[is_judged].sort_values("value", ascending=metric not in LOWER_IS_BETTER)
    only_elsewhere = rows.name[~rows.name.isin(judged.name)]
    order = list(dict.fromkeys([*only_elsewhere, *judged.name]))

    height = 190 + 34 * len(order) * len(splits) ** 0.5
    figure = go.Figure(layout={"barmode": "group", "height": height})
    for name, colour in colour_map(splits).items():
        bars = rows[rows.split == name].set_index("name").reindex(order)
        figure.add_bar(
            y=order,
            x=bars.value,
            name=html_label(name),
            orientation="h",
            marker_color=colour,
            error_x=error_bars(bars),
        )
    axis = html_label(metric)
    if error_bars(rows):
        axis += ", with 95% intervals"
    figure.update_xaxes(title=axis, rangemode="tozero").update_yaxes(title="system")
    figure.update_layout(legend_traceorder="reversed", showlegend=len(splits) > 1)

    top = best_system(judged, metric)
    finding = f"{top.plain} is best: {label(metric)} {format_interval(*top[INTERVAL])}"
    finding += f", {label(top.split)}"
    if pd.notna(top.get("targets")):
        finding += f", {top.targets:,.0f} targets"
    return set_title(figure, finding, note)
