"""Verification (tyo2021 section 3): trials, distances, a decision and PAN's metrics."""

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from helpers.core.config import Config
from helpers.evaluation.bootstrap import metric_table, percentile_interval, resample_weights
from helpers.evaluation.decisions import DECISIONS
from helpers.evaluation.models import System, as_model
from helpers.evaluation.pan_metrics import auc, check_answers, named_pan_metrics, pan_metrics
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore


class VerificationConfig(Config):
    """Settings of how distances become scores and metrics.

    Attributes
    ----------
    definition : the year of the metrics, see :mod:`helpers.evaluation.pan_metrics`
    decision : "calibrated", or "shift" as in PAN's naive baseline; see
        :data:`helpers.evaluation.decisions.DECISIONS`
    seed, resamples : of the bootstrap over authors
    """

    definition: Literal["pan21", "pan20"] = "pan21"
    decision: Literal["calibrated", "shift"] = "calibrated"
    seed: int = Field(0, ge=0)
    resamples: int = Field(1000, ge=0)


def verification_trials(documents: TokenStore | Samples, pairs: pd.DataFrame) -> Trials:
    """Make trials of listed pairs of documents; documents in no pair are left out.

    Parameters
    ----------
    documents : the posts of a store, or samples
    pairs : columns ``first`` and ``second``, row numbers of documents, see
        :func:`helpers.evaluation.document_pairs.make_pairs`

    Raises
    ------
    ValueError
        A pair names a document that is not there.
    """
    samples = documents if isinstance(documents, Samples) else Samples.of_posts(documents)
    rows, places = np.unique(pairs[["first", "second"]].to_numpy(), return_inverse=True)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < len(samples):
        raise ValueError(f"pairs name documents {rows[0]} to {rows[-1]}, there are {len(samples)}")
    samples = samples[rows]
    return Trials(samples, samples, places.reshape(-1, 2), "verification")


def trial_distances(model: System, trials: Trials, max_tokens: int = 32) -> np.ndarray:
    """Return the distance of each listed pair: 1 - cosine, or Euclidean.

    It is Euclidean for an encoder with ``unit = False``.

    A text without any term (a zero row) has cosine distance 1 to every other.

    Parameters
    ----------
    model : scores the trials
    trials : N listed pairs
    max_tokens : tokens read of each post

    Returns
    -------
    (N,) float64
    """
    scores = as_model(model).pair_scores(trials.queries, trials.targets, trials.pairs, max_tokens)
    largest = 1.0 if getattr(model, "unit", True) else 0.0
    return largest - scores.astype(np.float64)


def evaluate_verification(
    model: System,
    dev: Trials,
    test: Trials,
    max_tokens: int = 32,
    config: VerificationConfig = VerificationConfig(),
    same_topic: np.ndarray | None = None,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Fit the decision on dev pairs, then judge each test pair alone.

    Parameters
    ----------
    model : scores the trials
    dev, test : trials of :func:`verification_trials`
    max_tokens : tokens read of each post
    config : how distances become scores and metrics
    same_topic : (N,) of the test pairs, for the metric ``hardest_AUC``: same-author pairs on two
        topics against different-author pairs on one topic

    Returns
    -------
    A table (value, low, high) of METRICS, n_unanswered, dev_overall and, if topics are given,
    hardest_AUC; and the pairs, by "dev" and "test", with columns ``same``, ``distance`` and
    ``score``. Intervals resample authors: a pair of two authors counts the product of how often
    either is drawn.
    """
    scored = {}
    for name, trials in (("dev", dev), ("test", test)):
        distances = trial_distances(model, trials, max_tokens)
        scored[name] = pd.DataFrame({"same": trials.same, "distance": distances})
    fit = DECISIONS[config.decision]
    decide, _ = fit(scored["dev"].distance.to_numpy(), dev.same, config.definition)
    for name, pairs in scored.items():
        scored[name] = pairs.assign(score=decide(pairs.distance.to_numpy()))

    scores, same = check_answers(scored["test"].score, test.same)
    measure = partial(_measure, scores, same, same_topic, config.definition)
    values = measure(np.ones(len(same)))
    resampled = [list(measure(times).values()) for times in _pair_weights(test, config)]
    table = metric_table(values, *percentile_interval(resampled, len(values)))
    table.loc["n_unanswered", ["low", "high"]] = np.nan
    overall = pan_metrics(scored["dev"].score.to_numpy(), dev.same, config.definition)["overall"]
    return pd.concat([table, metric_table({"dev_overall": overall})]), scored


def _measure(scores, same, same_topic, definition, times):
    """Return the metrics of scored pairs (N,) of which each counts so many times (N,)."""
    level = np.unique(scores, return_inverse=True)[1]
    values = named_pan_metrics(auc(level, same, times), scores, same, definition, times)
    if same_topic is not None:
        is_hard = same != np.asarray(same_topic, bool)
        values["hardest_AUC"] = auc(level, same, times * is_hard)
    return values


def _pair_weights(trials, config):
    """Yield how often each pair counts in a resample of authors.

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
