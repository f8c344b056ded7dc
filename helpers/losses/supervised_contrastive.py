"""Supervised contrastive loss: a softmax over all others of the batch, shared among an anchor's positives."""

import torch
from torch import Tensor

from helpers.losses.distances import cosines, pair_masks


def supervised_contrastive(embeddings: Tensor, labels: Tensor, temperature: float = 0.1,
                           base_temperature: float | None = None) -> Tensor:
    """Supervised contrastive loss, Khosla et al. 2020, eq. 2.

    With cosines s the mean over anchors a, and over the positives p of each, of
    ``-log(exp(s_ap / T) / sum over j != a of exp(s_aj / T))``. Those without positives are left out; none gives 0.

    Parameters
    ----------
    temperature : T.
    base_temperature : only to repeat the released code of sawatphol2022, see ``RELEASED``: the loss times
        ``temperature / base_temperature``, anchors without positives as 0 in the mean.
    """
    logits = cosines(embeddings) / temperature
    positive, _ = pair_masks(labels)
    diagonal = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    log_p = logits - logits.masked_fill(diagonal, float("-inf")).logsumexp(1, keepdim=True)
    positives = positive.sum(1)
    anchors = positives > 0
    if not anchors.any():
        return embeddings.sum() * 0.0
    each = -(log_p * positive).sum(1)[anchors] / positives[anchors]
    return each.mean() if base_temperature is None else each.sum() / len(labels) * temperature / base_temperature
