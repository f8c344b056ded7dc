"""Verification (tyo2021 section 3): trials, distances, a decision and PAN's metrics.

A decision makes an answer from a distance, by a map and two thresholds. Both are fitted on dev
pairs; tyo2021 chose its thresholds on the test set, which raises its numbers.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from ..core.parameters import Config
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


class VerificationConfig(Config):
    """Settings of how distances become scores and metrics.

    Attributes
    ----------
    definition : "pan21" or "pan20", see :func:`helpers.evaluation.pan_task.pan_metrics`
    decision : "calibrated", or "shift" as in PAN's naive baseline; see :func:`fit_decision`
    seed, resamples : seed and number of the resamples of authors
    """

    definition: Literal["pan21", "pan20"] = "pan21"
    decision: Literal["calibrated", "shift"] = "calibrated"
    seed: int = Field(0, ge=0)
    resamples: int = Field(1000, ge=0, le=10**6)


def verification_trials(documents: TokenStore | Samples, pairs: pd.DataFrame) -> Trials:
    """Make trials of listed pairs of documents; documents in no pair are left out.

    Parameters
    ----------
    documents : a store whose every post is a document, or samples
    pairs : N pairs, in columns ``first`` and ``second`` the row numbers of documents, see
        :func:`helpers.evaluation.document_pairs.make_pairs`

    Raises
    ------
    ValueError
        If a pair names a document that is not there.
    """
    samples = documents if isinstance(documents, Samples) else Samples.of_posts(documents)
    rows, places = np.unique(pairs[["first", "second"]].to_numpy(), return_inverse=True)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < len(samples):
        raise ValueError(f"pairs name documents {rows[0]} to {rows[-1]}, there are {len(samples)}")
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
    changes. NaN stays NaN.

    Parameters
    ----------
    scores : (N,)
        score of each pair, in [0, 1].
    lower, upper : float
        thresholds, 0 <= lower <= upper <= 1.

    Raises
    ------
    ValueError
        If the thresholds are others.
    """
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"thresholds {lower}, {upper}: need 0 <= lower <= upper <= 1")
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
    return lambda test: apply_thresholds(to_scores(fitted, test), *thresholds), thresholds


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
    config: VerificationConfig = VerificationConfig(),
    same_topic: np.ndarray | None = None,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Fit the decision on dev pairs, then decide each test pair alone and compute PAN's metrics.

    Parameters
    ----------
    model : the model that scores the trials
    dev, test : trials of :func:`verification_trials`
    max_tokens : tokens read of each post
    config : how distances become scores and metrics
    same_topic : (N,) whether each of the N test pairs is on one topic; adds the metric
        ``hardest_AUC``: same-author pairs on two topics against different-author pairs on one

    Returns
    -------
    A table (columns value, low, high) of PAN's metrics, n_unanswered, dev_overall and, if
    ``same_topic`` is given, hardest_AUC; and the pairs of "dev" and "test", with columns ``first``
    and ``second`` (numbers of their authors), ``same``, ``distance`` and ``score``, and perhaps
    ``same_topic``. For the intervals authors are resampled. A pair of two authors counts as often
    as the product of both authors' counts; n_unanswered and dev_overall have no interval.

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
    decide, _ = fit_decision(dev_distances, dev.same, config.definition, config.decision)
    for pairs in scored.values():
        pairs["score"] = decide(pairs.distance.to_numpy())
    if same_topic is not None:
        scored["test"]["same_topic"] = same_topic
    scored["test"].attrs = config.model_dump(exclude={"decision"})
    table = _resampled([scored["test"]])
    table.loc["n_unanswered", ["low", "high"]] = np.nan
    overall = pan_metrics(scored["dev"].score, dev.same, config.definition)["overall"]
    return pd.concat([table, metric_table({"dev_overall": overall})]), scored


def evaluate_documents(
    model: System,
    documents: Documents,
    pairs: dict[str, pd.DataFrame],
    max_tokens: int = 32,
    config: VerificationConfig = VerificationConfig(),
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Evaluate a model on pairs of documents, see :func:`evaluate_verification`.

    Parameters
    ----------
    model : the model that scores the pairs; one that was fitted on the raw texts of the documents
        (:func:`helpers.encoders.baselines.fit_on_documents`) reads these, whole
    documents : documents with the splits "dev" and "test"
    pairs : pairs of both splits, see :func:`helpers.evaluation.document_pairs.make_pairs`
    max_tokens : tokens read of each document by all other models
    config : how distances become scores and metrics

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
    dev = verification_trials(documents.stores["dev"], pairs["dev"])
    test = verification_trials(documents.stores["test"], pairs["test"])
    same_topic = pairs["test"].same_topic.to_numpy()
    return evaluate_verification(model, dev, test, max_tokens, config, same_topic)


def _reads_raw_texts(model, documents):
    """Return whether all encoders of a model were fitted on the raw texts of documents."""
    if documents.raw is None:
        return False
    encoders = [member.encoder for member in as_model(model).members]
    readers = [
        getattr(encoder, "tokenizer", None) is documents.raw.tokenizer for encoder in encoders
    ]
    if any(readers) and not all(readers):
        raise ValueError("some members read raw texts and others tokens: no document has both")
    return all(readers)


def verification_differences(
    measured: tuple[pd.DataFrame, dict[str, pd.DataFrame]],
    base: tuple[pd.DataFrame, dict[str, pd.DataFrame]],
) -> pd.DataFrame:
    """Return the differences of PAN's metrics between two models on the same test pairs.

    Intervals are paired: both models are measured on the same resamples of authors.

    Parameters
    ----------
    measured, base : what :func:`evaluate_verification` returned for the model and for the one that
        is subtracted, with the same trials and settings

    Returns
    -------
    A row for each metric that has an interval, named ``AUC_difference`` and so on; columns value,
    low and high.

    Raises
    ------
    ValueError
        If the pairs, or the settings of metrics and resamples, differ.
    """
    pairs = [scored["test"] for _, scored in (measured, base)]
    trials = [part[["first", "second", "same"]] for part in pairs]
    if not trials[0].equals(trials[1]) or pairs[0].attrs != pairs[1].attrs:
        raise ValueError("models to compare were not measured on the same pairs and resamples")
    return _resampled(pairs).drop("n_unanswered_difference")


def _resampled(of_models):
    """Return PAN's metrics of the scored pairs of a model, less those of another if there are two.

    The settings of metrics and resamples are the pairs' attributes.
    """
    pairs = of_models[0]
    names = [*METRICS, "n_unanswered"]
    if "same_topic" in pairs:
        names.append("hardest_AUC")
    authors = np.unique(pairs[["first", "second"]])
    measures = [_metrics_of(part, len(names)) for part in of_models]
    return resampled_metrics(
        measures, names, authors, pairs.attrs["seed"], pairs.attrs["resamples"]
    )


def _metrics_of(pairs, count):
    """Return a function from the times (A,) that each author counts to the metrics of pairs.

    They are ``count`` NaN where no pair of one of both kinds is left.
    """
    rows = np.unique(pairs[["first", "second"]], return_inverse=True)[1]
    first, second = rows.reshape(-1, 2).T
    scores = pairs.score.to_numpy()
    same = pairs.same.to_numpy()

    def measure(author_times):
        times = author_times[first] * np.where(same, 1, author_times[second])
        if not (times[same].any() and times[~same].any()):
            return np.full(count, np.nan)
        values = [*pan_metrics(scores, same, pairs.attrs["definition"], times).values()]
        if "same_topic" in pairs:
            is_hard = same != pairs.same_topic.to_numpy(bool)
            values.append(auc(scores[is_hard], same[is_hard], times[is_hard]))
        return np.array(values)

    return measure
