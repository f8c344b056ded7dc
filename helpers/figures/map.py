"""The map of authors: where one system puts the posts of a few authors."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.core.names import label
from helpers.figures.style import colour_map, escape_html, html_name, set_title

MAX_POST_LETTERS = 90


def author_map(points: pd.DataFrame, panels: list[str], model: str, note: str = "") -> go.Figure:
    """Draw a map a panel, one colour an author, whose points a line joins in the order given.

    Parameters
    ----------
    points : DataFrame
        columns ``panel`` (0, 1 ...), ``x``, ``y``, ``author``, ``posts`` (size of the marker),
        ``text`` (shown on hovering, escaped), ``nearest_same`` (is the nearest other vector of the
        panel by the same author?)
    panels : list of str
        titles
    model : str
        name of the system that made the vectors; the title begins with it
    note : str
        whose posts they are, such as "9 authors of one community"

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
