"""Top-k precision loss: what is wrong among the k nearest of each sample."""

import torch
from torch import Tensor

from helpers.losses.distances import pair_masks, pairwise_cosines


def top_k(
    embeddings: Tensor, labels: Tensor, k: int = 4, margin: float = 0.25, per_row: bool = True
) -> Tensor:
    """Compute the top-k precision loss.

    Scores are cosines; the margin is added to those of negatives. The k best-scoring others of a
    query should hold min(k, positives) positives; m of them are missing. The loss adds the scores
    of m negatives to push out, subtracts those of m positives to pull in, and divides by B. A query
    with fewer than k positives takes every positive outside the top k and the lowest negatives
    inside. Any other query takes every negative inside and the highest positives outside. The loss
    is 0 if the ranking is right by the margin, or if there are no positives.

    Parameters
    ----------
    embeddings : (B, D)
    labels : (B,), the author of each sample
    k : neighbours that count
    margin : by which a positive must score higher than a negative
    per_row : decide for each query which of the two cases it is. False only to repeat the released
        code, see ``RELEASED``: there, the whole batch is of the first case if n+, the most samples
        of an author, is below k, and queries of the other case are left out. With n+ = k every
        query is left out (each has k - 1 positives)

    References
    ----------
    Lu et al. 2019, as in khan2021 section 2.4 and Appendix A (k 4, margin 0.25).
    """
    size = len(labels)
    k = min(k, size - 1)
    if k < 1:
        return embeddings.sum() * 0.0
    positive, negative = pair_masks(labels)
    scores = pairwise_cosines(embeddings) + margin * negative

    with torch.no_grad():
        diagonal = torch.eye(size, dtype=torch.bool, device=scores.device)
        ranked = scores.masked_fill(diagonal, float("-inf"))
        inside = torch.zeros_like(positive).scatter_(1, ranked.topk(k, 1).indices, True)
        positives = positive.sum(1)
        missing = (positives.clamp(max=k) - (positive & inside).sum(1))[:, None]
        if not per_row:
            missing[(positives < k) != (positives.max() + 1 < k)] = 0
        push = _extreme(ranked, negative & inside, missing, largest=False)
        pull = _extreme(ranked, positive & ~inside, missing, largest=True)
    return ((scores * push).sum() - (scores * pull).sum()) / size


def _extreme(scores: Tensor, candidates: Tensor, count: Tensor, largest: bool) -> Tensor:
    """Return the (B, B) mask of each row's ``count`` highest or lowest candidates."""
    last = float("-inf") if largest else float("inf")
    order = scores.masked_fill(~candidates, last).argsort(dim=1, descending=largest, stable=True)
    rank = order.argsort(dim=1)  # the inverse of a permutation
    return candidates & (rank < count)
