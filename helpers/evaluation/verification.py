"""Verification (tyo2021 section 3): trials, similarities, a decision, PAN's metrics and its files.

A decision makes an answer from a similarity, by a map and two thresholds. Both are fitted on dev
pairs; tyo2021 chose its thresholds on the test set, which raises its numbers.

An answer is a score in [0, 1]. A score above 0.5 means "one author", a score below 0.5 "two
authors". A score of exactly 0.5 leaves the pair unanswered; 0.5000001 is an answer. Published
tables round to 3 decimals.

Each line of one of PAN's files is a JSON object. An answer is ``{"id", "value"}`` with the value in
[0, 1], a truth is ``{"id", "same", ...}``. ``pandas.read_json(path, lines=True, dtype=False,
precise_float=True)`` reads both.
"""

import json
import time
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import expit

from ..core.artifacts import atomic_write
from ..core.parameters import unknown
from ..tokens.batch import Samples
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
from .bootstrap import metric_table, resampled_metrics
from .calibration import Calibration, fit_calibration
from .detection import auc
from .models import Scorer, as_model
from .trials import Trials, as_bool, as_trials

GRID = np.linspace(0.02, 0.98, 49)  # thresholds that are tried
AVERAGED = {  # by definition, the metrics whose mean is "overall"
    "pan21": ("AUC", "F1", "c@1", "F_0.5u", "Brier"),
    "pan20": ("AUC", "F1", "c@1", "F_0.5u"),
}
DEFINITIONS = tuple(AVERAGED)
METRICS = (*AVERAGED["pan21"], "overall", "hardest_AUC")


def verification_trials(documents: TokenStore | Samples, pairs: pd.DataFrame) -> Trials:
    """Make trials of listed pairs of documents; documents in no pair are left out.

    Parameters
    ----------
    documents : a store whose every post is a document, or samples
    pairs : N pairs, in columns ``first`` and ``second`` the row numbers of documents, see
        :func:`helpers.evaluation.document_pairs.make_pairs`
    """
    samples = documents
    if isinstance(documents, TokenStore):
        samples = Samples.of_posts(documents)
    rows, places = np.unique(pairs[["first", "second"]].to_numpy(), return_inverse=True)
    samples = samples[rows]
    return Trials(samples, samples, places.reshape(-1, 2), "verification")


def trial_similarities(model: Scorer, trials: Trials, max_tokens: int = 32) -> np.ndarray:
    """Return the score of each listed pair: cosine, or minus the Euclidean distance.

    A text without any term has a zero row, so its cosine with every other text is 0.

    Parameters
    ----------
    model : the model that scores the trials
    trials : N listed pairs
    max_tokens : tokens read of each post

    Returns
    -------
    (N,) float64
    """
    scores = as_model(model).pair_scores(trials.queries, trials.targets, trials.pairs, max_tokens)
    return scores.astype(np.float64)


def apply_thresholds(scores: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Set scores between the thresholds to 0.5, and scale those below and above.

    [0, lower) becomes [0, 0.5) and (upper, 1] becomes (0.5, 1]. Scores outside of the thresholds
    keep their order, and none of them becomes 0.5 by rounding. With lower = upper = 0.5 no score
    changes.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    lower, upper : float
        thresholds, 0 <= lower <= upper <= 1.
    """
    scores = np.asarray(scores, np.float64)
    answers = np.where(np.isnan(scores), np.nan, 0.5)
    below = scores < lower
    above = scores > upper
    answers[below] = np.minimum(0.5 * scores[below] / lower, np.nextafter(0.5, 0))
    answers[above] = np.maximum(1 - 0.5 * (1 - scores[above]) / (1 - upper), np.nextafter(0.5, 1))
    return answers


def threshold_surface(
    scores: np.ndarray, same: np.ndarray, definition: str = "pan21"
) -> pd.DataFrame:
    """Compute PAN's metrics of dev pairs for every lower <= upper of GRID (tyo2021 Figure 2b).

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,) bool
        whether a pair is of one author.
    definition : str
        "pan21" or "pan20", see :func:`pan_metrics`.

    Returns
    -------
    Columns ``lower``, ``upper`` and the metrics, a row for each combination: 1,225.
    """
    rows = []
    for lower, upper in combinations_with_replacement(GRID, 2):
        metrics = pan_metrics(apply_thresholds(scores, lower, upper), same, definition)
        rows.append({"lower": lower, "upper": upper} | metrics)
    return pd.DataFrame(rows)


def best_thresholds(surface: pd.DataFrame) -> tuple[float, float]:
    """Return the thresholds (lower, upper) of a surface that give the highest "overall".

    Of equal ones (to 12 decimals) those with the fewest unanswered pairs are taken, then those with
    the lowest ``lower``.
    """
    order = {"overall": False, "n_unanswered": True, "lower": True}  # whether ascending
    ranked = surface.round({"overall": 12}).sort_values(list(order), ascending=[*order.values()])
    return tuple(ranked[["lower", "upper"]].iloc[0])


def to_scores(fitted: Calibration | None, similarities: np.ndarray) -> np.ndarray:
    """Return scores (N,) in [0, 1]: the probability that a pair is of one author, at prior 0.5.

    Parameters
    ----------
    fitted : Calibration
        map from similarities, fitted at prior 0.5; None for cosines in place of probabilities.
    similarities : (N,)
        similarity of each pair.
    """
    if fitted is None:
        return np.clip(similarities, 0, 1)
    return expit(fitted.llr(similarities))


def evaluate_documents(
    model: Scorer,
    documents: Documents,
    pairs: dict[str, pd.DataFrame],
    max_tokens: int = 32,
    definition: str = "pan21",
    decision: Literal["calibrated", "shift"] = "calibrated",
    **drawn: int,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Fit the decision on dev pairs, then decide each test pair alone and compute PAN's metrics.

    Parameters
    ----------
    model : the model that scores the pairs; one that was fitted on the raw texts of the documents
        (:func:`helpers.encoders.baselines.fit_on_documents`) reads these, whole
    documents : documents with the splits "dev" and "test"
    pairs : pairs of both splits, see :func:`helpers.evaluation.document_pairs.make_pairs`
    max_tokens : tokens read of each document, or piece of one, by all other models
    definition : "pan21" or "pan20", see :func:`pan_metrics`
    decision : what makes a probability of a similarity. "calibrated": a logistic map, fitted on dev
        pairs, both kinds of which weigh as much; it rises with the similarity if pairs of one
        author are closer on dev. "shift", as in PAN's naive baseline: cosines are taken as they
        are. The thresholds of the probability are the best ones of the dev pairs
    **drawn : ``seed`` and ``resamples`` of :func:`verification_metrics`

    Returns
    -------
    The table of :func:`verification_metrics`, with ``n_unanswered`` and ``dev_overall``, which have
    no interval; and the pairs of "dev" and "test", with columns ``first`` and ``second`` (numbers
    of their authors), ``same``, ``same_topic``, ``similarity``, ``probability``, ``score`` (0.5 for
    no answer) and ``seconds`` (of computing a similarity, on average).

    Raises
    ------
    ValueError
        All pairs of dev or of test are of one kind, or some members of the model read raw texts and
        others tokens.
    """
    if _reads_raw_texts(model, documents):
        documents = documents.raw
        max_tokens = documents.longest
    scored = {}
    for split in ("dev", "test"):
        trials = verification_trials(documents.stores[split], pairs[split])
        scored[split] = _with_similarities(model, trials, max_tokens)
        scored[split]["same_topic"] = pairs[split].same_topic.to_numpy()
    dev = scored["dev"]
    test = scored["test"]

    fitted = None
    if decision == "calibrated":
        fitted = fit_calibration(dev.similarity, dev.same, prior=0.5)
    for of_split in (dev, test):
        of_split["probability"] = to_scores(fitted, of_split.similarity)
    thresholds = best_thresholds(threshold_surface(dev.probability, dev.same, definition))
    for of_split in (dev, test):
        of_split["score"] = apply_thresholds(of_split.probability, *thresholds)

    table = verification_metrics(test, definition=definition, **drawn)
    on_dev = pan_metrics(dev.score, dev.same, definition)
    unanswered = (test.score == 0.5).sum()
    counts = metric_table({"n_unanswered": unanswered, "dev_overall": on_dev["overall"]})
    return pd.concat([table, counts]), scored


def _with_similarities(model, trials, max_tokens):
    """Return the pairs of trials with their similarities, and the seconds that each took."""
    began = time.perf_counter()
    similarities = trial_similarities(model, trials, max_tokens)
    seconds = time.perf_counter() - began
    first, second = trials.pairs.T
    return pd.DataFrame(
        {
            "first": trials.queries.authors[first],
            "second": trials.targets.authors[second],
            "same": trials.same,
            "similarity": similarities,
            "seconds": seconds / len(similarities),
        }
    )


def _reads_raw_texts(model, documents):
    """Return whether all encoders of a model were fitted on the raw texts of documents."""
    if documents.raw is None:
        return False
    tokenizers = [getattr(member.encoder, "tokenizer", None) for member in as_model(model).members]
    readers = {tokenizer is documents.raw.tokenizer for tokenizer in tokenizers}
    if len(readers) > 1:
        raise ValueError("some members read raw texts and others tokens: no document has both")
    return True in readers


def verification_metrics(
    pairs: pd.DataFrame,
    base: pd.DataFrame | None = None,
    definition: str = "pan21",
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return PAN's metrics of scored test pairs, with intervals over authors.

    A pair of two authors counts as often as the product of the times that both are drawn.

    Parameters
    ----------
    pairs : test pairs of :func:`evaluate_documents`
    base : the same pairs, scored by another model; if given, what is returned is the difference to
        it, the authors resampled alike
    definition : "pan21" or "pan20", see :func:`pan_metrics`
    seed, resamples : seed and number of bootstrap resamples

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each metric, or for "AUC_difference" and so
    on. ``hardest_AUC`` is that of same-author pairs on two topics against different-author pairs on
    one

    Raises
    ------
    ValueError
        If the pairs differ.
    """
    trials = ["first", "second", "same"]
    bases = [] if base is None else [base]
    if base is not None and not base[trials].equals(pairs[trials]):
        raise ValueError("models to compare were not measured on the same pairs")
    authors = pairs[["first", "second"]].to_numpy()
    measure = partial(_metrics, definition)
    return resampled_metrics(METRICS, authors.ravel(), measure, [pairs], bases, seed, resamples)


def _metrics(definition, pairs, author_times):
    """Return the metrics (R, C) of pairs, each author counted ``author_times`` (R, A) times."""
    rows = np.unique(pairs[["first", "second"]], return_inverse=True)[1]
    first, second = rows.reshape(-1, 2).T
    scores = pairs.score.to_numpy()
    same = pairs.same.to_numpy()
    times = author_times[:, first] * np.where(same, 1, author_times[:, second])
    is_hard = same != as_bool(pairs.same_topic, same.shape)
    metrics = pan_metrics(scores, same, definition, times)
    metrics["hardest_AUC"] = auc(scores, same, times * is_hard)
    columns = [metrics[name] for name in METRICS]
    return np.where(np.isfinite(metrics["AUC"]), columns, np.nan).T  # else without both kinds


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
        If there is no such definition, or as :func:`check_answers`.
    """
    if message := unknown([definition], DEFINITIONS, "definition"):
        raise ValueError(message)
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
        If a score is not in [0, 1], or all pairs are of one kind, or as
        :func:`helpers.evaluation.trials.as_trials`.
    """
    scores, same = as_trials(np.asarray(scores, np.float64), same)
    is_inside = (0 <= scores) & (scores <= 1)
    if not is_inside.all() or same.all() or not same.any():
        raise ValueError(
            f"PAN's metrics need scores in [0, 1] and both kinds of pairs: {(~is_inside).sum()} "
            f"scores are others, {same.sum()} of {len(same)} pairs are of one author"
        )
    return scores, same


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
    same_topic = as_bool(same_topic, same.shape)
    comparisons = {
        "all pairs": np.ones(len(same), bool),
        "on one topic": same_topic,
        "on two topics": ~same_topic,
        "easy": same == same_topic,
        "hard": same != same_topic,
    }
    compared = np.stack(list(comparisons.values()))
    columns = {
        "positives": (compared & same).sum(1),
        "negatives": (compared & ~same).sum(1),
        "AUC": auc(scores, same, compared),
    }
    return pd.DataFrame(columns, list(comparisons))


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
