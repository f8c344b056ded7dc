"""Figures of verification (tyo2021): what scores are given to pairs of one author and of two, and where to cut."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from helpers.figures.plots import COLOURS


def score_histograms(scores: np.ndarray, same: np.ndarray, title: str = "scores of pairs") -> go.Figure:
    """tyo2021 Figure 2a. scores (N,) in [0, 1], same (N,) bool: shares of each kind of pairs; at 0.5 no answer."""
    figure = go.Figure(layout={"title": title, "barmode": "overlay", "bargap": 0})
    for name, chosen in (("one author", np.asarray(same, bool)), ("two authors", ~np.asarray(same, bool))):
        count, edges = np.histogram(np.asarray(scores)[chosen], np.linspace(0, 1, 52))  # an odd number: 0.5 is inside
        figure.add_bar(x=(edges[1:] + edges[:-1]) / 2, y=count / max(count.sum(), 1), opacity=0.6,
                       name=f"{name}, {count.sum():,} pairs")  # fmt: skip
    figure.add_vline(0.5, line_dash="dash", line_color="#999999")
    figure.update_xaxes(title="score", range=[0, 1])
    return figure.update_yaxes(title="share of these pairs", tickformat=".0%")


def threshold_surface(table: pd.DataFrame, title: str = "overall by the two thresholds") -> go.Figure:
    """tyo2021 Figure 2b. table: columns ``lower``, ``upper``, ``overall``, one row per combination, at least one.

    The first row of the highest overall is marked and named in the title.
    """
    grid, best = table.pivot(index="upper", columns="lower", values="overall"), table.loc[table.overall.idxmax()]
    title = f"{title}: {best.overall:.3f} at {best.lower:.3f}, {best.upper:.3f}"
    figure = go.Figure(layout={"title": title, "width": 620, "height": 540})
    figure.add_heatmap(x=grid.columns, y=grid.index, z=grid, colorscale="Viridis", colorbar_title="overall",
                       hovertemplate="lower %{x:.3f}, upper %{y:.3f}: %{z:.3f}<extra></extra>")  # fmt: skip
    figure.add_scatter(x=[best.lower], y=[best.upper], mode="markers", showlegend=False,
                       marker={"color": COLOURS[1], "size": 12, "line": {"color": "white", "width": 2}})  # fmt: skip
    figure.update_xaxes(title="lower threshold")
    return figure.update_yaxes(title="upper threshold")
