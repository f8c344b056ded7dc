"""Triplet losses: an anchor must be nearer to a positive, by a margin, than to a negative; which ones is the rule."""

import torch
from torch import Tensor

from helpers.losses.distances import Distance, pair_masks, pairwise_distances


def semihard_triplet(
    embeddings: Tensor, labels: Tensor, margin: float = 0.2, distance: Distance = "euclidean"
) -> Tensor:
    """Triplet loss with semi-hard negatives, khan2021 section 2.4 and Table 5.

    For every pair (a, p) of one author one negative n: the nearest that is farther from a than p is, else the farthest
    of all: the rule of tensorflow-addons, which the authors used. Mean over pairs of
    ``max(d(a, p) - d(a, n) + margin, 0)``; a batch without pairs or negatives gives 0.
    """
    apart = pairwise_distances(embeddings, distance)
    positive, negative = pair_masks(labels)
    anchor, other = (positive & negative.any(1, keepdim=True)).nonzero(as_tuple=True)
    if not len(anchor):
        return embeddings.sum() * 0.0
    with (
        torch.no_grad()
    ):  # which negative: sort each row once, then one binary search per pair; O(B^2 log B)
        order = apart.masked_fill(~negative, float("inf")).sort(1)
        to_positive = apart.masked_fill(~positive, float("inf"))
        farther = torch.searchsorted(
            order.values, to_positive, right=True
        )  # first negative strictly farther than p
        pick = farther.minimum(negative.sum(1, keepdim=True) - 1).clamp(min=0)
        chosen = order.indices.gather(1, pick)[anchor, other]
    return (apart[anchor, other] - apart[anchor, chosen] + margin).clamp(min=0).mean()


def batch_hard_triplet(
    embeddings: Tensor, labels: Tensor, margin: float = 0.2, distance: Distance = "euclidean"
) -> Tensor:
    """Batch-hard triplet loss, Hermans et al. 2017, eq. 5 (tyo2021, eq. 3): one triplet an anchor.

    Mean over anchors of ``max(d(a, p) - d(a, n) + margin, 0)`` with the farthest positive and the nearest negative.
    Anchors without either are left out; a batch without any gives 0.
    """
    apart = pairwise_distances(embeddings, distance)
    positive, negative = pair_masks(labels)
    anchors = positive.any(1) & negative.any(1)
    if not anchors.any():
        return embeddings.sum() * 0.0
    farthest = apart.masked_fill(~positive, float("-inf")).max(1).values
    nearest = apart.masked_fill(~negative, float("inf")).min(1).values
    return (farthest - nearest + margin)[anchors].clamp(min=0).mean()
