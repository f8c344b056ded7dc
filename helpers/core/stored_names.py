"""Translate the labels and metrics of older tables of results into the names of today.

``stored_names.csv`` has for each older label its name of today and, where the label included it,
the number of training authors, which is now a column. :func:`helpers.core.results.read` is the only
caller.
"""

from pathlib import Path

import pandas as pd

STORED_METRICS = {"hardest AUC": "hardest_AUC", "dev overall": "dev_overall"}
STORED_NAMES = pd.read_csv(
    Path(__file__).with_suffix(".csv"),
    index_col="stored",
    dtype={"training_authors": "Int64"},
    keep_default_na=False,
    na_values={"training_authors": [""]},
)
SEED = r", seed \d+\b"  # ", seed 3" in "Stream TPS, seed 3"; removed, as the seed is a column


def translate_stored(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of results with the names of today for labels and metrics.

    A label that the table of older names lacks is kept, without its seed. An empty label is filled
    in if the table has the model's identifier. A number of training authors is filled in where the
    row has none.
    """
    stored = results.label.where(results.label != "", results.model)
    stored = stored.str.replace(SEED, "", regex=True)
    label = stored.map(STORED_NAMES.name).fillna(stored)
    has_label = (results.label != "") | stored.isin(STORED_NAMES.index)
    authors = stored.map(STORED_NAMES.training_authors).astype("Int64")
    return results.assign(
        label=label.where(has_label, ""),
        training_authors=results.training_authors.fillna(authors),
        metric=results.metric.replace(STORED_METRICS),
    )
