"""PAN's metrics of verification, and its files.

Each pair has a score in [0, 1]. A score above 0.5 means "one author", a score below 0.5 "two
authors". A score of exactly 0.5 leaves the pair unanswered; 0.5000001 is an answer. Published
tables round to 3 decimals.

Each line of a file is a JSON object. An answer is ``{"id", "value"}`` with the value in [0, 1], a
truth is ``{"id", "same", ...}``. ``pandas.read_json(path, lines=True, dtype=False,
precise_float=True)`` reads both.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.artifacts import atomic_write

AVERAGED = {  # by definition, the metrics whose mean is "overall"
    "pan21": ("AUC", "F1", "c@1", "F_0.5u", "Brier"),
    "pan20": ("AUC", "F1", "c@1", "F_0.5u"),
}
DEFINITIONS = tuple(AVERAGED)
METRICS = (*AVERAGED["pan21"], "overall")


def auc(scores: np.ndarray, same: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the area under the ROC curve, NaN where all pairs that count are of one kind.

    Parameters
    ----------
    scores : (N,)
        score of each pair.
    same : (N,) bool
        whether a pair is of one author.
    weights : (..., N)
        how often each pair counts; by default once.

    Returns
    -------
    (...)
    """
    if weights is None:
        weights = np.ones(len(same))
    order = np.argsort(scores)
    first_of_score = np.unique(scores[order], return_index=True)[1]
    positives, negatives = [
        np.add.reduceat((weights * kind)[..., order], first_of_score, -1) for kind in (same, ~same)
    ]
    below = np.cumsum(negatives, -1) - negatives / 2  # ties count half
    with np.errstate(invalid="ignore"):
        return (positives * below).sum(-1) / (positives.sum(-1) * negatives.sum(-1))


def pan_metrics(
    scores: np.ndarray,
    same: np.ndarray,
    definition: str = "pan21",
    weights: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
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
    weights : (..., N)
        how often each pair counts; by default once.

    Returns
    -------
    Each metric, (...).

    Raises
    ------
    ValueError
        As :func:`check_answers`.
    """
    scores, same = check_answers(scores, same)
    if weights is None:
        weights = np.ones(len(same))
    total = weights.sum(-1)
    accepted = scores > 0.5
    skipped = scores == 0.5
    is_right = accepted == same
    right = weights @ (is_right & ~skipped)
    wrong = weights @ (~is_right & ~skipped)
    hits = weights @ (accepted & same)
    unanswered = weights @ skipped
    if definition == "pan20":  # its evaluator counts unanswered pairs as accepted in F_0.5u
        accepted = accepted | skipped
        skipped = np.zeros_like(same)
    weighted_hits = 1.25 * (weights @ (accepted & same))
    errors = 0.25 * (weights @ (~accepted & (same | skipped))) + weights @ (accepted & ~same)
    metrics = {
        "AUC": auc(scores, same, weights),
        "F1": 2 * hits / np.maximum(2 * hits + wrong, 1),
        "c@1": right * (1 + unanswered / total) / total,
        "F_0.5u": weighted_hits / (weighted_hits + errors),
        "Brier": 1 - weights @ np.square(scores - same) / total,
    }
    overall = np.mean([metrics[name] for name in AVERAGED[definition]], 0)
    return metrics | {"overall": overall, "n_unanswered": unanswered}


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
        If a score is not in [0, 1], or all pairs are of one kind.
    """
    scores = np.asarray(scores, np.float64)
    same = np.asarray(same, bool)
    is_inside = (0 <= scores) & (scores <= 1)
    if not is_inside.all() or same.all() or not same.any():
        raise ValueError(
            f"PAN's metrics need scores in [0, 1] and both kinds of pairs: {(~is_inside).sum()} "
            f"scores are others, {same.sum()} of {len(same)} pairs are of one author"
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
        As :func:`check_answers`.
    """
    scores, same = check_answers(scores, same)
    comparisons = {
        "all pairs": np.ones(len(same), bool),
        "on one topic": same_topic,
        "on two topics": ~same_topic,
        "easy": same == same_topic,
        "hard": same != same_topic,
    }
    rows = {
        name: [(pairs & same).sum(), (pairs & ~same).sum(), auc(scores, same, pairs)]
        for name, pairs in comparisons.items()
    }
    columns = ["positives", "negatives", "AUC"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def write_records(path: str | Path, records: pd.DataFrame) -> None:
    """Write a file of PAN's: answers or the truth, a JSON object for each row.

    Parameters
    ----------
    path : str | Path
        file to write.
    records : frame
        columns ``id`` of the pair and ``value``, its score, or ``same`` and ``authors``.
    """
    with atomic_write(path) as partial:
        lines = map(json.dumps, records.to_dict("records"))
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
