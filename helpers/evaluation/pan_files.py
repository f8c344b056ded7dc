"""PAN's files of verification: the answers of a system, the truth, and their metrics.

Each line is a JSON object. An answer is ``{"id", "value"}`` with the value in [0, 1], a truth is
``{"id", "same", ...}``.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from ..core.artifacts import atomic_write
from .bootstrap import metric_table
from .pan_metrics import pan_metrics

# what each field must be
NEEDED = {"value": "a number in [0, 1]", "same": "true or false"}


def read_answers(path: str | Path) -> pd.Series:
    """Read a file of answers as scores by id, float64; empty lines are skipped.

    Raises ValueError, which names the line, if a line is no answer or repeats an id.
    """
    return pd.Series(_read(path, "value"), dtype="float64", name="value").rename_axis("id")


def read_truth(path: str | Path) -> pd.Series:
    """Read a file of truth: by id whether a pair is of one author, bool.

    Raises ValueError as :func:`read_answers`, and if the file holds no pair.
    """
    truth = _read(path, "same")
    if not truth:
        raise ValueError(f"{Path(path).name} holds no pair")
    return pd.Series(truth, dtype="bool", name="same").rename_axis("id")


def write_answers(path: str | Path, ids: Iterable[str], scores: Iterable[float]) -> None:
    """Write scores with all their digits: rounded to 0.5, one would leave its pair unanswered.

    Parameters
    ----------
    path : str | Path
        file to write.
    ids : Iterable[str]
        the id of each of N pairs.
    scores : Iterable[float]
        the score of each pair, in [0, 1].

    Raises
    ------
    ValueError
        If the numbers of ids and scores differ, an id repeats, or a score is outside [0, 1].
    """
    ids = [str(name) for name in ids]
    scores = [float(score) for score in scores]
    if len(ids) != len(scores) or len(set(ids)) != len(ids):
        raise ValueError(
            f"{len(ids)} ids, of which {len(set(ids))} differ, for {len(scores)} scores"
        )
    outside = [score for score in scores if not 0 <= score <= 1]
    if outside:
        raise ValueError(f"{len(outside)} scores are not in [0, 1], the first is {outside[0]}")
    _write(path, [{"id": name, "value": score} for name, score in zip(ids, scores)])


def truth_of(pairs: pd.DataFrame, documents: pd.DataFrame) -> pd.DataFrame:
    """Return the truth of pairs as :func:`write_truth` takes it.

    An id is the row numbers of both documents, such as "12-345".

    Parameters
    ----------
    pairs : frame
        pairs of :mod:`helpers.evaluation.document_pairs`.
    documents : frame
        a row for each document, with a column ``author``.
    """
    author = documents.author.to_numpy()
    return pd.DataFrame(
        {
            "id": pairs["first"].astype(str) + "-" + pairs["second"].astype(str),
            "same": pairs.same,
            "author_a": author[pairs["first"]],
            "author_b": author[pairs["second"]],
        }
    )


def write_truth(path: str | Path, pairs: pd.DataFrame) -> None:
    """Write a file of truth: which pairs are of one author.

    Parameters
    ----------
    path : str | Path
        file to write.
    pairs : frame
        columns ``id``, ``same``, ``author_a``, ``author_b``.

    Raises
    ------
    ValueError
        If an id repeats.
    """
    if pairs.id.duplicated().any():
        raise ValueError(f"{pairs.id.duplicated().sum()} ids are there twice")
    records = []
    for pair in pairs.itertuples():
        authors = [pair.author_a, pair.author_b]
        records.append({"id": pair.id, "same": bool(pair.same), "authors": authors})
    _write(path, records)


def evaluate_answers(
    truth_path: str | Path, answers_path: str | Path, definition: str = "pan21"
) -> pd.DataFrame:
    """Compute PAN's metrics of an answers file, with the numbers of pairs and of missing answers.

    Pairs are matched by id. A missing answer counts as the score 0.5, so that ``n_unanswered`` and
    ``n_missing`` both include it.

    Parameters
    ----------
    truth_path, answers_path : str | Path
        files to read.
    definition : str
        "pan21" or "pan20", see :func:`helpers.evaluation.pan_metrics.pan_metrics`.

    Returns
    -------
    A row for each metric, ``n_pairs`` and ``n_missing``; columns value, low and high (NaN).

    Raises
    ------
    ValueError
        If a line of a file is wrong, an answer is for a pair that the truth does not hold, or all
        pairs are of one kind.
    """
    truth = read_truth(truth_path)
    answers = read_answers(answers_path)
    unknown = answers.index.difference(truth.index)
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} answers are for unknown pairs, the first is {unknown[0]!r}"
        )
    scores = answers.reindex(truth.index)
    metrics = pan_metrics(scores.fillna(0.5).to_numpy(), truth.to_numpy(), definition)
    counts = {"n_pairs": len(truth), "n_missing": scores.isna().sum()}
    return metric_table(metrics | counts)


def _read(path, field):
    """Return a field of each record by id."""
    values = {}
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{Path(path).name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not _is_record(record, field):
                raise ValueError(f"{where}: need an id and {NEEDED[field]} as {field}")
            if record["id"] in values:
                raise ValueError(f"{where}: {record['id']!r} is there twice")
            values[record["id"]] = record[field]
    return values


def _is_record(record, field):
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        return False
    value = record.get(field)
    if field == "same":
        return isinstance(value, bool)
    return type(value) in (int, float) and 0 <= value <= 1  # isinstance would take True as 1


def _write(path, records):
    with atomic_write(path) as partial, open(partial, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
