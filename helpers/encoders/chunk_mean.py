"""Longer samples by averaging: an encoder of n posts reads any number of them in contiguous groups of n."""

import torch.nn.functional as nnf
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.tokens.batch import Batch


class ChunkMean(Encoder):
    """The unit mean of an encoder's vectors of contiguous groups of at most ``posts`` posts.

    With ``posts`` 1 it is "Avg" of khan2021 Table 3, made for an encoder that was trained on single posts; with 16 how
    section 4.3 reads long queries with IUR; over the pieces of a document how tyo2021 section 4.1 reads long texts.
    """

    def __init__(self, encoder: Encoder, posts: int = 1):
        super().__init__()
        self.encoder, self.posts, self.dim = encoder, posts, encoder.dim

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D)."""
        if batch.mask.shape[1] <= self.posts:
            return self.encoder(batch)
        groups, sample = batch.split_posts(self.posts)
        vectors = self.encoder(groups)
        return nnf.normalize(
            vectors.new_zeros(len(batch), self.dim).index_add(0, sample, vectors), dim=1
        )
