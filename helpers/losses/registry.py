"""Losses on a batch of embeddings: ``loss(embeddings, labels) -> scalar``, and the registry of all of them.

Those of this module are independent of the number of authors: pairs, triplets and rankings within the batch.
Letters: B samples, D dimensions; a = anchor, p = positive (same author), n = negative. Memory is O(B^2).
Every loss normalises its input to unit length itself, so it takes raw vectors as well; distance "raw" does not.
"""

from functools import partial

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.losses.class_weights import MLL, ArcFace

DISTANCES = ("euclidean", "cosine", "raw")


def _masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """(B, B) positives, the anchor itself left out, and negatives."""
    same = labels[:, None] == labels[None, :]
    return same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same


def cosines(embeddings: Tensor) -> Tensor:
    """(B, D) -> (B, B) cosine similarities, in float32 at least."""
    unit = nnf.normalize(embeddings.to(torch.promote_types(embeddings.dtype, torch.float32)), dim=1)
    return unit @ unit.T


def distances(embeddings: Tensor, distance: str = "euclidean") -> Tensor:
    """(B, D) -> (B, B) distances of the unit vectors, all in 0..2 (tyo2021 eq. 4 and 5).

    "euclidean" is not squared; "cosine" is 1 - cosine, half of the squared Euclidean distance. "raw" is the Euclidean
    distance of the vectors as they are, for encoders that do not normalise: the margins above 2 of tyo2021 Table 2.
    Raises ValueError for another name.
    """
    if distance not in DISTANCES:
        raise ValueError(f"distance {distance!r}: one of {', '.join(DISTANCES)}")
    if distance == "raw":
        return torch.cdist(embeddings, embeddings, compute_mode="donot_use_mm_for_euclid_dist")
    apart = (1 - cosines(embeddings)).clamp(min=0)
    if distance == "cosine":
        return apart
    squared = 2 * apart
    # the root's slope is infinite at 0: below the floor the distance is 0 and carries no gradient
    return torch.where(squared > 1e-12, squared.clamp(min=1e-12).sqrt(), 0.0)


def contrastive(
    embeddings: Tensor,
    labels: Tensor,
    margin: float = 0.5,
    same_margin: float = 0.0,
    distance: str = "cosine",
    squared_hinge: bool = False,
    neighbours: bool = False,
) -> Tensor:
    """Contrastive and modified contrastive loss, tyo2021 eq. 1 and 2, on all pairs of the batch.

    neighbours: on the pairs of rows 2i and 2i + 1 alone, as :func:`helpers.tokens.pair_samplers.draw_pairs` lays them.

    A pair at distance d costs, of one author, ``max(d^2 - same_margin, 0) / 2``, of two, ``max(margin - d, 0)^2 / 2``:
    the released form, which made the published numbers. ``squared_hinge``: ``max(d - same_margin, 0)^2 / 2`` for
    one author, as the text describes eq. 2. Without ``same_margin`` both are eq. 1.
    Same-author pairs together weigh as much as all others (mean of the two means), like the paper's pairs drawn half
    and half; a kind without pairs adds 0. Unit vectors are at most 2 apart: with a ``margin`` from 2 on every
    negative is pushed. The defaults are the best row of eq. 1 in Table 2.
    """
    apart = distances(embeddings, distance)
    pull = (apart - same_margin).clamp(min=0).square() if squared_hinge else (apart.square() - same_margin).clamp(min=0)
    push = (margin - apart).clamp(min=0).square()
    kinds = _masks(labels)
    if neighbours:
        row = torch.arange(len(labels), device=labels.device)
        drawn = (row[:, None] // 2 == row // 2) & (row[:, None] != row)
        kinds = [pairs & drawn for pairs in kinds]
    means = [(cost * pairs).sum() / pairs.sum().clamp(min=1) for cost, pairs in zip((pull, push), kinds)]
    return sum(means) / 4  # the half of the formula, and the half of a mean of two


def semihard_triplet(
    embeddings: Tensor, labels: Tensor, margin: float = 0.2, distance: str = "euclidean"
) -> Tensor:
    """Triplet loss with semi-hard negatives, khan2021 section 2.4 and Table 5 (margin 0.2, Euclidean).

    For every pair (a, p) one negative: the nearest that is farther from a than p is, else the farthest of all.
    Mean over pairs of ``max(d(a, p) - d(a, n) + margin, 0)``: the rule of tensorflow-addons, which the authors used.
    A batch without pairs or negatives gives 0.
    """
    apart = distances(embeddings, distance)
    positive, negative = _masks(labels)
    anchor, other = (positive & negative.any(1, keepdim=True)).nonzero(as_tuple=True)
    if not len(anchor):
        return embeddings.sum() * 0.0
    with torch.no_grad():  # which negative: sort each row once, then one binary search per pair; O(B^2 log B)
        order = apart.masked_fill(~negative, float("inf")).sort(1)
        negatives = negative.sum(1)
        wanted = apart.masked_fill(~positive, float("inf"))
        beyond = torch.searchsorted(order.values, wanted, right=True)  # first negative strictly farther than p
        pick = beyond.minimum(negatives[:, None] - 1).clamp(min=0)
        chosen = order.indices.gather(1, pick)[anchor, other]
    return (apart[anchor, other] - apart[anchor, chosen] + margin).clamp(min=0).mean()


def batch_hard_triplet(
    embeddings: Tensor, labels: Tensor, margin: float = 0.2, distance: str = "euclidean"
) -> Tensor:
    """Batch-hard triplet loss, Hermans et al. 2017 eq. 5 (tyo2021 eq. 3): one triplet per anchor.

    Mean over anchors of ``max(d(a, p) - d(a, n) + margin, 0)`` with the farthest positive and the nearest negative.
    Anchors without either are left out; a batch without any gives 0.
    """
    apart = distances(embeddings, distance)
    positive, negative = _masks(labels)
    anchors = positive.any(1) & negative.any(1)
    if not anchors.any():
        return embeddings.sum() * 0.0
    farthest = apart.masked_fill(~positive, float("-inf")).max(1).values
    nearest = apart.masked_fill(~negative, float("inf")).min(1).values
    return (farthest - nearest + margin)[anchors].clamp(min=0).mean()


def top_k(embeddings: Tensor, labels: Tensor, k: int = 4, margin: float = 0.25, per_row: bool = True) -> Tensor:
    """Top-k precision loss of Lu et al. 2019 as used by khan2021 section 2.4 (k 4, margin 0.25).

    Scores are cosines, negatives get the margin added. For each query the k best-scoring others should hold
    min(k, positives) positives; m positives are missing there. The loss adds the scores of m negatives to push
    out and subtracts those of m positives to pull in, divided by B:
    fewer than k positives: every positive outside the top k, against the lowest negatives inside it;
    otherwise: every negative inside the top k, against the highest positives outside it.
    Without positives: 0.
    The case is decided for each query. ``per_row=False`` is the released code: the case is that of n+, the most
    samples of an author in the batch, compared with k, and queries of the other case are left out. With n+ = k
    those are all of them (each has k - 1 positives), and nothing is learned.
    """
    scores = cosines(embeddings)
    positive, negative = _masks(labels)
    size = len(labels)
    scores = scores + margin * negative
    k = min(k, size - 1)
    if k < 1:
        return embeddings.sum() * 0.0
    with torch.no_grad():
        ranked = scores.masked_fill(torch.eye(size, dtype=torch.bool, device=scores.device), float("-inf"))
        best = ranked.topk(k, 1)
        inside = torch.zeros_like(positive).scatter_(1, best.indices, True)
        positives = positive.sum(1)
        missing = (positives.clamp(max=k) - (positive & inside).sum(1))[:, None]
        if not per_row:
            missing[(positives < k) != (positives.max() + 1 < k)] = 0
        push = _extreme(ranked, negative & inside, missing, largest=False)
        pull = _extreme(ranked, positive & ~inside, missing, largest=True)
    return ((scores * push).sum() - (scores * pull).sum()) / size


def _extreme(scores: Tensor, candidates: Tensor, count: Tensor, largest: bool) -> Tensor:
    """(B, B) mask of each row's ``count`` highest or lowest candidates."""
    worst = float("-inf") if largest else float("inf")
    order = scores.masked_fill(~candidates, worst).argsort(dim=1, descending=largest, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(len(scores), device=order.device).expand_as(order))
    return candidates & (rank < count)


def supervised_contrastive(
    embeddings: Tensor, labels: Tensor, temperature: float = 0.1, base_temperature: float | None = None
) -> Tensor:
    """Supervised contrastive loss (Khosla et al. 2020, eq. 2): mean over anchors of the mean over their positives of

    ``-log( exp(s_ap / T) / sum over j != a of exp(s_aj / T) )`` with cosines s. Anchors without positives are left
    out; a batch without any gives 0.
    base_temperature: as sawatphol2022 released it (0.07 there), the loss times ``temperature / base_temperature``,
    and anchors without positives count as 0 in the mean.
    """
    logits = cosines(embeddings) / temperature
    positive, _ = _masks(labels)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    logp = logits - logits.masked_fill(itself, float("-inf")).logsumexp(1, keepdim=True)
    positives = positive.sum(1)
    anchors = positives > 0
    if not anchors.any():
        return embeddings.sum() * 0.0
    each = -(logp * positive).sum(1)[anchors] / positives[anchors]
    return each.mean() if base_temperature is None else each.sum() / len(labels) * temperature / base_temperature


LOSSES = {
    "triplet": semihard_triplet,
    "batch_hard": batch_hard_triplet,
    "topk": top_k,
    "supcon": supervised_contrastive,
    "contrastive": contrastive,
    # tyo2021's best margins, 0.25 and 5, are of vectors of any length; 0.25 and 1 is its next row that unit ones reach
    "modified_contrastive": partial(contrastive, margin=1.0, same_margin=0.25, distance="euclidean"),
    "arcface": ArcFace,
    "mll": MLL,
}


def make_loss(name: str, classes: int | None = None, dim: int | None = None, **settings):
    """The named loss with its settings bound; one with parameters of its own is a new ``nn.Module``.

    classes: training authors, labels are 0..classes - 1. dim: size of the embeddings. Only losses with parameters
    use them. Raises ValueError for an unknown name or where such a loss lacks them, TypeError for a bad setting.
    """
    if name not in LOSSES:
        raise ValueError(f"loss {name!r}: one of {', '.join(LOSSES)}")
    loss = LOSSES[name]
    if not (isinstance(loss, type) and issubclass(loss, nn.Module)):
        return partial(loss, **settings)
    if classes is None or dim is None:
        raise ValueError(f"loss {name!r} learns a vector per author: it needs classes and dim")
    return loss(classes, dim, **settings)
