"""Published numbers as tables, transcribed from the papers, and ours beside them."""

import pandas as pd

KHAN2021_TABLE1 = pd.DataFrame(
    [
        ("TPS", "topk", 0.637, 0.709, 0.765),
        ("TPS", "triplet", 0.634, 0.702, 0.762),
        ("TP", "topk", 0.450, 0.522, 0.595),
        ("TP", "triplet", 0.452, 0.520, 0.591),
        ("T", "triplet", 0.372, 0.439, 0.512),
        ("TPS, IUR", "arcface", 0.520, 0.590, 0.650),
        ("T, IUR", "arcface", 0.200, 0.240, 0.290),
    ],
    columns=["features", "loss", "MRR", "R@4", "R@8"],
)  # ranking, 111,396 test authors of Reddit, samples of 16 posts

KHAN2021_TABLE4 = pd.DataFrame(
    [
        ("uniform", 0.0, 0.604, 0.673),
        ("beta21", -0.566, 0.626, 0.692),
        ("poisson16", -0.786, 0.632, 0.703),
        ("beta31", -0.861, 0.633, 0.701),
        ("beta41", -1.049, 0.633, 0.704),
    ],
    columns=["sizes", "skew", "MRR", "R@4"],
)  # distribution of training sample sizes; tested at 16 posts

KHAN2021_TABLE5 = pd.DataFrame(
    {
        "margin": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8],
        "MRR": [0.59, 0.62, 0.59, 0.61, 0.60, 0.59, 0.58],
        "R@8": [0.73, 0.75, 0.74, 0.74, 0.73, 0.73, 0.72],
    }
)  # margin of the triplet loss, on validation

KHAN2021_TABLE6 = pd.Series({"T": 44.0, "TP": 44.1, "TPS": 45.5}, name="millions")  # parameters of the encoder

KHAN2021_TABLE8 = pd.Series(
    {
        "authors": 1_071_477,
        "posts": 321_659_421,
        "tokens_per_post": 42.5,
        "posts_per_author": 300.2,
        "topics_per_author": 22.1,
        "active_months": 9.9,
        "percent_posts_over_64_tokens": 17.37,
    },
    name="published (MUD)",
)  # the Million User Dataset


def side_by_side(measured: pd.Series | pd.DataFrame, published: pd.Series | pd.DataFrame) -> pd.DataFrame:
    """Rows of both, published | ours, joined on their index; what one side lacks is empty.

    Two frames are joined column by column, as ``<column> published`` and ``<column> ours``.
    """
    if isinstance(published, pd.Series):
        return pd.concat({"published": published, "ours": measured}, axis=1)
    joined = published.join(measured, how="outer", lsuffix=" published", rsuffix=" ours")
    both = [column for column in published.columns if column in measured.columns]
    order = [f"{column} {side}" for column in both for side in ("published", "ours")]
    return joined[order + [column for column in joined.columns if column not in order]]
