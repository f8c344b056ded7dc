"""The metrics of PAN.

Each pair has a score in [0, 1]. A score above 0.5 means "one author", a score below 0.5 "two
authors". A score of exactly 0.5 leaves the pair unanswered; 0.5000001 is an answer. Published
tables round to 3 decimals.
"""

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

AVERAGED = {  # by definition, the metrics whose mean is "overall"
    "pan21": ("AUC", "F1", "c@1", "F_0.5u", "Brier"),
    "pan20": ("AUC", "F1", "c@1", "F_0.5u"),
}
DEFINITIONS = tuple(AVERAGED)
METRICS = (*AVERAGED["pan21"], "overall")

# which same-author pairs are compared with which different-author pairs, by their topics
COMPARISONS = {
    "all pairs": ("all", "all"),
    "on one topic": ("same topic", "same topic"),
    "on two topics": ("different topic", "different topic"),
    "easy": ("same topic", "different topic"),
    "hard": ("different topic", "same topic"),
}


def auc(level: np.ndarray, same: np.ndarray, weights: np.ndarray) -> float:
    """Return the AUC of pairs with multiplicities, or NaN if all pairs that count are of one kind.

    It is faster than scikit-learn's, because it checks nothing.

    Parameters
    ----------
    level : (N,)
        rank of each score, from 0; equal scores have the same.
    same : (N,) bool
        whether a pair is of one author.
    weights : (N,)
        how often each pair counts.
    """
    positives = np.bincount(level, np.where(same, weights, 0))
    negatives = np.bincount(level, np.where(same, 0, weights))
    total = positives.sum() * negatives.sum()
    if not total:
        return np.nan
    below = np.cumsum(negatives) - negatives / 2  # ties count half
    return float(positives @ below / total)


def pan_metrics(
    scores: np.ndarray, same: np.ndarray, definition: str = "pan21"
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

    Raises
    ------
    ValueError
        As :func:`check_answers`, and if the definition is unknown.
    """
    scores, same = check_answers(scores, same)
    area = float(roc_auc_score(same, scores))
    return named_pan_metrics(area, scores, same, definition, np.ones(len(same)))


def named_pan_metrics(
    auc: float, scores: np.ndarray, same: np.ndarray, definition: str, weights: np.ndarray
) -> dict[str, float]:
    """Return :func:`pan_metrics` of checked pairs with multiplicities.

    Parameters
    ----------
    auc : float
        AUC of these pairs.
    scores, same : (N,)
        scores and truth as :func:`check_answers` returns them.
    definition : str
        "pan21" or "pan20", see :func:`pan_metrics`.
    weights : (N,)
        how often each pair counts.

    Raises
    ------
    ValueError
        If the definition is unknown.
    """
    if definition not in DEFINITIONS:
        raise ValueError(f"definition {definition!r}: one of {', '.join(DEFINITIONS)}")
    total = weights.sum()
    accepted = scores > 0.5
    skipped = scores == 0.5
    is_right = ~skipped & (accepted == same)
    right = float(weights @ is_right)
    wrong = float(weights @ (~skipped & ~is_right))
    hits = float(weights @ (accepted & same))
    unanswered = float(weights @ skipped)

    if definition == "pan21":
        missed = ~accepted & (same | skipped)
    else:  # the evaluator of 2020 counts unanswered pairs as accepted here
        accepted = accepted | skipped
        missed = ~accepted & same
    weighted_hits = 1.25 * float(weights @ (accepted & same))
    misses = 0.25 * float(weights @ missed)
    false_accepts = float(weights @ (accepted & ~same))
    metrics = {
        "AUC": auc,
        "F1": 2 * hits / max(2 * hits + wrong, 1),
        "c@1": right * (1 + unanswered / total) / total,
        "F_0.5u": weighted_hits / (weighted_hits + misses + false_accepts),
        "Brier": 1 - float(weights @ np.square(scores - same)) / total,
    }
    overall = float(np.mean([metrics[name] for name in AVERAGED[definition]]))
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


def auc_by_comparison(scores: np.ndarray, same: np.ndarray, same_topic: np.ndarray) -> pd.Series:
    """Return the AUC of each of COMPARISONS, see :func:`auc_by_topic`.

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
    AUC by the names of COMPARISONS; NaN for a comparison without pairs.
    """
    table = auc_by_topic(scores, same, same_topic)
    areas = table.set_index(["same_author", "different_author"])["AUC"]
    return pd.Series({name: areas[kinds] for name, kinds in COMPARISONS.items()}, name="AUC")


def auc_by_topic(scores: np.ndarray, same: np.ndarray, same_topic: np.ndarray) -> pd.DataFrame:
    """Return the AUC for every choice of same-author and different-author pairs by their topics.

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
    Nine rows: ``same_author`` and ``different_author`` ("all", "same topic", "different topic"),
    ``positives`` and ``negatives`` (numbers of pairs) and ``AUC``, NaN if either number is 0.

    Raises
    ------
    ValueError
        As :func:`check_answers`, and if the lengths differ.
    """
    scores, same = check_answers(scores, same)
    same_topic = np.asarray(same_topic, bool)
    if same_topic.shape != same.shape:
        raise ValueError(f"{len(same_topic)} topic labels for {len(same)} pairs")
    masks = {
        "all": np.ones(len(same), bool),
        "same topic": same_topic,
        "different topic": ~same_topic,
    }
    rows = []
    for same_author, positive_mask in masks.items():
        for different_author, negative_mask in masks.items():
            pairs = np.where(same, positive_mask, negative_mask)
            positives = int(same[pairs].sum())
            negatives = int(pairs.sum()) - positives
            area = np.nan
            if positives and negatives:
                area = float(roc_auc_score(same[pairs], scores[pairs]))
            rows.append((same_author, different_author, positives, negatives, area))
    return pd.DataFrame(
        rows, columns=["same_author", "different_author", "positives", "negatives", "AUC"]
    )
