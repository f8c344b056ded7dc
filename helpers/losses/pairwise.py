"""Losses of the pairs of samples of a batch, and the distances and pairs that they are made of."""

from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

SHORTEST_LENGTH = 1e-6  # a shorter vector counts as 0: it is rounding, and has no direction
Distance = Literal["euclidean", "cosine", "raw"]
# numbers that a setting may be
Margin = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


def pair_masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of the pairs of samples by one author and of the pairs by two authors.

    Parameters
    ----------
    labels : (B,), the author of each of B samples

    Returns
    -------
    positives : (B, B) bool, true for two samples by one author; false on the diagonal
    negatives : (B, B) bool, true for two samples by two authors

    Raises
    ------
    ValueError
        the labels have another number of dimensions
    """
    if labels.ndim != 1:
        raise ValueError(
            f"labels need the shape (B,), one for each of B embeddings, and not {(*labels.shape,)}"
        )
    same_author = labels[:, None] == labels
    return same_author & ~diagonal_of(same_author), ~same_author


def diagonal_of(square: Tensor) -> Tensor:
    """Return a mask (B, B) bool of the diagonal of a matrix (B, B)."""
    return torch.eye(len(square), dtype=torch.bool, device=square.device)


def unit_vectors(embeddings: Tensor) -> Tensor:
    """Scale vectors to unit length; those below SHORTEST_LENGTH become 0, with a gradient of 0.

    The gradient of a vector is divided by its length. Without a bound, a vector of length 0 would
    have a gradient of 1e12, beside which clipping leaves nothing of the others.

    Parameters
    ----------
    embeddings : (B, D), B vectors of D values

    Returns
    -------
    (B, D), for other vectors the values and gradients of ``torch.nn.functional.normalize``
    """
    length = embeddings.norm(dim=1, keepdim=True)
    return embeddings / length.masked_fill(length < SHORTEST_LENGTH, torch.inf)


def pairwise_cosines(embeddings: Tensor) -> Tensor:
    """Return the cosines (B, B) of B vectors (B, D) of any length, in float32 or more precisely."""
    unit = unit_vectors(precise(embeddings))
    return unit @ unit.T


def pairwise_distances(embeddings: Tensor, distance: Distance = "euclidean") -> Tensor:
    """Return the (B, B) distances of all pairs of samples.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    distance : "euclidean" is the Euclidean distance of the unit vectors, not squared, 0..2;
        "cosine" is 1 - cosine, 0..2, half of the square of "euclidean"; "raw" is the Euclidean
        distance of the vectors as they are, for encoders that do not normalise and for margins
        above 2, as in tyo2021 Table 2

    References
    ----------
    tyo2021 equations 4 and 5.
    """
    if distance == "raw":
        points = precise(embeddings)
        return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    cosine_distances = (1 - pairwise_cosines(embeddings)).clamp(min=0)
    if distance == "cosine":
        return cosine_distances
    squared = 2 * cosine_distances
    # The root has an infinite slope at 0. So below 1e-12 the distance is 0, without a gradient, and
    # clamp keeps the slope finite in the branch that where() does not take. NaN stays NaN, so that
    # a training that has diverged says so.
    return torch.where(squared <= 1e-12, 0.0, squared.clamp(min=1e-12).sqrt())


def precise(values: Tensor) -> Tensor:
    """Return values in float32, or as they are where they are more precise."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def contrastive(
    embeddings: Tensor,
    labels: Tensor,
    negative_margin: Margin = 0.5,
    positive_margin: Margin = 0.0,
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
        :func:`pairwise_distances`
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
        number = torch.arange(len(labels), device=labels.device) // 2
        is_pair = number[:, None] == number
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


def semihard_triplet(
    embeddings: Tensor, labels: Tensor, margin: Margin = 0.2, distance: Distance = "euclidean"
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
        :func:`pairwise_distances`

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
    embeddings: Tensor, labels: Tensor, margin: Margin = 0.2, distance: Distance = "euclidean"
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
        :func:`pairwise_distances`

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


def top_k(
    embeddings: Tensor, labels: Tensor, k: Count = 4, margin: Margin = 0.25, per_row: bool = True
) -> Tensor:
    """Compute the top-k precision loss.

    Every sample is a query, the other samples by its author are its positives, and all others are
    negatives. Scores are cosines; the margin is added to those of negatives. The k other samples
    with the highest scores, the top k, should include min(k, number of positives) positives; m of
    these are missing. The loss is the sum over queries of the scores of m negatives in the top k
    minus those of m positives outside it, divided by B. If a query has fewer than k positives,
    these are all positives outside and the m lowest negatives inside. Otherwise they are all
    negatives inside and the m highest positives outside. The loss is 0 if the ranking is right by
    the margin, or if there are no positives.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    labels : (B,), the author of each sample
    k : size of the top k; cut to B - 1
    margin : how much higher than a negative a positive must score
    per_row : decide for each query which of the two cases it is. False only to reproduce the
        released code, see ``RELEASED``: there, one case holds for the whole batch, the first if n+,
        the largest number of samples by one author, is below k, and queries of the other case are
        left out. With n+ = k every query is left out, as each has fewer than k positives

    References
    ----------
    Lu et al. 2019, as in khan2021 section 2.4 and Appendix A (k 4, margin 0.25).
    """
    size = len(labels)
    k = min(k, size - 1)
    positive, negative = pair_masks(labels)
    scores = pairwise_cosines(embeddings) + margin * negative

    with torch.no_grad():
        ranked = scores.masked_fill(diagonal_of(scores), float("-inf"))
        inside = torch.zeros_like(positive).scatter_(1, ranked.topk(k, 1).indices, True)
        positives = positive.sum(1)
        missing = (positives.clamp(max=k) - (positive & inside).sum(1))[:, None]
        if not per_row:
            missing[(positives < k) != (positives.max() + 1 < k)] = 0
        push = _extreme(ranked, negative & inside, missing, largest=False)
        pull = _extreme(ranked, positive & ~inside, missing, largest=True)
    return ((scores * push).sum() - (scores * pull).sum()) / size


def _extreme(scores: Tensor, candidates: Tensor, count: Tensor, largest: bool) -> Tensor:
    """Return a (B, B) mask: the ``count`` (B, 1) highest or lowest candidates of each row."""
    last = float("-inf") if largest else float("inf")
    order = scores.masked_fill(~candidates, last).argsort(dim=1, descending=largest, stable=True)
    rank = order.argsort(dim=1)  # argsort inverts a permutation: place -> rank, from 0
    return candidates & (rank < count)


def supervised_contrastive(
    embeddings: Tensor,
    labels: Tensor,
    temperature: Positive = 0.1,
    base_temperature: Positive | None = None,
) -> Tensor:
    """Compute the supervised contrastive loss (SupCon) of Khosla et al. 2020, equation 2.

    Every sample of the batch is an anchor a; its positives p are the other samples of its author.
    With cosines s the loss is the mean, over anchors and over the positives of each anchor, of
    ``-log(exp(s_ap / T) / sum over j != a of exp(s_aj / T))``. Anchors without positives are left
    out; the loss is 0 if no anchor has a positive.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    labels : (B,), the author of each sample
    temperature : T; a lower one gives more weight to the nearest samples by other authors
    base_temperature : if given, the loss is multiplied by ``temperature / base_temperature``, and
        anchors without positives count as 0 in the mean, as in the released code of sawatphol2022
    """
    logits = pairwise_cosines(embeddings) / temperature
    positive, _ = pair_masks(labels)
    without_self = logits.masked_fill(diagonal_of(logits), float("-inf"))
    log_p = logits - without_self.logsumexp(1, keepdim=True)

    positives = positive.sum(1)
    anchors = positives > 0
    if not anchors.any():
        return embeddings.sum() * 0.0
    loss_of_anchor = -(log_p * positive).sum(1)[anchors] / positives[anchors]
    if base_temperature is None:
        return loss_of_anchor.mean()
    return loss_of_anchor.sum() / len(labels) * temperature / base_temperature
