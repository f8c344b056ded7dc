"""Every figure of the notebooks: data in, plotly figure out. Nothing here computes a result.

Text of posts may be hostile: whatever comes from a corpus is escaped before it reaches a label.
"""

from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from plotly.subplots import make_subplots
from scipy import stats

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A", "#8C564B", "#333333"]
pio.templates["authorbook"] = go.layout.Template(
    layout={
        "colorway": COLOURS, "font": {"size": 13}, "paper_bgcolor": "white", "plot_bgcolor": "white",
        "xaxis": {"gridcolor": "#e5e5e5", "zerolinecolor": "#cccccc", "automargin": True},
        "yaxis": {"gridcolor": "#e5e5e5", "zerolinecolor": "#cccccc", "automargin": True},
        "margin": {"l": 60, "r": 20, "t": 60, "b": 50}, "width": 800, "height": 420,
    }
)  # fmt: skip
pio.templates.default = "authorbook"


def corpus_overview(per_author: pd.DataFrame, hours: pd.DataFrame) -> go.Figure:
    """per_author: column ``posts``; hours: columns ``hour`` (0..23, UTC), ``posts``."""
    figure = make_subplots(1, 2, subplot_titles=["posts per author", "posts by hour of day, UTC"])
    edges = np.unique(np.geomspace(1, max(per_author.posts.max(), 2), 30).astype(int))
    counts, edges = np.histogram(per_author.posts, edges)
    figure.add_bar(x=[f"{low}-{high - 1}" if high - low > 1 else str(low) for low, high in zip(edges, edges[1:])],
                   y=counts, marker_color=COLOURS[0], row=1, col=1)  # fmt: skip
    figure.add_bar(x=hours.hour, y=hours.posts, marker_color=COLOURS[1], row=1, col=2)
    figure.update_yaxes(title="authors", row=1, col=1)
    figure.update_yaxes(title="posts", row=1, col=2)
    return figure.update_layout(showlegend=False, bargap=0.05)


def split_timeline(months: pd.DataFrame, title: str = "who is used when") -> go.Figure:
    """months: columns ``month`` (date), ``split``, ``posts``."""
    figure = go.Figure(layout={"title": title, "barmode": "stack"})
    for name in ("train", "dev", "test"):
        part = months[months.split == name]
        figure.add_bar(x=part.month, y=part.posts, name=name)
    return figure.update_yaxes(title="posts per month")


def token_lengths(lengths: dict[str, np.ndarray], cut: int) -> go.Figure:
    """lengths: per tokenizer the tokens of each post; ``cut``: the tokens an encoder reads."""
    figure = go.Figure(layout={"title": f"tokens per post: the encoder reads the first {cut}"})
    for name, values in lengths.items():
        at = np.arange(0, min(values.max(), 200) + 1)
        figure.add_scatter(x=at, y=np.searchsorted(np.sort(values), at, side="right") / len(values), name=name)
    figure.add_vline(cut, line_dash="dash", line_color="#999999")
    return figure.update_xaxes(title="tokens").update_yaxes(title="share of posts at most this long")


def size_distributions(densities: pd.DataFrame, drawn: pd.DataFrame) -> go.Figure:
    """khan2021 Figure 3. densities: x, one column per distribution; drawn: columns ``size``, ``sizes``, ``share``."""
    figure = make_subplots(1, 2, subplot_titles=["density of x", "posts in a training sample"])
    for colour, name in zip(COLOURS, densities.columns[1:]):
        figure.add_scatter(x=densities.x, y=densities[name], name=name, line_color=colour, row=1, col=1)
    for colour, (name, part) in zip(COLOURS, drawn.groupby("sizes", sort=False)):
        figure.add_scatter(x=part["size"], y=part.share, name=name, mode="lines+markers", line_color=colour,
                           showlegend=name not in densities, row=1, col=2)  # fmt: skip
    figure.update_xaxes(title="x", row=1, col=1).update_xaxes(title="posts", row=1, col=2)
    return figure.update_yaxes(title="share of samples", row=1, col=2)


def learning_curves(
    histories: dict[str, pd.DataFrame], against: str = "step", levels: dict[str, float] | None = None
) -> go.Figure:
    """Loss and dev MRR of each training; ``levels``: MRR of baselines, drawn as dashed lines (khan2021 Figure 5)."""
    figure = make_subplots(1, 2, subplot_titles=["training loss", "dev ranking, MRR"])
    for colour, (name, history) in zip(COLOURS, histories.items()):
        style = {"name": escape(name), "mode": "lines+markers", "line_color": colour, "legendgroup": name}
        figure.add_scatter(x=history[against], y=history.loss, **style, row=1, col=1)
        figure.add_scatter(x=history[against], y=history.MRR, **style, showlegend=False, row=1, col=2)
    for name, value in (levels or {}).items():
        figure.add_hline(value, line_dash="dash", line_color="#999999", annotation_text=escape(name),
                         annotation_position="bottom right", row=1, col=2)  # fmt: skip
    return figure.update_xaxes(title="seconds of training" if against == "seconds" else against)


def ranking_bars(results: pd.DataFrame, title: str) -> go.Figure:
    """results: columns ``model``, ``split``, ``MRR``, ``MRR_low``, ``MRR_high``; whiskers are 95% intervals."""
    figure = go.Figure(layout={"title": title, "barmode": "group"})
    order = list(dict.fromkeys(results.sort_values("MRR").model))
    for split, part in results.groupby("split"):
        part = part.set_index("model").reindex(order)
        figure.add_bar(
            y=order, x=part.MRR, name=split, orientation="h",
            error_x={"array": part.MRR_high - part.MRR, "arrayminus": part.MRR - part.MRR_low, "color": "#333333"},
        )  # fmt: skip
    return figure.update_xaxes(title="MRR", range=[0, 1]).update_layout(height=160 + 34 * len(order))


def rank_curves(ranks: dict[str, np.ndarray], targets: int, title: str) -> go.Figure:
    """Share of queries whose own account is among the k best, for every k; chance is the diagonal."""
    figure = go.Figure(layout={"title": title})
    at = np.unique(np.geomspace(1, targets, 60).astype(int))
    for name, rank in ranks.items():
        figure.add_scatter(x=at, y=[(rank <= k).mean() for k in at], name=escape(name))
    figure.add_scatter(x=at, y=at / targets, name="chance", line={"dash": "dot", "color": "#999999"})
    return figure.update_xaxes(title="k", type="log").update_yaxes(title="R@k", range=[0, 1])


def author_map(points: pd.DataFrame, titles: list[str]) -> go.Figure:
    """khan2021 Figure 1. points: ``panel`` (0, 1 ...), ``x``, ``y``, ``author``, ``posts``, ``text`` (hover, escaped).

    One colour per author; a marker grows with the number of posts behind it. The panels are one map.
    """
    figure = make_subplots(1, len(titles), subplot_titles=titles)
    for colour, (author, mine) in zip(COLOURS, points.groupby("author", sort=True)):
        for panel, part in mine.groupby("panel"):
            figure.add_scatter(
                x=part.x, y=part.y, mode="markers", name=escape(str(author)), legendgroup=str(author),
                showlegend=panel == 0, row=1, col=panel + 1, hoverinfo="text",
                marker={"color": colour, "size": 7 + part.posts * 0.5, "opacity": 0.75},
                text=[f"{escape(str(author))}<br>{posts} posts<br>{escape(text[:90])}"
                      for posts, text in zip(part.posts, part.text)],
            )  # fmt: skip
    figure.update_xaxes(showticklabels=False, matches="x").update_yaxes(showticklabels=False, matches="y")
    return figure.update_layout(width=950, height=470)


def roc(curves: dict[str, pd.DataFrame], title: str = "account linking: ROC") -> go.Figure:
    """khan2021 Figure 7. Per model the columns ``P_fa``, ``P_miss``; chance is the diagonal."""
    figure = go.Figure(layout={"title": title, "width": 560, "height": 520})
    for name, points in curves.items():
        figure.add_scatter(x=points.P_fa, y=1 - points.P_miss, name=escape(name), mode="lines")
    figure.add_scatter(x=[0, 1], y=[0, 1], name="chance", mode="lines", line={"dash": "dot", "color": "#999999"})
    figure.update_xaxes(title="false accepts, share of pairs of two accounts", range=[0, 1])
    return figure.update_yaxes(title="found, share of pairs of one account", range=[0, 1.005])


def det(curves: dict[str, pd.DataFrame], title: str = "account linking: DET") -> go.Figure:
    """Per model the columns ``P_fa``, ``P_miss``, on probit axes: scores of normal law give a straight line. The
    dotted line is P_fa = P_miss; what is below 0.1% or above 99.9% is drawn at the border."""
    shares = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999])
    ticks = stats.norm.ppf(shares)
    figure = go.Figure(layout={"title": title, "width": 600, "height": 560})
    for name, points in curves.items():
        x, y = (stats.norm.ppf(rate).clip(ticks[0], ticks[-1]) for rate in (points.P_fa, points.P_miss))
        figure.add_scatter(x=x, y=y, name=escape(name), mode="lines")
    figure.add_scatter(x=ticks[[0, -1]], y=ticks[[0, -1]], name="equal", mode="lines",
                       line={"dash": "dot", "color": "#999999"})  # fmt: skip
    axis = {"tickvals": ticks, "ticktext": [f"{share:.1%}".replace(".0%", "%") for share in shares],
            "range": ticks[[0, -1]], "tickangle": 0, "zeroline": False}  # fmt: skip
    return figure.update_xaxes(title="false accepts", **axis).update_yaxes(title="misses", **axis)


def error_by_size(results: pd.DataFrame, title: str = "linking error and the size of the targets") -> go.Figure:
    """khan2021 Figure 6. Columns ``model``, ``target_posts``, ``EER``, ``EER_low``, ``EER_high``; whiskers are 95%."""
    figure = go.Figure(layout={"title": title})
    for name, part in results.groupby("model", sort=False):
        figure.add_scatter(
            x=part.target_posts, y=part.EER, name=escape(name), mode="lines+markers",
            error_y={"array": part.EER_high - part.EER, "arrayminus": part.EER - part.EER_low, "thickness": 1},
        )  # fmt: skip
    figure.update_xaxes(title="posts in a target", tickvals=sorted(set(results.target_posts)))
    return figure.update_yaxes(title="EER", rangemode="tozero")


def reliability(tables: dict[str, pd.DataFrame], title: str = "are the probabilities right?") -> go.Figure:
    """Per model the columns ``predicted``, ``observed``, ``same``, ``different``: on the dotted line they are right."""
    figure = go.Figure(layout={"title": title, "width": 560, "height": 520})
    for name, table in tables.items():
        figure.add_scatter(
            x=table.predicted, y=table.observed, name=escape(name), mode="lines+markers", hoverinfo="text",
            text=[f"{escape(name)}<br>{same:,} pairs of one account, {different:,} of two"
                  for same, different in zip(table.same, table.different)],
        )  # fmt: skip
    figure.add_scatter(x=[0, 1], y=[0, 1], name="right", mode="lines", line={"dash": "dot", "color": "#999999"})
    figure.update_xaxes(title="probability given", range=[0, 1])
    return figure.update_yaxes(title="share of one account", range=[0, 1.005])


def loss_picture(points: np.ndarray, labels: np.ndarray, pairs: np.ndarray, title: str, vectors: int = 0) -> go.Figure:
    """Which pairs a loss acts on, and where the points go. points (N, 2) of length 1, labels (N,) from 0.

    pairs (N, N): derivative of the loss by the cosine of each pair. A line pulls where it is below 0 and pushes where
    it is above, the wider the larger; an arrow is the sum of a point's pairs, along the circle. Widths and lengths
    are relative to the largest of the picture. The last ``vectors`` points are a loss's own class vectors, diamonds.
    """
    figure = go.Figure(layout={"title": {"text": title, "font": {"size": 14}}, "width": 520, "height": 430})
    angle = np.linspace(0, 2 * np.pi, 181)
    figure.add_scatter(x=np.cos(angle), y=np.sin(angle), mode="lines", line={"color": "#dddddd"}, showlegend=False)
    largest = np.abs(pairs).max() or 1.0
    for name, colour, sign in (("pulled together", COLOURS[0], -1), ("pushed apart", COLOURS[1], 1)):
        figure.add_scatter(x=[None], y=[None], mode="lines", name=name, line={"color": colour, "width": 4})
        for i, j in zip(*np.nonzero(np.triu(sign * pairs) > 0.005 * largest)):
            figure.add_scatter(x=points[[i, j], 0], y=points[[i, j], 1], mode="lines", opacity=0.7, showlegend=False,
                               line={"color": colour, "width": 0.7 + 6 * abs(pairs[i, j]) / largest})  # fmt: skip
    force = -pairs @ points
    force -= (force * points).sum(1, keepdims=True) * points
    force *= 0.45 / (np.linalg.norm(force, axis=1).max() or 1.0)
    for (x, y), (dx, dy) in zip(points, force):
        if np.hypot(dx, dy) > 0.08:  # a shorter one would be hidden by its point
            figure.add_annotation(x=x + dx, y=y + dy, ax=x, ay=y, xref="x", yref="y", axref="x", ayref="y", text="",
                                  arrowhead=2, arrowwidth=1.5, arrowcolor="#333333")  # fmt: skip
    for author in np.unique(labels):
        symbols = np.where(np.arange(len(points)) < len(points) - vectors, "circle", "diamond")[labels == author]
        figure.add_scatter(x=points[labels == author, 0], y=points[labels == author, 1], mode="markers",
                           name=f"author {author + 1}",
                           marker={"size": 15, "color": COLOURS[author + 2], "symbol": symbols})  # fmt: skip
    hidden = {"visible": False, "range": [-1.3, 1.3]}
    return figure.update_xaxes(**hidden).update_yaxes(**hidden, scaleanchor="x")


def growth(costs: pd.DataFrame, against: str, title: str) -> go.Figure:
    """What a step takes as something grows, log scales. costs: columns ``loss``, ``seconds``, ``MB``, ``against``."""
    figure = make_subplots(1, 2, subplot_titles=["milliseconds a step", "memory, MB"])
    for colour, (name, part) in zip(COLOURS, costs.groupby("loss", sort=False)):
        style = {"name": escape(name), "mode": "lines+markers", "line_color": colour, "legendgroup": name}
        figure.add_scatter(x=part[against], y=part.seconds * 1000, **style, row=1, col=1)
        figure.add_scatter(x=part[against], y=part.MB, **style, showlegend=False, row=1, col=2)
    figure.update_layout(title=title).update_yaxes(type="log", dtick=1)
    return figure.update_xaxes(type="log", title=against, tickvals=sorted(costs[against].unique()))
