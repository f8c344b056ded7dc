"""Top-k precision loss: what is wrong among the k nearest of each sample."""

import torch
from torch import Tensor

from helpers.losses.distances import cosines, pair_masks


def top_k(embeddings: Tensor, labels: Tensor, k: int = 4, margin: float = 0.25, per_row: bool = True) -> Tensor:
    """Top-k precision loss, Lu et al. 2019 as used in khan2021 section 2.4 and Appendix A (k 4, margin 0.25).

    Scores are cosines, those of negatives with the margin added. The k best-scoring others of a query should hold
    min(k, positives) positives; m of them are missing. The loss adds the scores of m negatives to push out, subtracts
    those of m positives to pull in, and divides by B. With fewer than k positives: every positive outside the top k,
    against the lowest negatives inside it; else every negative inside, against the highest positives outside. Where
    the ranking is right by the margin, or without positives, it is 0.

    per_row : decide the case for each query. False only to repeat the released code, see ``RELEASED``: the case is that
    of n+, the most samples of an author in the batch, and queries of the other case are left out. With n+ = k these are
    all queries (each has k - 1 positives), and nothing is learned.
    """
    scores = cosines(embeddings)
    positive, negative = pair_masks(labels)
    size = len(labels)
    scores = scores + margin * negative
    k = min(k, size - 1)
    if k < 1:
        return embeddings.sum() * 0.0
    with torch.no_grad():
        ranked = scores.masked_fill(torch.eye(size, dtype=torch.bool, device=scores.device), float("-inf"))
        inside = torch.zeros_like(positive).scatter_(1, ranked.topk(k, 1).indices, True)
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
