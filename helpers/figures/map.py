"""The map of authors: what one model makes of a few accounts."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy.spatial import cKDTree

from helpers.figures.labels import label
from helpers.figures.style import coloured, escaped, short, state

SHOWN = 90  # letters of a post


def author_map(points: pd.DataFrame, panels: list[str], model: str, note: str = "") -> go.Figure:
    """khan2021 Figure 1: a map a panel, one colour an author, whose points a line joins in the order given.

    A marker grows with the posts behind it.

    points : columns ``panel`` (0, 1 ...), ``x``, ``y``, ``author``, ``posts``, ``text`` (shown on hovering, escaped),
        and perhaps ``nearest_same``: is the nearest other vector of the panel by the same author? Without it the title
        counts neighbours on the map, which is flatter than the embedding.
    panels : titles. model : label of the model that made the vectors.
    """
    figure = make_subplots(1, len(panels), subplot_titles=[escaped(panel) for panel in panels], horizontal_spacing=0.04)
    for author, colour in coloured(sorted(set(points.author))).items():
        for panel, part in points[points.author == author].groupby("panel"):
            figure.add_scatter(
                x=part.x, y=part.y, mode="lines+markers", name=short(author), legendgroup=escaped(author),
                showlegend=panel == 0, row=1, col=int(panel) + 1, hoverinfo="text",
                marker={"color": colour, "size": 7 + part.posts * 0.5, "opacity": 0.75},
                line={"color": colour, "width": 0.7},
                text=[f"{short(author)}<br>{posts} posts<br>{escaped(text[:SHOWN])}"
                      for posts, text in zip(part.posts, part.text)])  # fmt: skip
    figure.update_xaxes(showticklabels=False, title="map, first axis (no unit)")
    figure.update_yaxes(showticklabels=False).update_yaxes(title="map, second axis (no unit)", col=1)
    figure.update_layout(width=950, height=540, legend_itemsizing="constant")
    where = "nearest neighbour" if "nearest_same" in points else "nearest neighbour on the map"
    shares = [f"{_neighbours(part):.0%} ({panels[int(panel)]})" for panel, part in points.groupby("panel")]
    return state(figure, f"{label(model)}: the {where} is by the same author for {', '.join(shares)}", note)


def _neighbours(part: pd.DataFrame) -> float:
    if "nearest_same" in part:
        return part.nearest_same.mean()
    _, nearest = cKDTree(part[["x", "y"]]).query(part[["x", "y"]], k=2)
    author = part.author.to_numpy()
    # of two points at one place either may come first
    other = np.where(nearest[:, 0] == np.arange(len(part)), nearest[:, 1], nearest[:, 0])
    return float(np.mean(author[other] == author))
