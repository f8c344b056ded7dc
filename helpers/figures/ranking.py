"""Figures of ranking: the share of queries whose own account is found among the k best."""

import numpy as np
import plotly.graph_objects as go

from ..core.names import label
from .style import DOTTED, html_label, set_title


def rank_curves(ranks: dict[str, np.ndarray], targets: int, split: str = "test") -> go.Figure:
    """Draw the share of queries whose own account is among the k best; the dotted line is chance.

    Parameters
    ----------
    ranks : dict
        name of a system -> (Q,), for each of Q queries the rank of its own account, 1 is best
    targets : int
        number of accounts in the gallery
    split : str
        identifier of the split of the queries, for the title
    """
    figure = go.Figure(layout={"height": 440 + 22 * len(ranks)})
    k_values = np.unique(np.geomspace(1, targets, 60, dtype=int))
    for name, rank in ranks.items():
        shares = [(rank <= k).mean() for k in k_values]
        figure.add_scatter(x=k_values, y=shares, name=html_label(name))
    figure.add_scatter(x=k_values, y=k_values / targets, name="chance", **DOTTED)
    figure.update_xaxes(title="k, accounts looked at", type="log", dtick=1)
    figure.update_yaxes(title="accounts found, R@k", range=[0, 1.02], tickformat=".0%")

    k = min(8, targets)
    # of systems with equal recall, the title names the one with the highest MRR
    quality = {name: (np.mean(rank <= k), np.mean(1 / rank)) for name, rank in ranks.items()}
    top = max(quality, key=quality.get)
    recall, _ = quality[top]
    finding = (
        f"{label(top)} finds {recall:.0%} of the {label(split)} accounts among the {k} best of "
        f"{targets:,}, chance {k / targets:.0%}"
    )
    return set_title(figure, finding)
