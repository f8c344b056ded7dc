"""One style for every figure: colours, titles that state a finding, whiskers.

Post text and names may be hostile: whatever comes from a corpus or a result is escaped before it reaches a figure.
"""

from collections.abc import Iterable
from html import escape
from itertools import cycle
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio

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
GREY, DARK = "#999999", "#333333"
CHARACTER = 8.0  # pixels of a title's letter, on average
SHORT = 40  # letters of an author's name
BELOW = 72  # pixels from an x axis to its legend
AXIS = {
    "gridcolor": "#e5e5e5",
    "zerolinecolor": "#cccccc",
    "automargin": True,
    "title": {"standoff": 8},
}
pio.templates["authorbook"] = go.layout.Template(
    layout={
        "colorway": COLOURS, "font": {"size": 13}, "paper_bgcolor": "white", "plot_bgcolor": "white",
        "title": {"x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "font": {"size": 15}}, "xaxis": AXIS,
        "legend": {"orientation": "h", "x": 0, "yanchor": "top", "traceorder": "normal"}, "yaxis": AXIS,
        "margin": {"l": 60, "r": 20, "t": 60, "b": 60}})  # fmt: skip
pio.templates.default = "authorbook"


def escape_html(text: object) -> str:
    """Any text as a figure shows it: no HTML, and no formula, which a page with MathJax would set, links and all.

    Quotes stay, since plotly shows "&quot;" as it is written, and no figure puts text into an attribute.
    """
    return escape(str(text), quote=False).replace("$", "&#36;")


def html_name(name: object) -> str:
    """The first letters of a name that somebody chose, escaped: a long one would leave no place for the figure."""
    return escape_html(str(name)[:SHORT])


def html_label(identifier: object) -> str:
    """Words for an identifier, escaped."""
    return escape_html(label(identifier))


def colour_map(names: Iterable) -> dict:
    """Name -> colour, in order; colours come again after the ninth."""
    return dict(zip(dict.fromkeys(names), cycle(COLOURS)))


def set_title(figure: go.Figure, finding: str, note: str = "") -> go.Figure:
    """Set size and title: a finding of plain text, ``note`` after it, escaped and broken into lines that fit."""
    width, height = figure.layout.width or 860, figure.layout.height or 460
    lines = wrap(
        finding[:1].upper() + finding[1:] + (f" ({note})" if note else ""), int(width / CHARACTER)
    )
    top = (
        34 + 20 * len(lines) + (22 if figure.layout.annotations else 0)
    )  # panels have titles of their own
    if figure.layout.legend.y is None:  # below the title of the x axis
        figure.update_layout(legend_y=-BELOW / (height - top - 90))
    title = {"text": "<br>".join(map(escape_html, lines)), "pad_t": 2 + 12 * len(lines)}
    return figure.update_layout(title=title, margin_t=top, width=width, height=height)


def error_bars(
    part: pd.DataFrame, value: str = "value", low: str = "low", high: str = "high"
) -> dict:
    """Error bars from the ends of intervals, at rows that have one; {} where no row does."""
    if low not in part or part[low].isna().all():
        return {}
    ends = {"array": part[high] - part[value], "arrayminus": part[value] - part[low]}
    return ends | {"type": "data", "symmetric": False, "color": DARK, "thickness": 1.2, "width": 4}
