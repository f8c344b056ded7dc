"""Figures that belong to one subject: losses, timelines, parts of a score, and verification."""

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from ..core.messages import escape_html
from ..core.names import label
from .style import COLOURS, DARK, html_label, html_name, name_panels, set_title

MIN_DERIVATIVE = 1e-6  # a loss acts on a pair if the size of the derivative is larger
MIN_SHARE = 0.005  # a line is drawn if the derivative is a larger share of the largest one
MIN_ARROW = 0.08  # shorter arrows are not drawn: the point would hide them
N_FEATURES_FOR = 12  # features shown that speak for one person
N_FEATURES_AGAINST = 6
MAX_FEATURE_LETTERS = 30
MAX_NAME_LETTERS = 20  # letters of an account's name that a title shows
N_BINS = 51  # odd, so that 0.5, the score for "no answer", is in the middle of a bin


def loss_picture(
    loss: str, points: np.ndarray, labels: np.ndarray, pairs: np.ndarray, vectors: int = 0
) -> go.Figure:
    """Draw points on a circle, the pairs that a loss acts on, and where it moves the points.

    A line joins each pair that the loss acts on, the wider the larger the derivative. An arrow at a
    point is the sum of the forces of its pairs, along the circle. Widths and lengths are relative
    to the largest of the figure. The title counts the pairs.

    Parameters
    ----------
    loss : str
        identifier of the loss, or its name with a setting, such as "Top-k, k = 2"
    points : (N, 2)
        N points of length 1
    labels : (N,) int
        number of each point's author, from 0
    pairs : (N, N)
        derivative of the loss with respect to the cosine of each pair: the loss pulls a pair
        together where it is negative, and pushes it apart where it is positive
    vectors : int
        so many of the last points are class vectors of the loss, drawn as diamonds
    """
    figure = go.Figure(layout={"width": 600, "height": 500, "legend_y": 0})
    outline = {"dash": "solid", "color": "#dddddd"}
    figure.add_shape(type="circle", x0=-1, y0=-1, x1=1, y1=1, line=outline, layer="below")
    counts = []
    for strength, name, colour in (
        (-pairs, "pulled together", COLOURS[0]),
        (pairs, "pushed apart", COLOURS[1]),
    ):
        _add_pairs(figure, points, strength, name, colour)
        counts.append(f"{(np.triu(strength) > MIN_DERIVATIVE).sum()} {name}")
    _add_arrows(figure, points, pairs)

    is_vector = np.arange(len(points)) >= len(points) - vectors
    symbols = np.where(is_vector, "diamond", "circle")
    for author in np.unique(labels):
        rows = labels == author
        x, y = points[rows].T
        colour = COLOURS[(author + 2) % len(COLOURS)]
        marker = {"size": 15, "color": colour, "symbol": symbols[rows]}
        figure.add_scatter(x=x, y=y, mode="markers", name=f"author {author + 1}", marker=marker)
    hidden = {"visible": False, "range": [-1.3, 1.3]}
    figure.update_xaxes(**hidden).update_yaxes(**hidden, scaleanchor="x")
    n_pairs = len(points) * (len(points) - 1) // 2
    return set_title(figure, f"{label(loss)}, {n_pairs} pairs: {' and '.join(counts)}")


def _add_pairs(figure, points, strength, name, colour):
    """Draw a line for each pair of positive strength, and one entry of the legend for all."""
    style = {"mode": "lines", "name": name, "legendgroup": name, "line_color": colour}
    figure.add_scatter(x=[None], y=[None], line_width=4, **style)
    largest = np.abs(strength).max() or 1.0
    for pair in np.argwhere(np.triu(strength) > MIN_SHARE * largest):
        x, y = points[pair].T
        width = 0.7 + 6 * strength[tuple(pair)] / largest
        figure.add_scatter(x=x, y=y, line_width=width, opacity=0.7, showlegend=False, **style)


def _add_arrows(figure, points, pairs):
    """Draw an arrow from each point in the direction in which the loss moves it on the circle."""
    force = -pairs @ points
    force -= (force * points).sum(1, keepdims=True) * points
    force *= 0.45 / (np.linalg.norm(force, axis=1).max() or 1.0)
    axes = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
    style = {"arrowhead": 2, "arrowwidth": 1.5, "arrowcolor": DARK, "text": ""}
    for (x, y), (dx, dy) in zip(points, force):
        if np.hypot(dx, dy) > MIN_ARROW:
            figure.add_annotation(x=x + dx, y=y + dy, ax=x, ay=y, **axes, **style)


def timeline(posts: pd.DataFrame, title: str) -> go.Figure:
    """Draw the posts of some authors over time, one line per author and one mark per post.

    Parameters
    ----------
    posts : DataFrame
        one row per post; columns ``author``, ``time`` (UTC) and ``part``, such as train, dev, test,
        query or target, which sets the colour of the mark
    title : str
        finding
    """
    shown = posts.assign(author=posts["author"].map(html_name), part=posts["part"].map(html_label))
    figure = px.scatter(
        shown,
        x="time",
        y="author",
        color="part",
        category_orders={"author": list(dict.fromkeys(shown["author"]))},
        labels={"time": "time of a post, UTC", "part": ""},
        height=190 + 45 * shown["author"].nunique(),
    )
    figure.update_traces(marker={"symbol": "line-ns-open", "size": 22, "line_width": 1.6})
    return set_title(figure, title)


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
    is_for = features["contribution"] > 0
    strongest = pd.concat(
        [features[is_for].head(N_FEATURES_FOR), features[~is_for].head(N_FEATURES_AGAINST)]
    ).sort_values("contribution", ascending=False)
    cut = strongest["feature"].str[:MAX_FEATURE_LETTERS].map(repr).map(escape_html)
    rows = pd.concat(
        [
            sums.assign(panel="by member", part=sums["member"].map(html_label)),
            strongest.assign(
                panel="strongest features", part=cut + " · " + strongest["member"].map(html_label)
            ),
        ]
    )
    figure = px.bar(
        rows.assign(sign=np.where(rows["contribution"] > 0, "for", "against")),
        x="contribution",
        y="part",
        color="sign",
        orientation="h",
        facet_col="panel",
        facet_col_spacing=0.3,
        category_orders={"sign": ["for", "against"]},
        labels={"contribution": "part of the score (no unit)", "part": "member"},
        width=1000,
        height=520,
    )
    name_panels(figure)
    strongest_on_top = list(rows["part"])[::-1]
    figure.update_yaxes(matches=None, showticklabels=True, categoryarray=strongest_on_top)
    figure.update_xaxes(matches=None)
    figure.update_yaxes(title="feature, member", col=2).update_layout(showlegend=False)
    *parts, total = sums["contribution"]
    top = sums.iloc[np.argmax(parts)]
    names = " and ".join(name[:MAX_NAME_LETTERS] for name in pair)
    finding = (
        f"{label(top['member'])} adds most to the score of {names}: "
        f"{top['contribution']:.2f} of {total:.2f}"
    )
    return set_title(figure, finding)


def score_histogram(scores: np.ndarray, same: np.ndarray, model: str, note: str = "") -> go.Figure:
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
    same = np.asarray(same, bool)
    kinds = np.where(same, f"one author, {same.sum():,}", f"two authors, {(~same).sum():,}")
    x = "score: 0 two authors, 0.5 no answer, 1 one author"
    figure = px.histogram(
        pd.DataFrame({x: scores, "kind": kinds}),
        x=x,
        color="kind",
        histnorm="probability",
        barmode="overlay",
        opacity=0.6,
        category_orders={"kind": sorted(set(kinds))},
        labels={"kind": ""},
    )
    figure.update_traces(xbins={"start": 0, "end": 1, "size": 1 / N_BINS})
    figure.update_yaxes(title="share of all pairs of this kind", tickformat=".0%")
    figure.add_vline(0.5).update_xaxes(range=[0, 1])

    answered = scores != 0.5
    is_right = (scores > 0.5) == same
    correct = is_right[answered].mean() if answered.any() else 0.0
    finding = (
        f"{label(model)} leaves {1 - answered.mean():.0%} of {len(scores):,} pairs unanswered "
        f"and is correct on {correct:.0%} of the others"
    )
    return set_title(figure, finding, note)


def threshold_map(table: pd.DataFrame, model: str, note: str = "") -> go.Figure:
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
    figure = px.imshow(
        table.pivot(index="upper", columns="lower", values="overall"),
        origin="lower",
        aspect="auto",
        color_continuous_scale="Viridis",
        labels={
            "x": "lower threshold (probability)",
            "y": "upper threshold (probability)",
            "color": html_label("overall"),
        },
        width=660,
        height=560,
    )
    top = table.loc[table["overall"].idxmax()]
    marker = {"color": COLOURS[1], "size": 12, "line": {"color": "white", "width": 2}}
    figure.add_scatter(
        x=[top["lower"]], y=[top["upper"]], mode="markers", showlegend=False, marker=marker
    )
    finding = (
        f"{label(model)} has its highest {label('overall')}, {top['overall']:.3f}, "
        f"at the thresholds {top['lower']:.2f} and {top['upper']:.2f}"
    )
    return set_title(figure, finding, note)
