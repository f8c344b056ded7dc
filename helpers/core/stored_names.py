"""Results that were stored under earlier names, read under the names of today.

``stored_names.csv`` holds a label as it was stored, its name, and where the label said it the
number of training authors, which is a column today. :func:`helpers.core.results.read` is the only
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
SEED = r", seed \d+\b"  # leaves the label: it is a column


def translate_stored(results: pd.DataFrame) -> pd.DataFrame:
    """Return rows of results whose labels and metrics have the names of today.

    A label that was never stored otherwise stays as it is.
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
