"""Supervised contrastive loss: a softmax over the batch, averaged over an anchor's positives."""

import torch
from torch import Tensor

from .distances import pair_masks, pairwise_cosines


def supervised_contrastive(
    embeddings: Tensor,
    labels: Tensor,
    temperature: float = 0.1,
    base_temperature: float | None = None,
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
    diagonal = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    log_p = logits - logits.masked_fill(diagonal, float("-inf")).logsumexp(1, keepdim=True)

    positives = positive.sum(1)
    anchors = positives > 0
    if not anchors.any():
        return embeddings.sum() * 0.0
    loss_of_anchor = -(log_p * positive).sum(1)[anchors] / positives[anchors]
    if base_temperature is None:
        return loss_of_anchor.mean()
    return loss_of_anchor.sum() / len(labels) * temperature / base_temperature
