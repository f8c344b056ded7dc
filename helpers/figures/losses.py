"""Figures of losses: which pairs a loss acts on, and what a step costs."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.core.names import label
from helpers.figures.style import COLOURS, DARK, colour_map, html_label, set_title

ACTS = 1e-6  # a pair with a smaller derivative is left alone
UNCHANGED = 1.05  # memory that becomes fewer times as much stays the same
PULLED, PUSHED = ("pulled together", COLOURS[0], -1), ("pushed apart", COLOURS[1], 1)


def loss_picture(loss: str, points: np.ndarray, labels: np.ndarray, pairs: np.ndarray, vectors: int = 0,
                 note: str = "") -> go.Figure:  # fmt: skip
    """Draw which pairs a loss acts on, and where the points go.

    A line is the wider the larger the derivative of its pair; an arrow is the sum of a point's pairs, along the
    circle. Widths and lengths are relative to the largest of the picture.

    loss : its identifier, or its name with a setting, "Top-k, k = 2". points : (N, 2), length 1. labels : (N,) from 0.
    pairs : (N, N), derivative of the loss by the cosine of each pair: below 0 it pulls, above it pushes.
    vectors : the last points that are a loss's own class vectors, drawn as diamonds.
    """
    figure = go.Figure(layout={"width": 600, "height": 500, "legend_y": 0})
    angle = np.linspace(0, 2 * np.pi, 181)
    figure.add_scatter(
        x=np.cos(angle), y=np.sin(angle), mode="lines", line={"color": "#dddddd"}, showlegend=False
    )
    largest = np.abs(pairs).max() or 1.0
    for name, colour, sign in (PULLED, PUSHED):
        figure.add_scatter(
            x=[None], y=[None], mode="lines", name=name, line={"color": colour, "width": 4}
        )
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
    return set_title(figure, f"{label(loss)} {_what_it_does(labels, pairs, is_vector)}", note)


def _what_it_does(labels: np.ndarray, pairs: np.ndarray, is_vector: np.ndarray) -> str:
    """Count the pairs that a loss acts on, in words: by author, or where there are class vectors by kind of point."""
    each_once = np.triu(np.ones(pairs.shape, bool), 1)
    same_author = each_once & (labels[:, None] == labels[None, :])
    strangers = each_once & ~same_author
    acts = np.abs(pairs) > ACTS
    if is_vector.any():
        of_samples = each_once & ~is_vector[:, None] & ~is_vector[None, :]
        with_vector = each_once & (is_vector[:, None] != is_vector[None, :])
        return (
            f"acts on {(acts & of_samples).sum()} of {of_samples.sum()} pairs of samples, and on "
            f"{(acts & with_vector).sum()} of {with_vector.sum()} pairs of a sample and a class vector"
        )
    pulled = same_author & (pairs < -ACTS)
    pushed = strangers & (pairs > ACTS)
    return (
        f"pulls {pulled.sum()} of {same_author.sum()} same-author pairs together "
        f"and pushes {pushed.sum()} of {strangers.sum()} pairs of strangers apart"
    )


def growth(costs: pd.DataFrame, against: str, note: str = "") -> go.Figure:
    """Draw time and memory of a step as something grows, log scales.

    costs : columns ``loss``, ``seconds``, ``MB`` and the one of ``against``, such as "classes".
    """
    figure = make_subplots(1, 2, subplot_titles=["time of a step", "memory of a step"])
    memory = {}
    for name, colour in colour_map(costs.loss).items():
        part = costs[costs.loss == name].sort_values(against)
        style = {
            "name": html_label(name),
            "mode": "lines+markers",
            "line_color": colour,
            "legendgroup": html_label(name),
        }
        figure.add_scatter(x=part[against], y=part.seconds * 1000, **style, row=1, col=1)
        figure.add_scatter(x=part[against], y=part.MB, **style, showlegend=False, row=1, col=2)
        memory[name] = (part.MB.iloc[0], part.MB.iloc[-1])
    figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title="time, ms", col=1).update_yaxes(title="memory, MB", col=2)
    figure.update_xaxes(
        type="log", title=html_label(against), tickvals=sorted(costs[against].unique())
    )
    range_of_x = f"from {costs[against].min():,} to {costs[against].max():,} {label(against)}"
    return set_title(figure, f"{range_of_x}, {_growth_of_memory(memory)}", note)


def _growth_of_memory(memory: dict[str, tuple[float, float]]) -> str:
    """Say which loss needs most more, and which do not, from MB at both ends of what grows."""
    factors = {name: last / first for name, (first, last) in memory.items()}
    most = max(factors, key=factors.get)
    if factors[most] < UNCHANGED:
        return "no loss needs more memory"
    finding = f"the memory of {label(most)} grows {_from_to(*memory[most])}"
    unchanged = [name for name, factor in factors.items() if factor < UNCHANGED]
    least = min(factors, key=factors.get)
    if len(unchanged) == 1:
        return f"{finding}, that of {label(unchanged[0])} does not grow"
    if unchanged:
        others = (
            f"the other {len(unchanged)}"
            if len(unchanged) == len(memory) - 1
            else f"{len(unchanged)} other"
        )
        return f"{finding}, that of {others} losses does not grow"
    if least != most:
        return f"{finding}, that of {label(least)} {_from_to(*memory[least])}"
    return finding


def _from_to(first: float, last: float) -> str:
    factor = last / first
    times = f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"
    return f"{times} times, from {_megabytes(first)} to {_megabytes(last)} MB"


def _megabytes(size: float) -> str:
    return f"{size:,.0f}" if size >= 100 else f"{size:.2g}"
