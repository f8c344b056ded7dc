"""Figures of ranking: whose own account comes how near the top."""

import numpy as np
import plotly.graph_objects as go

from helpers.runs.names import label
from helpers.figures.style import GREY, state, words


def rank_curves(ranks: dict[str, np.ndarray], targets: int, split: str = "test", note: str = "") -> go.Figure:
    """Share of queries whose own account is among the k best, for every k; the dotted line is chance.

    ranks : label of a model -> (Q,) ranks from 1. targets : accounts of the gallery.
    """
    figure, at = go.Figure(layout={"height": 440 + 22 * len(ranks)}), np.unique(np.geomspace(1, targets, 60, dtype=int))
    for name, rank in ranks.items():
        figure.add_scatter(x=at, y=[(rank <= k).mean() for k in at], name=words(name))
    figure.add_scatter(x=at, y=at / targets, name="chance", line={"dash": "dot", "color": GREY})
    figure.update_xaxes(title="k, accounts looked at", type="log", dtick=1)
    figure.update_yaxes(title="accounts found, R@k", range=[0, 1.02], tickformat=".0%")
    k = min(8, targets)
    shares = {name: np.mean(rank <= k) for name, rank in ranks.items()}
    top = max(shares, key=shares.get)
    finding = (f"{label(top)} finds {shares[top]:.0%} of the {label(split)} accounts among the {k} best of {targets:,}"
               f", chance {k / targets:.0%}")  # fmt: skip
    return state(figure, finding, note)
