"""Losses on a batch of embeddings: ``loss(embeddings, labels) -> scalar``, independent of the number of authors.

Letters: B samples, D dimensions; a = anchor, p = positive (same author), n = negative. Memory is O(B^2).
Every loss normalises its input to unit length itself, so it takes raw vectors as well.
"""

from functools import partial

import torch
import torch.nn.functional as nnf
from torch import Tensor


def _masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """(B, B) positives, the anchor itself left out, and negatives."""
    same = labels[:, None] == labels[None, :]
    return same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same


def cosines(embeddings: Tensor) -> Tensor:
    """(B, D) -> (B, B) cosine similarities, in float32 at least."""
    unit = nnf.normalize(embeddings.to(torch.promote_types(embeddings.dtype, torch.float32)), dim=1)
    return unit @ unit.T


def semihard_triplet(embeddings: Tensor, labels: Tensor, margin: float = 0.2) -> Tensor:
    """Triplet loss with semi-hard negatives, khan2021 section 2.4 and Table 5 (margin 0.2).

    For every pair (a, p) one negative: the nearest that is farther from a than p is, else the farthest of all.
    Mean over pairs of ``max(d(a, p) - d(a, n) + margin, 0)`` with Euclidean distances (not squared) of unit
    vectors: the rule of tensorflow-addons, which the authors used. A batch without pairs or negatives gives 0.
    """
    squared = (2 - 2 * cosines(embeddings)).clamp(min=0)
    # the root's slope is infinite at 0: below the floor the distance is 0 and carries no gradient
    distance = torch.where(squared > 1e-12, squared.clamp(min=1e-12).sqrt(), 0.0)
    positive, negative = _masks(labels)
    anchor, other = (positive & negative.any(1, keepdim=True)).nonzero(as_tuple=True)
    if not len(anchor):
        return embeddings.sum() * 0.0
    with torch.no_grad():  # which negative: sort each row once, then one binary search per pair; O(B^2 log B)
        order = distance.masked_fill(~negative, float("inf")).sort(1)
        negatives = negative.sum(1)
        wanted = distance.masked_fill(~positive, float("inf"))
        beyond = torch.searchsorted(order.values, wanted, right=True)  # first negative strictly farther than p
        pick = beyond.minimum(negatives[:, None] - 1).clamp(min=0)
        chosen = order.indices.gather(1, pick)[anchor, other]
    return (distance[anchor, other] - distance[anchor, chosen] + margin).clamp(min=0).mean()


def top_k(embeddings: Tensor, labels: Tensor, k: int = 4, margin: float = 0.25) -> Tensor:
    """Top-k precision loss of Lu et al. 2019 as used by khan2021 section 2.4 (k 4, margin 0.25).

    Scores are cosines, negatives get the margin added. For each query the k best-scoring others should hold
    min(k, positives) positives; m positives are missing there. The loss adds the scores of m negatives to push
    out and subtracts those of m positives to pull in, divided by B:
    fewer than k positives: every positive outside the top k, against the lowest negatives inside it;
    otherwise: every negative inside the top k, against the highest positives outside it.
    The case is decided for each query (the released code decides once for the batch). Without positives: 0.
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
        missing = (positive.sum(1).clamp(max=k) - (positive & inside).sum(1))[:, None]
        push = _extreme(ranked, negative & inside, missing, largest=False)
        pull = _extreme(ranked, positive & ~inside, missing, largest=True)
    return ((scores * push).sum() - (scores * pull).sum()) / size


def _extreme(scores: Tensor, candidates: Tensor, count: Tensor, largest: bool) -> Tensor:
    """(B, B) mask of each row's ``count`` highest or lowest candidates."""
    worst = float("-inf") if largest else float("inf")
    order = scores.masked_fill(~candidates, worst).argsort(dim=1, descending=largest, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(len(scores), device=order.device).expand_as(order))
    return candidates & (rank < count)


def supervised_contrastive(embeddings: Tensor, labels: Tensor, temperature: float = 0.1) -> Tensor:
    """Supervised contrastive loss (Khosla et al. 2020, eq. 2): mean over anchors of the mean over their positives of

    ``-log( exp(s_ap / T) / sum over j != a of exp(s_aj / T) )`` with cosines s. Anchors without positives are left
    out; a batch without any gives 0.
    """
    logits = cosines(embeddings) / temperature
    positive, _ = _masks(labels)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    logp = logits - logits.masked_fill(itself, float("-inf")).logsumexp(1, keepdim=True)
    positives = positive.sum(1)
    anchors = positives > 0
    if not anchors.any():
        return embeddings.sum() * 0.0
    return -((logp * positive).sum(1)[anchors] / positives[anchors]).mean()


LOSSES = {"triplet": semihard_triplet, "topk": top_k, "supcon": supervised_contrastive}


def make_loss(name: str, **settings):
    """The named loss with its settings bound. Raises ValueError for an unknown name, TypeError for a bad setting."""
    if name not in LOSSES:
        raise ValueError(f"loss {name!r}: one of {', '.join(LOSSES)}")
    return partial(LOSSES[name], **settings)
