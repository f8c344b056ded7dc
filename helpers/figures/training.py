"""Figures of training: what the loss and the ranking of dev authors did."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.core.names import label
from helpers.figures.results import best_system
from helpers.figures.style import GREY, colour_map, error_bars, html_label, set_title

DODGE = 0.006  # whiskers at one x stand beside each other, so much of the axis apart


def learning_curves(histories: dict[str, pd.DataFrame], against: str = "step", levels: dict[str, float] | None = None,
                    metric: str = "MRR", note: str = "") -> go.Figure:  # fmt: skip
    """Draw the loss and the dev metric of each training (khan2021, Figure 5).

    Losses of several trainings have no unit in common, so each is drawn as a share of its first value.

    histories : label of a model -> columns ``step``, ``seconds``, ``loss``, ``metric`` and perhaps its ends.
    levels : baseline -> its dev metric, a dashed line.
    """
    several = len(histories) > 1
    loss_name = "training loss, share of its first value" if several else "training loss"
    figure = make_subplots(
        1, 2, subplot_titles=[loss_name, f"ranking of dev authors, {label(metric)}"]
    )
    reached = []
    for number, (name, colour) in enumerate(colour_map(histories).items()):
        history, style = (
            histories[name],
            {"mode": "lines+markers", "line_color": colour, "legendgroup": html_label(name)},
        )
        loss, score = history.dropna(subset="loss"), history.dropna(subset=metric)
        shares = loss.loss / loss.loss.iloc[0] if several else loss.loss
        figure.add_scatter(x=loss[against], y=shares, name=html_label(name), **style, row=1, col=1)
        ends = error_bars(score, metric, f"{metric}_low", f"{metric}_high")
        apart = score[against].max() * DODGE * (number - (len(histories) - 1) / 2) if ends else 0
        figure.add_scatter(x=score[against] + apart, y=score[metric], name=html_label(name), error_y=ends, **style,
                           showlegend=False, row=1, col=2)  # fmt: skip
        reached.append(score.assign(model=name, value=score[metric]))
    for name, value in (levels or {}).items():
        figure.add_hline(value, line_dash="dash", line_color=GREY, annotation_text=html_label(name),
                         annotation_position="top left", row=1, col=2)  # fmt: skip
    figure.update_xaxes(title=html_label(against)).update_yaxes(title=loss_name, row=1, col=1)
    figure.update_yaxes(title=f"dev {html_label(metric)}", rangemode="tozero", row=1, col=2)
    top = best_system(pd.concat(reached, ignore_index=True), metric)
    place = (
        f"after {top[against]:,.0f} s" if against == "seconds" else f"at step {top[against]:,.0f}"
    )
    rest = f", the best of {len(histories)} trainings" if several else ""
    figure.update_layout(showlegend=several)
    return set_title(
        figure,
        f"{label(top.model)} reaches a dev {label(metric)} of {top.value:.2f} {place}{rest}",
        note,
    )
