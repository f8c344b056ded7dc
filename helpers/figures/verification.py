"""Figures of verification (tyo2021): what scores are given to pairs of one author and of two, and where to cut."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from helpers.runs.names import label
from helpers.figures.results import select, with_interval
from helpers.figures.style import COLOURS, GREY, state, whiskers

BINS = 51  # an odd number: 0.5, which is no answer, is inside one


def score_histograms(scores: np.ndarray, same: np.ndarray, model: str, note: str = "") -> go.Figure:
    """tyo2021 Figure 2a: shares of both kinds of pairs by score; 0.5 is no answer.

    scores : (N,) in [0, 1]. same : (N,) bool. model : label of the model that gave them.
    """
    scores, same = np.asarray(scores), np.asarray(same, bool)
    figure = go.Figure(layout={"barmode": "overlay", "bargap": 0})
    for name, chosen in (("one author", same), ("two authors", ~same)):
        count, edges = np.histogram(scores[chosen], np.linspace(0, 1, BINS + 1))
        figure.add_bar(x=(edges[1:] + edges[:-1]) / 2, y=count / max(count.sum(), 1), opacity=0.6,
                       name=f"{name}, {count.sum():,} pairs")  # fmt: skip
    figure.add_vline(0.5, line_dash="dash", line_color=GREY)
    figure.update_xaxes(title="score, no unit", range=[0, 1])
    figure.update_yaxes(title="share of the pairs of a kind", tickformat=".0%")
    answered = scores != 0.5
    right = np.mean((scores > 0.5)[answered] == same[answered]) if answered.any() else 0.0
    finding = f"{label(model)} answers {answered.mean():.0%} of {len(scores):,} pairs, right on {right:.0%} of them"
    return state(figure, finding, note)


def threshold_surface(table: pd.DataFrame, model: str, note: str = "") -> go.Figure:
    """tyo2021 Figure 2b: overall by the two thresholds; the first highest is marked.

    table : columns ``lower``, ``upper``, ``overall``, one row a combination, at least one.
    """
    grid, top = table.pivot(index="upper", columns="lower", values="overall"), table.loc[table.overall.idxmax()]
    figure = go.Figure(layout={"width": 660, "height": 560})
    figure.add_heatmap(x=grid.columns, y=grid.index, z=grid, colorscale="Viridis", colorbar_title="overall",
                       hovertemplate="lower %{x:.3f}, upper %{y:.3f}: %{z:.3f}<extra></extra>")  # fmt: skip
    figure.add_scatter(x=[top.lower], y=[top.upper], mode="markers", showlegend=False,
                       marker={"color": COLOURS[1], "size": 12, "line": {"color": "white", "width": 2}})  # fmt: skip
    figure.update_xaxes(title="lower threshold, score").update_yaxes(title="upper threshold, score")
    finding = f"{label(model)}: overall is {top.overall:.3f} at best, at thresholds {top.lower:.3f} and {top.upper:.3f}"
    return state(figure, finding, note)


def hard_comparisons(results: pd.DataFrame, note: str = "") -> go.Figure:
    """AUC of all pairs beside that of the hard comparisons, a row a model; below the dotted line is worse than a coin.

    results : tidy rows of one split with the metrics ``AUC`` and ``hardest_AUC``, see :mod:`helpers.figures.results`.
    """
    hard, every = (select(results, metric).sort_values("value") for metric in ("hardest_AUC", "AUC"))
    figure = go.Figure(layout={"height": 170 + 42 * len(hard)})
    for rows, name, up in ((every.set_index("name").loc[hard.name].reset_index(), "all pairs", 0.12),
                           (hard, label("hardest_AUC"), -0.12)):  # fmt: skip
        figure.add_scatter(x=rows.value, y=np.arange(len(rows)) + up, mode="markers", name=name, marker_size=10,
                           error_x=whiskers(rows))  # fmt: skip
    figure.add_vline(0.5, line_dash="dot", line_color=GREY)
    figure.update_xaxes(title="AUC, with 95% intervals")
    figure.update_yaxes(title="model", tickvals=np.arange(len(hard)), ticktext=hard.name)
    top, fooled = hard.iloc[-1], (hard.value < 0.5).sum()
    finding = (f"{fooled} of {len(hard)} models {'is' if fooled == 1 else 'are'} worse than a coin on hard "
               f"comparisons, {top.plain} is best there: {with_interval(top)}")  # fmt: skip
    return state(figure, finding, note)
