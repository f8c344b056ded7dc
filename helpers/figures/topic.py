"""Figures of topic regularisation (sawatphol2022): matrices, differences, and linear probes."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from sklearn.metrics import roc_auc_score

from ..core.names import label
from ..core.results import INTERVAL, format_interval
from .results import select_results
from .style import (
    DASHED,
    colour_map,
    error_bars,
    escape_html,
    html_label,
    set_title,
)

ROW_HEIGHT = 28  # pixels of one system on one split
PANEL_GAP = 48  # pixels between two panels, for the title of the lower one
DODGE = 0.3  # distance between two splits, as a share of that between two systems


def heat_maps(matrices: dict[str, np.ndarray], names: list[str], authors: np.ndarray) -> go.Figure:
    """Draw matrices of pairs of texts as heat maps with their values, in two columns.

    The diagonal is left blank. The title gives, for each matrix, the AUC with which its values tell
    same-author pairs from different-author pairs.

    Parameters
    ----------
    matrices : dict
        title of a matrix -> (N, N), one value for each pair of N texts
    names : list of str
        names of the N texts
    authors : (N,)
        author of each text; at least one pair must have the same author, and one different ones
    """
    rows = math.ceil(len(matrices) / 2)
    figure = make_subplots(
        rows,
        2,
        subplot_titles=[escape_html(name) for name in matrices],
        horizontal_spacing=0.06,
        vertical_spacing=0.2 / (rows + 1),
        shared_xaxes=True,
        shared_yaxes=True,
    )
    shown_names = [escape_html(name) for name in names]
    authors = np.asarray(authors)
    is_same = authors[:, None] == authors
    is_pair = ~np.eye(len(names), dtype=bool)
    aucs = []
    for number, (name, matrix) in enumerate(matrices.items()):
        values = np.where(is_pair, np.asarray(matrix, float), np.nan)
        figure.add_heatmap(
            z=values,
            x=shown_names,
            y=shown_names,
            colorscale="Blues",
            showscale=False,
            texttemplate="%{z:.2f}",
            textfont_size=9,
            hovertemplate="%{y} - %{x}: %{z:.3f}<extra></extra>",
            row=number // 2 + 1,
            col=number % 2 + 1,
        )
        aucs.append(f"{roc_auc_score(is_same[is_pair], values[is_pair]):.2f} ({name})")
    figure.update_yaxes(autorange="reversed")
    figure.update_yaxes(title="text", col=1).update_xaxes(title="text", row=rows)
    figure.update_layout(width=900, height=140 + 350 * rows)
    finding = "AUC of same-author pairs against different-author pairs: "
    return set_title(figure, finding + ", ".join(aucs))


def difference_bars(differences: pd.DataFrame, metric: str, note: str = "") -> go.Figure:
    """Draw paired differences with their intervals, in one panel per subtracted system.

    The title counts the differences whose interval excludes 0, and names the largest of these, or
    the largest of all where there is none.

    Parameters
    ----------
    differences : DataFrame
        one row per difference; columns ``label`` (name of the system), ``base`` (identifier of the
        system that is subtracted from it), ``split, value, low, high``
    metric : str
        metric that the values are differences of
    note : str
        text in brackets after the title
    """
    rows = differences.assign(name=differences.label.map(escape_html)).reset_index(drop=True)
    bases = list(dict.fromkeys(rows.base))
    systems = [list(dict.fromkeys(rows.name[rows.base == base])) for base in bases]
    sizes = [len(names) for names in systems]
    colours = colour_map(rows.split)
    height = ROW_HEIGHT * sum(sizes) * len(colours) + PANEL_GAP * (len(bases) - 1)
    figure = make_subplots(
        len(bases),
        1,
        shared_xaxes=True,
        subplot_titles=[f"minus {html_label(base)}" for base in bases],
        row_heights=sizes,
        vertical_spacing=PANEL_GAP / height if len(bases) > 1 else 0,
    )
    for panel, (base, names) in enumerate(zip(bases, systems), 1):
        for number, (split, colour) in enumerate(colours.items()):
            points = rows[(rows.base == base) & (rows.split == split)]
            dodge = DODGE * (number - (len(colours) - 1) / 2)
            figure.add_scatter(
                x=points.value,
                y=points.name.map(names.index) + dodge,
                mode="markers",
                name=html_label(split),
                error_x=error_bars(points),
                marker={"color": colour, "size": 9},
                legendgroup=html_label(split),
                showlegend=panel == 1,
                row=panel,
                col=1,
            )
        ticks = {"tickvals": list(range(len(names))), "ticktext": names}
        figure.update_yaxes(**ticks, range=[len(names) - 0.5, -0.5], title="system", row=panel)
    figure.add_vline(0, **DASHED)
    figure.update_xaxes(tickformat="+.2f")
    title = f"difference in {html_label(metric)}, with 95% intervals"
    figure.update_xaxes(title=title, row=len(bases))
    figure.update_layout(height=220 + height, showlegend=len(colours) > 1)
    return set_title(figure, _count_of_differences(rows, metric), note)


def _count_of_differences(rows: pd.DataFrame, metric: str) -> str:
    """Say how many intervals exclude 0, and which of these differences, else of all, is largest."""
    told_apart = rows[(rows.low > 0) | (rows.high < 0)]
    count = len(told_apart) or "none"
    verb = "is" if len(told_apart) < 2 else "are"
    if told_apart.empty:
        told_apart = rows
    top = told_apart.loc[told_apart.value.abs().idxmax()]
    return (
        f"{count} of {len(rows)} differences in {label(metric)} {verb} distinguishable from 0; "
        f"the largest, on {label(top.split)}, is “{top.label}” minus “{label(top.base)}”: "
        f"{format_interval(*top[INTERVAL], '+')}"
    )


def probe_bars(
    results: pd.DataFrame, levels: dict[str, float] | None = None, note: str = ""
) -> go.Figure:
    """Draw what a linear probe finds in frozen embeddings, in one panel per metric.

    The title speaks of the first metric.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, metric, value, low, high``; metrics such as
        "topic accuracy"
    levels : dict or None
        metric -> score of a probe that knows nothing about the texts, drawn as a dashed line
    note : str
        text in brackets after the title
    """
    colours = colour_map(results.metric)
    key = ("model", "split") if "split" in results else ("model",)
    rows = {metric: select_results(results, metric, key) for metric in colours}
    figure = make_subplots(1, len(colours), shared_yaxes=True, horizontal_spacing=0.05)
    for column, (metric, colour) in enumerate(colours.items(), 1):
        bars = rows[metric]
        style = {"orientation": "h", "marker_color": colour, "error_x": error_bars(bars)}
        figure.add_bar(y=bars.name, x=bars.value, **style, row=1, col=column)
        figure.update_xaxes(title=html_label(metric), rangemode="tozero", col=column)
        if levels and metric in levels:
            figure.add_vline(levels[metric], **DASHED, row=1, col=column)
    figure.update_yaxes(autorange="reversed").update_yaxes(title="system", col=1)

    metric, first = next(iter(rows.items()))
    figure.update_layout(showlegend=False, height=190 + 30 * len(first))
    highest = first.loc[first.value.idxmax()]
    lowest = first.loc[first.value.idxmin()]
    finding = (
        f"{highest.plain} has the highest {label(metric)}, {format_interval(*highest[INTERVAL])}; "
        f"{lowest.plain} has the lowest, {format_interval(*lowest[INTERVAL])}"
    )
    return set_title(figure, finding, note)
