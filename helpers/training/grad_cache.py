"""Batches that do not fit into memory: an encoder that reads them in parts."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..tokens.batch import Batch


class GradCache(nn.Module):
    """Encode a batch in parts, for a loss over more samples than the memory holds.

    The activations of a part are not kept; they are computed again, with the same random numbers,
    when its gradient is needed. At the cost of a second forward pass this gives the embeddings and
    the gradients of the whole batch.

    Parameters
    ----------
    encoder : module from a batch of B samples to their embeddings (B, D)
    micro_batch_size : number of samples in a part; the last part may have fewer

    References
    ----------
    Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, RepL4NLP
    2021.
    """

    def __init__(self, encoder: nn.Module, micro_batch_size: int):
        super().__init__()
        self.encoder = encoder
        self.micro_batch_size = micro_batch_size

    def forward(self, batch: Batch) -> Tensor:
        """Return the embeddings (B, D) of a batch of B samples."""
        embeddings = []
        for begin in range(0, len(batch), self.micro_batch_size):
            part = batch[begin : begin + self.micro_batch_size]
            embeddings.append(checkpoint(self.encoder, part, use_reentrant=False))
        return torch.cat(embeddings)
