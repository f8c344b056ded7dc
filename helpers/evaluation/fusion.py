"""Fusion weights: how much the scores of each system count, fitted on dev trials."""

from dataclasses import replace

import numpy as np
from scipy import special

from ..encoders.base import Encoder
from ..encoders.baselines import first_readings, fusion_members
from .models import Member, Model, as_model, with_as_norm, with_s_norm
from .ranking import check_ranking
from .trials import Trials

MAX_QUERIES = 1000  # most dev queries on which weights are fitted
RIDGE = 1e-3  # penalty on squared shares, which keeps a useless member's weight at 0
MIN_SPREAD = 1e-6  # a smaller spread of scores counts as this, so that nothing is divided by 0


def member_sets(
    stream: Encoder,
    features: str,
    raw: dict[str, Encoder],
    s_normed: dict[str, Member],
    as_normed: dict[str, Member],
) -> tuple[dict[str, Encoder | Member], ...]:
    """Return what is summed with a stream encoder: in Stream+LSA, Fusion and Fusion, AS-norm.

    Each sum has the profiles that read only the stream's features. Stream+LSA has LSA-WCCN and raw
    scores, the two others have every counting system and normalised scores. Of baselines that are
    one pretrained model (MiniLM on groups of posts, on all of them) only the first is a member.

    Parameters
    ----------
    stream : the trained encoder, a member of each under the name "stream"
    features : its features, "T", "TP" or "TPS"
    raw, s_normed, as_normed : the counting systems and the profiles "hours" and "topics" by name,
        with raw, s-normed and AS-normed scores
    """
    partners = fusion_members(features)
    every = [
        name for name in first_readings(raw) if name in partners or name not in ("hours", "topics")
    ]
    return (
        {name: raw[name] for name in partners} | {"stream": stream},
        {name: s_normed[name] for name in every} | {"stream": with_s_norm(stream)},
        {name: as_normed[name] for name in every} | {"stream": with_as_norm(stream)},
    )


def fit_weights(
    systems: dict[str, Encoder | Member], trials: Trials, max_tokens: int = 32
) -> Model:
    """Fuse systems with the weights that make the positive targets of dev queries most likely.

    No weight is below 0.

    The likelihood is that of a conditional logit (McFadden 1974): a softmax, over all targets, of
    the weighted scores. Its negative logarithm is convex in the weights, so no grid is needed for
    many members. A small ridge keeps the weight of a useless member at 0. If there are more than
    MAX_QUERIES queries, the first ones are used, with the targets of their authors only.

    Parameters
    ----------
    systems : encoders or members, by the name that each gets in the model
    trials : every query against every target, of dev accounts
    max_tokens : tokens read of each post

    Returns
    -------
    The model with its weights, and its ``shares``: each weight times the spread of its member's
    scores, scaled to sum to 1. All shares are equal if no member helps.

    Raises
    ------
    ValueError
        If there is no system, or a query has no target of its author.
    """
    from scipy import optimize  # imported here: a model that only scores needs none

    model = Model.fuse(systems)
    check_ranking(trials)
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
    return Model.mean(members, dict(zip(systems, shares.tolist())))


def _loss(shares, scores, positive):
    """Return loss and gradient of the shares (S,) of S members with scores (S, Q, T).

    Each row of ``positive`` (Q, T) shares a weight of 1 among the targets of the query's author.
    """
    mixed = np.tensordot(shares.astype(np.float32), scores, 1)
    likely = special.softmax(mixed, 1)
    loss = (special.logsumexp(mixed, 1) - (positive * mixed).sum(1)).mean()
    gradient = np.tensordot(scores, likely - positive, 2) / len(positive) + 2 * RIDGE * shares
    return loss + RIDGE * (shares**2).sum(), gradient
