"""Losses of single pairs: contrastive and modified contrastive."""

from functools import partial

import torch
from torch import Tensor

from helpers.losses.distances import Distance, pair_masks, pairwise_distances


def contrastive(
    embeddings: Tensor,
    labels: Tensor,
    negative_margin: float = 0.5,
    positive_margin: float = 0.0,
    distance: Distance = "cosine",
    squared_hinge: bool = False,
    paired: bool = False,
) -> Tensor:
    """Compute the contrastive loss, and with a positive margin the modified contrastive loss.

    A pair at distance d costs ``max(d^2 - positive_margin, 0) / 2`` where one author wrote both
    samples, and ``max(negative_margin - d, 0)^2 / 2`` where two did. Same-author pairs together
    weigh as much as all others (the mean of the two means), as if pairs were drawn half and half; a
    kind without pairs adds 0.

    Parameters
    ----------
    embeddings : (B, D)
    labels : (B,), the author of each sample
    negative_margin : negatives nearer than this are pushed. Unit vectors are at most 2 apart, so
        from 2 on all are
    positive_margin : positives whose squared distance is above this are pulled
    distance : see :func:`helpers.losses.distances.pairwise_distances`
    squared_hinge : positives cost ``max(d - positive_margin, 0)^2 / 2``, as the text describes
        equation 2; the form above is that of the released code, which made the published numbers.
        Equal where positive_margin is 0
    paired : only the pairs of rows 2i and 2i + 1, as the sampler of pairs lays them

    References
    ----------
    tyo2021 equations 1 and 2.
    """
    distances = pairwise_distances(embeddings, distance)
    if squared_hinge:
        pull = (distances - positive_margin).clamp(min=0).square()
    else:
        pull = (distances.square() - positive_margin).clamp(min=0)
    push = (negative_margin - distances).clamp(min=0).square()

    positives, negatives = pair_masks(labels)
    if paired:
        row = torch.arange(len(labels), device=labels.device)
        is_pair = (row[:, None] // 2 == row // 2) & (row[:, None] != row)
        positives = positives & is_pair
        negatives = negatives & is_pair
    # the half of the formula, and the half of a mean of two
    return (_mean(pull, positives) + _mean(push, negatives)) / 4


def _mean(costs: Tensor, pairs: Tensor) -> Tensor:
    return (costs * pairs).sum() / pairs.sum().clamp(min=1)


# tyo2021's best margins, 0.25 and 5, are of vectors of any length; 0.25 and 1 is the next row that
# unit vectors reach
modified_contrastive = partial(
    contrastive, negative_margin=1.0, positive_margin=0.25, distance="euclidean"
)
