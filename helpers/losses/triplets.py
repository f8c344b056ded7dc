"""Triplet losses: an anchor must be nearer to a positive, by a margin, than to a negative."""

import torch
from torch import Tensor

from .distances import Distance, pair_masks, pairwise_distances


def semihard_triplet(
    embeddings: Tensor, labels: Tensor, margin: float = 0.2, distance: Distance = "euclidean"
) -> Tensor:
    """Compute the triplet loss with semi-hard negatives.

    For every ordered pair of an anchor a and a positive p, two samples by one author, it takes one
    sample n by another author: the nearest one that is farther from a than p is, or, where there is
    none, the farthest. This is the rule of tensorflow-addons, which khan2021 used. The loss is the
    mean over pairs of ``max(d(a, p) - d(a, n) + margin, 0)``; a batch without pairs or negatives
    gives 0.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    labels : (B,), the author of each sample
    margin : how much farther from the anchor than the positive a negative must be
    distance : "euclidean", "cosine" or "raw", see
        :func:`helpers.losses.distances.pairwise_distances`

    References
    ----------
    khan2021 section 2.4 and Table 5.
    """
    distances = pairwise_distances(embeddings, distance)
    positive, negative = pair_masks(labels)
    anchor, partner = (positive & negative.any(1, keepdim=True)).nonzero(as_tuple=True)
    if not len(anchor):
        return embeddings.sum() * 0.0

    with torch.no_grad():
        # each row is sorted once, then searched once per pair: O(B^2 log B)
        by_distance = distances.masked_fill(~negative, float("inf")).sort(1)
        to_positive = distances.masked_fill(~positive, float("inf"))
        # place of the first negative that is strictly farther than p
        farther = torch.searchsorted(by_distance.values, to_positive, right=True)
        farthest = negative.sum(1, keepdim=True) - 1
        place = farther.minimum(farthest).clamp(min=0)
        hard_negative = by_distance.indices.gather(1, place)[anchor, partner]
    differences = distances[anchor, partner] - distances[anchor, hard_negative]
    return (differences + margin).clamp(min=0).mean()


def batch_hard_triplet(
    embeddings: Tensor, labels: Tensor, margin: float = 0.2, distance: Distance = "euclidean"
) -> Tensor:
    """Compute the batch-hard triplet loss, with one triplet per anchor.

    Every sample is an anchor a. The loss is the mean over anchors of ``max(d(a, p) - d(a, n) +
    margin, 0)``, where p is the farthest sample by the same author and n the nearest by another.
    Anchors that lack p or n are left out; a batch in which all do gives 0.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    labels : (B,), the author of each sample
    margin : how much farther from the anchor than p the sample n must be
    distance : "euclidean", "cosine" or "raw", see
        :func:`helpers.losses.distances.pairwise_distances`

    References
    ----------
    Hermans et al. 2017, equation 5 (tyo2021 equation 3).
    """
    distances = pairwise_distances(embeddings, distance)
    positive, negative = pair_masks(labels)
    anchors = positive.any(1) & negative.any(1)
    if not anchors.any():
        return embeddings.sum() * 0.0
    farthest = distances.masked_fill(~positive, float("-inf")).max(1).values
    nearest = distances.masked_fill(~negative, float("inf")).min(1).values
    return (farthest - nearest + margin)[anchors].clamp(min=0).mean()
