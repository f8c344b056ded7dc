"""Figures of a corpus and its splits: posts per author, per hour and per month, and lengths."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..core.names import label
from .style import (
    COLOURS,
    DASHED,
    colour_map,
    html_label,
    html_name,
    panels,
    set_title,
)

MAX_TOKENS = 200  # largest number of tokens on the x axis of lengths


def corpus_overview(per_author: pd.DataFrame, hours: pd.DataFrame) -> go.Figure:
    """Draw a histogram of posts per author, and the number of posts by hour of the day.

    Parameters
    ----------
    per_author : DataFrame
        one row per author; column ``posts``, the number of the author's posts
    hours : DataFrame
        columns ``hour`` (0..23, UTC) and ``posts``, the number of posts in that hour
    """
    figure = panels(
        {
            "authors by number of posts": ("posts of an author", "number of authors"),
            "posts by hour of the day": ("hour, UTC", "number of posts"),
        }
    )
    edges = np.unique(np.geomspace(1, max(per_author.posts.max(), 2) + 1, 20).astype(int))
    counts, _ = np.histogram(per_author.posts, edges)
    names = []
    for low, end in zip(edges, edges[1:]):
        names.append(f"{low}-{end - 1}" if end - low > 1 else str(low))
    figure.add_bar(x=names, y=counts, marker_color=COLOURS[0], row=1, col=1)
    figure.add_bar(x=hours.hour, y=hours.posts, marker_color=COLOURS[1], row=1, col=2)
    figure.update_xaxes(type="category", col=1).update_xaxes(dtick=4, col=2)
    figure.update_layout(showlegend=False, bargap=0.05)
    busiest = hours.hour[hours.posts.idxmax()]
    finding = (
        f"half of the {len(per_author):,} authors wrote at most {per_author.posts.median():,.0f} "
        f"posts; the busiest hour begins at {busiest}:00 UTC"
    )
    return set_title(figure, finding)


def split_timeline(months: pd.DataFrame) -> go.Figure:
    """Draw the number of posts per month, with one stacked bar part per split.

    The title says when training posts end and test posts begin, or how many months they share.

    Parameters
    ----------
    months : DataFrame
        columns ``month`` (date), ``split``, ``posts`` (a count); splits other than train, dev and
        test are left out, and train and test must both have rows
    """
    figure = go.Figure(layout={"barmode": "stack"})
    for split in ("train", "dev", "test"):
        rows = months[months.split == split]
        if len(rows):
            figure.add_bar(x=rows.month, y=rows.posts, name=html_label(split))
    figure.update_yaxes(title="posts per month").update_xaxes(title="month")

    train = months.month[months.split == "train"]
    test = months.month[months.split == "test"]
    last, first = train.max(), test.min()
    if last < first:
        finding = f"training posts end in {last:%B %Y}, test posts begin in {first:%B %Y}"
    else:
        shared = len(set(train) & set(test))
        noun = "month" if shared == 1 else "months"
        finding = f"training and test posts share {shared} {noun}"
    return set_title(figure, finding)


def author_timelines(posts: pd.DataFrame) -> go.Figure:
    """Draw the posts of some authors over time, one line per author and one mark per post.

    The colour of a mark is the part that the post belongs to. The title says whether the parts
    overlap in time; if they do over all authors together, whether they do within single authors.

    Parameters
    ----------
    posts : DataFrame
        one row per post; columns ``author``, ``time`` (UTC) and ``part``, such as train, dev, test,
        query or target
    """
    authors = list(dict.fromkeys(posts.author))
    figure = go.Figure(layout={"height": 190 + 45 * len(authors)})
    for part, colour in colour_map(posts.part).items():
        rows = posts[posts.part == part]
        marker = {"symbol": "line-ns", "size": 22, "line": {"width": 1.6, "color": colour}}
        line = rows.author.map(authors.index)
        figure.add_scatter(
            x=rows.time, y=line, name=html_label(part), mode="markers", marker=marker
        )
    figure.update_xaxes(title="time of a post, UTC")
    names = [html_name(author) for author in authors]
    figure.update_yaxes(
        title="author", tickvals=list(range(len(names))), ticktext=names, autorange="reversed"
    )
    return set_title(figure, _overlap(posts))


def _overlap(posts: pd.DataFrame) -> str:
    """Say whether the parts overlap in time: over all authors together, else within authors."""
    n_authors = posts.author.nunique()
    noun = "author" if n_authors == 1 else "authors"
    size = f"{len(posts):,} posts of {n_authors} {noun}"
    parts = ", ".join(label(part) for part in dict.fromkeys(posts.part))

    spans = posts.groupby("part").time.agg(["min", "max"]).sort_values("min")
    ended = spans["max"].cummax().shift()
    if (spans["min"] > ended).iloc[1:].all():
        return f"{parts} do not overlap in time: {size}"
    spans = posts.groupby(["author", "part"], sort=False).time.agg(["min", "max"])
    spans = spans.sort_values(["author", "min"])
    ended = spans["max"].groupby("author").cummax().groupby("author").shift()
    overlapping = (spans["min"] <= ended).groupby("author").any().sum()
    if overlapping:
        return f"{parts} overlap in time for {overlapping} of {n_authors} authors"
    return f"{parts} of the same author do not overlap in time: {size}"


def token_lengths(lengths: dict[str, np.ndarray], max_tokens: int) -> go.Figure:
    """Draw the cumulative distribution of tokens per post, one curve per tokenizer.

    Parameters
    ----------
    lengths : dict
        name of a tokenizer -> (N,) int, number of tokens of each of N posts
    max_tokens : int
        number of tokens of a post that an encoder reads, marked by a dashed line
    """
    figure = go.Figure(layout={"showlegend": len(lengths) > 1})
    shares = []
    for name, values in lengths.items():
        tokens = np.arange(0, min(values.max(), MAX_TOKENS) + 1)
        posts = np.searchsorted(np.sort(values), tokens, side="right")
        figure.add_scatter(x=tokens, y=posts / len(values), name=html_label(name))
        shares.append(f"{np.mean(values <= max_tokens):.0%} of the posts ({label(name)})")
    figure.add_vline(max_tokens, **DASHED)
    figure.update_xaxes(title="tokens of a post")
    title = "share of posts with at most so many tokens"
    figure.update_yaxes(title=title, range=[0, 1.02], tickformat=".0%")
    finding = f"the first {max_tokens} tokens hold the whole text of {', '.join(shares)}"
    return set_title(figure, finding)


def size_distributions(densities: pd.DataFrame, sizes: pd.DataFrame) -> go.Figure:
    """Draw the densities of distributions, and the sample sizes that follow from them.

    Parameters
    ----------
    densities : DataFrame
        column ``x`` first, then one column per distribution with its density at x
    sizes : DataFrame
        columns ``size`` (posts in a sample), ``sizes`` (identifier of the distribution), ``share``
        (of the samples that have this size); one row per size and distribution

    References
    ----------
    khan2021, Figure 3
    """
    figure = panels(
        {
            "density of x": ("x", "density"),
            "sizes of drawn samples": ("posts in a sample", "share of samples"),
        }
    )
    colours = colour_map([*densities.columns[1:], *sizes.sizes])
    for name in densities.columns[1:]:
        style = {"name": html_label(name), "legendgroup": name, "line_color": colours[name]}
        is_shown = name not in set(sizes.sizes)  # in the legend, once
        figure.add_scatter(
            x=densities.x, y=densities[name], showlegend=is_shown, **style, row=1, col=1
        )
    for name, rows in sizes.groupby("sizes", sort=False):
        style = {"name": html_label(name), "legendgroup": name, "line_color": colours[name]}
        figure.add_scatter(
            x=rows["size"], y=rows.share, mode="lines+markers", **style, row=1, col=2
        )
    figure.update_yaxes(tickformat=".0%", col=2)
    means = (sizes["size"] * sizes.share).groupby(sizes.sizes).sum()
    finding = (
        f"the mean sample size goes from {means.min():.1f} posts with {label(means.idxmin())} to "
        f"{means.max():.1f} posts with {label(means.idxmax())}"
    )
    return set_title(figure, finding)
