"""The style of all figures: colours, names, and titles that state a finding.

Texts and names from a corpus or a result may hold harmful HTML, so they are escaped before they
reach a figure.
"""

from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio

from ..core.messages import escape_html
from ..core.names import label

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
LETTER_WIDTH = 8.0  # mean width of a letter of a title, in pixels
MAX_NAME_LETTERS = 40  # letters of an author's name that are shown
MAX_POST_LETTERS = 90  # letters of a post that hovering shows
LEGEND_GAP = 72  # distance from the x axis to the legend below it, in pixels
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
    "shapedefaults": {"line": {"color": GREY, "dash": "dash"}},
}
WHISKER = {"color": DARK, "thickness": 1.2, "width": 4}
TRACES = {
    "bar": [{"error_x": WHISKER, "error_y": WHISKER}],
    "scatter": [{"error_x": WHISKER, "error_y": {"thickness": 1.2, "width": 4}}],
}
pio.templates["authorbook"] = go.layout.Template(layout=LAYOUT, data=TRACES)
pio.templates.default = "authorbook"


def html_name(name: object) -> str:
    """Escape a name from a corpus, cut to MAX_NAME_LETTERS letters to leave room for the figure."""
    return escape_html(str(name)[:MAX_NAME_LETTERS])


def html_post(text: str) -> str:
    """Escape the beginning of a post, for hovering."""
    return escape_html(text[:MAX_POST_LETTERS])


def html_label(identifier: object) -> str:
    """Return the readable name of an identifier, see :func:`helpers.core.names.label`, escaped."""
    return escape_html(label(identifier))


def with_whiskers(rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``above`` and ``below``, the distances of ``low`` and ``high`` from ``value``.

    Both are NaN where a row has no interval: plotly then draws no whisker.
    """
    if "low" not in rows:
        return rows.assign(above=float("nan"), below=float("nan"))
    return rows.assign(above=rows["high"] - rows["value"], below=rows["value"] - rows["low"])


def whisker_columns(rows: pd.DataFrame, axis: str) -> dict[str, str]:
    """Return the arguments by which plotly.express draws the whiskers of rows that have some.

    Parameters
    ----------
    rows : DataFrame
        rows of :func:`with_whiskers`
    axis : str
        "x" or "y", along which whiskers lie
    """
    if rows["above"].isna().all():
        return {}
    return {f"error_{axis}": "above", f"error_{axis}_minus": "below"}


def name_panels(figure: go.Figure) -> None:
    """Let the title of each panel be its value alone, without the name of the column ``panel``."""
    figure.for_each_annotation(lambda note: note.update(text=note.text.removeprefix("panel=")))


def set_title(figure: go.Figure, finding: str, note: str = "") -> go.Figure:
    """Set the title of a figure in place, with the margins that it needs, and return the figure.

    Parameters
    ----------
    figure : Figure
        the figure with all its panels; without a size it becomes 860 by 460 pixels
    finding : str
        plain text of the title; it is escaped, and broken into lines that fit
    note : str
        text in brackets after the finding
    """
    width = figure.layout.width or 860
    height = figure.layout.height or 460
    sentence = finding[:1].upper() + finding[1:]
    if note:
        sentence += f" ({note})"
    lines = wrap(sentence, int(width / LETTER_WIDTH), break_on_hyphens=False)
    top = 34 + 20 * len(lines)
    if figure.layout.annotations:  # panels have titles of their own
        top += 22
    if figure.layout.legend.y is None:  # not set: it goes below the title of the x axis
        figure.update_layout(legend_y=-LEGEND_GAP / (height - top - 90))
    text = "<br>".join(escape_html(line) for line in lines)
    title = {"text": text, "pad_t": 2 + 12 * len(lines)}
    return figure.update_layout(title=title, margin_t=top, width=width, height=height)
