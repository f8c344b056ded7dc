"""One style for every figure: colours, titles that state a finding, whiskers, bars of results.

Post text and names may be hostile: whatever comes from a corpus or a result is escaped before it reaches a figure.
"""

from collections.abc import Iterable
from html import escape
from itertools import cycle
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio

from helpers.figures.labels import label

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A", "#8C564B", "#333333"]
GREY, DARK = "#999999", "#333333"
LOWER_IS_BETTER = {"EER", "minDCF", "minDCF_released", "DCF", "Cllr", "minCllr", "mean_rank"}
CHARACTER = 8.0  # pixels of a title's letter, on average
SHORT = 40  # letters of an author's name
BELOW = 72  # pixels from an x axis to its legend
AXIS = {"gridcolor": "#e5e5e5", "zerolinecolor": "#cccccc", "automargin": True, "title": {"standoff": 8}}
pio.templates["authorbook"] = go.layout.Template(
    layout={
        "colorway": COLOURS, "font": {"size": 13}, "paper_bgcolor": "white", "plot_bgcolor": "white",
        "title": {"x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "font": {"size": 15}},
        "legend": {"orientation": "h", "x": 0, "yanchor": "top", "traceorder": "normal"},
        "xaxis": AXIS, "yaxis": AXIS,
        "margin": {"l": 60, "r": 20, "t": 60, "b": 60},
    }
)  # fmt: skip
pio.templates.default = "authorbook"


def escaped(text: object) -> str:
    """Any text as a figure shows it: no HTML, and no formula, which a page with MathJax would set, links and all."""
    return escape(str(text)).replace("$", "&#36;")


def short(name: object) -> str:
    """The first letters of a name that somebody chose, escaped: a long one would leave no place for the figure."""
    return escaped(str(name)[:SHORT])


def words(identifier: object) -> str:
    """Words for an identifier, escaped."""
    return escaped(label(identifier))


def coloured(names: Iterable) -> dict:
    """Name -> colour, in order; colours come again after the ninth."""
    return dict(zip(dict.fromkeys(names), cycle(COLOURS)))


def state(figure: go.Figure, finding: str, note: str = "") -> go.Figure:
    """Set size and title: a finding of plain text, ``note`` after it, escaped and broken into lines that fit."""
    width, height = figure.layout.width or 860, figure.layout.height or 460
    lines = wrap(finding[:1].upper() + finding[1:] + (f" ({note})" if note else ""), int(width / CHARACTER))
    top = 34 + 20 * len(lines) + (22 if figure.layout.annotations else 0)  # panels have titles of their own
    if figure.layout.legend.y is None:  # below the title of the x axis
        figure.update_layout(legend_y=-BELOW / (height - top - 90))
    title = {"text": "<br>".join(map(escaped, lines)), "pad_t": 2 + 12 * len(lines)}
    return figure.update_layout(title=title, margin_t=top, width=width, height=height)


def whiskers(part: pd.DataFrame, value: str = "value", low: str = "low", high: str = "high") -> dict:
    """Error bars from the ends of intervals, at rows that have one; {} where no row does."""
    if low not in part or part[low].isna().all():
        return {}
    ends = {"array": part[high] - part[value], "arrayminus": part[value] - part[low]}
    return ends | {"type": "data", "symmetric": False, "color": DARK, "thickness": 1.2, "width": 4}


def with_interval(row: pd.Series, digits: int = 2) -> str:
    """"0.71 (0.66 to 0.76)", or the value alone where it has no interval."""
    text = f"{row.value:.{digits}f}"
    return text if pd.isna(row.get("low")) else f"{text} ({row.low:.{digits}f} to {row.high:.{digits}f})"


def select(results: pd.DataFrame, metric: str, key: tuple[str, ...] = ("model", "split")) -> pd.DataFrame:
    """The rows of a tidy results frame with one metric, paired differences left out.

    The model in words is added: ``plain`` for a title, ``name`` escaped for traces and axes.
    Raises ValueError: where no row is left, or one of ``key`` is there twice.
    """
    rows = results[results.metric == metric].copy()
    if "base" in rows:
        rows = rows[rows.base.fillna("") == ""]
    if rows.empty:
        raise ValueError(f"no row of the metric {metric!r}: results hold {', '.join(sorted(set(results.metric)))}")
    if (twice := rows[rows.duplicated(list(key))]).size:
        raise ValueError(f"{metric} of {', '.join(map(str, twice.iloc[0][list(key)]))} is there twice: choose one seed")
    shown = rows.label.fillna("") if "label" in rows else pd.Series("", rows.index)
    plain = [text or label(model) for text, model in zip(shown, rows.model)]
    return rows.assign(plain=plain, name=list(map(escaped, plain)))


def best(rows: pd.DataFrame, metric: str) -> pd.Series:
    """The row of the best value: the lowest of an error, the highest of anything else."""
    return rows.loc[rows.value.idxmin() if metric in LOWER_IS_BETTER else rows.value.idxmax()]


def result_bars(rows: pd.DataFrame, metric: str, split: str) -> go.Figure:
    """Horizontal bars of :func:`select`'s rows, the best model of ``split`` on top, one colour a split."""
    splits = list(dict.fromkeys(rows.split))
    order = rows[rows.split == split].sort_values("value", ascending=metric not in LOWER_IS_BETTER).name
    order = list(dict.fromkeys([*rows.name[~rows.name.isin(order)], *order]))
    figure = go.Figure(layout={"barmode": "group", "height": 190 + 34 * len(order) * len(splits) ** 0.5})
    for split, colour in coloured(splits).items():
        part = rows[rows.split == split].set_index("name").reindex(order)
        figure.add_bar(y=order, x=part.value, name=words(split), orientation="h", marker_color=colour,
                       error_x=whiskers(part))  # fmt: skip
    figure.update_xaxes(title=f"{words(metric)}, with 95% intervals" if whiskers(rows) else words(metric))
    figure.update_layout(xaxis_rangemode="tozero", yaxis_title="model")
    return figure.update_layout(legend_traceorder="reversed", showlegend=len(splits) > 1)
