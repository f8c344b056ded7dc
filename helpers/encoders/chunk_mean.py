"""Samples of any size for an encoder of n posts, which reads them in contiguous groups of n."""

import torch.nn.functional as nnf
from torch import Tensor

from ..tokens.batch import Batch
from .base import Encoder


class ChunkMean(Encoder):
    """Average an encoder's vectors of contiguous groups of at most ``posts`` posts.

    The mean has unit length where the encoder's vectors have.

    With ``posts`` 1 it is "Avg" of khan2021 Table 3, made for an encoder that was trained on single
    posts. With 16 it reads long queries with IUR (khan2021 section 4.3). Over the pieces of a
    document it reads long texts (tyo2021 section 4.1).

    Parameters
    ----------
    encoder : Encoder
        encodes each group
    posts : int
        posts of a group; the last group of a sample may have fewer
    """

    def __init__(self, encoder: Encoder, posts: int = 1):
        super().__init__()
        self.encoder = encoder
        self.posts = posts
        self.dim = encoder.dim
        self.unit = encoder.unit

    def forward(self, batch: Batch) -> Tensor:
        """Return (B, ``dim``) rows of B samples; the encoder's own if each sample is one group."""
        if batch.mask.shape[1] <= self.posts:
            return self.encoder(batch)
        groups, sample = batch.split_posts(self.posts)
        vectors = self.encoder(groups)
        sums = vectors.new_zeros(len(batch), self.dim).index_add(0, sample, vectors)
        if self.unit:
            return nnf.normalize(sums, dim=1)
        return sums / sample.bincount(minlength=len(batch))[:, None]
