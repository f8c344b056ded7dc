"""Figures of two lists of accounts: precision against recall, and a metric by overlap."""

import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from ..core.results import INTERVAL, format_interval
from .results import best_system, select_results
from .style import DASHED, colour_map, error_bars, html_label, panels, set_title

PRECISION = 0.9  # the title gives the recall at this precision
PANEL_WIDTH = 320  # in pixels


def precision_curves(curves: dict[float, dict[str, pd.DataFrame]], note: str = "") -> go.Figure:
    """Draw precision against recall of each system, in one panel for each overlap.

    The title names the system with the highest recall at 90% precision in the first panel.

    Parameters
    ----------
    curves : dict
        share of a list that has a partner in the other -> name of a system -> columns ``recall``
        and ``precision``, as :func:`helpers.evaluation.lists.precision_curve` returns them
    note : str
        text in brackets after the title
    """
    axes = ("recall: share of partners found", "precision: share of right answers")
    figure = panels({f"overlap {overlap:g}": axes for overlap in curves}, shared_yaxes=True)
    figure.update_yaxes(title="")
    figure.update_yaxes(title=axes[1], col=1)
    colours = colour_map(name for of_overlap in curves.values() for name in of_overlap)
    for column, of_overlap in enumerate(curves.values(), 1):
        for name, points in of_overlap.items():
            figure.add_scatter(
                x=points.recall,
                y=points.precision,
                name=html_label(name),
                mode="lines",
                line_color=colours[name],
                legendgroup=html_label(name),
                showlegend=column == 1,
                row=1,
                col=column,
            )
    figure.add_hline(PRECISION, **DASHED)
    figure.update_xaxes(range=[0, 1]).update_yaxes(range=[0, 1.01])
    figure.update_layout(width=100 + PANEL_WIDTH * len(curves), height=480)

    overlap, of_overlap = next(iter(curves.items()))
    recall = {name: _recall_at(points) for name, points in of_overlap.items()}
    top = max(recall, key=recall.get)
    finding = (
        f"at {PRECISION:.0%} precision {label(top)} finds {recall[top]:.0%} of the partners, the "
        f"most of {len(recall)} systems, where {overlap:.0%} of a list have one"
    )
    return set_title(figure, finding, note)


def _recall_at(points: pd.DataFrame) -> float:
    """Return the highest recall with a precision of PRECISION, 0 where there is none."""
    return points.recall[points.precision >= PRECISION].to_numpy().max(initial=0)


def bars_by_overlap(results: pd.DataFrame, metric: str, note: str = "") -> go.Figure:
    """Draw one bar for each system and overlap, with its interval.

    The title gives the best system of the largest overlap.

    Parameters
    ----------
    results : DataFrame
        tidy rows, columns ``model, label, metric, value, low, high`` and ``overlap``, the share of
        a list that has a partner in the other
    metric : str
        the metric to draw
    note : str
        text in brackets after the title
    """
    rows = select_results(results, metric, ("model", "overlap"))
    overlaps = sorted(set(rows.overlap), reverse=True)
    figure = go.Figure(layout={"barmode": "group"})
    for name, colour in colour_map(rows.name).items():
        bars = rows[rows.name == name].set_index("overlap").reindex(overlaps)
        figure.add_bar(
            x=[f"{overlap:g}" for overlap in overlaps],
            y=bars.value,
            name=name,
            marker_color=colour,
            error_y=error_bars(bars),
        )
    figure.update_xaxes(title="overlap: share of a list that has a partner", type="category")
    axis = html_label(metric)
    if error_bars(rows):
        axis += ", with 95% intervals"
    figure.update_yaxes(title=axis, rangemode="tozero")

    top = best_system(rows[rows.overlap == overlaps[0]], metric)
    finding = (
        f"{top.plain} is best where {top.overlap:.0%} of a list have a partner: {label(metric)} "
        f"{format_interval(*top[INTERVAL])}"
    )
    return set_title(figure, finding, note)
