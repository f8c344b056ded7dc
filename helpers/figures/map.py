"""The map of authors: where one system puts the posts of a few authors."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from helpers.core.names import label
from helpers.figures.style import colour_map, escape_html, html_name, set_title

SHOWN = 90  # letters of a post


def author_map(points: pd.DataFrame, panels: list[str], model: str, note: str = "") -> go.Figure:
    """Draw a map a panel (khan2021 Figure 1), one colour an author, whose points a line joins in the order given.

    Parameters
    ----------
    points : columns ``panel`` (0, 1 ...), ``x``, ``y``, ``author``, ``posts`` (size of the marker), ``text`` (shown on
        hovering, escaped), ``nearest_same`` (is the nearest other vector of the panel by the same author?).
    panels : titles.
    model : name of the system that made the vectors; the title begins with it.
    note : whose posts they are, such as "9 authors of one community".
    """
    figure = make_subplots(
        1,
        len(panels),
        subplot_titles=[escape_html(panel) for panel in panels],
        horizontal_spacing=0.04,
    )
    for author, colour in colour_map(sorted(set(points.author))).items():
        for panel, part in points[points.author == author].groupby("panel"):
            figure.add_scatter(
                x=part.x, y=part.y, mode="lines+markers", name=html_name(author), legendgroup=escape_html(author),
                showlegend=panel == 0, row=1, col=int(panel) + 1, hoverinfo="text",
                marker={"color": colour, "size": 7 + part.posts * 0.5, "opacity": 0.75},
                line={"color": colour, "width": 0.7},
                text=[f"{html_name(author)}<br>{posts} posts<br>{escape_html(text[:SHOWN])}"
                      for posts, text in zip(part.posts, part.text)])  # fmt: skip
    figure.update_xaxes(showticklabels=False, title="map, first axis (no unit)")
    figure.update_yaxes(showticklabels=False).update_yaxes(
        title="map, second axis (no unit)", col=1
    )
    figure.update_layout(width=950, height=540, legend_itemsizing="constant")
    near = points.groupby("panel").nearest_same.mean()
    shares = ", ".join(f"{share:.0%} ({panels[int(panel)]})" for panel, share in near.items())
    whose = f"{label(model)}, {note}" if note else label(model)
    return set_title(
        figure, f"{whose}: the nearest neighbour of a point is by the same author for {shares}"
    )
