"""Figures of topic regularisation (sawatphol2022): what the parts of the loss look like, and what embeddings encode."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy import stats

from helpers.core.names import label
from helpers.core.results import format_interval
from helpers.figures.results import select_results, with_interval
from helpers.figures.style import GREY, colour_map, error_bars, escape_html, html_label, set_title


def heat_maps(
    panels: dict[str, np.ndarray], names: list[str], authors: np.ndarray, note: str = ""
) -> go.Figure:
    """Draw square matrices (N, N) of the same rows, two by two, with their values; the diagonal is blank.

    The title says how well each tells same-author pairs from different-author pairs, as the AUC of its values.

    panels : title -> matrix. names : of the N rows. authors : (N,), who wrote each.
    """
    rows = -(-len(panels) // 2)
    figure = make_subplots(rows, 2, subplot_titles=[escape_html(name) for name in panels], horizontal_spacing=0.06,
                           vertical_spacing=0.2 / (rows + 1), shared_xaxes=True, shared_yaxes=True)  # fmt: skip
    shown, itself = [escape_html(name) for name in names], np.eye(len(names), dtype=bool)
    same = np.asarray(authors)[:, None] == np.asarray(authors)[None, :]
    told = []
    for number, (name, matrix) in enumerate(panels.items()):
        row, column = divmod(number, 2)
        values = np.where(itself, np.nan, np.asarray(matrix, float))
        figure.add_heatmap(z=values, x=shown, y=shown, colorscale="Blues", showscale=False, row=row + 1, col=column + 1,
                           texttemplate="%{z:.2f}", textfont_size=9,
                           hovertemplate="%{y} - %{x}: %{z:.3f}<extra></extra>")  # fmt: skip
        one, two = values[same & ~itself], values[~same]
        told.append(
            f"{stats.mannwhitneyu(one, two).statistic / (len(one) * len(two)):.2f} ({name})"
        )
    figure.update_yaxes(autorange="reversed").update_yaxes(title="text", col=1).update_xaxes(
        title="text", row=rows
    )
    figure.update_layout(width=900, height=140 + 350 * rows)
    finding = (
        f"a same-author pair is above a different-author pair with probability {', '.join(told)}"
    )
    return set_title(figure, finding, note)


ROW_HEIGHT = 28  # pixels of one system on one split
PANEL_GAP = 48  # pixels between two panels, for the title of the lower one


def difference_bars(differences: pd.DataFrame, metric: str, note: str = "") -> go.Figure:
    """Draw paired differences with their intervals, around a line at 0; one panel a base, which its title names.

    The title counts the differences whose interval excludes 0, and names the largest of these.

    differences : columns ``label, base, split, value, low, high``; base is the system that is subtracted.
    """
    rows = differences.assign(name=differences.label.map(escape_html)).reset_index(drop=True)
    splits = colour_map(dict.fromkeys(rows.split))
    systems = {
        base: list(dict.fromkeys(part.name)) for base, part in rows.groupby("base", sort=False)
    }
    sizes = [len(names) for names in systems.values()]
    drawn_height = ROW_HEIGHT * sum(sizes) * len(splits) + PANEL_GAP * (len(systems) - 1)
    gap = PANEL_GAP / drawn_height if len(systems) > 1 else 0
    figure = make_subplots(
        len(systems), 1, shared_xaxes=True, subplot_titles=[f"minus {html_label(base)}" for base in systems],
        row_heights=sizes, vertical_spacing=gap)  # fmt: skip
    for panel, (base, names) in enumerate(systems.items(), 1):
        for number, (split, colour) in enumerate(splits.items()):
            part = rows[(rows.base == base) & (rows.split == split)]
            beside = 0.3 * (number - (len(splits) - 1) / 2)
            place = [names.index(name) + beside for name in part.name]
            figure.add_scatter(x=part.value, y=place, mode="markers", name=html_label(split), error_x=error_bars(part),
                               marker={"color": colour, "size": 9}, legendgroup=html_label(split), showlegend=panel == 1,
                               row=panel, col=1)  # fmt: skip
        figure.update_yaxes(tickvals=[*range(len(names))], ticktext=names, range=[len(names) - 0.5, -0.5],
                            title="system", row=panel, col=1)  # fmt: skip
    figure.add_vline(0, line_dash="dash", line_color=GREY)
    figure.update_xaxes(tickformat="+.2f")
    figure.update_xaxes(
        title=f"difference in {html_label(metric)}, with 95% intervals", row=len(systems), col=1
    )
    figure.update_layout(height=220 + drawn_height, showlegend=len(splits) > 1)
    return set_title(figure, _count_of_differences(rows, metric), note)


def _count_of_differences(rows: pd.DataFrame, metric: str) -> str:
    """Say how many intervals exclude 0, and which difference of these is the largest."""
    excludes_zero = (rows.low > 0) | (rows.high < 0)
    if not excludes_zero.any():
        widest = rows.loc[rows.value.abs().idxmax()]
        count = f"none of {len(rows)} differences in {label(metric)} is distinguishable from 0"
    else:
        told_apart = rows[excludes_zero]
        widest = told_apart.loc[told_apart.value.abs().idxmax()]
        verb = "is" if len(told_apart) == 1 else "are"
        count = f"{len(told_apart)} of {len(rows)} differences in {label(metric)} {verb} distinguishable from 0"
    size = format_interval(widest.value, widest.low, widest.high, "+")
    return f"{count}; the largest is {widest.label} minus {label(widest.base)} on {label(widest.split)}: {size}"


def probe_bars(
    results: pd.DataFrame, levels: dict[str, float] | None = None, note: str = ""
) -> go.Figure:
    """Draw what a linear probe finds in frozen embeddings: one panel a metric, since accuracy and correlation differ.

    results : tidy rows, columns ``model, label, metric, value, low, high``; metrics such as "topic accuracy".
    levels : metric -> the score of knowing nothing, a dashed line.
    """
    metrics = list(dict.fromkeys(results.metric))
    figure = make_subplots(1, len(metrics), shared_yaxes=True, horizontal_spacing=0.05)
    keys = ("model", "split") if "split" in results else ("model",)
    for column, metric in enumerate(metrics, 1):
        rows = select_results(results, metric, keys)
        figure.add_bar(y=rows.name, x=rows.value, orientation="h", marker_color=colour_map(metrics)[metric],
                       error_x=error_bars(rows), row=1, col=column)  # fmt: skip
        figure.update_xaxes(title=html_label(metric), rangemode="tozero", row=1, col=column)
        if metric in (levels or {}):
            figure.add_vline(levels[metric], line_dash="dash", line_color=GREY, row=1, col=column)
    figure.update_yaxes(autorange="reversed").update_yaxes(title="system", col=1)
    first = select_results(results, metrics[0], keys)
    least, most = first.loc[first.value.idxmin()], first.loc[first.value.idxmax()]
    finding = (
        f"{most.plain} has the highest {label(metrics[0])}, {with_interval(most)}; "
        f"{least.plain} has the lowest, {with_interval(least)}"
    )
    return set_title(
        figure.update_layout(showlegend=False, height=190 + 30 * len(first)), finding, note
    )
