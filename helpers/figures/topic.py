"""Figures of topic regularisation (sawatphol2022): what the parts of the loss look like, and what embeddings encode."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy import stats

from helpers.runs.names import label
from helpers.figures.results import select, with_interval
from helpers.figures.style import GREY, coloured, escaped, state, whiskers, words


def heat_maps(panels: dict[str, np.ndarray], names: list[str], authors: np.ndarray, note: str = "") -> go.Figure:
    """Square matrices (N, N) of the same rows, two by two, with their values; the diagonal is blank.

    The title says how well each tells pairs of one author from pairs of two, as the AUC of its values.

    panels : title -> matrix. names : of the N rows. authors : (N,), who wrote each.
    """
    rows = -(-len(panels) // 2)
    figure = make_subplots(rows, 2, subplot_titles=[escaped(name) for name in panels], horizontal_spacing=0.06,
                           vertical_spacing=0.2 / (rows + 1), shared_xaxes=True, shared_yaxes=True)  # fmt: skip
    shown, itself = [escaped(name) for name in names], np.eye(len(names), dtype=bool)
    same = np.asarray(authors)[:, None] == np.asarray(authors)[None, :]
    told = []
    for number, (name, matrix) in enumerate(panels.items()):
        row, column = divmod(number, 2)
        values = np.where(itself, np.nan, np.asarray(matrix, float))
        figure.add_heatmap(z=values, x=shown, y=shown, colorscale="Blues", showscale=False, row=row + 1, col=column + 1,
                           texttemplate="%{z:.2f}", textfont_size=9,
                           hovertemplate="%{y} - %{x}: %{z:.3f}<extra></extra>")  # fmt: skip
        one, two = values[same & ~itself], values[~same]
        told.append(f"{stats.mannwhitneyu(one, two).statistic / (len(one) * len(two)):.2f} ({name})")
    figure.update_yaxes(autorange="reversed").update_yaxes(title="text", col=1).update_xaxes(title="text", row=rows)
    figure.update_layout(width=900, height=140 + 350 * rows)
    return state(figure, f"a pair of one author is above a pair of two with probability {', '.join(told)}", note)


def difference_bars(differences: pd.DataFrame, metric: str, note: str = "") -> go.Figure:
    """Paired differences with their intervals, around a line at 0. The title counts those whose interval holds 0.

    differences : columns ``label, split, value, low, high``; a label says which model minus which.
    """
    rows = differences.assign(name=differences.label.map(escaped)).reset_index(drop=True)
    names = list(dict.fromkeys(rows.name))
    splits = coloured(dict.fromkeys(rows.split))
    figure = go.Figure(layout={"height": 190 + 26 * len(names) * len(splits)})
    for number, (split, colour) in enumerate(splits.items()):
        part = rows[rows.split == split]
        place = [names.index(name) + 0.3 * (number - (len(splits) - 1) / 2) for name in part.name]
        figure.add_scatter(x=part.value, y=place, mode="markers", name=words(split), error_x=whiskers(part),
                           marker={"color": colour, "size": 9})  # fmt: skip
    figure.add_vline(0, line_dash="dash", line_color=GREY)
    figure.update_yaxes(tickvals=[*range(len(names))], ticktext=names, autorange="reversed", title="model minus base")
    figure.update_xaxes(title=f"difference in {words(metric)}, with 95% intervals", tickformat="+.2f")
    holds = ((rows.low <= 0) & (rows.high >= 0)).sum()
    widest = rows.loc[rows.value.abs().idxmax()]
    finding = (f"{holds} of {len(rows)} paired differences in {label(metric)} hold 0 in their interval; the largest is "
               f"{with_interval(widest)}, {widest.label}, {label(widest.split)}")
    return state(figure, finding, note)


def probe_bars(results: pd.DataFrame, levels: dict[str, float] | None = None, note: str = "") -> go.Figure:
    """What a linear probe finds in frozen embeddings: one panel a metric, since accuracy and correlation differ.

    results : tidy rows, columns ``model, label, metric, value, low, high``; metrics such as "topic accuracy".
    levels : metric -> the score of knowing nothing, a dashed line.
    """
    metrics = list(dict.fromkeys(results.metric))
    figure = make_subplots(1, len(metrics), shared_yaxes=True, horizontal_spacing=0.05)
    keys = ("model", "split") if "split" in results else ("model",)
    for column, metric in enumerate(metrics, 1):
        rows = select(results, metric, keys)
        figure.add_bar(y=rows.name, x=rows.value, orientation="h", marker_color=coloured(metrics)[metric],
                       error_x=whiskers(rows), row=1, col=column)  # fmt: skip
        figure.update_xaxes(title=words(metric), rangemode="tozero", row=1, col=column)
        if metric in (levels or {}):
            figure.add_vline(levels[metric], line_dash="dash", line_color=GREY, row=1, col=column)
    figure.update_yaxes(autorange="reversed").update_yaxes(title="model", col=1)
    first = select(results, metrics[0], keys)
    least, most = first.loc[first.value.idxmin()], first.loc[first.value.idxmax()]
    finding = (f"{label(metrics[0])} of a probe goes from {with_interval(least)} ({least.plain}) "
               f"to {with_interval(most)} ({most.plain})")  # fmt: skip
    return state(figure.update_layout(showlegend=False, height=190 + 30 * len(first)), finding, note)
