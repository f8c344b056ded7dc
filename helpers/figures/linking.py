"""Figures of account linking: ROC curves, errors by sample size, and reliability."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from ..core.results import LOWER_IS_BETTER
from .results import best_system, select_results
from .style import DARK, DOTTED, colour_map, error_bars, html_label, set_title

FALSE_LINKS = 0.1  # the title gives the recall at this false-link rate
DODGE = 1.03  # factor that shifts systems apart on the x axis, so that whiskers do not overlap


def roc_curves(curves: dict[str, pd.DataFrame], note: str = "") -> go.Figure:
    """Draw the ROC curve of each system, recall by false-link rate; the dotted line is chance.

    Parameters
    ----------
    curves : dict
        name of a system -> columns ``P_fa`` (rising) and ``P_miss``, as
        :func:`helpers.evaluation.detection.det_curve` returns them
    note : str
        text in brackets after the title

    References
    ----------
    khan2021, Figure 7
    """
    figure = go.Figure(layout={"width": 680, "height": 760})
    recall = {}
    for name, points in curves.items():
        figure.add_scatter(x=points.P_fa, y=1 - points.P_miss, name=html_label(name), mode="lines")
        recall[name] = 1 - np.interp(FALSE_LINKS, points.P_fa, points.P_miss)
    _add_diagonal(figure, "Chance")
    title = "false-link rate: share of different-account pairs linked"
    figure.update_xaxes(title=title, range=[0, 1])
    figure.update_yaxes(title="recall: share of same-account pairs linked", range=[0, 1.005])
    top = max(recall, key=recall.get)
    finding = (
        f"{label(top)} links {recall[top]:.0%} of same-account pairs at a false-link rate of "
        f"{FALSE_LINKS:.0%}{_best_of(curves, 'systems')}"
    )
    return set_title(figure, finding, note)


def _add_diagonal(figure: go.Figure, name: str) -> None:
    figure.add_scatter(x=[0, 1], y=[0, 1], name=name, mode="lines", **DOTTED)


def _best_of(curves: dict, kind: str) -> str:
    """Return the end of a title, such as ", the better of 2 systems"; "" for one curve."""
    if len(curves) == 1:
        return ""
    best = "better" if len(curves) == 2 else "best"
    return f", the {best} of {len(curves)} {kind}"


def metric_by_size(
    results: pd.DataFrame, metric: str = "EER", against: str = "sample_size"
) -> go.Figure:
    """Draw a metric of each system by the number of posts in a target, with its interval.

    Points of several systems at one size are shifted sideways; hovering shows the true size.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, metric, value, low, high`` and the one of ``against``;
        rows of other metrics and paired differences are left out
    metric : str
        the metric to draw
    against : str
        name of the column that holds the number of posts in a target

    References
    ----------
    khan2021, Figure 6
    """
    rows = select_results(results, metric, ("model", against))
    colours = colour_map(rows.name)
    rows = rows.sort_values(against, kind="stable")
    figure = go.Figure()
    for number, (name, colour) in enumerate(colours.items()):
        points = rows[rows.name == name]
        dodge = DODGE ** (number - (len(colours) - 1) / 2)
        figure.add_scatter(
            x=points[against] * dodge,
            y=points.value,
            name=name,
            mode="lines+markers",
            line_color=colour,
            error_y=error_bars(points) | {"color": colour},
            customdata=points[against],
            hovertemplate="%{customdata} posts: %{y:.3f}",
        )
    sizes = sorted(set(rows[against]))
    names = [f"{size:,}" for size in sizes]
    figure.update_xaxes(title="posts in a target", type="log", tickvals=sizes, ticktext=names)
    axis = html_label(metric)
    if error_bars(rows):
        axis += ", with 95% intervals"
    figure.update_yaxes(title=axis, rangemode="tozero")

    top = best_system(rows[rows[against] == sizes[-1]], metric)
    of_top = rows[rows.model == top.model].value
    best = "lowest" if metric in LOWER_IS_BETTER else "highest"
    finding = (
        f"{top.plain} has the {best} {label(metric)} with {_posts(sizes[-1])} in a target: "
        f"{of_top.iloc[-1]:.3f}, against {of_top.iloc[0]:.3f} with {_posts(sizes[0])}"
    )
    return set_title(figure, finding)


def _posts(number: int) -> str:
    if number == 1:
        return "1 post"
    return f"{number:,} posts"


def reliability_diagram(
    tables: dict[str, pd.DataFrame], note: str = "", kind: str = "calibrations"
) -> go.Figure:
    """Draw the share of same-account pairs by the probability given to pairs.

    The dotted line shows perfect probabilities. The title gives the mean distance from it, in which
    same-account and different-account pairs have the same total weight.

    Parameters
    ----------
    tables : dict
        name of a curve -> one row per bin of pairs; columns ``predicted`` (probability given),
        ``observed`` (share of same-account pairs), ``same`` and ``different`` (numbers of pairs),
        and optionally ``observed_low``, ``observed_high``, the ends of an interval
    note : str
        text in brackets after the title
    kind : str
        plural noun for the curves, for the title
    """
    figure = go.Figure(layout={"width": 680, "height": 680})
    error = {}
    for name, colour in colour_map(tables).items():
        table = tables[name]
        pairs = [
            f"{html_label(name)}<br>{same:,} same-account pairs, "
            f"{different:,} different-account pairs"
            for same, different in zip(table.same, table.different)
        ]
        figure.add_scatter(
            x=table.predicted,
            y=table.observed,
            name=html_label(name),
            mode="lines+markers",
            line_color=colour,
            error_y=error_bars(table, "observed", "observed_low", "observed_high"),
            hoverinfo="text",
            text=pairs,
        )
        weights = table.same / table.same.sum() + table.different / table.different.sum()
        error[name] = np.average(np.abs(table.predicted - table.observed), weights=weights)
    _add_diagonal(figure, "Perfect")
    title = "predicted probability that both samples are of one account"
    figure.update_xaxes(title=title, range=[0, 1])
    title = "share of same-account pairs at this probability"
    figure.update_yaxes(title=title, range=[0, 1.005], tickcolor=DARK)
    return set_title(figure, _mean_distances(error, kind), note)


def _mean_distances(error: dict[str, float], kind: str) -> str:
    """Say how far probabilities are from observed shares: those of the best curve and the next."""
    low, *others = sorted(error, key=error.get)
    finding = (
        f"{label(low)} gives probabilities that differ by {error[low]:.2f} on average from the "
        "observed shares"
    )
    if not others:
        return finding
    whose = label(others[0]) if len(others) == 1 else f"the other {len(others)} {kind}"
    least = "" if len(others) == 1 else "at least "
    return f"{finding}, those of {whose} by {least}{error[others[0]]:.2f}"
