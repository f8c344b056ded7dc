"""Published numbers of khan2021, tyo2021 and sawatphol2022, one CSV a table, and measured numbers beside them.

``captions.csv`` holds for every table the columns of its index, a caption, and the doubtful rows. Rows and columns have
the identifiers of the code; :func:`show_published`, :func:`named` and :mod:`helpers.core.names` turn them into names for people.
"""

from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

from helpers.core.names import label, short_name

FOLDER = Path(__file__).parent
DOUBTFUL_COLOUR = "#D55E00"
PAPERS = {
    "khan2021": "Khan et al. 2021,",
    "tyo2021": "Tyo et al. 2021,",
    "sawatphol2022": "Sawatphol et al. 2022,",
}


def published_table(paper: str, number: int) -> pd.DataFrame:
    """Read a published table; ``attrs`` hold its ``caption`` and ``doubtful`` rows. Raises ValueError for another."""
    captions = pd.read_csv(
        FOLDER / "captions.csv", index_col=["paper", "table"], keep_default_na=False
    )
    if (paper, number) not in captions.index:
        raise ValueError(
            f"table {number} of {paper!r}: one of {', '.join(f'{p} {n}' for p, n in captions.index)}"
        )
    about = captions.loc[(paper, number)]
    frame = pd.read_csv(FOLDER / f"{paper}_table{number}.csv").set_index(about["index"].split())
    frame.attrs = {
        "caption": f"{paper} Table {number}. {about.caption}",
        "doubtful": about.doubtful,
    }
    return frame


def arr_gains() -> pd.DataFrame:
    """Return the gain of R@8 and MRR by ARR in sawatphol2022, Tables 2 and 3; index ``split, base, corpus``."""
    gains = {}
    for split, number in (("test_cross", 2), ("test_in", 3)):
        printed = published_table("sawatphol2022", number)
        gains |= {
            (split, base): printed.loc[f"{base}_arr"] - printed.loc[base]
            for base in ("mll", "supcon")
        }
    return pd.concat(gains, names=["split", "base"]).dropna()


def show_published(paper: str, number: int) -> Styler:
    """Show a published table under its caption, its rows and columns named for people; doubtful rows are red."""
    frame = published_table(paper, number)
    names = frame.index.to_frame().astype(str).agg(" ".join, axis=1)
    red = (names == frame.attrs["doubtful"]).to_numpy()
    caption = frame.attrs["caption"].replace(paper, PAPERS[paper], 1)
    style = frame.rename_axis(index=label).style.format(_cell, na_rep="").set_caption(caption)
    style = style.format_index(label, axis=0).format_index(label, axis=1)
    return (
        style.map(lambda _: f"color: {DOUBTFUL_COLOUR}", subset=(red, list(frame)))
        if red.any()
        else style
    )


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3f}" if 0 < abs(value) < 1 else f"{value:,}".removesuffix(".0")


def side_by_side(measured: pd.Series | pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Join measured and published rows on their index, ``<column> published`` beside ``<column> ours``.

    A missing value is empty. Columns of one side only come last. A series of measured values is joined with a
    published table of one column, and the columns are ``published`` and ``ours``. Raises ValueError where a series
    meets a table of several columns, a row is there twice, or the levels of the two indices differ.
    """
    if isinstance(measured, pd.Series):
        if published.shape[1] != 1:
            raise ValueError(
                f"a series beside the columns {', '.join(published)}: choose one column, or give a frame"
            )
        measured, published = measured.to_frame("ours"), published.set_axis(["published"], axis=1)
    for side, frame in (("measured", measured), ("published", published)):
        if frame.index.has_duplicates:
            raise ValueError(
                f"{side} row {frame.index[frame.index.duplicated()][0]!r} is there twice"
            )
    if measured.index.nlevels != published.index.nlevels:
        raise ValueError(
            f"measured rows have {measured.index.nlevels} levels, published ones {published.index.names}"
        )
    measured = measured.rename_axis(published.index.names)
    rows = published.index.append(measured.index.difference(published.index, sort=False))
    both = [column for column in published if column in measured]
    joined = pd.concat([frame.rename(columns={column: f"{column} {side}" for column in both}).reindex(rows)
                        for side, frame in (("published", published), ("ours", measured))], axis=1)  # fmt: skip
    pairs = [f"{column} {side}" for column in both for side in ("published", "ours")]
    return joined[pairs + [column for column in joined if column not in pairs]]


def with_ratios(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Add a row "X / base" for every other row X: each value over that of ``base`` in the same column."""
    ratios = rows.drop(base) / rows.loc[base]
    return pd.concat([rows, ratios.rename(lambda name: f"{name} / {base}")])


def row_name(key: tuple | str) -> str:
    """Name a row of khan2021, Tables 1, 3, 4 and 7, for people, by its key in the published table or in ours.

    "Stream TPS (top-k)", "1 (averaged)", "Beta(3, 1)", "SentencePiece, 4,096"
    """
    if isinstance(key, str):
        return label(key)
    if len(key) == 3:
        return short_name(label(key[0]), *key[1:])
    if key[0] in ("bytes", "sentencepiece"):
        return f"{label(key[0])}, {key[1]:,}"
    return "1 (averaged)" if key[0] == "1" else key[0]


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of :func:`side_by_side` that we measured, named by :func:`row_name`."""
    rows = rows[rows["MRR ours"].notna()].rename(columns={"R@8": "R@8 ours"})
    if "posts" in rows.index.names:
        rows.insert(0, "tested on", rows.index.get_level_values("posts"))
    return rows.set_axis([row_name(key) for key in rows.index])
