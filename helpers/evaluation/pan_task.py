"""PAN's metrics of verification, and its files of answers and of the truth.

Each pair has a score in [0, 1]. A score above 0.5 means "one author", a score below 0.5 "two
authors". A score of exactly 0.5 leaves the pair unanswered; 0.5000001 is an answer. Published
tables round to 3 decimals.

Each line of a file is a JSON object. An answer is ``{"id", "value"}`` with the value in [0, 1], a
truth is ``{"id", "same", ...}``.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.artifacts import atomic_write
from ..core.parameters import unknown
from .bootstrap import metric_table

AVERAGED = {  # by definition, the metrics whose mean is "overall"
    "pan21": ("AUC", "F1", "c@1", "F_0.5u", "Brier"),
    "pan20": ("AUC", "F1", "c@1", "F_0.5u"),
}
DEFINITIONS = tuple(AVERAGED)
METRICS = (*AVERAGED["pan21"], "overall")

# what each field of a file must be
NEEDED = {"value": "a number in [0, 1]", "same": "true or false"}


def auc(scores: np.ndarray, same: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the area under the ROC curve, or NaN if all pairs that count are of one kind.

    It is faster than scikit-learn's, because it checks nothing.

    Parameters
    ----------
    scores : (N,)
        score of each pair.
    same : (N,) bool
        whether a pair is of one author.
    weights : (N,)
        how often each pair counts; by default once.
    """
    if weights is None:
        weights = np.ones(len(same))
    level = np.unique(scores, return_inverse=True)[1]
    positives = np.bincount(level, np.where(same, weights, 0))
    negatives = np.bincount(level, np.where(same, 0, weights))
    total = positives.sum() * negatives.sum()
    if not total:
        return np.nan
    below = np.cumsum(negatives) - negatives / 2  # ties count half
    return float(positives @ below / total)


def pan_metrics(
    scores: np.ndarray,
    same: np.ndarray,
    definition: str = "pan21",
    weights: np.ndarray | None = None,
) -> dict[str, float]:
    """Return AUC, F1, c@1, F_0.5u, Brier, ``overall`` and ``n_unanswered``.

    Brier is 1 - mean squared error. Of N pairs c are answered correctly and u are unanswered::

        c@1 = (c + u c / N) / N          F_0.5u = 1.25 TP / (1.25 TP + 0.25 (FN + u) + FP)

    AUC (under the ROC curve) and Brier take unanswered pairs with their score of 0.5. F1 leaves
    them out.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,) bool
        whether a pair is of one author.
    definition : str
        "pan21": overall is the mean of all five metrics (tyo2021 Table 1). "pan20": F_0.5u counts
        an unanswered pair as "one author", as the evaluator of 2020 did, and overall is the mean of
        the four metrics without Brier (Tables 2 and 3).
    weights : (N,)
        how often each pair counts; by default once.

    Raises
    ------
    ValueError
        As :func:`check_answers`; or the definition is unknown.
    """
    if message := unknown([definition], AVERAGED, "definition"):
        raise ValueError(message)
    scores, same = check_answers(scores, same)
    if weights is None:
        weights = np.ones(len(same))
    total = weights.sum()
    accepted = scores > 0.5
    skipped = scores == 0.5
    right = weights @ (~skipped & (accepted == same))
    wrong = weights @ (~skipped & (accepted != same))
    hits = weights @ (accepted & same)
    unanswered = weights @ skipped

    missed = ~accepted & (same | skipped)
    if definition == "pan20":  # its evaluator counts unanswered pairs as accepted here
        accepted = accepted | skipped
        missed = ~accepted & same
    weighted_hits = 1.25 * (weights @ (accepted & same))
    errors = 0.25 * (weights @ missed) + weights @ (accepted & ~same)
    metrics = {
        "AUC": auc(scores, same, weights),
        "F1": 2 * hits / max(2 * hits + wrong, 1),
        "c@1": right * (1 + unanswered / total) / total,
        "F_0.5u": weighted_hits / (weighted_hits + errors),
        "Brier": 1 - weights @ np.square(scores - same) / total,
    }
    overall = np.mean([metrics[name] for name in AVERAGED[definition]])
    return metrics | {"overall": overall, "n_unanswered": int(unanswered)}


def check_answers(scores: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores as float64 and truth as bool, (N,) each.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,)
        whether a pair is of one author.

    Raises
    ------
    ValueError
        If the shapes differ, a score is not in [0, 1], or all pairs are of one kind.
    """
    scores = np.asarray(scores, np.float64)
    same = np.asarray(same, bool)
    if scores.ndim != 1 or scores.shape != same.shape:
        raise ValueError(f"scores {scores.shape} and truth {same.shape} do not fit together")
    outside = int((~((0 <= scores) & (scores <= 1))).sum())
    if outside:
        raise ValueError(f"{outside} of {len(scores)} scores are not in [0, 1]")
    if same.all() or not same.any():
        raise ValueError(
            f"{same.sum()} of {len(same)} pairs are of one author: the metrics need both kinds"
        )
    return scores, same


def score_overlap(scores: np.ndarray, same: np.ndarray, bins: int = 50) -> float:
    """Return the overlap, 0 to 1, of the score histograms of same- and different-author pairs.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,) bool
        whether a pair is of one author.
    bins : int
        number of bins of each histogram.

    Raises
    ------
    ValueError
        As :func:`check_answers`.

    References
    ----------
    tyo2021 Figure 3.
    """
    scores, same = check_answers(scores, same)
    of_one = np.histogram(scores[same], bins, (0, 1))[0] / same.sum()
    of_two = np.histogram(scores[~same], bins, (0, 1))[0] / (~same).sum()
    return float(np.minimum(of_one, of_two).sum())


def auc_by_comparison(scores: np.ndarray, same: np.ndarray, same_topic: np.ndarray) -> pd.DataFrame:
    """Return the AUC of same-author against different-author pairs, chosen by their topics.

    If same-author pairs share a topic more often than different-author pairs, or less often as in
    PAN 2020, an AUC over all pairs also measures topic.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,) bool
        whether a pair is of one author.
    same_topic : (N,) bool
        whether a pair is on one topic.

    Returns
    -------
    Columns ``positives`` and ``negatives`` (numbers of pairs) and ``AUC``, NaN if either number is
    0; rows "all pairs"; "on one topic" and "on two topics", which both kinds are; "easy", pairs of
    one author on one topic against pairs of two on two; and "hard", pairs of one author on two
    topics against pairs of two on one.

    Raises
    ------
    ValueError
        As :func:`check_answers`, and if the lengths differ.
    """
    scores, same = check_answers(scores, same)
    same_topic = np.asarray(same_topic, bool)
    if same_topic.shape != same.shape:
        raise ValueError(f"{len(same_topic)} topic labels for {len(same)} pairs")
    comparisons = {
        "all pairs": np.ones(len(same), bool),
        "on one topic": same_topic,
        "on two topics": ~same_topic,
        "easy": same == same_topic,
        "hard": same != same_topic,
    }
    rows = {}
    for name, pairs in comparisons.items():
        rows[name] = {
            "positives": (pairs & same).sum(),
            "negatives": (pairs & ~same).sum(),
            "AUC": auc(scores, same, pairs),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def read_answers(path: str | Path, field: str = "value") -> pd.Series:
    """Read the scores of a file of answers, or the truth, by id; empty lines are skipped.

    Parameters
    ----------
    path : str | Path
        file to read.
    field : str
        "value", the score, or "same", whether a pair is of one author.

    Raises
    ------
    ValueError
        If a line is no record with an id and the field, or repeats an id; the message names it.
    """
    values = {}
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{Path(path).name}, line {number}"
            try:
                record = json.loads(line)
                name = record["id"]
                value = record[field]
            except (ValueError, RecursionError, TypeError, KeyError):
                name = None
                value = None
            if not isinstance(name, str) or not _is_valid(value, field):
                raise ValueError(f"{where}: need an id and {NEEDED[field]} as {field}")
            if name in values:
                raise ValueError(f"{where}: {name!r} is there twice")
            values[name] = value
    return pd.Series(values, name=field).rename_axis("id")


def _is_valid(value, field):
    if field == "same":
        return isinstance(value, bool)
    return type(value) in (int, float) and 0 <= value <= 1  # isinstance would take True as 1


def write_answers(path: str | Path, scores: pd.Series) -> None:
    """Write scores with all their digits: rounded to 0.5, one would leave its pair unanswered.

    Parameters
    ----------
    path : str | Path
        file to write.
    scores : (N,)
        the score of each of N pairs, in [0, 1], by the id of the pair.

    Raises
    ------
    ValueError
        If an id repeats, or a score is outside [0, 1].
    """
    if not scores.index.is_unique or not scores.between(0, 1).all():
        raise ValueError("answers need an id each and scores in [0, 1]")
    answers = scores.astype(float).items()
    _write(path, [{"id": str(name), "value": score} for name, score in answers])


def write_truth(path: str | Path, pairs: pd.DataFrame, documents: pd.DataFrame) -> pd.Index:
    """Write a file of truth: which pairs are of one author, and of which.

    Parameters
    ----------
    path : str | Path
        file to write.
    pairs : frame
        pairs of :mod:`helpers.evaluation.document_pairs`.
    documents : frame
        a row for each document, with a column ``author``.

    Returns
    -------
    The id of each pair: the row numbers of both documents, such as "12-345".
    """
    author = documents.author.to_numpy()
    records = []
    for pair in pairs.itertuples():
        authors = [author[pair.first], author[pair.second]]
        name = f"{pair.first}-{pair.second}"
        records.append({"id": name, "same": bool(pair.same), "authors": authors})
    _write(path, records)
    return pd.Index([record["id"] for record in records], name="id")


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
        "pan21" or "pan20", see :func:`pan_metrics`.

    Returns
    -------
    A row for each metric, ``n_pairs`` and ``n_missing``; columns value, low and high (NaN).

    Raises
    ------
    ValueError
        If a line of a file is wrong, an answer is for a pair that the truth does not hold, or all
        pairs are of one kind.
    """
    truth = read_answers(truth_path, "same")
    answers = read_answers(answers_path)
    unknown = answers.index.difference(truth.index)
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} answers are for unknown pairs, the first is {unknown[0]!r}"
        )
    scores = answers.reindex(truth.index)
    metrics = pan_metrics(scores.fillna(0.5), truth, definition)
    counts = {"n_pairs": len(truth), "n_missing": scores.isna().sum()}
    return metric_table(metrics | counts)


def _write(path, records):
    with atomic_write(path) as partial, open(partial, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
