"""Verification (tyo2021 section 3): trials, distances, a decision and PAN's metrics.

A decision makes an answer from a distance, by a map and two thresholds. Both are fitted on dev
pairs; tyo2021 chose its thresholds on the test set, which raises its numbers.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
import pandas as pd

from ..tokens.batch import Samples
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
from .bootstrap import metric_table, resampled_metrics
from .calibration import Calibration, fit_calibration, probability
from .models import System, as_model
from .pan_task import METRICS, auc, pan_metrics
from .trials import Trials

# lower and upper threshold of tyo2021 Figure 2b, which were chosen on the test set
PUBLISHED_THRESHOLDS = (0.470, 0.553)
GRID = np.linspace(0.02, 0.98, 49)  # thresholds that are tried


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


def trial_distances(model: System, trials: Trials, max_tokens: int = 32) -> np.ndarray:
    """Return the distance of each listed pair: 1 - cosine, or Euclidean.

    It is Euclidean for an encoder with ``unit = False``, also as the only member of a model without
    normalisation. A text without any term has a zero row, so its cosine distance to every other
    text is 1.

    Parameters
    ----------
    model : the model that scores the trials
    trials : N listed pairs
    max_tokens : tokens read of each post

    Returns
    -------
    (N,) float64
    """
    model = as_model(model)
    scores = model.pair_scores(trials.queries, trials.targets, trials.pairs, max_tokens)
    member = model.used_members[0]
    is_euclidean = not getattr(member.encoder, "unit", True)  # a GalleryTfidf has unit rows
    if is_euclidean and len(model.used_members) == 1 and member.normaliser == "none":
        return -scores.astype(np.float64)
    return 1.0 - scores.astype(np.float64)


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
    scores: np.ndarray, same: np.ndarray, definition: str = "pan21", grid: np.ndarray = GRID
) -> pd.DataFrame:
    """Compute PAN's metrics of dev pairs for every lower <= upper of the grid (tyo2021 Figure 2b).

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    same : (N,) bool
        whether a pair is of one author.
    definition : str
        "pan21" or "pan20", see :func:`helpers.evaluation.pan_task.pan_metrics`.
    grid : array
        thresholds, ascending.

    Returns
    -------
    Columns ``lower``, ``upper`` and the metrics, a row for each combination: 1,225 by default.
    """
    rows = []
    for lower, upper in combinations_with_replacement(grid, 2):
        metrics = pan_metrics(apply_thresholds(scores, lower, upper), same, definition)
        rows.append({"lower": lower, "upper": upper} | metrics)
    return pd.DataFrame(rows)


def best_thresholds(surface: pd.DataFrame) -> tuple[float, float]:
    """Return the thresholds (lower, upper) of a surface that give the highest "overall".

    Of equal ones (to 12 decimals) those with the fewest unanswered pairs are taken, then those with
    the lowest ``lower``.
    """
    ranked = surface.assign(loss=-surface.overall.round(12))
    best = ranked.sort_values(["loss", "n_unanswered", "lower"]).iloc[0]
    return float(best.lower), float(best.upper)


def fit_decision(
    distances: np.ndarray,
    same: np.ndarray,
    definition: str = "pan21",
    kind: Literal["calibrated", "shift"] = "calibrated",
) -> tuple[Callable[[np.ndarray], np.ndarray], tuple[float, float]]:
    """Fit the decision on dev pairs: a map from distances to scores, then its best thresholds.

    Parameters
    ----------
    distances : (N,)
        distance of each dev pair.
    same : (N,) bool
        whether a pair is of one author.
    definition : str
        "pan21" or "pan20", see :func:`helpers.evaluation.pan_task.pan_metrics`.
    kind : str
        "calibrated": the map of :func:`fit_scores`; "shift", as in PAN's naive baseline: scores are
        cosines, and distances 1 - cosine of character 4-grams.

    Returns
    -------
    A function from distances (N,) of any pairs to final scores, and both thresholds.
    """
    fitted = None
    if kind == "calibrated":
        fitted = fit_scores(distances, same)
    surface = threshold_surface(to_scores(fitted, distances), same, definition)
    thresholds = best_thresholds(surface)
    return partial(_decide, fitted, thresholds), thresholds


def _decide(fitted, thresholds, distances):
    return apply_thresholds(to_scores(fitted, distances), *thresholds)


def fit_scores(distances: np.ndarray, same: np.ndarray) -> Calibration:
    """Fit a logistic map from distance to score on dev pairs, both kinds of which weigh as much.

    The map is monotone. Scores fall with the distance if pairs of one author are closer on dev.

    Parameters
    ----------
    distances : (N,)
        distance of each dev pair.
    same : (N,) bool
        whether a pair is of one author.
    """
    return fit_calibration(-distances, same, prior=0.5)


def to_scores(fitted: Calibration | None, distances: np.ndarray) -> np.ndarray:
    """Return scores (N,) in [0, 1]: the probability that a pair is of one author, at prior 0.5.

    Parameters
    ----------
    fitted : Calibration
        map of :func:`fit_scores`; None for cosines in place of probabilities.
    distances : (N,)
        distance of each pair.
    """
    if fitted is None:
        return np.clip(1 - distances, 0, 1)
    return probability(fitted.llr(-distances), 0.5)


def legacy_min_max(distances: np.ndarray) -> np.ndarray:
    """Scale distances as the paper does, for comparison only.

    The score of a distance d is (max(d) - d) / max(max(d) - d), with maxima over all pairs. It
    depends on all other pairs, so one pair alone has no score. Raises ValueError if all distances
    are equal or one is not finite.
    """
    closeness = np.max(distances) - np.asarray(distances, np.float64)
    if not (np.isfinite(closeness).all() and closeness.max() > 0):
        raise ValueError("min-max scaling needs finite distances that are not all equal")
    return closeness / closeness.max()


def evaluate_verification(
    model: System,
    dev: Trials,
    test: Trials,
    max_tokens: int = 32,
    definition: str = "pan21",
    decision: str = "calibrated",
    same_topic: np.ndarray | None = None,
    **drawn: int,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Fit the decision on dev pairs, then decide each test pair alone and compute PAN's metrics.

    Parameters
    ----------
    model : the model that scores the trials
    dev, test : trials of :func:`verification_trials`
    max_tokens : tokens read of each post
    definition : "pan21" or "pan20", see :func:`helpers.evaluation.pan_task.pan_metrics`
    decision : "calibrated" or "shift", see :func:`fit_decision`
    same_topic : (N,) whether each of the N test pairs is on one topic; adds the metric
        ``hardest_AUC``: same-author pairs on two topics against different-author pairs on one
    **drawn : ``seed`` and ``resamples`` of :func:`verification_metrics`

    Returns
    -------
    The table of :func:`verification_metrics`, with ``n_unanswered`` and ``dev_overall``, which have
    no interval; and the pairs of "dev" and "test", with columns ``first`` and ``second`` (numbers
    of their authors), ``same``, ``distance`` and ``score``, and perhaps ``same_topic``.

    Raises
    ------
    ValueError
        If all pairs of dev or of test are of one kind.
    """
    scored = {}
    for split, trials in (("dev", dev), ("test", test)):
        columns = {
            "first": trials.queries.authors[trials.pairs[:, 0]],
            "second": trials.targets.authors[trials.pairs[:, 1]],
            "same": trials.same,
            "distance": trial_distances(model, trials, max_tokens),
        }
        scored[split] = pd.DataFrame(columns)
    dev_distances = scored["dev"].distance.to_numpy()
    decide, _ = fit_decision(dev_distances, dev.same, definition, decision)
    for pairs in scored.values():
        pairs["score"] = decide(pairs.distance.to_numpy())
    if same_topic is not None:
        scored["test"]["same_topic"] = same_topic
    table = verification_metrics(scored["test"], definition=definition, **drawn)
    on_dev = pan_metrics(scored["dev"].score, dev.same, definition)
    unanswered = (scored["test"].score == 0.5).sum()
    counts = metric_table({"n_unanswered": unanswered, "dev_overall": on_dev["overall"]})
    return pd.concat([table, counts]), scored


def evaluate_documents(
    model: System,
    documents: Documents,
    pairs: dict[str, pd.DataFrame],
    max_tokens: int = 32,
    **settings: object,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Evaluate a model on pairs of documents, see :func:`evaluate_verification`.

    Parameters
    ----------
    model : the model that scores the pairs; one that was fitted on the raw texts of the documents
        (:func:`helpers.encoders.baselines.fit_on_documents`) reads these, whole
    documents : documents with the splits "dev" and "test"
    pairs : pairs of both splits, see :func:`helpers.evaluation.document_pairs.make_pairs`
    max_tokens : tokens read of each document by all other models
    **settings : ``definition``, ``decision``, ``seed`` and ``resamples``

    Returns
    -------
    The tables of :func:`evaluate_verification`, with ``hardest_AUC``.

    Raises
    ------
    ValueError
        Some members of the model read raw texts and others tokens.
    """
    if _reads_raw_texts(model, documents):
        documents = documents.raw
        max_tokens = documents.longest
    dev, test = [
        verification_trials(documents.stores[split], pairs[split]) for split in ("dev", "test")
    ]
    same_topic = pairs["test"].same_topic.to_numpy()
    return evaluate_verification(model, dev, test, max_tokens, same_topic=same_topic, **settings)


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
    pairs : test pairs of :func:`evaluate_verification`
    base : the same pairs, scored by another model; if given, what is returned is the difference to
        it, the authors resampled alike
    definition : "pan21" or "pan20", see :func:`helpers.evaluation.pan_task.pan_metrics`
    seed, resamples : seed and number of bootstrap resamples

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each metric, or for "AUC_difference" and so
    on, with ``hardest_AUC`` where pairs tell whether they are on one topic

    Raises
    ------
    ValueError
        If the pairs differ.
    """
    trials = ["first", "second", "same"]
    bases = [] if base is None else [base]
    if not all(part[trials].equals(pairs[trials]) for part in bases):
        raise ValueError("models to compare were not measured on the same pairs")
    names = list(METRICS)
    if "same_topic" in pairs:
        names.append("hardest_AUC")
    authors = pairs[["first", "second"]].to_numpy()
    measure = partial(_metrics, definition)
    return resampled_metrics(names, authors.ravel(), measure, [pairs], bases, seed, resamples)


def _metrics(definition, pairs, author_times):
    """Return the metrics (R, C) of pairs, each author counted ``author_times`` (R, A) times."""
    rows = np.unique(pairs[["first", "second"]], return_inverse=True)[1]
    first, second = rows.reshape(-1, 2).T
    scores = pairs.score.to_numpy()
    same = pairs.same.to_numpy()
    times = author_times[:, first] * np.where(same, 1, author_times[:, second])
    metrics = pan_metrics(scores, same, definition, times)
    columns = [metrics[name] for name in METRICS]
    if "same_topic" in pairs:
        is_hard = same != pairs.same_topic.to_numpy(bool)
        columns.append(auc(scores, same, times * is_hard))
    has_both_kinds = np.isfinite(metrics["AUC"])
    return np.where(has_both_kinds[:, None], np.stack(columns, 1), np.nan)
