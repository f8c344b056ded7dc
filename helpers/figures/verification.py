"""Figures of verification (tyo2021): scores of pairs of one author and of two, thresholds, and hard comparisons."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from helpers.core.names import label
from helpers.figures.results import select_results, with_interval
from helpers.figures.style import COLOURS, GREY, error_bars, html_label, set_title

BINS = 51  # an odd number: 0.5, which is no answer, is inside one


def score_histograms(scores: np.ndarray, same: np.ndarray, model: str, note: str = "") -> go.Figure:
    """Draw the scores of pairs of one author and of two authors (tyo2021 Figure 2a); a score of 0.5 is no answer.

    scores : (N,) in [0, 1]. same : (N,) bool, of one author. model : the name of the system.
    """
    scores, same = np.asarray(scores), np.asarray(same, bool)
    figure = go.Figure(layout={"barmode": "overlay", "bargap": 0})
    for name, chosen in (("one author", same), ("two authors", ~same)):
        count, edges = np.histogram(scores[chosen], np.linspace(0, 1, BINS + 1))
        figure.add_bar(x=(edges[1:] + edges[:-1]) / 2, y=count / max(count.sum(), 1), opacity=0.6,
                       name=f"{name}, {count.sum():,} pairs")  # fmt: skip
    figure.add_vline(0.5, line_dash="dash", line_color=GREY)
    figure.update_xaxes(title="score: 0 two authors, 0.5 no answer, 1 one author", range=[0, 1])
    figure.update_yaxes(title="share of all pairs of this kind", tickformat=".0%")
    answered = scores != 0.5
    right = np.mean((scores > 0.5)[answered] == same[answered]) if answered.any() else 0.0
    finding = (f"{label(model)} leaves {1 - answered.mean():.0%} of {len(scores):,} pairs unanswered and is correct on "
               f"{right:.0%} of the others")  # fmt: skip
    return set_title(figure, finding, note)


def threshold_heat_map(table: pd.DataFrame, model: str, note: str = "") -> go.Figure:
    """Draw PAN overall by the two thresholds (tyo2021 Figure 2b) and mark its maximum, of several the first.

    table : columns ``lower``, ``upper``, ``overall``, one row a combination, at least one.
    """
    grid, top = (
        table.pivot(index="upper", columns="lower", values="overall"),
        table.loc[table.overall.idxmax()],
    )
    figure = go.Figure(layout={"width": 660, "height": 560})
    figure.add_heatmap(x=grid.columns, y=grid.index, z=grid, colorscale="Viridis", colorbar_title=html_label("overall"),
                       hovertemplate="lower %{x:.3f}, upper %{y:.3f}: %{z:.3f}<extra></extra>")  # fmt: skip
    figure.add_scatter(x=[top.lower], y=[top.upper], mode="markers", showlegend=False,
                       marker={"color": COLOURS[1], "size": 12, "line": {"color": "white", "width": 2}})  # fmt: skip
    figure.update_xaxes(title="lower threshold (probability)").update_yaxes(
        title="upper threshold (probability)"
    )
    finding = (
        f"{label(model)} has its highest {label('overall')}, {top.overall:.3f}, at the thresholds "
    )
    finding += f"{top.lower:.2f} and {top.upper:.2f}"
    return set_title(figure, finding, note)


def hard_comparisons(results: pd.DataFrame, note: str = "") -> go.Figure:
    """Draw AUC over all pairs and hard AUC, one row a system; the dotted line is chance.

    results : tidy rows of one split with the metrics ``AUC`` and ``hardest_AUC``, see :mod:`helpers.figures.results`.
    """
    hard, every = (
        select_results(results, metric).sort_values("value") for metric in ("hardest_AUC", "AUC")
    )
    figure = go.Figure(layout={"height": 170 + 42 * len(hard)})
    for rows, name, up in ((every.set_index("name").loc[hard.name].reset_index(), "AUC, all pairs", 0.12),
                           (hard, label("hardest_AUC"), -0.12)):  # fmt: skip
        figure.add_scatter(x=rows.value, y=np.arange(len(rows)) + up, mode="markers", name=name, marker_size=10,
                           error_x=error_bars(rows))  # fmt: skip
    figure.add_vline(0.5, line_dash="dot", line_color=GREY)
    figure.update_xaxes(title="AUC, with 95% intervals")
    figure.update_yaxes(title="system", tickvals=np.arange(len(hard)), ticktext=hard.name)
    top, below = hard.iloc[-1], (hard.value < 0.5).sum()
    finding = (f"{top.plain} has the highest {label('hardest_AUC')}, {with_interval(top)}; "
               f"{below or 'none'} of {len(hard)} systems {'are' if below > 1 else 'is'} below chance")  # fmt: skip
    return set_title(figure, finding, note)
