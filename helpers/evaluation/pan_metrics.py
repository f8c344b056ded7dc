"""The metrics of PAN. Each pair of texts has a score in [0, 1]: above 0.5 "one author", below 0.5 "two authors".

A score of exactly 0.5 leaves the pair unanswered; 0.5000001 is an answer. Published tables round to 3 decimals.
"""

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

DEFINITIONS = ("pan21", "pan20")
METRICS = ("AUC", "F1", "c@1", "F_0.5u", "Brier", "overall")


def auc(level: np.ndarray, same: np.ndarray, times: np.ndarray) -> float:
    """Return the AUC of pairs with multiplicities, without scikit-learn's costly checks.

    level : (N,) rank of each score. same : (N,) bool, of one author. times : (N,) how often each pair counts.
    """
    positives, negatives = np.bincount(level, times * same), np.bincount(level, times * ~same)
    total = positives.sum() * negatives.sum()
    return float(positives @ (np.cumsum(negatives) - negatives / 2) / total) if total else np.nan


def pan_metrics(
    scores: np.ndarray, same: np.ndarray, definition: str = "pan21"
) -> dict[str, float]:
    """Return AUC, F1, c@1, F_0.5u, Brier (1 - mean squared error), ``overall`` and ``n_unanswered``.

    Of N pairs c are answered correctly and u are unanswered::

        c@1 = (c + u c / N) / N          F_0.5u = 1.25 TP / (1.25 TP + 0.25 (FN + u) + FP)

    AUC (under the ROC curve) and Brier take unanswered pairs with their score of 0.5. F1 leaves them out.

    Parameters
    ----------
    scores, same : (N,) in [0, 1]; (N,) bool, of one author.
    definition : "pan21": overall is the mean of all five metrics (tyo2021 Table 1). "pan20": F_0.5u counts an
        unanswered pair as "one author", as the evaluator of 2020 did, and overall is the mean of the four metrics
        without Brier (Tables 2 and 3).
    """
    if definition not in DEFINITIONS:
        raise ValueError(f"definition {definition!r}: one of {', '.join(DEFINITIONS)}")
    scores, same = check_answers(scores, same)
    return named_pan_metrics(
        float(roc_auc_score(same, scores)), scores, same, definition, np.ones(len(same))
    )


def named_pan_metrics(
    auc: float, scores: np.ndarray, same: np.ndarray, definition: str, times: np.ndarray
) -> dict[str, float]:
    """Return :func:`pan_metrics` of checked pairs with multiplicities.

    auc : of these pairs. scores, same : (N,), checked. times : (N,) how often each pair counts.
    """
    yes, skipped = scores > 0.5, scores == 0.5
    count = lambda chosen: float(times @ chosen)  # noqa: E731
    right, wrong = count((yes == same) & ~skipped), count((yes != same) & ~skipped)
    hits, total, unanswered = count(yes & same), times.sum(), count(skipped)
    # as the evaluator of 2020 had it, nothing is unanswered here
    accepted, left_out = (
        (yes, skipped) if definition == "pan21" else (yes | skipped, np.zeros_like(skipped))
    )
    found = 1.25 * count(accepted & same)
    missed, accused = count(~accepted & (same | left_out)), count(accepted & ~same)
    result = {
        "AUC": auc, "F1": 2 * hits / max(2 * hits + wrong, 1), "c@1": right * (1 + unanswered / total) / total,
        "F_0.5u": found / (found + 0.25 * missed + accused),
        "Brier": 1 - float(times @ np.square(scores - same)) / total}  # fmt: skip
    averaged = [value for name, value in result.items() if definition == "pan21" or name != "Brier"]
    return result | {"overall": float(np.mean(averaged)), "n_unanswered": int(unanswered)}


def check_answers(scores: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (N,) as float64 and truth (N,) as bool.

    Raises ValueError if the shapes differ, a score is not in [0, 1], or all pairs are of one kind.
    """
    scores, same = np.asarray(scores, np.float64), np.asarray(same, bool)
    if scores.ndim != 1 or scores.shape != same.shape:
        raise ValueError(f"scores {scores.shape} and truth {same.shape} do not fit together")
    if outside := int((~((0 <= scores) & (scores <= 1))).sum()):
        raise ValueError(f"{outside} of {len(scores)} scores are not in [0, 1]")
    if same.all() or not same.any():
        raise ValueError(
            f"{same.sum()} of {len(same)} pairs are of one author: the metrics need both kinds"
        )
    return scores, same


def score_overlap(scores: np.ndarray, same: np.ndarray, bins: int = 50) -> float:
    """Return the share that the histograms of both kinds of pairs have in common (tyo2021 Figure 3), from 0 to 1.

    Raises as :func:`check_answers`.
    """
    scores, same = check_answers(scores, same)
    one, two = (np.histogram(scores[kind], bins, (0, 1))[0] / kind.sum() for kind in (same, ~same))
    return float(np.minimum(one, two).sum())


def auc_by_topic(scores: np.ndarray, same: np.ndarray, same_topic: np.ndarray) -> pd.DataFrame:
    """Return the AUC of same-author pairs against different-author pairs, by the topics of either.

    If same-author pairs share a topic more often than different-author pairs, or less often as in PAN 2020, an AUC over
    all pairs measures topic too.

    Returns
    -------
    Nine rows: ``same_author`` and ``different_author`` ("all", "same topic", "different topic"), ``positives`` and
    ``negatives`` (numbers of pairs) and ``AUC``, NaN if either number is 0.

    Raises as :func:`pan_metrics`, and if the lengths differ.
    """
    scores, same = check_answers(scores, same)
    same_topic = np.asarray(same_topic, bool)
    if same_topic.shape != same.shape:
        raise ValueError(f"{len(same_topic)} topic labels for {len(same)} pairs")
    kinds = {
        "all": np.ones(len(same), bool),
        "same topic": same_topic,
        "different topic": ~same_topic,
    }
    rows = []
    for same_author, those in kinds.items():
        for different_author, these in kinds.items():
            positive, negative = same & those, ~same & these
            chosen = positive | negative
            auc = (
                roc_auc_score(same[chosen], scores[chosen])
                if positive.any() and negative.any()
                else np.nan
            )
            rows.append(
                (
                    same_author,
                    different_author,
                    int(positive.sum()),
                    int(negative.sum()),
                    float(auc),
                )
            )
    return pd.DataFrame(
        rows, columns=["same_author", "different_author", "positives", "negatives", "AUC"]
    )
