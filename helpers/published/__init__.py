"""Published numbers of khan2021, tyo2021 and sawatphol2022, one CSV a table, beside measured ones.

The papers' tables and tables of measured numbers come in; both side by side, and the verdicts of
:mod:`helpers.published.claims`, go out. This room never measures anything.

``captions.csv`` holds for every table the columns of its index, a caption, and the doubtful rows.
Rows and columns have the identifiers of the code; :func:`show_published`, :func:`named` and
:mod:`helpers.core.names` turn them into names for people.
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
    """Read a published table.

    Parameters
    ----------
    paper : str
        "khan2021", "tyo2021" or "sawatphol2022"
    number : int
        of the table

    Returns
    -------
    The table; its ``attrs`` hold ``caption`` and ``doubtful``, its doubtful row.

    Raises
    ------
    ValueError
        where there is no such table
    """
    captions = pd.read_csv(
        FOLDER / "captions.csv", index_col=["paper", "table"], keep_default_na=False
    )
    if (paper, number) not in captions.index:
        tables = ", ".join(f"{name} {table}" for name, table in captions.index)
        raise ValueError(f"table {number} of {paper!r}: one of {tables}")
    about = captions.loc[(paper, number)]
    frame = pd.read_csv(FOLDER / f"{paper}_table{number}.csv").set_index(about["index"].split())
    frame.attrs["caption"] = f"{paper} Table {number}. {about.caption}"
    frame.attrs["doubtful"] = about.doubtful
    return frame


def arr_gains() -> pd.DataFrame:
    """Return the gain of R@8 and MRR by ARR; index ``split, base, corpus``.

    References
    ----------
    sawatphol2022, Tables 2 and 3
    """
    gains = {}
    for split, number in (("test_cross", 2), ("test_in", 3)):
        table = published_table("sawatphol2022", number)
        for base in ("mll", "supcon"):
            gains[split, base] = table.loc[f"{base}_arr"] - table.loc[base]
    return pd.concat(gains, names=["split", "base"]).dropna()


def show_published(paper: str, number: int) -> Styler:
    """Show a published table under its caption, named for people; doubtful rows are red.

    Parameters
    ----------
    paper, number : str, int
        as of :func:`published_table`
    """
    frame = published_table(paper, number)
    caption = frame.attrs["caption"].replace(paper, PAPERS[paper], 1)
    style = frame.rename_axis(index=label).style.format(_format_cell, na_rep="")
    style = style.format_index(label, axis=0).format_index(label, axis=1).set_caption(caption)
    row_names = frame.index.to_frame().astype(str).agg(" ".join, axis=1)
    is_doubtful = (row_names == frame.attrs["doubtful"]).to_numpy()
    if is_doubtful.any():
        style = style.set_properties((is_doubtful, list(frame)), color=DOUBTFUL_COLOUR)
    return style


def _format_cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if 0 < abs(value) < 1:
        return f"{value:.3f}"
    return f"{value:,}".removesuffix(".0")


def side_by_side(measured: pd.Series | pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Join measured and published rows on their index.

    Parameters
    ----------
    measured : Series or DataFrame
        a series is joined with a published table of one column
    published : DataFrame
        the table of a paper, or columns of it

    Returns
    -------
    Published rows first; ``<column> published`` beside ``<column> ours``, then the columns of one
    side only, and for a series the columns ``published`` and ``ours``. A missing value is empty.

    Raises
    ------
    ValueError
        where a series meets a table of several columns, a row is there twice, or the levels of the
        two indices differ
    """
    if isinstance(measured, pd.Series):
        if published.shape[1] != 1:
            raise ValueError(
                f"a series beside the columns {', '.join(published)}: choose one column, "
                "or give a frame"
            )
        measured = measured.to_frame("ours")
        published = published.set_axis(["published"], axis=1)
    for side, frame in (("measured", measured), ("published", published)):
        if frame.index.has_duplicates:
            row = frame.index[frame.index.duplicated()][0]
            raise ValueError(f"{side} row {row!r} is there twice")
    if measured.index.nlevels != published.index.nlevels:
        raise ValueError(
            f"measured rows have {measured.index.nlevels} levels, "
            f"published ones {published.index.names}"
        )

    measured = measured.rename_axis(published.index.names)
    only_measured = measured.index.difference(published.index, sort=False)
    rows = published.reindex(published.index.append(only_measured))
    joined = rows.merge(
        measured, "left", left_index=True, right_index=True, suffixes=(" published", " ours")
    )
    pairs = []
    for column in published.columns.intersection(measured.columns, sort=False):
        pairs += [f"{column} published", f"{column} ours"]
    return joined[[*pairs, *joined.columns.difference(pairs, sort=False)]]


def with_ratios(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Add a row "X / base" for every other row X: each value over that of the base.

    Parameters
    ----------
    rows : DataFrame
        numbers
    base : str
        name of the row that divides
    """
    ratios = rows.drop(base) / rows.loc[base]
    ratios.index += f" / {base}"
    return pd.concat([rows, ratios])


def row_name(key: tuple | str) -> str:
    """Name a row of khan2021, Tables 1, 3, 4 and 7, for people, by its key in either table.

    "Stream TPS (top-k)", "1 (averaged)", "Beta(3, 1)", "SentencePiece, 4,096"
    """
    if isinstance(key, str):
        return label(key)
    first, second, *loss = key
    if loss:
        return short_name(label(first), second, *loss)
    if first in ("bytes", "sentencepiece"):
        return f"{label(first)}, {second:,}"
    if first == "1":
        return "1 (averaged)"
    return first


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of :func:`side_by_side` that we measured, named by :func:`row_name`."""
    rows = rows[rows["MRR ours"].notna()].rename(columns={"R@8": "R@8 ours"})
    if "posts" in rows.index.names:
        rows.insert(0, "tested on", rows.index.get_level_values("posts"))
    return rows.set_axis([row_name(key) for key in rows.index])
