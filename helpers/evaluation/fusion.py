"""Fusion weights: how much the scores of each system count, fitted on dev trials."""

from dataclasses import replace

import numpy as np
from scipy import special

from helpers.encoders.base import Encoder
from helpers.evaluation.models import Member, Model, as_model
from helpers.evaluation.ranking import positive_targets
from helpers.evaluation.trials import Trials

MAX_QUERIES = 1000  # dev queries that choose weights
RIDGE = 1e-3
MIN_SPREAD = 1e-6


def fit_weights(
    systems: dict[str, Encoder | Member], trials: Trials, max_tokens: int = 32
) -> Model:
    """Fuse systems with the weights that make the positive targets of dev queries most likely.

    No weight is below 0.

    The likelihood is that of a conditional logit (McFadden 1974), a softmax over all targets of the
    weighted scores. It is convex in the weights, so many members need no grid; a small ridge keeps
    the weight of a useless member at 0. At most MAX_QUERIES queries are used.

    Parameters
    ----------
    systems : encoders or members, by the name that they get
    trials : every query against every target, on dev accounts
    max_tokens : tokens read of each post

    Returns
    -------
    The model with its weights, and its ``shares``: each weight times the spread of its member's
    scores.

    Raises
    ------
    ValueError
        There is no system, or a query has no target of its author.
    """
    from scipy import optimize  # here: to use weights, none is needed

    model = Model.fuse(systems)
    positive_targets(trials)
    if len(trials.queries) > MAX_QUERIES:
        queries = trials.queries[:MAX_QUERIES]
        targets = trials.targets[np.flatnonzero(np.isin(trials.targets.authors, queries.authors))]
        trials = Trials(queries, targets)

    scores = np.stack(
        [
            as_model(member).score_matrix(trials.queries, trials.targets, max_tokens)
            for member in model.members
        ]
    )
    spread = np.maximum(scores.std((1, 2), ddof=1, dtype=np.float64), MIN_SPREAD)
    scores /= spread[:, None, None].astype(np.float32)
    positive = trials.same / trials.same.sum(1, keepdims=True)

    count = len(scores)
    optimum = optimize.minimize(
        _loss,
        np.ones(count),
        (scores, positive),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * count,
    )
    shares = np.full(count, 1 / count)
    if optimum.x.any():
        shares = optimum.x / optimum.x.sum()
    weights = shares / spread
    weights /= weights.sum()
    members = [
        replace(member, weight=weight) for member, weight in zip(model.members, weights.tolist())
    ]
    return Model(tuple(members), dict(zip(systems, shares.tolist())))


def _loss(shares, scores, positive):
    """Return loss and gradient of shares (S,) of scores (S, Q, T) with positives (Q, T)."""
    mixed = np.tensordot(shares.astype(np.float32), scores, 1)
    likely = special.softmax(mixed, 1)
    loss = (special.logsumexp(mixed, 1) - (positive * mixed).sum(1)).mean()
    gradient = np.tensordot(scores, likely - positive, 2) / len(positive) + 2 * RIDGE * shares
    return loss + RIDGE * (shares**2).sum(), gradient
