"""Figures of account linking: errors at every threshold, by size, and whether probabilities are right."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy import stats

from helpers.runs.names import label
from helpers.figures.results import best, select
from helpers.figures.style import DARK, GREY, coloured, state, whiskers, words

FALSE_ACCEPTS = 0.01  # where the title reads the ROC curve
SHARES = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999])  # ticks of a DET curve
DODGE = 1.03  # whiskers at one size stand beside each other, a factor apart


def roc(curves: dict[str, pd.DataFrame], note: str = "") -> go.Figure:
    """khan2021 Figure 7. Label of a model -> columns ``P_fa``, rising, and ``P_miss``; chance is the dotted line."""
    figure = go.Figure(layout={"width": 680, "height": 760})
    hits = {}
    for name, points in curves.items():
        figure.add_scatter(x=points.P_fa, y=1 - points.P_miss, name=words(name), mode="lines")
        hits[name] = 1 - np.interp(FALSE_ACCEPTS, points.P_fa, points.P_miss)
    figure.add_scatter(x=[0, 1], y=[0, 1], name="chance", mode="lines", line={"dash": "dot", "color": GREY})
    figure.update_xaxes(title="false accepts, share of pairs of two accounts", range=[0, 1])
    figure.update_yaxes(title="found, share of pairs of one account", range=[0, 1.005])
    top = max(hits, key=hits.get)
    return state(figure, f"{label(top)} finds {hits[top]:.0%} of the pairs of one account at {FALSE_ACCEPTS:.0%} "
                 f"false accepts{_of(curves)}", note)  # fmt: skip


def det(curves: dict[str, pd.DataFrame], note: str = "") -> go.Figure:
    """ROC on probit axes: normal scores give a straight line, the dotted line is P_fa = P_miss.

    Rates below 0.1% or above 99.9% are drawn at the border. Curves as of :func:`roc`.
    """
    ticks = stats.norm.ppf(SHARES)
    figure = go.Figure(layout={"width": 680, "height": 760})
    errors = {}
    for name, points in curves.items():
        x, y = (stats.norm.ppf(rate).clip(ticks[0], ticks[-1]) for rate in (points.P_fa, points.P_miss))
        figure.add_scatter(x=x, y=y, name=words(name), mode="lines")
        errors[name] = np.interp(0, points.P_fa - points.P_miss, points.P_fa)
    figure.add_scatter(x=ticks[[0, -1]], y=ticks[[0, -1]], name="equal rates", mode="lines",
                       line={"dash": "dot", "color": GREY})  # fmt: skip
    axis = {"tickvals": ticks, "ticktext": [f"{share:.1%}".replace(".0%", "%") for share in SHARES],
            "range": ticks[[0, -1]], "tickangle": 0, "zeroline": False}  # fmt: skip
    figure.update_xaxes(title="false accepts, share of pairs of two accounts", **axis)
    figure.update_yaxes(title="misses, share of pairs of one account", **axis)
    low = min(errors, key=errors.get)
    return state(figure, f"{label(low)} has an equal error rate of {errors[low]:.1%}{_of(curves)}", note)


def _of(curves):
    return f", the best of {len(curves)} models" if len(curves) > 1 else ""


def error_by_size(results: pd.DataFrame, against: str = "sample_size", note: str = "") -> go.Figure:
    """khan2021 Figure 6: the EER by the number of posts in a target, with its interval.

    results : tidy rows, columns ``model, label, metric, value, low, high`` and the posts of a target, ``against``.
    """
    rows = select(results, "EER", ("model", against))
    figure = go.Figure()
    models = coloured(rows.name)
    for number, (name, colour) in enumerate(models.items()):
        part = rows[rows.name == name].sort_values(against)
        figure.add_scatter(x=part[against] * DODGE ** (number - (len(models) - 1) / 2), y=part.value, name=name,
                           mode="lines+markers", line_color=colour, error_y=whiskers(part) | {"color": colour},
                           customdata=part[against], hovertemplate="%{customdata} posts: %{y:.3f}")  # fmt: skip
    sizes = sorted(set(rows[against]))
    figure.update_xaxes(title="posts in a target", type="log", tickvals=sizes, ticktext=list(map(str, sizes)))
    figure.update_yaxes(title="EER, with 95% intervals" if whiskers(rows) else "EER", rangemode="tozero")
    top = best(rows[rows[against] == sizes[-1]], "EER")
    ends = rows[rows.model == top.model].sort_values(against).iloc[[0, -1]]
    finding = (f"{top.plain}: EER goes from {ends.value.iloc[0]:.3f} to {ends.value.iloc[1]:.3f} "
               f"as targets grow from {sizes[0]} {'post' if sizes[0] == 1 else 'posts'} to {sizes[-1]}")  # fmt: skip
    return state(figure, finding, note)


def reliability(tables: dict[str, pd.DataFrame], note: str = "") -> go.Figure:
    """Are the probabilities right? On the dotted line they are. In the title both kinds of pairs weigh the same.

    tables : label of a model -> columns ``predicted``, ``observed``, ``same``, ``different`` (pairs), and perhaps
        ``observed_low``, ``observed_high``.
    """
    figure, off = go.Figure(layout={"width": 680, "height": 680}), {}
    for name, colour in coloured(tables).items():
        table = tables[name]
        figure.add_scatter(
            x=table.predicted, y=table.observed, name=words(name), mode="lines+markers", hoverinfo="text",
            line_color=colour, error_y=whiskers(table, "observed", "observed_low", "observed_high"),
            text=[f"{words(name)}<br>{same:,} pairs of one account, {different:,} of two"
                  for same, different in zip(table.same, table.different)])  # fmt: skip
        share = table.same / table.same.sum() + table.different / table.different.sum()
        off[name] = np.average(np.abs(table.predicted - table.observed), weights=share)
    figure.add_scatter(x=[0, 1], y=[0, 1], name="right", mode="lines", line={"dash": "dot", "color": GREY})
    figure.update_xaxes(title="probability of one account, as given", range=[0, 1])
    figure.update_yaxes(title="share of pairs that are of one account", range=[0, 1.005], tickcolor=DARK)
    low = min(off, key=off.get)
    return state(figure, f"{label(low)} gives probabilities that are {off[low]:.2f} off on average{_of(tables)}", note)
