"""Verification (tyo2021 section 3): trials, distances, a decision and PAN's metrics."""

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from ..core.parameters import Config
from ..tokens.batch import Samples
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
from .bootstrap import metric_table, percentile_interval, resample_weights
from .decisions import DECISIONS
from .models import System, as_model
from .pan_metrics import auc, check_answers, named_pan_metrics, pan_metrics
from .trials import Trials


class VerificationConfig(Config):
    """Settings of how distances become scores and metrics.

    Attributes
    ----------
    definition : "pan21" or "pan20", see :mod:`helpers.evaluation.pan_metrics`
    decision : "calibrated", or "shift" as in PAN's naive baseline; see
        :data:`helpers.evaluation.decisions.DECISIONS`
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
    normalisation. A text without any term has a zero row, so
    its cosine distance to every other text is 1.

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
    and ``second`` (numbers of their authors), ``same``, ``distance`` and ``score``, and
    "resampled", the metrics of test in each resample. For the intervals authors are resampled. A
    pair of two authors counts as often as the product of both authors' counts; n_unanswered and
    dev_overall have no interval.

    Raises
    ------
    ValueError
        If all pairs of dev or of test are of one kind.
    """
    scored = {}
    for name, trials in (("dev", dev), ("test", test)):
        distances = trial_distances(model, trials, max_tokens)
        first = trials.queries.authors[trials.pairs[:, 0]]
        second = trials.targets.authors[trials.pairs[:, 1]]
        pairs = {"first": first, "second": second, "same": trials.same, "distance": distances}
        scored[name] = pd.DataFrame(pairs)
    fit = DECISIONS[config.decision]
    decide, _ = fit(scored["dev"].distance.to_numpy(), dev.same, config.definition)
    for name, pairs in scored.items():
        scored[name] = pairs.assign(score=decide(pairs.distance.to_numpy()))

    scores, same = check_answers(scored["test"].score, test.same)
    measure = partial(_measure, scores, same, same_topic, config.definition)
    values = measure(np.ones(len(same)))
    resampled = [measure(times) for times in _pair_weights(test, config)]
    scored["resampled"] = pd.DataFrame(resampled, columns=list(values))
    scored["resampled"].attrs = config.model_dump(exclude={"decision"})
    ends = percentile_interval(scored["resampled"].to_numpy(), len(values))
    table = metric_table(values, *ends)
    table.loc["n_unanswered", ["low", "high"]] = np.nan
    overall = pan_metrics(scored["dev"].score.to_numpy(), dev.same, config.definition)["overall"]
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
    table, scored = measured
    base_table, base_scored = base
    resampled, base_resampled = scored["resampled"], base_scored["resampled"]
    pairs = ["first", "second", "same"]
    is_same = scored["test"][pairs].equals(base_scored["test"][pairs])
    if not is_same or resampled.attrs != base_resampled.attrs:
        raise ValueError("models to compare were not measured on the same pairs and resamples")
    names = [name for name in resampled if name != "n_unanswered"]
    values = (table.value - base_table.value)[names].add_suffix("_difference")
    differences = (resampled - base_resampled)[names].to_numpy()
    return metric_table(values, *percentile_interval(differences, len(names)))


def _measure(scores, same, same_topic, definition, times):
    """Return the metrics of N scored pairs, each of which counts ``times`` (N,) times."""
    level = np.unique(scores, return_inverse=True)[1]
    values = named_pan_metrics(auc(level, same, times), scores, same, definition, times)
    if same_topic is not None:
        is_hard = same != np.asarray(same_topic, bool)
        values["hardest_AUC"] = auc(level, same, times * is_hard)
    return values


def _pair_weights(trials, config):
    """Yield for each resample of authors how often each pair counts, (N,).

    Resamples without pairs of both kinds are left out.
    """
    first = trials.queries.authors[trials.pairs[:, 0]]
    second = trials.targets.authors[trials.pairs[:, 1]]
    authors, rows = np.unique(np.concatenate([first, second]), return_inverse=True)
    first, second = np.split(rows, 2)
    for author_times in resample_weights(authors, config.resamples, config.seed):
        times = author_times[first] * np.where(trials.same, 1, author_times[second])
        if times[trials.same].any() and times[~trials.same].any():
            yield times
