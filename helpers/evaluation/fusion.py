"""Fusion of scores: the score of a pair is the weighted mean of the scores of several systems, its members."""

from collections.abc import Iterator

import numpy as np
import torch
from scipy import special

from helpers.encoders.base import Encoder
from helpers.evaluation.gallery import Gallery, open_gallery
from helpers.evaluation.ranking import PositiveTargets
from helpers.evaluation.scores import round_in_place, round_scores
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples

MAX_QUERIES = 1000  # dev queries that choose weights
RIDGE = 1e-3


class Fusion:
    """Sum the scores of members with weights that add up to 1; it can stand wherever an encoder is scored.

    members : encoders, fusions or normalised models by name.
    weights : one a member, not negative, not all 0; else ValueError.
    shares : each fitted weight times the spread of its member's scores, scaled to sum to 1; empty if not fitted.
    """

    def __init__(self, members: dict[str, "Encoder | Fusion"], weights: dict[str, float],
                 shares: dict[str, float] | None = None):  # fmt: skip
        if not members or set(members) != set(weights):
            raise ValueError(
                f"fusion of {', '.join(members) or 'none'} has weights for {', '.join(weights) or 'none'}"
            )
        total = sum(weights.values())
        if not (min(weights.values()) >= 0 and 0 < total < np.inf):
            raise ValueError(f"fusion weights {weights}: none below 0 and one above")
        self.members, self.shares = dict(members), shares or {}
        self.weights = {name: float(weights[name]) / total for name in members}

    @classmethod
    def fit(
        cls, members: dict[str, "Encoder | Fusion"], trials: Trials, max_tokens: int = 32
    ) -> "Fusion":
        """Make the fusion with the weights and shares of :func:`fit_weights`."""
        return cls(members, *fit_weights(members, trials, max_tokens))

    def gallery(self, targets: Samples, max_tokens: int = 32) -> "FusedGallery":
        """Open the targets for every member; a member without weight embeds nothing."""
        return FusedGallery([(open_gallery(self.members[name], targets, max_tokens), weight)
                             for name, weight in self.weights.items() if weight])  # fmt: skip


class FusedGallery:
    """Score queries against galleries over the same targets, and add these scores with weights."""

    def __init__(self, parts: list[tuple["Gallery | FusedGallery", float]]):
        self.parts = parts

    def scores(
        self, queries: Samples, own: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks: rows of the queries, their fused scores (q, T) float32. own : the target that a query is."""
        weights = [weight for _, weight in self.parts]
        for blocks in zip(
            *(gallery.scores(queries, own) for gallery, _ in self.parts), strict=True
        ):
            (rows, total), *rest = blocks
            total *= weights[0]  # every gallery's block is its own, until it makes the next
            for weight, (_, block) in zip(weights[1:], rest):
                torch.from_numpy(total).add_(torch.from_numpy(block), alpha=weight)
            yield rows, round_in_place(torch.from_numpy(total)).numpy()

    def pair_scores(self, queries: Samples, pairs: np.ndarray) -> np.ndarray:
        """Return the fused scores (N,) of listed pairs (N, 2)."""
        return round_scores(
            sum(weight * gallery.pair_scores(queries, pairs) for gallery, weight in self.parts)
        )


def fit_weights(members: dict[str, "Encoder | Fusion"], trials: Trials,
                max_tokens: int = 32) -> tuple[dict[str, float], dict[str, float]]:  # fmt: skip
    """Fit the weights, none below 0, under which the right target of a dev query is most likely; return also shares.

    A share is a weight times the spread of its member's scores. The likelihood is that of a conditional logit
    (McFadden 1974), a softmax over all targets of the weighted scores. It is convex in the weights, so many members
    need no grid; a small ridge keeps the weight of a useless member at 0. At most 1,000 queries are used.
    Raises ValueError where there is no member, or a query has no target of its author.
    """
    from scipy import optimize  # here: to use weights, none is needed

    if not members:
        raise ValueError("a fusion needs a member")
    PositiveTargets(trials)
    if len(trials.queries) > MAX_QUERIES:
        queries = trials.queries[:MAX_QUERIES]
        targets = trials.targets[np.flatnonzero(np.isin(trials.targets.authors, queries.authors))]
        trials = Trials(queries, targets)
    galleries = [open_gallery(member, trials.targets, max_tokens) for member in members.values()]
    scores = np.stack(
        [
            np.concatenate([block.copy() for _, block in one.scores(trials.queries)])
            for one in galleries
        ]
    )
    spread = np.maximum(scores.std((1, 2), ddof=1, dtype=np.float64), 1e-6)
    scores /= spread[:, None, None].astype(np.float32)
    own = trials.same / trials.same.sum(1, keepdims=True)

    def loss(shares):
        mixed = np.tensordot(shares.astype(np.float32), scores, 1)
        likely = special.softmax(mixed, 1)
        gradient = np.tensordot(scores, likely - own, 2) / len(own) + 2 * RIDGE * shares
        return (special.logsumexp(mixed, 1) - (own * mixed).sum(1)).mean() + RIDGE * (
            shares**2
        ).sum(), gradient

    count = len(scores)
    found = optimize.minimize(
        loss, np.ones(count), jac=True, method="L-BFGS-B", bounds=[(0, None)] * count
    ).x
    shares = found / found.sum() if found.any() else np.full(count, 1 / count)
    weights = shares / spread
    return dict(zip(members, (weights / weights.sum()).tolist())), dict(
        zip(members, shares.tolist())
    )
