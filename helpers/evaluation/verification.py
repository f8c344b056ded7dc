"""Verification: are two texts by one author? Trials, distances, a decision, PAN's metrics (tyo2021 section 3)."""

from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from helpers.core.config import Config
from helpers.evaluation.bootstrap import metric_table, percentile_interval, resample_weights
from helpers.evaluation.decisions import DECISIONS
from helpers.evaluation.gallery import open_gallery
from helpers.evaluation.pan_metrics import auc, check_answers, named_pan_metrics, pan_metrics
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore


class VerificationConfig(Config):
    """Say how distances become scores and metrics.

    definition : the year of the metrics, see :mod:`helpers.evaluation.pan_metrics`.
    decision : "calibrated", or "shift" as in PAN's naive baseline; see :data:`helpers.evaluation.decisions.DECISIONS`.
    resamples : the number of resamples of the bootstrap over authors.
    """

    definition: Literal["pan21", "pan20"] = "pan21"
    decision: Literal["calibrated", "shift"] = "calibrated"
    seed: int = Field(0, ge=0)
    resamples: int = Field(1000, ge=0)


def verification_trials(documents: TokenStore | Samples, pairs: pd.DataFrame) -> Trials:
    """Make trials of listed pairs of documents; documents in no pair are left out.

    documents : the posts of a store, or samples.
    pairs : columns ``first`` and ``second``, row numbers of documents, see :func:`helpers.evaluation.document_pairs.make_pairs`.
    """
    samples = documents if isinstance(documents, Samples) else Samples.of_posts(documents)
    rows, places = np.unique(pairs[["first", "second"]].to_numpy(), return_inverse=True)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < len(samples):
        raise ValueError(f"pairs name documents {rows[0]} to {rows[-1]}, there are {len(samples)}")
    samples = samples[rows]
    return Trials(samples, samples, places.reshape(-1, 2), "verification")


def trial_distances(model, trials: Trials, max_tokens: int = 32) -> np.ndarray:
    """Return the distance of each listed pair, (N,) float64: 1 - cosine, or Euclidean for an encoder without ``unit``.

    A text without any term (a zero row) has cosine distance 1 to every other.
    """
    scores = open_gallery(model, trials.targets, max_tokens).pair_scores(
        trials.queries, trials.pairs
    )
    return (1.0 if getattr(model, "unit", True) else 0.0) - scores.astype(np.float64)


def evaluate_verification(model, dev: Trials, test: Trials, max_tokens: int = 32, config: VerificationConfig = VerificationConfig(),
             same_topic: np.ndarray | None = None) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:  # fmt: skip
    """Fit the decision on dev pairs, then judge each test pair alone.

    Parameters
    ----------
    model : an encoder or a fusion.
    dev, test : trials of :func:`verification_trials`.
    same_topic : (N,) of the test pairs, for the metric ``hardest_AUC``: same-author pairs on two topics against
        different-author pairs on one topic.

    Returns
    -------
    A table (value, low, high) of METRICS, n_unanswered, dev_overall and, if topics are given, hardest_AUC; and the
    pairs, by "dev" and "test", with columns ``same``, ``distance`` and ``score``. Intervals resample authors: a pair
    of two authors counts the product of how often either is drawn.
    """
    apart = {name: pd.DataFrame({"same": trials.same, "distance": trial_distances(model, trials, max_tokens)})
             for name, trials in (("dev", dev), ("test", test))}  # fmt: skip
    decide, _ = DECISIONS[config.decision](
        apart["dev"].distance.to_numpy(), dev.same, config.definition
    )
    scored = {
        name: pairs.assign(score=decide(pairs.distance.to_numpy())) for name, pairs in apart.items()
    }
    scores, same = check_answers(scored["test"].score, test.same)
    level = np.unique(scores, return_inverse=True)[1]
    hard = None if same_topic is None else same != np.asarray(same_topic, bool)

    def measure(times):
        values = named_pan_metrics(auc(level, same, times), scores, same, config.definition, times)
        return values if hard is None else values | {"hardest_AUC": auc(level, same, times * hard)}

    values = measure(np.ones(len(same)))
    low, high = percentile_interval(
        [list(measure(times).values()) for times in _pair_weights(test, config)], len(values)
    )
    result = metric_table(values, low, high)
    result.loc["n_unanswered", ["low", "high"]] = np.nan
    overall = pan_metrics(scored["dev"].score.to_numpy(), dev.same, config.definition)["overall"]
    return pd.concat([result, metric_table({"dev_overall": overall})]), scored


def _pair_weights(trials, config):
    """Yield how often each pair counts in a resample of authors; resamples without pairs of both kinds are skipped."""
    authors = trials.queries.authors[trials.pairs[:, 0]], trials.targets.authors[trials.pairs[:, 1]]
    everyone, row = np.unique(np.concatenate(authors), return_inverse=True)
    one, other = np.split(row, 2)
    for drawn in resample_weights(everyone, config.resamples, config.seed):
        times = drawn[one] * np.where(trials.same, 1, drawn[other])
        if times[trials.same].any() and times[~trials.same].any():
            yield times
