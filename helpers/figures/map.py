"""A map of authors: the vectors of a few authors' samples, in two dimensions."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..core.names import label
from .style import colour_map, escape_html, html_name, set_title

MAX_POST_LETTERS = 90  # letters of a post that hovering shows


def author_map(points: pd.DataFrame, panels: list[str], model: str, note: str = "") -> go.Figure:
    """Draw one map per panel, with one colour per author.

    A line joins the points of an author in a panel, in the order of the rows.

    Parameters
    ----------
    points : DataFrame
        one row per point; columns ``panel`` (number from 0), ``x``, ``y``, ``author``, ``posts``
        (how many the point stands for, sets its size), ``text`` (shown on hovering, escaped),
        ``nearest_same`` (whether the nearest other vector of the panel is by the same author)
    panels : list of str
        titles of the panels
    model : str
        name of the system that made the vectors; the title begins with it
    note : str
        description of the authors for the title, such as "9 authors of one community"

    References
    ----------
    khan2021, Figure 1
    """
    titles = [escape_html(panel) for panel in panels]
    figure = make_subplots(1, len(panels), subplot_titles=titles, horizontal_spacing=0.04)
    colours = colour_map(sorted(set(points.author)))
    for (author, panel), rows in points.groupby(["author", "panel"]):
        name = html_name(author)
        figure.add_scatter(
            x=rows.x,
            y=rows.y,
            mode="lines+markers",
            name=name,
            legendgroup=escape_html(author),
            showlegend=panel == 0,
            marker={"color": colours[author], "size": 7 + rows.posts * 0.5, "opacity": 0.75},
            line={"color": colours[author], "width": 0.7},
            hoverinfo="text",
            text=[
                f"{name}<br>{posts} posts<br>{escape_html(text[:MAX_POST_LETTERS])}"
                for posts, text in zip(rows.posts, rows.text)
            ],
            row=1,
            col=int(panel) + 1,
        )
    figure.update_xaxes(showticklabels=False, title="map, first axis (no unit)")
    figure.update_yaxes(showticklabels=False)
    figure.update_yaxes(title="map, second axis (no unit)", col=1)
    figure.update_layout(width=950, height=540, legend_itemsizing="constant")

    near = points.groupby("panel").nearest_same.mean()
    shares = ", ".join(f"{share:.0%} ({panels[int(panel)]})" for panel, share in near.items())
    subject = label(model)
    if note:
        subject += f", {note}"
    finding = f"{subject}: the nearest neighbour of a point is by the same author for {shares}"
    return set_title(figure, finding)
