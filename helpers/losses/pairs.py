"""Losses that are sums over pairs of samples: contrastive and modified contrastive."""

from functools import partial

import torch
from torch import Tensor

from .distances import Distance, pair_masks, pairwise_distances


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

    A pair at distance d costs ``max(d^2 - positive_margin, 0) / 2`` if one author wrote both
    samples (a positive), else ``max(negative_margin - d, 0)^2 / 2`` (a negative). The loss is the
    mean of two means, one over positives and one over negatives, as if half of all pairs were
    positives. The mean over no pairs is 0.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    labels : (B,), the author of each sample
    negative_margin : distance below which negatives are pushed apart. Unit vectors are at most 2
        apart, so that above 2 all negatives are pushed
    positive_margin : squared distance above which positives are pulled together
    distance : "euclidean", "cosine" or "raw", see
        :func:`helpers.losses.distances.pairwise_distances`
    squared_hinge : let positives cost ``max(d - positive_margin, 0)^2 / 2``, as the paper's text
        describes equation 2. The form above is that of the released code, which gave the published
        numbers. Both are equal where positive_margin is 0
    paired : use only the pairs of samples 2i and 2i + 1, which the sampler "pairs" places side by
        side

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
    # 1/4 is the factor 1/2 of each cost times the 1/2 of a mean of two
    return (_mean(pull, positives) + _mean(push, negatives)) / 4


def _mean(costs: Tensor, pairs: Tensor) -> Tensor:
    # the mean of the costs where the mask ``pairs`` is true; 0 where it nowhere is
    return (costs * pairs).sum() / pairs.sum().clamp(min=1)


# The best margins of tyo2021, 0.25 and 5, are for vectors of any length. 0.25 and 1 are the next
# row of that table whose margins unit vectors, at most 2 apart, can reach.
modified_contrastive = partial(
    contrastive, negative_margin=1.0, positive_margin=0.25, distance="euclidean"
)
