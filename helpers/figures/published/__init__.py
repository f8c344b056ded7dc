"""Published numbers of khan2021, tyo2021 and sawatphol2022, one CSV a table, and measured numbers beside them.

``captions.csv`` says of every table which columns are its index, what it shows, and which rows are doubtful. Rows and
columns are named as in the code: features T, TP, TPS; losses of :mod:`helpers.losses`; metrics of the results table.
"""

from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

FOLDER = Path(__file__).parent
DOUBTFUL_COLOUR = "#D55E00"


def table(paper: str, number: int) -> pd.DataFrame:
    """A published table; ``attrs`` hold its ``caption`` and ``doubtful`` rows. Raises ValueError for one not here."""
    captions = pd.read_csv(FOLDER / "captions.csv", index_col=["paper", "table"], keep_default_na=False)
    if (paper, number) not in captions.index:
        raise ValueError(f"table {number} of {paper!r}: one of {', '.join(f'{p} {n}' for p, n in captions.index)}")
    about = captions.loc[(paper, number)]
    frame = pd.read_csv(FOLDER / f"{paper}_table{number}.csv").set_index(about["index"].split())
    frame.attrs = {"caption": f"{paper} Table {number}. {about.caption}", "doubtful": about.doubtful}
    return frame


def arr_gains() -> pd.DataFrame:
    """What ARR adds to R@8 and MRR in sawatphol2022, Tables 2 and 3; index ``split, base, corpus``."""
    gains = {}
    for split, number in (("test_cross", 2), ("test_in", 3)):
        printed = table("sawatphol2022", number)
        gains |= {(split, base): printed.loc[f"{base}_arr"] - printed.loc[base] for base in ("mll", "supcon")}
    return pd.concat(gains, names=["split", "base"]).dropna()


def show(paper: str, number: int) -> Styler:
    """A published table under its caption, for a notebook; doubtful rows are red."""
    frame = table(paper, number)
    names = frame.index.to_frame().astype(str).agg(" ".join, axis=1)
    red = (names == frame.attrs["doubtful"]).to_numpy()
    style = frame.style.format(_cell, na_rep="").set_caption(frame.attrs["caption"])
    return style.map(lambda _: f"color: {DOUBTFUL_COLOUR}", subset=(red, list(frame))) if red.any() else style


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3f}" if 0 < abs(value) < 1 else f"{value:,}".removesuffix(".0")


def side_by_side(measured: pd.Series | pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Rows of both, joined on their index, ``<column> published`` beside ``<column> ours``; what is missing is empty.

    Columns that are measured only, or published only, come last. A series of measured values stands beside a
    published table of one column, and the columns are ``published`` and ``ours``. Raises ValueError where a series
    meets a table of several columns, a row is there twice, or rows are named by other levels.
    """
    if isinstance(measured, pd.Series):
        if published.shape[1] != 1:
            raise ValueError(f"a series beside the columns {', '.join(published)}: choose one column, or give a frame")
        measured, published = measured.to_frame("ours"), published.set_axis(["published"], axis=1)
    for side, frame in (("measured", measured), ("published", published)):
        if frame.index.has_duplicates:
            raise ValueError(f"{side} row {frame.index[frame.index.duplicated()][0]!r} is there twice")
    if measured.index.nlevels != published.index.nlevels:
        raise ValueError(f"measured rows have {measured.index.nlevels} levels, published ones {published.index.names}")
    measured = measured.rename_axis(published.index.names)
    rows = published.index.append(measured.index.difference(published.index, sort=False))
    both = [column for column in published if column in measured]
    joined = pd.concat([frame.rename(columns={column: f"{column} {side}" for column in both}).reindex(rows)
                        for side, frame in (("published", published), ("ours", measured))], axis=1)  # fmt: skip
    pairs = [f"{column} {side}" for column in both for side in ("published", "ours")]
    return joined[pairs + [column for column in joined if column not in pairs]]
