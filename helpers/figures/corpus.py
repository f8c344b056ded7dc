"""Figures of a corpus and its splits: who writes how much and when, who is used when, how long posts are."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.core.names import label
from helpers.figures.style import COLOURS, GREY, colour_map, html_label, html_name, set_title

LONGEST = 200  # tokens; the curve ends there


def corpus_overview(per_author: pd.DataFrame, hours: pd.DataFrame, note: str = "") -> go.Figure:
    """Draw the number of posts per author, and of posts by hour of day.

    per_author : column ``posts``. hours : columns ``hour`` (0..23, UTC) and ``posts``.
    """
    figure = make_subplots(
        1, 2, subplot_titles=["authors by number of posts", "posts by hour of the day"]
    )
    edges = np.unique(np.geomspace(1, max(per_author.posts.max(), 2) + 1, 20).astype(int))
    counts, edges = np.histogram(per_author.posts, edges)
    names = [
        f"{low}-{high - 1}" if high - low > 1 else str(low) for low, high in zip(edges, edges[1:])
    ]
    figure.add_bar(x=names, y=counts, marker_color=COLOURS[0], row=1, col=1)
    figure.add_bar(x=hours.hour, y=hours.posts, marker_color=COLOURS[1], row=1, col=2)
    figure.update_xaxes(title="posts of an author", type="category", row=1, col=1)
    figure.update_xaxes(title="hour, UTC", dtick=4, row=1, col=2)
    figure.update_yaxes(title="number of authors", row=1, col=1).update_yaxes(
        title="number of posts", row=1, col=2
    )
    finding = (f"half of the {len(per_author):,} authors wrote at most {per_author.posts.median():,.0f} posts; "
               f"the busiest hour begins at {hours.hour[hours.posts.idxmax()]}:00 UTC")  # fmt: skip
    return set_title(figure.update_layout(showlegend=False, bargap=0.05), finding, note)


def split_timeline(months: pd.DataFrame, note: str = "") -> go.Figure:
    """Draw the posts of train, dev and test by month. months : columns ``month`` (date), ``split``, ``posts``."""
    figure = go.Figure(layout={"barmode": "stack"})
    for name in (split for split in ("train", "dev", "test") if split in set(months.split)):
        part = months[months.split == name]
        figure.add_bar(x=part.month, y=part.posts, name=html_label(name))
    figure.update_yaxes(title="posts per month").update_xaxes(title="month")
    last, first = (
        months[months.split == "train"].month.max(),
        months[months.split == "test"].month.min(),
    )
    if last < first:
        finding = f"training posts end in {last:%B %Y}, test posts begin in {first:%B %Y}"
    else:
        shared = len(
            set(months.month[months.split == "train"]) & set(months.month[months.split == "test"])
        )
        finding = f"training and test posts share {shared} {'month' if shared == 1 else 'months'}"
    return set_title(figure, finding, note)


def author_timelines(posts: pd.DataFrame, note: str = "") -> go.Figure:
    """Draw the posts of some authors over time: one line per author, one mark per post, one colour per part.

    The title says whether the parts overlap in time: over all authors, else within an author.

    posts : columns ``author``, ``time`` (UTC) and ``part``: train, dev, test, query, target ...
    """
    authors = list(dict.fromkeys(posts.author))
    figure = go.Figure(layout={"height": 190 + 45 * len(authors)})
    for part, colour in colour_map(posts.part).items():
        here = posts[posts.part == part]
        figure.add_scatter(
            x=here.time,
            y=here.author.map(authors.index),
            name=html_label(part),
            mode="markers",
            marker={"symbol": "line-ns", "size": 22, "line": {"width": 1.6, "color": colour}},
        )
    figure.update_xaxes(title="time of a post, UTC")
    figure.update_yaxes(title="author", tickvals=[*range(len(authors))], ticktext=list(map(html_name, authors)),
                        autorange="reversed")  # fmt: skip
    ends = (
        posts.groupby(["author", "part"], sort=False)
        .time.agg(["min", "max"])
        .sort_values(["author", "min"])
    )
    before = ends["max"].groupby("author").cummax().groupby("author").shift()
    crossing = (ends["min"] <= before).groupby("author").any().sum()
    spans = posts.groupby("part").time.agg(["min", "max"]).sort_values("min")
    apart = (spans["min"] > spans["max"].cummax().shift()).iloc[1:].all()
    parts = ", ".join(label(part) for part in dict.fromkeys(posts.part))
    size = f"{len(posts):,} posts of {len(authors)} {'author' if len(authors) == 1 else 'authors'}"
    if apart:
        finding = f"{parts} do not overlap in time: {size}"
    elif not crossing:
        finding = f"{parts} of the same author do not overlap in time: {size}"
    else:
        finding = f"{parts} overlap in time for {crossing} of {len(authors)} authors"
    return set_title(figure, finding, note)


def token_lengths(lengths: dict[str, np.ndarray], max_tokens: int, note: str = "") -> go.Figure:
    """Draw the distribution of tokens per post.

    lengths : name of a tokenizer -> tokens of each post. max_tokens : tokens of a post that an encoder reads.
    """
    figure, whole = go.Figure(), []
    for name, values in lengths.items():
        at = np.arange(0, min(values.max(), LONGEST) + 1)
        figure.add_scatter(
            x=at,
            y=np.searchsorted(np.sort(values), at, side="right") / len(values),
            name=html_label(name),
        )
        whole.append(f"{np.mean(values <= max_tokens):.0%} of the posts ({label(name)})")
    figure.add_vline(max_tokens, line_dash="dash", line_color=GREY)
    figure.update_xaxes(title="tokens of a post")
    figure.update_yaxes(
        title="share of posts with at most so many tokens", range=[0, 1.02], tickformat=".0%"
    )
    finding = f"the first {max_tokens} tokens hold the whole text of {', '.join(whole)}"
    return set_title(figure.update_layout(showlegend=len(lengths) > 1), finding, note)


def size_distributions(densities: pd.DataFrame, drawn: pd.DataFrame, note: str = "") -> go.Figure:
    """Draw distributions of sample sizes (khan2021, Figure 3).

    densities : ``x`` and one column per distribution. drawn : columns ``size``, ``sizes`` (distribution), ``share``.
    """
    figure = make_subplots(1, 2, subplot_titles=["density of x", "sizes of drawn samples"])
    colours = colour_map([*densities.columns[1:], *drawn.sizes])
    for name in densities.columns[1:]:
        figure.add_scatter(x=densities.x, y=densities[name], name=html_label(name), line_color=colours[name],
                           legendgroup=name, showlegend=name not in set(drawn.sizes), row=1, col=1)  # fmt: skip
    for name, part in drawn.groupby("sizes", sort=False):
        figure.add_scatter(x=part["size"], y=part.share, name=html_label(name), mode="lines+markers", legendgroup=name,
                           line_color=colours[name], row=1, col=2)  # fmt: skip
    figure.update_xaxes(title="x", row=1, col=1).update_yaxes(title="density", row=1, col=1)
    figure.update_xaxes(title="posts in a sample", row=1, col=2)
    figure.update_yaxes(title="share of samples", tickformat=".0%", row=1, col=2)
    means = drawn.assign(mean=drawn["size"] * drawn.share).groupby("sizes")["mean"].sum()
    finding = (f"the mean sample size goes from {means.min():.1f} posts with {label(means.idxmin())} to "
               f"{means.max():.1f} posts with {label(means.idxmax())}")  # fmt: skip
    return set_title(figure, finding, note)
