"""Figures of training: the course of the loss and of the ranking of dev authors."""

import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from .results import best_system
from .style import DASHED, colour_map, error_bars, html_label, panels, set_title

DODGE = 0.006  # distance between two error bars at one x, as a share of the x axis


def learning_curves(
    histories: dict[str, pd.DataFrame],
    against: str = "step",
    levels: dict[str, float] | None = None,
    metric: str = "MRR",
    authors: str = "dev",
) -> go.Figure:
    """Draw the loss and the metric of dev or test authors of each training, by step or by time.

    Losses of different trainings cannot be compared, so that of several trainings each is drawn as
    a share of its first value.

    Parameters
    ----------
    histories : dict
        label of a model -> columns ``step``, ``seconds``, ``loss``, the one of ``metric`` (after
        ``test_`` for test authors), and optionally this name with ``_low`` and ``_high``, the ends
        of its interval; rows without a loss or without the metric are left out of the one panel
    against : str
        column of the x axis: "step" or "seconds"
    levels : dict or None
        identifier of a baseline -> its metric, drawn as a dashed line
    metric : str
        the metric to draw
    authors : str
        whose ranking is drawn: "dev" or "test"

    References
    ----------
    khan2021, Figure 5
    """
    several = len(histories) > 1
    loss_title = "training loss, share of its first value" if several else "training loss"
    x_title = html_label(against)
    score_title = f"ranking of {authors} authors, {label(metric)}"
    score_axis = f"{authors} {html_label(metric)}"
    column = metric if authors == "dev" else f"{authors}_{metric}"
    figure = panels({loss_title: (x_title, loss_title), score_title: (x_title, score_axis)})
    colours = colour_map(histories)
    scores = []
    for number, (name, history) in enumerate(histories.items()):
        style = {"name": html_label(name), "legendgroup": html_label(name)}
        style |= {"mode": "lines+markers", "line_color": colours[name]}
        loss = history.dropna(subset="loss")
        first_loss = loss.loss.iloc[0] if several else 1
        figure.add_scatter(x=loss[against], y=loss.loss / first_loss, **style, row=1, col=1)

        score = history.dropna(subset=column)
        ends = error_bars(score, column, f"{column}_low", f"{column}_high")
        x = score[against]
        if ends:
            x = x + x.max() * DODGE * (number - (len(histories) - 1) / 2)
        style |= {"showlegend": False, "error_y": ends}
        figure.add_scatter(x=x, y=score[column], **style, row=1, col=2)
        scores.append(score.assign(model=name, value=score[column]))
    for name, value in (levels or {}).items():
        style = {"annotation_text": html_label(name), "annotation_position": "top left"}
        figure.add_hline(value, **DASHED, **style, row=1, col=2)
    figure.update_yaxes(rangemode="tozero", col=2).update_layout(showlegend=several)
    scores = pd.concat(scores, ignore_index=True)
    return set_title(figure, _best_training(scores, against, metric, authors))


def _best_training(scores: pd.DataFrame, against: str, metric: str, authors: str) -> str:
    """Say which training reaches the best metric, and when."""
    top = best_system(scores, metric)
    finding = f"{label(top.model)} reaches a {authors} {label(metric)} of {top.value:.2f} "
    if against == "seconds":
        finding += f"after {top.seconds:,.0f} s"
    else:
        finding += f"at step {top.step:,.0f}"
    trainings = scores.model.nunique()
    if trainings > 1:
        finding += f", the best of {trainings} trainings"
    return finding
