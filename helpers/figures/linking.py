"""Figures of account linking: errors at every threshold and by size, and how far probabilities are off."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from helpers.core.names import label
from helpers.figures.results import best_system, select_results
from helpers.figures.style import DARK, GREY, colour_map, error_bars, html_label, set_title

FALSE_LINKS = 0.1  # where the title reads the ROC curve
DODGE = 1.03  # factor between the whiskers of two systems at one size


def roc_curves(curves: dict[str, pd.DataFrame], note: str = "") -> go.Figure:
    """Draw recall against false links at every threshold (khan2021 Figure 7); chance is the dotted line.

    curves : name of a system -> columns ``P_fa``, rising, and ``P_miss``, as of :func:`detection.curve`.
    """
    figure = go.Figure(layout={"width": 680, "height": 760})
    recall = {}
    for name, points in curves.items():
        figure.add_scatter(x=points.P_fa, y=1 - points.P_miss, name=html_label(name), mode="lines")
        recall[name] = 1 - np.interp(FALSE_LINKS, points.P_fa, points.P_miss)
    figure.add_scatter(
        x=[0, 1], y=[0, 1], name="Chance", mode="lines", line={"dash": "dot", "color": GREY}
    )
    figure.update_xaxes(
        title="false-link rate: share of different-account pairs linked", range=[0, 1]
    )
    figure.update_yaxes(title="recall: share of same-account pairs linked", range=[0, 1.005])
    top = max(recall, key=recall.get)
    finding = f"{label(top)} links {recall[top]:.0%} of same-account pairs at a false-link rate of {FALSE_LINKS:.0%}"
    return set_title(figure, f"{finding}{_of(curves, 'systems')}", note)


def _of(curves: dict, kind: str) -> str:
    """Say among how many curves one is the best: ", the better of 2 calibrations"."""
    if len(curves) == 1:
        return ""
    return f", the {'better' if len(curves) == 2 else 'best'} of {len(curves)} {kind}"


def error_by_size(results: pd.DataFrame, against: str = "sample_size", note: str = "") -> go.Figure:
    """Draw the EER of each system by the number of posts in a target, with its interval (khan2021 Figure 6).

    results : tidy rows, columns ``model, label, metric, value, low, high`` and the posts of a target, ``against``.
    """
    rows = select_results(results, "EER", ("model", against))
    figure = go.Figure()
    models = colour_map(rows.name)
    for number, (name, colour) in enumerate(models.items()):
        part = rows[rows.name == name].sort_values(against)
        figure.add_scatter(x=part[against] * DODGE ** (number - (len(models) - 1) / 2), y=part.value, name=name,
                           mode="lines+markers", line_color=colour, error_y=error_bars(part) | {"color": colour},
                           customdata=part[against], hovertemplate="%{customdata} posts: %{y:.3f}")  # fmt: skip
    sizes = sorted(set(rows[against]))
    figure.update_xaxes(
        title="posts in a target", type="log", tickvals=sizes, ticktext=list(map(str, sizes))
    )
    figure.update_yaxes(
        title="EER, with 95% intervals" if error_bars(rows) else "EER", rangemode="tozero"
    )
    top = best_system(rows[rows[against] == sizes[-1]], "EER")
    ends = rows[rows.model == top.model].sort_values(against).iloc[[0, -1]]
    first, last = ends.value
    least, most = (
        f"{size} post" if size == 1 else f"{size} posts" for size in (sizes[0], sizes[-1])
    )
    finding = f"{top.plain} has the lowest EER with {most} in a target: {last:.3f}, against {first:.3f} with {least}"
    return set_title(figure, finding, note)


def reliability_diagram(
    tables: dict[str, pd.DataFrame], note: str = "", kind: str = "calibrations"
) -> go.Figure:
    """Draw the share of same-account pairs by the probability that they were given; the dotted line is perfect.

    In the mean of the title same-account and different-account pairs have the same total weight.
    tables : name of a curve -> columns ``predicted``, ``observed``, ``same``, ``different`` (numbers of pairs),
        and perhaps ``observed_low``, ``observed_high``.
    kind : what the curves are, in the plural.
    """
    figure, off = go.Figure(layout={"width": 680, "height": 680}), {}
    for name, colour in colour_map(tables).items():
        table = tables[name]
        figure.add_scatter(
            x=table.predicted, y=table.observed, name=html_label(name), mode="lines+markers", hoverinfo="text",
            line_color=colour, error_y=error_bars(table, "observed", "observed_low", "observed_high"),
            text=[f"{html_label(name)}<br>{same:,} same-account pairs, {different:,} different-account pairs"
                  for same, different in zip(table.same, table.different)])  # fmt: skip
        share = table.same / table.same.sum() + table.different / table.different.sum()
        off[name] = np.average(np.abs(table.predicted - table.observed), weights=share)
    figure.add_scatter(
        x=[0, 1], y=[0, 1], name="Perfect", mode="lines", line={"dash": "dot", "color": GREY}
    )
    figure.update_xaxes(
        title="probability given to a pair: both samples are of one account", range=[0, 1]
    )
    figure.update_yaxes(
        title="share of same-account pairs among these", range=[0, 1.005], tickcolor=DARK
    )
    low = min(off, key=off.get)
    finding = f"{label(low)} gives probabilities that are {off[low]:.2f} off on average"
    return set_title(figure, f"{finding}{_of(tables, kind)}", note)
