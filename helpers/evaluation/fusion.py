"""Late fusion: the score of a pair is the weighted mean of several models' scores, sparse and dense alike."""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as nnf
from scipy import sparse, special

from helpers.encoders.base import Encoder
from helpers.evaluation.gallery import Gallery, open_gallery
from helpers.evaluation.ranking import OwnTargets
from helpers.evaluation.scores import round_in_place, rounded
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Batch, Samples

MAX_QUERIES = 1000  # of those that choose weights
RIDGE = 1e-3


class Fusion:
    """Models with weights, which add up to 1; wherever a score is asked for it stands for an encoder.

    members : encoders or fusions by name.
    weights : one a member, not negative, not all 0; else ValueError.
    shares : where weights were fitted, the same in units of each member's spread of scores: what each contributes.
    """

    def __init__(self, members: dict[str, "Encoder | Fusion"], weights: dict[str, float],
                 shares: dict[str, float] | None = None):  # fmt: skip
        if not members or set(members) != set(weights):
            raise ValueError(f"fusion of {', '.join(members) or 'none'} has weights for {', '.join(weights) or 'none'}")
        total = sum(weights.values())
        if not (min(weights.values()) >= 0 and 0 < total < np.inf):
            raise ValueError(f"fusion weights {weights}: none below 0 and one above")
        self.members, self.shares = dict(members), shares or {}
        self.weights = {name: float(weights[name]) / total for name in members}

    @classmethod
    def fit(cls, members: dict[str, "Encoder | Fusion"], trials: Trials, max_tokens: int = 32) -> "Fusion":
        """The fusion with the weights and shares of :func:`fit_weights`."""
        return cls(members, *fit_weights(members, trials, max_tokens))

    def gallery(self, targets: Samples, max_tokens: int = 32) -> "FusedGallery":
        """The targets of every member; one without weight is not embedded."""
        return FusedGallery([(open_gallery(self.members[name], targets, max_tokens), weight)
                             for name, weight in self.weights.items() if weight])  # fmt: skip

    @torch.no_grad()
    def joined(self, batch: Batch) -> torch.Tensor:
        """One unit row a sample, (B, sum of dims), of the dense members: for a map.

        Rows are scaled by the root of their weight, so that products are scores. Raises ValueError where none is dense.
        """
        parts = []
        for name, weight in self.weights.items():
            member = self.members[name]
            rows = member.joined(batch) if isinstance(member, Fusion) else member(batch.to(member.device))
            if not sparse.issparse(rows):
                parts.append(rows.float().cpu() * weight**0.5)
        if not parts:
            raise ValueError(f"fusion of {', '.join(self.members)}: no member has dense rows")
        return nnf.normalize(torch.cat(parts, 1), dim=1)


class FusedGallery:
    """Galleries over the same targets, and their weights."""

    def __init__(self, parts: list[tuple["Gallery | FusedGallery", float]]):
        self.parts = parts

    def scores(self, queries: Samples, own: np.ndarray | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks: rows of the queries, their fused scores (q, T) float32. own : which targets they are themselves."""
        weights = [weight for _, weight in self.parts]
        for blocks in zip(*(gallery.scores(queries, own) for gallery, _ in self.parts), strict=True):
            (rows, total), *rest = blocks
            total *= weights[0]  # every gallery's block is its own, until it makes the next
            for weight, (_, block) in zip(weights[1:], rest):
                torch.from_numpy(total).add_(torch.from_numpy(block), alpha=weight)
            yield rows, round_in_place(torch.from_numpy(total)).numpy()

    def pair_scores(self, queries: Samples, pairs: np.ndarray) -> np.ndarray:
        """Fused scores (N,) of listed pairs (N, 2)."""
        return rounded(sum(weight * gallery.pair_scores(queries, pairs) for gallery, weight in self.parts))


def fit_weights(members: dict[str, "Encoder | Fusion"], trials: Trials,
                max_tokens: int = 32) -> tuple[dict[str, float], dict[str, float]]:  # fmt: skip
    """Weights, none below 0, under which the own target of a dev query is most likely, and their shares.

    Shares are the same in units of each member's spread of scores. Likely in the sense of a conditional logit
    (McFadden 1974): a softmax over all targets of the weighted scores, which is convex in the weights, so that many
    members need no grid; a small ridge keeps what says nothing at 0. At most 1,000 queries choose.
    Raises ValueError where there is no member, or a query has no target of its author.
    """
    from scipy import optimize  # here: to use weights, none is needed

    if not members:
        raise ValueError("a fusion needs a member")
    OwnTargets(trials)
    if len(trials.queries) > MAX_QUERIES:
        queries = trials.queries[:MAX_QUERIES]
        targets = trials.targets[np.flatnonzero(np.isin(trials.targets.authors, queries.authors))]
        trials = Trials(queries, targets)
    galleries = [open_gallery(member, trials.targets, max_tokens) for member in members.values()]
    scores = np.stack([np.concatenate([block.copy() for _, block in one.scores(trials.queries)]) for one in galleries])
    spread = np.maximum(scores.std((1, 2), ddof=1, dtype=np.float64), 1e-6)
    scores /= spread[:, None, None].astype(np.float32)
    own = trials.same / trials.same.sum(1, keepdims=True)

    def loss(shares):
        mixed = np.tensordot(shares.astype(np.float32), scores, 1)
        likely = special.softmax(mixed, 1)
        gradient = np.tensordot(scores, likely - own, 2) / len(own) + 2 * RIDGE * shares
        return (special.logsumexp(mixed, 1) - (own * mixed).sum(1)).mean() + RIDGE * (shares**2).sum(), gradient

    count = len(scores)
    found = optimize.minimize(loss, np.ones(count), jac=True, method="L-BFGS-B", bounds=[(0, None)] * count).x
    shares = found / found.sum() if found.any() else np.full(count, 1 / count)
    weights = shares / spread
    return dict(zip(members, (weights / weights.sum()).tolist())), dict(zip(members, shares.tolist()))
