"""Figures of topic regularisation (sawatphol2022): what the parts of the loss look like, and what embeddings encode."""

from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.figures.plots import COLOURS


def heat_maps(panels: dict[str, np.ndarray], labels: list[str], title: str = "") -> go.Figure:
    """Four square matrices (N, N) side by side, two by two, with their values; the diagonal is blank."""
    figure = make_subplots(2, 2, subplot_titles=[escape(name) for name in panels], horizontal_spacing=0.06,
                           vertical_spacing=0.1, shared_xaxes=True, shared_yaxes=True)  # fmt: skip
    shown = [escape(label) for label in labels]
    for number, matrix in enumerate(panels.values()):
        row, column = divmod(number, 2)
        values = np.where(np.eye(len(labels), dtype=bool), np.nan, np.asarray(matrix, float))
        figure.add_heatmap(z=values, x=shown, y=shown, colorscale="Blues", showscale=False, row=row + 1, col=column + 1,
                           texttemplate="%{z:.2f}", textfont_size=9,
                           hovertemplate="%{y} - %{x}: %{z:.3f}<extra></extra>")  # fmt: skip
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(title=escape(title), width=860, height=780)


def probe_bars(table: pd.DataFrame, title: str = "what a linear probe finds") -> go.Figure:
    """table: index the methods, one column of scores per probe."""
    figure = go.Figure(layout={"title": escape(title), "barmode": "group"})
    for number, name in enumerate(table.columns):
        figure.add_bar(x=[escape(method) for method in table.index], y=table[name], name=escape(name),
                       marker_color=COLOURS[number % len(COLOURS)])  # fmt: skip
    return figure.update_yaxes(title="accuracy, correlation", rangemode="tozero")


def retrieval_bars(results: pd.DataFrame, metric: str, title: str = "retrieval") -> go.Figure:
    """Columns ``model``, ``split`` and the metric with ``_low`` and ``_high``; whiskers are 95%. One row each."""
    figure = go.Figure(layout={"title": escape(title), "barmode": "group"})
    for name, part in results.groupby("split", sort=False):
        figure.add_bar(
            x=[escape(model) for model in part.model], y=part[metric], name=escape(name),
            error_y={"array": part[f"{metric}_high"] - part[metric], "arrayminus": part[metric] - part[f"{metric}_low"],
                     "thickness": 1},
        )  # fmt: skip
    return figure.update_yaxes(title=metric, rangemode="tozero")
