"""Figures of the table of results: its rows of one metric, the best of them, and one bar a system."""

import pandas as pd
import plotly.graph_objects as go

from helpers.core.names import distinct, label
from helpers.core.results import LOWER_IS_BETTER
from helpers.figures.style import colour_map, error_bars, escape_html, html_label, set_title


def with_interval(row: pd.Series, digits: int = 2) -> str:
    """Write "0.71 (0.66 to 0.76)", or the value alone where it has no interval."""
    text = f"{row.value:.{digits}f}"
    return (
        text
        if pd.isna(row.get("low"))
        else f"{text} ({row.low:.{digits}f} to {row.high:.{digits}f})"
    )


def select_results(
    results: pd.DataFrame, metric: str, key: tuple[str, ...] = ("model", "split")
) -> pd.DataFrame:
    """Select the rows of a tidy results frame with one metric, paired differences left out.

    The name of the system is added: ``plain`` for a title, ``name`` escaped for traces and axes.
    Raises ValueError where no row is left, or one of ``key`` is there twice.
    """
    rows = results[results.metric == metric].copy()
    if "base" in rows:
        rows = rows[rows.base.fillna("") == ""]
    if rows.empty:
        raise ValueError(
            f"no row of the metric {metric!r}: results hold {', '.join(sorted(set(results.metric)))}"
        )
    if (twice := rows[rows.duplicated(list(key))]).size:
        raise ValueError(
            f"{metric} of {', '.join(map(str, twice.iloc[0][list(key)]))} is there twice: choose one seed"
        )
    plain = rows.model.map(_names_of_models(rows))
    return rows.assign(plain=plain, name=plain.map(escape_html))


def _names_of_models(rows: pd.DataFrame) -> dict[str, str]:
    """Map each model to its name, told apart from other models of the same name."""
    models = rows.drop_duplicates("model")
    names = [label(model) for model in models.model]
    if "label" in models:
        names = [stored or name for stored, name in zip(models.label.fillna(""), names)]
    seeds = models.seed if "seed" in models else [0] * len(models)
    return dict(zip(models.model, distinct(names, seeds)))


def best_system(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Return the row of the best value: the lowest of an error, the highest of anything else."""
    return rows.loc[rows.value.idxmin() if metric in LOWER_IS_BETTER else rows.value.idxmax()]


def result_bars(results: pd.DataFrame, metric: str, note: str = "", split: str = "") -> go.Figure:
    """Draw one bar a system and split, with its interval, the best on top.

    Parameters
    ----------
    results : tidy rows, columns ``model, label, split, metric, value, low, high`` and perhaps ``targets``.
    split : the only one that is drawn; by default all are, and the title speaks of test, or of the first but dev.
    """
    rows = select_results(results[results.split == split] if split else results, metric)
    splits = list(dict.fromkeys(rows.split))
    judged = "test" if "test" in splits else next((name for name in splits if name != "dev"), "dev")
    first = rows[rows.split == judged].sort_values("value", ascending=metric not in LOWER_IS_BETTER)
    order = list(dict.fromkeys([*rows.name[~rows.name.isin(first.name)], *first.name]))
    figure = go.Figure(
        layout={"barmode": "group", "height": 190 + 34 * len(order) * len(splits) ** 0.5}
    )
    for name, colour in colour_map(splits).items():
        part = rows[rows.split == name].set_index("name").reindex(order)
        figure.add_bar(y=order, x=part.value, name=html_label(name), orientation="h", marker_color=colour,
                       error_x=error_bars(part))  # fmt: skip
    figure.update_xaxes(
        title=f"{html_label(metric)}, with 95% intervals"
        if error_bars(rows)
        else html_label(metric)
    )
    figure.update_layout(xaxis_rangemode="tozero", yaxis_title="system", legend_traceorder="reversed",
                         showlegend=len(splits) > 1)  # fmt: skip
    top = best_system(first, metric)
    gallery = f", {top.targets:,.0f} targets" if pd.notna(top.get("targets")) else ""
    finding = (
        f"{top.plain} is best: {label(metric)} {with_interval(top)}, {label(top.split)}{gallery}"
    )
    return set_title(figure, finding, note)
