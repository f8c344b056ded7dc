"""One style for every figure: colours, titles that state a finding, whiskers.

Post text and names may be hostile: whatever comes from a corpus or a result is escaped before it
reaches a figure.
"""

from collections.abc import Iterable
from html import escape
from itertools import cycle
from textwrap import wrap
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from plotly.subplots import make_subplots

from helpers.core.names import label

COLOURS = [
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#882255",
    "#332288",
    "#000000",
]
GREY = "#999999"
DARK = "#333333"
LETTER_WIDTH = 8.0  # pixels of a letter of a title, on average
DASHED = {"line_dash": "dash", "line_color": GREY}
DOTTED = {"line_dash": "dot", "line_color": GREY}
MAX_NAME_LETTERS = 40  # of an author
LEGEND_GAP = 72  # pixels from an x axis to its legend
AXIS = {
    "gridcolor": "#e5e5e5",
    "zerolinecolor": "#cccccc",
    "automargin": True,
    "title": {"standoff": 8},
}
LAYOUT = {
    "colorway": COLOURS,
    "font": {"size": 13},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "title": {"x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "font": {"size": 15}},
    "xaxis": AXIS,
    "yaxis": AXIS,
    "legend": {"orientation": "h", "x": 0, "yanchor": "top", "traceorder": "normal"},
    "margin": {"l": 60, "r": 20, "t": 60, "b": 60},
}
pio.templates["authorbook"] = go.layout.Template(layout=LAYOUT)
pio.templates.default = "authorbook"


def escape_html(text: object) -> str:
    """Return a text as a figure shows it: no HTML, and no formula.

    A page with MathJax would set a formula, links and all. Quotes stay, since plotly shows
    "&quot;" as it is written, and no figure puts text into an attribute.
    """
    return escape(str(text), quote=False).replace("$", "&#36;")


def html_name(name: object) -> str:
    """Return the first letters of a name that somebody chose, escaped.

    A long one would leave no place for the figure.
    """
    return escape_html(str(name)[:MAX_NAME_LETTERS])


def html_label(identifier: object) -> str:
    """Return the words for an identifier, escaped."""
    return escape_html(label(identifier))


def colour_map(names: Iterable) -> dict:
    """Map names to colours, in order; colours come again after the ninth."""
    return dict(zip(dict.fromkeys(names), cycle(COLOURS)))


def panels(titles: dict[str, tuple[str, str]], **options: Any) -> go.Figure:
    """Return a figure of panels beside each other.

    Parameters
    ----------
    titles : dict
        title of a panel -> titles of its x axis and y axis
    **options : Any
        of ``make_subplots``
    """
    figure = make_subplots(1, len(titles), subplot_titles=list(titles), **options)
    for column, (x_title, y_title) in enumerate(titles.values(), 1):
        figure.update_xaxes(title=x_title, col=column).update_yaxes(title=y_title, col=column)
    return figure


def set_title(figure: go.Figure, finding: str, note: str = "") -> go.Figure:
    """Set size and title of a figure, and return it.

    Parameters
    ----------
    figure : Figure
        with all its panels
    finding : str
        plain text; it is escaped and broken into lines that fit
    note : str
        what stands behind it, in brackets
    """
    width = figure.layout.width or 860
    height = figure.layout.height or 460
    sentence = finding[:1].upper() + finding[1:]
    if note:
        sentence += f" ({note})"
    lines = wrap(sentence, int(width / LETTER_WIDTH))
    top = 34 + 20 * len(lines)
    if figure.layout.annotations:  # panels have titles of their own
        top += 22
    if figure.layout.legend.y is None:  # below the title of the x axis
        figure.update_layout(legend_y=-LEGEND_GAP / (height - top - 90))
    text = "<br>".join(escape_html(line) for line in lines)
    title = {"text": text, "pad_t": 2 + 12 * len(lines)}
    return figure.update_layout(title=title, margin_t=top, width=width, height=height)


def error_bars(
    rows: pd.DataFrame, value: str = "value", low: str = "low", high: str = "high"
) -> dict:
    """Return whiskers from the ends of intervals, at rows that have one; {} where no row does.

    Parameters
    ----------
    rows : DataFrame
        a row a point
    value, low, high : str
        columns of the point and of the ends of its interval
    """
    if low not in rows or rows[low].isna().all():
        return {}
    return {
        "type": "data",
        "symmetric": False,
        "array": rows[high] - rows[value],
        "arrayminus": rows[value] - rows[low],
        "color": DARK,
        "thickness": 1.2,
        "width": 4,
    }
