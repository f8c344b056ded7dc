"""Figures of losses: which pairs a loss acts on, and what a step costs."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.runs.names import label
from helpers.figures.style import COLOURS, DARK, coloured, state, words

ACTS = 1e-6  # a pair with a smaller derivative is left alone
PULLED, PUSHED = ("pulled together", COLOURS[0], -1), ("pushed apart", COLOURS[1], 1)


def loss_picture(loss: str, points: np.ndarray, labels: np.ndarray, pairs: np.ndarray, vectors: int = 0,
                 note: str = "") -> go.Figure:  # fmt: skip
    """Which pairs a loss acts on, and where the points go.

    A line is the wider the larger the derivative of its pair; an arrow is the sum of a point's pairs, along the
    circle. Widths and lengths are relative to the largest of the picture.

    loss : its identifier. points : (N, 2), length 1. labels : (N,) from 0.
    pairs : (N, N), derivative of the loss by the cosine of each pair: below 0 it pulls, above it pushes.
    vectors : the last points that are a loss's own class vectors, drawn as diamonds.
    """
    figure = go.Figure(layout={"width": 600, "height": 500, "legend_y": 0})
    angle = np.linspace(0, 2 * np.pi, 181)
    figure.add_scatter(x=np.cos(angle), y=np.sin(angle), mode="lines", line={"color": "#dddddd"}, showlegend=False)
    largest = np.abs(pairs).max() or 1.0
    for name, colour, sign in (PULLED, PUSHED):
        figure.add_scatter(x=[None], y=[None], mode="lines", name=name, line={"color": colour, "width": 4})
        for i, j in zip(*np.nonzero(np.triu(sign * pairs) > 0.005 * largest)):
            figure.add_scatter(x=points[[i, j], 0], y=points[[i, j], 1], mode="lines", opacity=0.7, showlegend=False,
                               line={"color": colour, "width": 0.7 + 6 * abs(pairs[i, j]) / largest})  # fmt: skip
    force = -pairs @ points
    force -= (force * points).sum(1, keepdims=True) * points
    force *= 0.45 / (np.linalg.norm(force, axis=1).max() or 1.0)
    for (x, y), (dx, dy) in zip(points, force):
        if np.hypot(dx, dy) > 0.08:  # a shorter one would be hidden by its point
            figure.add_annotation(x=x + dx, y=y + dy, ax=x, ay=y, xref="x", yref="y", axref="x", ayref="y", text="",
                                  arrowhead=2, arrowwidth=1.5, arrowcolor=DARK)  # fmt: skip
    is_vector = np.arange(len(points)) >= len(points) - vectors
    for author in np.unique(labels):
        own = labels == author
        figure.add_scatter(x=points[own, 0], y=points[own, 1], mode="markers", name=f"author {author + 1}",
                           marker={"size": 15, "color": COLOURS[(author + 2) % len(COLOURS)],
                                   "symbol": np.where(is_vector, "diamond", "circle")[own]})  # fmt: skip
    hidden = {"visible": False, "range": [-1.3, 1.3]}
    figure.update_xaxes(**hidden).update_yaxes(**hidden, scaleanchor="x")
    upper, same = np.triu(np.ones(pairs.shape, bool), 1), labels[:, None] == labels[None, :]
    if vectors:
        acts, crossing = upper & (np.abs(pairs) > ACTS), is_vector[:, None] != is_vector[None, :]
        finding = f"acts on {(acts & ~crossing).sum()} pairs of samples, {(acts & crossing).sum()} with a class vector"
    else:
        finding = (f"pulls {(upper & (pairs < -ACTS)).sum()} of {(upper & same).sum()} pairs, "
                   f"pushes {(upper & (pairs > ACTS)).sum()} of {(upper & ~same).sum()}")  # fmt: skip
    return state(figure, f"{label(loss)} {finding}", note)


def growth(costs: pd.DataFrame, against: str, note: str = "") -> go.Figure:
    """What a step takes as something grows, log scales. costs: columns ``loss``, ``seconds``, ``MB``, ``against``."""
    figure = make_subplots(1, 2, subplot_titles=["time of a step", "memory of a step"])
    ends, slower = costs[against].agg(["min", "max"]), {}
    for name, colour in coloured(costs.loss).items():
        part = costs[costs.loss == name].sort_values(against)
        style = {"name": words(name), "mode": "lines+markers", "line_color": colour, "legendgroup": words(name)}
        figure.add_scatter(x=part[against], y=part.seconds * 1000, **style, row=1, col=1)
        figure.add_scatter(x=part[against], y=part.MB, **style, showlegend=False, row=1, col=2)
        slower[name] = part.MB.iloc[-1] / part.MB.iloc[0]
    figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title="time, ms", col=1).update_yaxes(title="memory, MB", col=2)
    figure.update_xaxes(type="log", title=words(against), tickvals=sorted(costs[against].unique()))
    most, least = max(slower, key=slower.get), min(slower, key=slower.get)
    more, less = (f"{round(slower[name], 1):.3g}-fold" for name in (most, least))
    finding = (f"from {ends['min']:,} to {ends['max']:,} {label(against)} the memory of {label(most)} grows {more}, "
               f"that of {label(least)} {less}")  # fmt: skip
    return state(figure, finding, note)
