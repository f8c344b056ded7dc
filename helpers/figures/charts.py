"""Charts: shapes that take a tidy table and draw it, one row per mark.

A column that names systems, splits or authors gets its readable, escaped names here; the title of
an axis is the name of its column by :func:`helpers.core.names.label`. Where a title is not given,
it is the finding that the shape can read off its rows.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from ..core.messages import escape_html
from ..core.names import label
from ..core.results import INTERVAL, LOWER_IS_BETTER, best_row, format_interval, select_results
from .style import (
    COLOURS,
    GREY,
    html_label,
    html_name,
    html_post,
    name_panels,
    set_title,
    whisker_columns,
    with_whiskers,
)

DODGE_LOG = 1.03  # factor between two systems at one x of a logarithmic axis, for their whiskers
DODGE = 0.006  # distance between two systems at one x, as a share of the x axis
MAX_MARKERS = 40  # a line of fewer points marks each of them
REFERENCES = ("chance", "perfect")  # lines of these names are dotted
SPLIT_ORDER = {"test": 0, "dev": 2}  # the split with the lowest number judges; others have a 1


def bars(results: pd.DataFrame, metric: str, note: str = "") -> go.Figure:
    """Draw one bar per system and split, with its interval, the best system on top.

    The order and the title are those of one split: test if it is there, else the first split that
    is not dev, else dev. Systems without a value for this split are at the bottom.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, split, metric, value, low, high`` and optionally
        ``targets``, the number of targets, for the title
    metric : str
        the metric to draw
    note : str
        text in brackets after the title
    """
    rows = select_results(results, metric)
    splits = rows["split"].unique()
    judge = min(splits, key=lambda split: SPLIT_ORDER.get(split, 1))
    judged = rows[rows["split"] == judge]
    judged = judged.sort_values("value", ascending=metric in LOWER_IS_BETTER)
    order = dict.fromkeys([*judged["system"], *rows["system"]])

    top = best_row(judged, metric)
    finding = f"{top['system']} has the {_best(metric)}: {format_interval(*top[INTERVAL])}"
    finding += f", {label(judge)}"
    if pd.notna(top.get("targets")):
        finding += f", {top['targets']:,.0f} targets"
    shown = with_whiskers(rows)
    whiskers = whisker_columns(shown, "x")
    axis = html_label(metric)
    if whiskers:
        axis += ", with 95% intervals"
    figure = px.bar(
        shown.assign(system=shown["system"].map(escape_html), split=shown["split"].map(html_label)),
        x="value",
        y="system",
        color="split",
        orientation="h",
        barmode="group",
        category_orders={"system": [escape_html(name) for name in order]},
        labels={"value": axis, "split": ""},
        height=190 + 34 * len(order) * len(splits) ** 0.5,
        **whiskers,
    )
    figure.update_xaxes(rangemode="tozero")
    figure.update_layout(legend_traceorder="reversed", showlegend=len(splits) > 1)
    return set_title(figure, finding, note)


def differences(rows: pd.DataFrame, metric: str, note: str = "") -> go.Figure:
    """Draw paired differences with their intervals, in the order of the rows.

    The title counts the differences whose interval excludes 0, and names the largest of these, or
    the largest of all where there is none.

    Parameters
    ----------
    rows : DataFrame
        one row per difference; columns ``label`` (name of the system), ``base`` (identifier of the
        system that is subtracted from it), ``split, value, low, high``
    metric : str
        metric that the values are differences of
    note : str
        text in brackets after the title
    """
    shown = with_whiskers(rows)
    shown["pair"] = shown["label"].map(escape_html) + "<br>minus " + shown["base"].map(html_label)
    figure = px.scatter(
        shown.assign(split=shown["split"].map(html_label)),
        x="value",
        y="pair",
        color="split",
        orientation="h",
        error_x="above",
        error_x_minus="below",
        category_orders={"pair": list(dict.fromkeys(shown["pair"]))},
        labels={"value": f"difference in {html_label(metric)}, with 95% intervals", "split": ""},
        height=190 + 42 * shown["pair"].nunique(),
    )
    figure.add_vline(0).update_traces(marker_size=9)
    figure.update_xaxes(tickformat="+.2f").update_yaxes(title="system")
    figure.update_layout(scattermode="group", showlegend=shown["split"].nunique() > 1)

    certain = rows[(rows["low"] > 0) | (rows["high"] < 0)]
    largest = certain if len(certain) else rows
    top = largest.iloc[largest["value"].abs().argmax()]
    finding = (
        f"{len(certain) or 'none'} of {len(rows)} differences in {label(metric)} distinguishable "
        f"from 0; the largest, on {label(top['split'])}, is “{top['label']}” minus "
        f"“{label(top['base'])}”: {format_interval(*top[INTERVAL], '+')}"
    )
    return set_title(figure, finding, note)


def lines(
    rows: pd.DataFrame,
    x: str,
    y: str | list[str],
    colour: str,
    title: str = "",
    at: float = np.inf,
    facet: str = "",
    diagonal: str = "",
    **style: Any,
) -> go.Figure:
    """Draw one line per system, with the intervals of its points, in one panel or several.

    Points of several systems at one x are moved sideways where they have intervals; hovering shows
    the true x.

    Parameters
    ----------
    rows : DataFrame
        one row per point; the columns named below, and the ends of an interval in ``{y}_low`` and
        ``{y}_high`` where there is one; points without a y are left out. Without a column y they
        are tidy results of the metric y, see :func:`helpers.core.results.select_results`
    x : str
        column of the x axis
    y : str or list of str
        column of the y axis; of several each has a panel of its own
    colour : str
        column of the systems; "chance" and "perfect" become dotted lines
    title : str
        finding; by default the best system by the first y, in the first panel, at the x ``at``
    at : float
        x of which the default title speaks; by default the largest
    facet : str
        column of the panels, where there is a single y
    diagonal : str
        "chance" or "perfect": name of a dotted line from (0, 0) to (1, 1); "" for none
    **style : Any
        further arguments of plotly.express.line, such as ``log_x``
    """
    metrics = [y] if isinstance(y, str) else y
    shown = _points(rows, x, metrics, colour, facet)
    whiskers = whisker_columns(shown, "y")
    shown["place"] = shown[x]
    if whiskers:
        shown["place"] = _dodged(shown[x], pd.factorize(shown[colour])[0], "log_x" in style)
    few_points = bool(shown.groupby([colour, "panel"]).size().max() < MAX_MARKERS)
    axis = html_label(x)
    figure = px.line(
        shown.assign(**{colour: shown[colour].map(html_label)}),
        x="place",
        y="value",
        color=colour,
        facet_col="panel",
        facet_col_spacing=0.12 if len(metrics) > 1 else 0.03,
        markers=few_points,
        hover_data={"place": False, x: True},
        labels={"place": axis, x: axis, colour: "", "value": html_label(metrics[0])},
        **whiskers,
        **style,
    )
    if few_points and "log_x" in style:
        figure.update_xaxes(tickvals=sorted(set(shown[x])))
    figure.update_layout(showlegend=len(figure.data) > len(metrics) or bool(diagonal))
    _name_axes(figure, metrics, facet)
    _add_references(figure, diagonal)
    if not title:
        title = _best_line(shown, x, metrics[0], colour, at, facet)
    return set_title(figure, title)


def _points(rows, x, metrics, colour, facet):
    """Return one row per point: ``value, low, high`` of a metric, and the panel that shows it."""
    if metrics[0] not in rows:
        rows = select_results(rows, metrics[0], ("model", x))
    about = [name for name in (x, colour, facet) if name]
    parts = []
    for metric in metrics:
        part = rows.reindex(columns=[*about, metric, f"{metric}_low", f"{metric}_high"])
        parts.append(part.set_axis([*about, *INTERVAL], axis=1).assign(panel=html_label(metric)))
    shown = with_whiskers(pd.concat(parts).dropna(subset="value"))
    if facet:
        shown["panel"] = shown[facet].map(lambda name: f"{facet} {html_label(name)}")
    return shown


def _name_axes(figure, metrics, facet):
    """Name each panel of a facet; the axis of a metric has its name, and several have no scale."""
    name_panels(figure)
    if not facet:
        figure.layout.annotations = ()
    for column, metric in enumerate(metrics, 1):
        figure.update_yaxes(title=html_label(metric), col=column)
    if len(metrics) > 1:
        figure.update_yaxes(matches=None, showticklabels=True)


def _add_references(figure, diagonal):
    """Draw a dotted line from (0, 0) to (1, 1), once in the legend, and dot other references."""
    if diagonal:
        style = {"mode": "lines", "name": diagonal, "showlegend": False}
        figure.add_scatter(x=[0, 1], y=[0, 1], row="all", col="all", **style)
        figure.data[-1].showlegend = True
    dotted = {"dash": "dot", "color": GREY}
    for name in REFERENCES:
        figure.update_traces(line=dotted, selector={"name": name})


def _dodged(x, system, is_log):
    """Move the points of each system sideways, all together by as much to the left as right."""
    step = system - system.max() / 2
    if is_log:
        return x * DODGE_LOG**step
    return x + x.max() * DODGE * step


def _best_line(rows, x, y, colour, at, facet):
    """Say which system has the best value at an x, or at the next larger one, in one panel."""
    first = rows[rows["panel"] == rows["panel"].iloc[0]]
    at = min(at, first[x].max())
    reached = first[first[x] >= at].sort_values(x, kind="stable")
    top = best_row(reached.groupby(colour).first(), y)
    finding = f"at {at:,g} {label(x)}, {label(top.name)} has the {_best(y)}: {top['value']:,.3g}"
    if facet:
        finding += f", {facet} {label(first[facet].iloc[0])}"
    return finding


def _best(metric):
    """Return what the best value of a metric is called: "highest MRR", "lowest EER"."""
    if metric in LOWER_IS_BETTER:
        return f"lowest {label(metric)}"
    return f"highest {label(metric)}"


def learning_curves(
    histories: dict[str, pd.DataFrame], against: str = "step", metric: str = "MRR"
) -> go.Figure:
    """Draw the loss and a metric of dev or test authors of each training, by step or by time.

    Losses of different trainings cannot be compared, so that of several trainings each is drawn as
    a share of its first value.

    Parameters
    ----------
    histories : dict
        name of a training -> columns ``step``, ``seconds``, ``loss`` and the one of ``metric``
    against : str
        column of the x axis: "step" or "seconds"
    metric : str
        the metric to draw, such as "MRR" (of dev authors) or "test_R@8"

    References
    ----------
    khan2021, Figure 5
    """
    rows = pd.concat(histories, names=["training", "row"]).reset_index()
    loss = "training loss"
    if len(histories) > 1:
        loss = "training loss, share of its first value"
        rows["loss"] /= rows.groupby("training")["loss"].transform("first")
    authors = metric if metric.startswith("test_") else f"dev {metric}"
    rows = rows.rename(columns={"loss": loss, metric: authors})
    top = rows.iloc[rows[authors].argmax()]
    finding = (
        f"{label(top['training'])} reaches a {label(authors)} of {top[authors]:.2f} "
        f"({label(against)}: {top[against]:,.0f})"
    )
    if len(histories) > 1:
        finding += f", the best of {len(histories)} trainings"
    figure = lines(rows, against, [loss, authors], "training", finding)
    return figure.update_yaxes(rangemode="tozero", col=2)


def reliability(tables: dict[str, pd.DataFrame], note: str = "") -> go.Figure:
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
    """
    distances = []
    for name, table in tables.items():
        counts = table[["same", "different"]]
        weights = (counts / counts.sum()).sum(axis=1)
        distance = np.average((table["predicted"] - table["observed"]).abs(), weights=weights)
        distances.append(f"{distance:.2f} ({label(name)})")
    finding = f"probabilities differ from the true shares by {', '.join(distances)} on average"
    if note:
        finding += f" ({note})"
    rows = pd.concat(tables, names=["system", "bin"]).reset_index()
    style = {"width": 680, "height": 680}
    figure = lines(rows, "predicted", "observed", "system", finding, diagonal="perfect", **style)
    return figure.update_xaxes(range=[0, 1]).update_yaxes(range=[0, 1.005])


def cumulative(values: dict[str, np.ndarray], x: str, share: str) -> pd.DataFrame:
    """Return the share of values that are at most x, for 200 of x at equal ratios.

    Parameters
    ----------
    values : dict
        name of a series -> its N values, counts
    x, share : str
        names of the columns of x and of the share

    Returns
    -------
    Columns ``series``, x and share.
    """
    largest = max(np.max(numbers) for numbers in values.values())
    places = np.unique(np.geomspace(1, largest, 200).round().astype(int))
    shares = pd.DataFrame({x: places})
    for series, numbers in values.items():
        shares[series] = np.searchsorted(np.sort(numbers), places, side="right") / len(numbers)
    return shares.melt(x, var_name="series", value_name=share)


def columns(
    rows: pd.DataFrame,
    x: str,
    y: str,
    title: str,
    colour: str | None = None,
    **style: Any,
) -> go.Figure:
    """Draw one column per x, such as a month or a bin, in parts by colour.

    Parameters
    ----------
    rows : DataFrame
        one row per column or part of it, with the columns named below
    x, y : str
        columns of the axes
    title : str
        finding
    colour : str or None
        column of the parts
    **style : Any
        further arguments of plotly.express.bar, such as ``barmode``
    """
    labels = {x: html_label(x), y: html_label(y)}
    if colour:
        rows = rows.assign(**{colour: rows[colour].map(html_label)})
        labels[colour] = ""
    figure = px.bar(rows, x=x, y=y, color=colour, labels=labels, **style)
    return set_title(figure.update_layout(bargap=0.05), title)


def matrices(values: dict[str, np.ndarray], names: list[str], authors: np.ndarray) -> go.Figure:
    """Draw matrices of pairs of texts as heat maps with their values, in two columns.

    The diagonal is left blank. The title gives, for each matrix, the AUC with which its values tell
    same-author pairs from different-author pairs.

    Parameters
    ----------
    values : dict
        title of a matrix -> (N, N), one value for each pair of N texts
    names : list of str
        names of the N texts
    authors : (N,)
        author of each text; at least one pair must have the same author, and one different ones
    """
    from sklearn.metrics import roc_auc_score  # here, as it takes most of a second

    authors = np.asarray(authors)
    is_same = authors[:, None] == authors
    is_pair = ~np.eye(len(names), dtype=bool)
    stack = np.stack([np.where(is_pair, matrix, np.nan) for matrix in values.values()])
    texts = [escape_html(name) for name in names]
    figure = px.imshow(
        stack,
        x=texts,
        y=texts,
        facet_col=0,
        facet_col_wrap=2,
        facet_row_spacing=0.08,
        text_auto=".2f",
        aspect="auto",
        labels={"x": "text", "y": "text"},
        width=900,
        height=140 + 350 * ((len(values) + 1) // 2),
    )
    # matrices of different ranges share no scale
    figure.update_traces(coloraxis=None, colorscale="Blues", showscale=False, textfont_size=9)
    figure.update_xaxes(tickangle=90)
    titles = [escape_html(name) for name in values]
    for annotation in figure.layout.annotations:
        annotation.text = titles[int(annotation.text.removeprefix("facet_col="))]
    aucs = [
        f"{roc_auc_score(is_same[is_pair], matrix[is_pair]):.2f} ({name})"
        for name, matrix in zip(values, stack)
    ]
    finding = "AUC of same-author pairs against different-author pairs: "
    return set_title(figure, finding + ", ".join(aucs))


def author_map(
    points: pd.DataFrame, title: str, linked: Iterable[tuple[int, int]] | None = None
) -> go.Figure:
    """Draw samples as points in the colours of their authors, or accounts and which are linked.

    Hovering shows a post. A line joins the points of an author in a panel, in the order of the
    rows; with ``linked``, it joins the accounts that are linked.

    Parameters
    ----------
    points : DataFrame
        one row per point; columns ``x``, ``y``, ``author``, ``posts`` (how many the point stands
        for, sets its size), ``text`` (shown on hovering) and, for samples, ``panel``
    title : str
        finding
    linked : iterable of (int, int) or None
        pairs of rows of accounts that are linked; None for samples

    References
    ----------
    khan2021, Figure 1
    """
    names = points["author"].map(html_name)
    shown = points.assign(author=names, text=points["text"].map(html_post))
    style = {}
    if linked is None:
        style = {"color": "author", "facet_col": "panel"}
    figure = px.scatter(
        shown,
        x="x",
        y="y",
        size="posts",
        size_max=14,
        opacity=0.75,
        hover_name="author",
        hover_data={"x": False, "y": False, "author": False, "text": True},
        labels={"author": ""},
        width=950,
        height=540,
        **style,
    )
    if linked is None:
        figure.update_traces(mode="lines+markers", line_width=0.7)
        linked = ()
    for pair in {tuple(sorted(pair)) for pair in linked}:
        ends = points.iloc[list(pair)]
        line = {"color": COLOURS[1], "width": 3}
        figure.add_scatter(
            x=ends["x"], y=ends["y"], mode="lines", line=line, hoverinfo="skip", showlegend=False
        )
    name_panels(figure)
    figure.update_xaxes(showticklabels=False, matches=None, title="map, first axis (no unit)")
    figure.update_yaxes(showticklabels=False, matches=None)
    figure.update_yaxes(title="map, second axis (no unit)", col=1)
    return set_title(figure.update_layout(legend_itemsizing="constant"), title)
