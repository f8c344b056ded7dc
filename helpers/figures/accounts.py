"""Figures of own accounts: the parts of a score, how soon an account is found, and a map of all accounts."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.core.names import label
from helpers.figures.style import COLOURS, escape_html, html_label, html_name, set_title

SHOWN = 12  # features of each sign
LETTERS = 30  # of a feature


def evidence_bars(
    sums: pd.DataFrame, features: pd.DataFrame, pair: tuple[str, str], note: str = ""
) -> go.Figure:
    """Draw a pair's score by member, and the features that weigh most for and against one person.

    sums : columns ``member``, ``contribution``, the total last. features : ``member``, ``feature``, ``contribution``,
    largest first. pair : the two accounts.
    """
    figure = make_subplots(1, 2, subplot_titles=["by member", "strongest features"], column_widths=[0.4, 0.6],
                           horizontal_spacing=0.3)  # fmt: skip
    members = sums.iloc[::-1]
    figure.add_bar(y=[html_label(each) for each in members.member], x=members.contribution, orientation="h", row=1, col=1,
                   marker_color=_signed(members.contribution))  # fmt: skip
    signs = features.contribution > 0
    chosen = pd.concat(
        [features[signs].head(SHOWN), features[~signs].head(SHOWN // 2)]
    ).sort_values("contribution")
    names = [f"{escape_html(repr(text[:LETTERS]))} · {html_label(member)}"
             for text, member in zip(chosen.feature, chosen.member)]  # fmt: skip
    figure.add_bar(y=[*range(len(chosen))], x=chosen.contribution, orientation="h", row=1, col=2,
                   marker_color=_signed(chosen.contribution))  # fmt: skip
    figure.update_yaxes(title="member", row=1, col=1)
    figure.update_yaxes(
        title="feature, member", tickvals=[*range(len(chosen))], ticktext=names, row=1, col=2
    )
    figure.update_xaxes(title="part of the score (no unit)").update_layout(
        showlegend=False, height=520, width=1000
    )
    total, top = sums.contribution.iloc[-1], sums.iloc[:-1].contribution.idxmax()
    finding = (f"{label(sums.member[top])} adds most to the score of {pair[0][:20]} and {pair[1][:20]}: "
               f"{sums.contribution[top]:.2f} of {total:.2f}")  # fmt: skip
    return set_title(figure, finding, note)


def _signed(values: pd.Series) -> list[str]:
    return [COLOURS[0] if value > 0 else COLOURS[1] for value in values]


def linkability_curves(
    curve: pd.DataFrame, account: str, accounts: int, note: str = ""
) -> go.Figure:
    """Draw probability and rank of an account's newer half by posts read of its older one, columns of ``curve``."""
    figure = make_subplots(
        1, 2, subplot_titles=["probability", f"rank among {accounts:,}"], horizontal_spacing=0.12
    )
    figure.add_scatter(x=curve.posts, y=curve.probability, mode="lines+markers", row=1, col=1)
    figure.add_scatter(
        x=curve.posts, y=curve["rank"], mode="lines+markers", row=1, col=2, marker_color=COLOURS[1]
    )
    figure.update_xaxes(
        title="posts of the older half that are read", type="log", tickvals=curve.posts
    )
    figure.update_yaxes(title="probability of one person", range=[0, 1.02], row=1, col=1)
    worst = np.log10(max(curve["rank"].max(), 10))
    figure.update_yaxes(
        title="rank, 1 is best", type="log", range=[1.05 * worst, -0.05], dtick=1, row=1, col=2
    )
    first = curve.posts[curve["rank"][::-1].cummax()[::-1] == 1]  # and stays there
    where = f"ranks first from {first.iloc[0]} posts on" if len(first) else "does not rank first"
    last = (
        f"with all {curve.posts.iloc[-1]} posts its probability is {curve.probability.iloc[-1]:.2f}"
    )
    finding = f"the newer half of {account[:20]} {where}; {last}"
    return set_title(figure.update_layout(showlegend=False), finding, note)


def account_map(
    points: np.ndarray,
    names: list[str],
    sizes: np.ndarray,
    linked: list[tuple[int, int]],
    posts: list[str],
    note: str = "",
) -> go.Figure:
    """Draw accounts on a map (N, 2), a line between linked ones; hovering shows the beginning of a post, escaped."""
    figure, linked = (
        go.Figure(layout={"height": 560}),
        {tuple(sorted(pair)) for pair in linked},
    )  # in both directions
    for one, other in linked:
        figure.add_scatter(x=points[[one, other], 0], y=points[[one, other], 1], mode="lines", showlegend=False,
                           line={"color": COLOURS[1], "width": 3}, hoverinfo="skip")  # fmt: skip
    figure.add_scatter(x=points[:, 0], y=points[:, 1], mode="markers", showlegend=False, hoverinfo="text",
                       marker={"size": 5 + np.sqrt(sizes), "color": COLOURS[0], "opacity": 0.7},
                       text=[f"{html_name(name)}<br>{escape_html(post[:90])}" for name, post in zip(names, posts)])  # fmt: skip
    figure.update_xaxes(showticklabels=False, title="map, first axis (no unit)")
    figure.update_yaxes(showticklabels=False, title="map, second axis (no unit)")
    pairs = "pair is" if len(linked) < 2 else "pairs are"
    return set_title(figure, f"{len(names):,} accounts; {len(linked) or 'no'} {pairs} linked", note)


def explorer(points: np.ndarray, names: list[str], sizes: np.ndarray, posts: list[str]):
    """Show the same map as a widget: hover to read a post, lasso to list accounts. ValueError without its library."""
    try:
        import ipywidgets
        import jscatter
    except ImportError:
        raise ValueError(
            "explore is True, which needs jupyter-scatter: pip install jupyter-scatter"
        ) from None
    frame = pd.DataFrame(
        {"x": points[:, 0], "y": points[:, 1], "account": names, "posts": sizes, "post": posts}
    )
    scatter = jscatter.Scatter("x", "y", frame, height=480, size=8)
    scatter.tooltip(
        True,
        properties=["account", "posts"],
        preview="post",
        preview_type="text",
        preview_text_lines=4,
    )
    chosen = ipywidgets.Textarea(description="chosen", layout={"width": "auto", "height": "9em"})
    listed = lambda change: setattr(chosen, "value", "\n".join(names[row] for row in change["new"]))  # noqa: E731
    scatter.widget.observe(listed, "selection")
    return ipywidgets.VBox([scatter.show(), chosen])
