"""Published numbers of khan2021, tyo2021 and sawatphol2022, to be compared with measured ones.

Each table of a paper is one CSV. This room takes these tables and tables of measured numbers, and
returns both side by side, and the verdicts of :mod:`helpers.published.claims`. It never measures
anything.

``captions.csv`` has one row per table: which columns are its index, its caption, and the key of the
row whose numbers are doubtful, if any. Rows and columns have the identifiers of the code;
:func:`show_published` and :func:`named` replace them by readable names.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from ..core.names import label, row_name

FOLDER = Path(__file__).parent
DOUBTFUL_COLOUR = "#D55E00"
# row of khan2021's Tables 2 and 9 -> our baselines, the nearest to the paper's first
ROW_OF_BASELINES = {
    "tfidf_word": ("tfidf_word",),
    "sentence_encoder": ("minilm_joined", "minilm", "minilm_averaged"),
}
PAPERS = {"khan2021": "Khan et al.", "tyo2021": "Tyo et al.", "sawatphol2022": "Sawatphol et al."}


def published_table(paper: str, number: int) -> pd.DataFrame:
    """Read a table of a paper.

    Parameters
    ----------
    paper : str
        "khan2021", "tyo2021" or "sawatphol2022"
    number : int
        number of the table in the paper

    Returns
    -------
    The table. Its ``attrs`` hold ``caption`` and ``doubtful``, the index values of its doubtful
    row, joined by spaces ("mll Fanfiction"); "" where no row is doubtful.

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


def show_published(paper: str, number: int) -> Styler:
    """Show a table of a paper with its caption and readable names; the doubtful row is red.

    Parameters
    ----------
    paper, number : str, int
        as in :func:`published_table`
    """
    frame = published_table(paper, number)
    caption = frame.attrs["caption"].replace(paper, f"{PAPERS[paper]} {paper[-4:]},", 1)
    style = frame.rename_axis(index=label).style.format(_format_cell, na_rep="")
    style = style.format_index(label, axis=0).format_index(label, axis=1).set_caption(caption)
    row_names = frame.index.to_frame().astype(str).agg(" ".join, axis=1)
    is_doubtful = (row_names == frame.attrs["doubtful"]).to_numpy()
    if is_doubtful.any():
        style = style.set_properties((is_doubtful, list(frame)), color=DOUBTFUL_COLOUR)
    return style


# Show a number below 1 with three digits and a larger one with commas; keep a text.
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
        measured numbers; for a series, ``published`` must have one column
    published : DataFrame
        a table of a paper, or some columns of it

    Returns
    -------
    All published rows, then the rows that were only measured. A column of both sides gives the two
    columns ``<column> published`` and ``<column> ours``; columns of one side follow under their own
    names. A series gives the columns ``published`` and ``ours``. Missing values are NaN.

    Raises
    ------
    ValueError
        where a series is given with a table of several columns, an index value occurs twice on one
        side, or the two indices have different numbers of levels
    """
    if isinstance(measured, pd.Series):
        measured = measured.to_frame("ours")
        published = published.set_axis(["published"], axis=1)
    measured = measured.rename_axis(published.index.names)
    only_measured = measured.index.difference(published.index, sort=False)
    rows = published.reindex(published.index.append(only_measured))
    joined = rows.join(measured, suffixes=(" published", " ours"), validate="one_to_one")
    pairs = []
    for column in published.columns.intersection(measured.columns, sort=False):
        pairs += [f"{column} published", f"{column} ours"]
    return joined[[*pairs, *joined.columns.difference(pairs, sort=False)]]


def linking_rows(experiments: dict[str, Any], baselines: Collection[str] = ()) -> dict[str, str]:
    """Return the rows of khan2021's Tables 2 and 9 to which our models belong.

    Parameters
    ----------
    experiments : dict[str, Experiment]
        settings of each training, by the name of its encoder. With the pooling "iur" the row is
        "iur"; with that of khan2021, trained on samples of several sizes, it names features and
        most posts of a sample, such as "TP_16"; others have no row
    baselines : collection of str
        names of :data:`helpers.encoders.baselines.BASELINES`. A sentence encoder that reads all
        posts as one text, as the paper's does, is preferred to one that averages

    Returns
    -------
    The name of the model of each row, that of the first encoder where there are several.
    """
    rows = {}
    for row, candidates in ROW_OF_BASELINES.items():
        present = [name for name in candidates if name in baselines]
        if present:
            rows[row] = present[0]
    for name, experiment in experiments.items():
        pooling = experiment.encoder.pooling
        sampler = experiment.sampler
        if pooling == "iur":
            rows.setdefault("iur", name)
        elif pooling == "khan2021" and sampler.kind == "authors" and sampler.sizes != "fixed":
            row = f"{experiment.encoder.features}_{sampler.max_posts}"
            rows.setdefault(row, name)
    return rows


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the measured rows of a joined table, and name them.

    Parameters
    ----------
    rows : DataFrame
        result of :func:`side_by_side` for khan2021's Table 1, 3, 4 or 7; rows without a value of
        ``MRR ours`` are left out

    Returns
    -------
    The rows under the names of :func:`helpers.core.names.row_name`. A column ``R@8`` that only one
    side has is called ``R@8 ours``. For Table 3, the first column is ``tested on``, the number of
    posts.
    """
    rows = rows[rows["MRR ours"].notna()].rename(columns={"R@8": "R@8 ours"})
    if "posts" in rows.index.names:
        rows.insert(0, "tested on", rows.index.get_level_values("posts"))
    return rows.set_axis([row_name(key) for key in rows.index])
