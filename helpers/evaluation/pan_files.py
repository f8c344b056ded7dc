"""PAN's files of verification: ``answers.jsonl`` of a system, ``truth.jsonl``, and the one scored against the other.

One JSON object a line. An answer is ``{"id", "value"}``, the value in [0, 1]; a truth is ``{"id", "same", ...}``.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from helpers.core.artifacts import atomic_write
from helpers.evaluation.bootstrap import metric_table
from helpers.evaluation.pan_metrics import pan_metrics


def read_answers(path: str | Path) -> pd.Series:
    """Scores by id, float64. Raises ValueError, with the line, for what is no answer, or an id twice."""
    return pd.Series(_read(path, "value", _is_score), dtype="float64", name="value").rename_axis(
        "id"
    )


def read_truth(path: str | Path) -> pd.Series:
    """Whether each pair is of one author, by id, bool. Raises ValueError as :func:`read_answers`, or where empty."""
    truth = _read(path, "same", lambda value: isinstance(value, bool))
    if not truth:
        raise ValueError(f"{Path(path).name} holds no pair")
    return pd.Series(truth, dtype="bool", name="same").rename_axis("id")


def write_answers(path: str | Path, ids: Iterable[str], scores: Iterable[float]) -> None:
    """Write scores with all their digits: a rounded one could become 0.5, which is no answer.

    Raises ValueError for lengths that do not fit, an id twice, or a score outside [0, 1].
    """
    ids, scores = [str(each) for each in ids], [float(score) for score in scores]
    if len(ids) != len(scores) or len(set(ids)) != len(ids):
        raise ValueError(
            f"{len(ids)} ids, of which {len(set(ids))} differ, for {len(scores)} scores"
        )
    if outside := [score for score in scores if not _is_score(score)]:
        raise ValueError(f"{len(outside)} scores are not in [0, 1], the first is {outside[0]}")
    _write(path, ({"id": each, "value": score} for each, score in zip(ids, scores)))


def truth_of(pairs: pd.DataFrame, documents: pd.DataFrame) -> pd.DataFrame:
    """What :func:`write_truth` takes, of pairs of documents (:mod:`helpers.evaluation.document_pairs`): ids are row numbers."""
    author_a, author_b = (documents.author.to_numpy()[pairs[side]] for side in ("first", "second"))
    ids = pairs["first"].astype(str) + "-" + pairs["second"].astype(str)
    return pd.DataFrame({"id": ids, "same": pairs.same, "author_a": author_a, "author_b": author_b})


def write_truth(path: str | Path, pairs: pd.DataFrame) -> None:
    """Write the columns ``id``, ``same``, ``author_a``, ``author_b``. Raises ValueError where an id is there twice."""
    if pairs.id.duplicated().any():
        raise ValueError(f"{pairs.id.duplicated().sum()} ids are there twice")
    rows = zip(pairs.id, pairs.same, pairs.author_a, pairs.author_b)
    _write(path, ({"id": each, "same": bool(same), "authors": [a, b]} for each, same, a, b in rows))


def align(truth: pd.Series, answers: pd.Series) -> tuple[pd.Series, int]:
    """Scores in the order of the truth, 0.5 where an answer is missing, and how many are.

    Raises ValueError where answers are for pairs that the truth does not know.
    """
    if len(unknown := answers.index.difference(truth.index)):
        raise ValueError(
            f"{len(unknown)} answers are for unknown pairs, the first is {unknown[0]!r}"
        )
    scores = answers.reindex(truth.index)
    return scores.fillna(0.5), int(scores.isna().sum())


def evaluate_answers(
    truth_path: str | Path, answers_path: str | Path, definition: str = "pan21"
) -> pd.DataFrame:
    """Table (value, low, high) of :func:`helpers.evaluation.pan_metrics.pan_metrics`, ``n_pairs``, ``n_missing``.

    Pairs are matched by id. A missing answer counts as unanswered, and both counts hold it.
    """
    truth = read_truth(truth_path)
    scores, missing = align(truth, read_answers(answers_path))
    metrics = pan_metrics(scores.to_numpy(), truth.to_numpy(), definition)
    return metric_table(metrics | {"n_pairs": len(truth), "n_missing": missing})


def _read(path, field, is_valid):
    records = {}
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{Path(path).name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not (
                isinstance(record, dict)
                and isinstance(record.get("id"), str)
                and is_valid(record.get(field))
            ):
                need = "a number in [0, 1]" if field == "value" else "true or false"
                raise ValueError(f"{where}: need an id and {need} as {field}")
            if record["id"] in records:
                raise ValueError(f"{where}: {record['id']!r} is there twice")
            records[record["id"]] = record[field]
    return records


def _is_score(value):
    return type(value) in (int, float) and 0 <= value <= 1


def _write(path, records):
    with atomic_write(path) as partial, open(partial, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
