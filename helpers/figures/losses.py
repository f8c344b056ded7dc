"""Figures of losses: the pairs that a loss acts on, and time and memory of a training step."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from .style import COLOURS, DARK, colour_map, html_label, panels, set_title

MIN_DERIVATIVE = 1e-6  # a loss acts on a pair if the size of the derivative is larger
MIN_SHARE = 0.005  # a line is drawn if the derivative is a larger share of the largest one
MIN_ARROW = 0.08  # shorter arrows are not drawn: the point would hide them
UNCHANGED = 1.05  # memory that grows by a smaller factor counts as not growing


def loss_picture(
    loss: str, points: np.ndarray, labels: np.ndarray, pairs: np.ndarray, vectors: int = 0
) -> go.Figure:
    """Draw points on a circle, the pairs that a loss acts on, and where it moves the points.

    A line joins each pair that the loss acts on, the wider the larger the derivative. An arrow at a
    point is the sum of the forces of its pairs, along the circle. Widths and lengths are relative
    to the largest of the figure.

    Parameters
    ----------
    loss : str
        identifier of the loss, or its name with a setting, such as "Top-k, k = 2"
    points : (N, 2)
        N points of length 1
    labels : (N,) int
        number of each point's author, from 0
    pairs : (N, N)
        derivative of the loss with respect to the cosine of each pair: the loss pulls a pair
        together where it is negative, and pushes it apart where it is positive
    vectors : int
        so many of the last points are class vectors of the loss, drawn as diamonds
    """
    figure = go.Figure(layout={"width": 600, "height": 500, "legend_y": 0})
    angle = np.linspace(0, 2 * np.pi, 181)
    _add_lines(figure, [np.cos(angle), np.sin(angle)], "#dddddd")
    _add_pairs(figure, points, -pairs, "pulled together", COLOURS[0])
    _add_pairs(figure, points, pairs, "pushed apart", COLOURS[1])
    _add_arrows(figure, points, pairs)

    is_vector = np.arange(len(points)) >= len(points) - vectors
    symbols = np.where(is_vector, "diamond", "circle")
    for author in np.unique(labels):
        rows = labels == author
        x, y = points[rows].T
        colour = COLOURS[(author + 2) % len(COLOURS)]
        marker = {"size": 15, "color": colour, "symbol": symbols[rows]}
        figure.add_scatter(x=x, y=y, mode="markers", name=f"author {author + 1}", marker=marker)
    hidden = {"visible": False, "range": [-1.3, 1.3]}
    figure.update_xaxes(**hidden).update_yaxes(**hidden, scaleanchor="x")
    return set_title(figure, f"{label(loss)} {_what_it_does(labels, pairs, is_vector)}")


# Draw one line through the points ``ends``, its x and its y values, without an entry in the legend.
def _add_lines(figure, ends, colour, width=None, **style):
    x, y = ends
    line = {"color": colour, "width": width}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, **{"showlegend": False} | style)


def _add_pairs(figure, points, strength, name, colour):
    """Draw a line for each pair of positive strength, and one entry of the legend for all."""
    _add_lines(figure, [[None], [None]], colour, 4, name=name, showlegend=True)
    largest = np.abs(strength).max() or 1.0
    for pair in np.argwhere(np.triu(strength) > MIN_SHARE * largest):
        width = 0.7 + 6 * strength[tuple(pair)] / largest
        _add_lines(figure, points[pair].T, colour, width, opacity=0.7)


def _add_arrows(figure, points, pairs):
    """Draw an arrow from each point in the direction in which the loss moves it on the circle."""
    force = -pairs @ points
    force -= (force * points).sum(1, keepdims=True) * points
    force *= 0.45 / (np.linalg.norm(force, axis=1).max() or 1.0)
    for (x, y), (dx, dy) in zip(points, force):
        if np.hypot(dx, dy) > MIN_ARROW:
            ends = {"x": x + dx, "y": y + dy, "ax": x, "ay": y}
            axes = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
            style = {"arrowhead": 2, "arrowwidth": 1.5, "arrowcolor": DARK}
            figure.add_annotation(text="", **ends, **axes, **style)


def _what_it_does(labels: np.ndarray, pairs: np.ndarray, is_vector: np.ndarray) -> str:
    """Return the end of the title: how many pairs the loss acts on.

    Without class vectors, same-author and different-author pairs are counted; with class vectors,
    pairs of samples, and pairs of a sample and a class vector.
    """
    once = np.triu(np.ones(pairs.shape, bool), 1)
    if is_vector.any():
        acts = np.abs(pairs) > MIN_DERIVATIVE
        of_samples = once & ~is_vector[:, None] & ~is_vector
        with_vector = once & (is_vector[:, None] != is_vector)
        return (
            f"acts on {_count(acts, of_samples)} pairs of samples, and on "
            f"{_count(acts, with_vector)} pairs of a sample and a class vector"
        )
    same_author = labels[:, None] == labels
    return (
        f"pulls {_count(pairs < -MIN_DERIVATIVE, once & same_author)} same-author pairs together "
        f"and pushes {_count(pairs > MIN_DERIVATIVE, once & ~same_author)} pairs of strangers apart"
    )


# Count the pairs of one kind on which a loss acts: "3 of 12".
def _count(acts: np.ndarray, kind: np.ndarray) -> str:
    return f"{(acts & kind).sum()} of {kind.sum()}"


def growth(costs: pd.DataFrame, against: str) -> go.Figure:
    """Draw time and memory of a training step by a growing size, on logarithmic axes.

    Parameters
    ----------
    costs : DataFrame
        columns ``loss``, ``seconds``, ``MB`` and the one of ``against``
    against : str
        name of the column that holds the growing size, such as "classes"
    """
    axis = html_label(against)
    figure = panels(
        {"time of a step": (axis, "time, ms"), "memory of a step": (axis, "memory, MB")}
    )
    memory = {}
    for name, colour in colour_map(costs.loss).items():
        rows = costs[costs.loss == name].sort_values(against)
        style = {"name": html_label(name), "legendgroup": html_label(name)}
        style |= {"mode": "lines+markers", "line_color": colour}
        figure.add_scatter(x=rows[against], y=rows.seconds * 1000, **style, row=1, col=1)
        figure.add_scatter(x=rows[against], y=rows.MB, **style, showlegend=False, row=1, col=2)
        memory[name] = (rows.MB.iloc[0], rows.MB.iloc[-1])
    sizes = sorted(costs[against].unique())
    figure.update_yaxes(type="log", dtick=1).update_xaxes(type="log", tickvals=sizes)
    sizes_in_words = f"from {sizes[0]:,} to {sizes[-1]:,} {label(against)}"
    return set_title(figure, f"{sizes_in_words}, {_growth_of_memory(memory)}")


def _growth_of_memory(memory: dict[str, tuple[float, float]]) -> str:
    """Say which loss's memory grows most, and which do not grow or grow least.

    ``memory`` maps a loss to its MB at the smallest and at the largest size.
    """
    factors = {name: last / first for name, (first, last) in memory.items()}
    most = max(factors, key=factors.get)
    least = min(factors, key=factors.get)
    if factors[most] < UNCHANGED:
        return "no loss needs more memory"
    finding = f"the memory of {label(most)} grows {_from_to(*memory[most])}"
    unchanged = sum(factor < UNCHANGED for factor in factors.values())
    if unchanged == 1:
        return f"{finding}, that of {label(least)} does not grow"
    if unchanged == len(memory) - 1:
        return f"{finding}, that of the other {unchanged} losses does not grow"
    if unchanged:
        return f"{finding}, that of {unchanged} other losses does not grow"
    if least != most:
        return f"{finding}, that of {label(least)} {_from_to(*memory[least])}"
    return finding


# Describe a growth from one number of MB to another: "3.2 times, from 12 to 38 MB".
def _from_to(first: float, last: float) -> str:
    factor = last / first
    digits = 0 if factor >= 10 else 1
    return f"{factor:,.{digits}f} times, from {_megabytes(first)} to {_megabytes(last)} MB"


def _megabytes(size: float) -> str:
    if size >= 100:
        return f"{size:,.0f}"
    return f"{size:.2g}"
