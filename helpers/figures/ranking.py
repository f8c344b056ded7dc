"""Figures of ranking: the rank of each query's own account, as a curve over ranks."""

import numpy as np
import plotly.graph_objects as go

from helpers.core.names import label
from helpers.figures.style import GREY, html_label, set_title


def rank_curves(
    ranks: dict[str, np.ndarray], targets: int, split: str = "test", note: str = ""
) -> go.Figure:
    """Draw the share of queries whose own account is among the k best, for every k; the dotted line is chance.

    Parameters
    ----------
    ranks : name of a system -> (Q,) ranks from 1.
    targets : accounts of the gallery, T.
    split : identifier of the accounts that are ranked, for the title.
    """
    figure = go.Figure(layout={"height": 440 + 22 * len(ranks)})
    k_values = np.unique(np.geomspace(1, targets, 60, dtype=int))
    for name, rank in ranks.items():
        figure.add_scatter(
            x=k_values, y=[(rank <= k).mean() for k in k_values], name=html_label(name)
        )
    figure.add_scatter(
        x=k_values, y=k_values / targets, name="chance", line={"dash": "dot", "color": GREY}
    )
    figure.update_xaxes(title="k, accounts looked at", type="log", dtick=1)
    figure.update_yaxes(title="accounts found, R@k", range=[0, 1.02], tickformat=".0%")
    k = min(8, targets)
    quality = {
        name: (np.mean(rank <= k), np.mean(1 / rank)) for name, rank in ranks.items()
    }  # MRR where R@k is equal
    top = max(quality, key=quality.get)
    finding = (f"{label(top)} finds {quality[top][0]:.0%} of the {label(split)} accounts among the {k} best of "
               f"{targets:,}, chance {k / targets:.0%}")  # fmt: skip
    return set_title(figure, finding, note)
