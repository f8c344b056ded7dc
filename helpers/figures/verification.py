"""Figures of verification (tyo2021): scores of pairs, the two thresholds, and hardest pairs."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from ..core.results import INTERVAL, format_interval
from .results import select_results
from .style import COLOURS, DASHED, DOTTED, error_bars, html_label, set_title

BINS = 51  # odd, so that 0.5, the score for "no answer", is in the middle of a bin


def score_histograms(scores: np.ndarray, same: np.ndarray, model: str, note: str = "") -> go.Figure:
    """Draw histograms of the scores of same-author pairs and of different-author pairs.

    Parameters
    ----------
    scores : (N,)
        scores of N pairs in [0, 1]; exactly 0.5 means that the system gives no answer
    same : (N,) bool
        whether one author wrote both texts of the pair
    model : str
        identifier or name of the system
    note : str
        text in brackets after the title

    References
    ----------
    tyo2021, Figure 2a
    """
    scores = np.asarray(scores)
    same = np.asarray(same, bool)
    figure = go.Figure(layout={"barmode": "overlay", "bargap": 0})
    edges = np.linspace(0, 1, BINS + 1)
    for name, is_shown in (("one author", same), ("two authors", ~same)):
        count, _ = np.histogram(scores[is_shown], edges)
        figure.add_bar(
            x=(edges[1:] + edges[:-1]) / 2,
            y=count / max(count.sum(), 1),
            opacity=0.6,
            name=f"{name}, {count.sum():,} pairs",
        )
    figure.add_vline(0.5, **DASHED)
    figure.update_xaxes(title="score: 0 two authors, 0.5 no answer, 1 one author", range=[0, 1])
    figure.update_yaxes(title="share of all pairs of this kind", tickformat=".0%")

    answered = scores != 0.5
    is_right = (scores > 0.5) == same
    correct = is_right[answered].mean() if answered.any() else 0.0
    finding = (
        f"{label(model)} leaves {1 - answered.mean():.0%} of {len(scores):,} pairs unanswered "
        f"and is correct on {correct:.0%} of the others"
    )
    return set_title(figure, finding, note)


def threshold_heat_map(table: pd.DataFrame, model: str, note: str = "") -> go.Figure:
    """Draw PAN overall by the two thresholds as a heat map, and mark its maximum.

    Of several equal maxima the first is marked.

    Parameters
    ----------
    table : DataFrame
        one row per combination of thresholds, at least one; columns ``lower``, ``upper`` (the
        thresholds, as probabilities), ``overall``
    model : str
        identifier or name of the system
    note : str
        text in brackets after the title

    References
    ----------
    tyo2021, Figure 2b
    """
    grid = table.pivot(index="upper", columns="lower", values="overall")
    top = table.loc[table.overall.idxmax()]
    figure = go.Figure(layout={"width": 660, "height": 560})
    figure.add_heatmap(
        x=grid.columns,
        y=grid.index,
        z=grid,
        colorscale="Viridis",
        colorbar_title=html_label("overall"),
        hovertemplate="lower %{x:.3f}, upper %{y:.3f}: %{z:.3f}<extra></extra>",
    )
    figure.add_scatter(
        x=[top.lower],
        y=[top.upper],
        mode="markers",
        showlegend=False,
        marker={"color": COLOURS[1], "size": 12, "line": {"color": "white", "width": 2}},
    )
    figure.update_xaxes(title="lower threshold (probability)")
    figure.update_yaxes(title="upper threshold (probability)")
    finding = (
        f"{label(model)} has its highest {label('overall')}, {top.overall:.3f}, "
        f"at the thresholds {top.lower:.2f} and {top.upper:.2f}"
    )
    return set_title(figure, finding, note)


def hard_comparisons(results: pd.DataFrame) -> go.Figure:
    """Draw AUC over all pairs and AUC over the hardest pairs, one row per system.

    The dotted line is chance. The title counts the systems that are below it on the hardest pairs.

    Parameters
    ----------
    results : DataFrame
        tidy rows of one split with the metrics ``AUC`` and ``hardest_AUC``, see
        :func:`helpers.figures.results.select_results`; every system with ``hardest_AUC`` needs
        ``AUC`` too
    """
    hard = select_results(results, "hardest_AUC").sort_values("value")
    of_all = select_results(results, "AUC").set_index("name").loc[hard.name]
    figure = go.Figure(layout={"height": 170 + 42 * len(hard)})
    place = np.arange(len(hard))
    for rows, name, y in (
        (of_all, "AUC, all pairs", place + 0.12),
        (hard, label("hardest_AUC"), place - 0.12),
    ):
        figure.add_scatter(
            x=rows.value, y=y, mode="markers", name=name, marker_size=10, error_x=error_bars(rows)
        )
    figure.add_vline(0.5, **DOTTED)
    figure.update_xaxes(title="AUC, with 95% intervals")
    figure.update_yaxes(title="system", tickvals=place, ticktext=hard.name)

    top = hard.iloc[-1]
    n_below = (hard.value < 0.5).sum()
    verb = "are" if n_below > 1 else "is"
    finding = (
        f"{top.plain} has the highest {label('hardest_AUC')}, {format_interval(*top[INTERVAL])}; "
        f"{n_below or 'none'} of {len(hard)} systems {verb} below chance"
    )
    return set_title(figure, finding)
