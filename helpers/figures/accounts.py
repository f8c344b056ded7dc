"""Figures of own accounts: parts of a score, rank by number of posts read, and a map."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from .style import COLOURS, escape_html, html_label, html_name, panels, set_title

# number of features shown that speak for one person (True) and against (False)
FEATURES_OF_A_SIGN = {True: 12, False: 6}
MAX_FEATURE_LETTERS = 30
MAX_NAME_LETTERS = 20  # letters of an account's name that a title shows
MAX_POST_LETTERS = 90  # letters of a post that hovering shows


def evidence_bars(sums: pd.DataFrame, features: pd.DataFrame, pair: tuple[str, str]) -> go.Figure:
    """Draw the parts of a pair's score: by member, and the strongest features for and against.

    Parameters
    ----------
    sums : DataFrame
        columns ``member``, ``contribution``; the last row is the total
    features : DataFrame
        columns ``member``, ``feature``, ``contribution``; largest absolute contribution first
    pair : (str, str)
        names of the two accounts, for the title
    """
    axis = "part of the score (no unit)"
    figure = panels(
        {"by member": (axis, "member"), "strongest features": (axis, "feature, member")},
        column_widths=[0.4, 0.6],
        horizontal_spacing=0.3,
    )
    members = sums.iloc[::-1]
    names = [html_label(member) for member in members.member]
    _add_signed_bars(figure, 1, members.contribution, names)

    is_for = features.contribution > 0
    strongest = [features[is_for == sign].head(n) for sign, n in FEATURES_OF_A_SIGN.items()]
    strongest = pd.concat(strongest).sort_values("contribution")
    rows = list(range(len(strongest)))
    _add_signed_bars(figure, 2, strongest.contribution, rows)
    names = [
        f"{escape_html(repr(feature[:MAX_FEATURE_LETTERS]))} · {html_label(member)}"
        for feature, member in zip(strongest.feature, strongest.member)
    ]
    figure.update_yaxes(tickvals=rows, ticktext=names, col=2)
    figure.update_layout(showlegend=False, height=520, width=1000)

    *parts, total = sums.contribution
    top = sums.iloc[np.argmax(parts)]
    first, second = (name[:MAX_NAME_LETTERS] for name in pair)
    finding = (
        f"{label(top.member)} adds most to the score of {first} and {second}: "
        f"{top.contribution:.2f} of {total:.2f}"
    )
    return set_title(figure, finding)


def _add_signed_bars(figure: go.Figure, column: int, values: pd.Series, y: Any) -> None:
    """Add bars to a panel: blue where the value is positive, for one person, else orange."""
    colours = np.where(values > 0, COLOURS[0], COLOURS[1])
    figure.add_bar(x=values, y=y, orientation="h", marker_color=colours, row=1, col=column)


def linkability_curves(curve: pd.DataFrame, account: str, accounts: int) -> go.Figure:
    """Draw probability and rank of an account's newer half by posts read of its older half.

    Parameters
    ----------
    curve : DataFrame
        columns ``posts`` (number read, rising), ``probability``, ``rank`` (1 is best)
    account : str
        name of the account
    accounts : int
        number of accounts that are ranked
    """
    axis = "posts of the older half that are read"
    figure = panels(
        {
            "probability": (axis, "probability of one person"),
            f"rank among {accounts:,}": (axis, "rank, 1 is best"),
        },
        horizontal_spacing=0.12,
    )
    ranks = curve["rank"]
    figure.add_scatter(x=curve.posts, y=curve.probability, mode="lines+markers", row=1, col=1)
    figure.add_scatter(
        x=curve.posts, y=ranks, mode="lines+markers", marker_color=COLOURS[1], row=1, col=2
    )
    figure.update_xaxes(type="log", tickvals=curve.posts)
    figure.update_yaxes(range=[0, 1.02], col=1)
    worst = np.log10(max(ranks.max(), 10))
    figure.update_yaxes(type="log", range=[1.05 * worst, -0.05], dtick=1, col=2)
    figure.update_layout(showlegend=False)

    stays_first = ranks[::-1].cummax()[::-1] == 1
    where = "does not rank first"
    if stays_first.any():
        where = f"ranks first from {curve.posts[stays_first].iloc[0]} posts on"
    last = curve.iloc[-1]
    finding = (
        f"the newer half of {account[:MAX_NAME_LETTERS]} {where}; with all {last.posts:.0f} posts "
        f"its probability is {last.probability:.2f}"
    )
    return set_title(figure, finding)


def account_map(
    points: np.ndarray,
    names: list[str],
    sizes: np.ndarray,
    linked: list[tuple[int, int]],
    posts: list[str],
) -> go.Figure:
    """Draw accounts as points on a map, with a line between linked accounts.

    Hovering over a point shows the account's name and the beginning of one post.

    Parameters
    ----------
    points : (N, 2)
        coordinates of N accounts
    names : list of str
        names of the N accounts
    sizes : (N,) int
        number of posts of each account, which sets the size of its point
    linked : list of (int, int)
        pairs of rows of ``points`` that are linked; the order within a pair is ignored
    posts : list of str
        text of one post per account; it is escaped
    """
    figure = go.Figure(layout={"height": 560})
    pairs = {tuple(sorted(pair)) for pair in linked}  # a pair may be given in both directions
    for pair in pairs:
        x, y = points[list(pair)].T
        line = {"color": COLOURS[1], "width": 3}
        figure.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        x=points[:, 0],
        y=points[:, 1],
        mode="markers",
        marker={"size": 5 + np.sqrt(sizes), "color": COLOURS[0], "opacity": 0.7},
        showlegend=False,
        hoverinfo="text",
        text=[
            f"{html_name(name)}<br>{escape_html(post[:MAX_POST_LETTERS])}"
            for name, post in zip(names, posts)
        ],
    )
    figure.update_xaxes(showticklabels=False, title="map, first axis (no unit)")
    figure.update_yaxes(showticklabels=False, title="map, second axis (no unit)")
    are_linked = "pair is linked" if len(pairs) < 2 else "pairs are linked"
    return set_title(figure, f"{len(names):,} accounts; {len(pairs) or 'no'} {are_linked}")


def explorer(points: np.ndarray, names: list[str], sizes: np.ndarray, posts: list[str]) -> Any:
    """Return an interactive map of accounts for a notebook.

    Hovering over a point shows the account and one post; selecting points with the lasso lists
    their names in a text field below the map.

    Parameters
    ----------
    points, names, sizes, posts :
        as in :func:`account_map`; ``sizes`` are shown as numbers only, all points are equally large

    Raises
    ------
    ValueError
        where the library jupyter-scatter is not installed
    """
    try:
        import ipywidgets
        import jscatter
    except ImportError:
        raise ValueError(
            "explore is True, which needs jupyter-scatter: pip install jupyter-scatter"
        ) from None
    x, y = points.T
    frame = pd.DataFrame({"x": x, "y": y, "account": names, "posts": sizes, "post": posts})
    scatter = jscatter.Scatter("x", "y", frame, height=480, size=8)
    shown = {"preview": "post", "preview_type": "text", "preview_text_lines": 4}
    scatter.tooltip(True, properties=["account", "posts"], **shown)
    area = ipywidgets.Textarea(description="chosen", layout={"width": "auto", "height": "9em"})
    scatter.widget.observe(partial(_list_names, area, names), "selection")
    return ipywidgets.VBox([scatter.show(), area])


# Write the names of the selected points, one per line, into the text field.
def _list_names(area: Any, names: list[str], change: dict) -> None:
    area.value = "\n".join(names[row] for row in change["new"])
