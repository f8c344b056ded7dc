"""Top-k precision loss: the cost of other authors among the k nearest neighbours of each sample."""

import torch
from torch import Tensor

from .distances import pair_masks, pairwise_cosines


def top_k(
    embeddings: Tensor, labels: Tensor, k: int = 4, margin: float = 0.25, per_row: bool = True
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
    """Return a (B, B) mask: the ``count`` (B, 1) highest or lowest candidates of each row."""
    last = float("-inf") if largest else float("inf")
    order = scores.masked_fill(~candidates, last).argsort(dim=1, descending=largest, stable=True)
    rank = order.argsort(dim=1)  # argsort inverts a permutation: place -> rank, from 0
    return candidates & (rank < count)
