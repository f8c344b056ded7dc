"""IUR, the model that khan2021 compares itself with (Andrews & Bishop 2019), in the shape its authors released.

Trained with the angular-margin loss ("arcface", scale 64, margin 0.4) on samples of exactly 16 posts, so it knows no
other size. khan2021 section 4.3 fills up shorter samples and averages over contiguous groups of longer ones.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.encoders.stream import PostFeatures, normed_projection
from helpers.tokens.batch import Batch

POSTS = 16


class IUREncoder(PostFeatures):
    """Post features projected to ``width`` dimensions, a Transformer layer and a second attention; the means over posts
    of both attentions' outputs, LayerNorm, two fully connected layers, LayerNorm, unit length.

    The defaults are those released. Arguments as of :class:`~helpers.encoders.stream.PostFeatures`; heads: of the attentions;
    forward_dim: of the layer between them; dropout: 0.1 as released.
    """

    def __init__(
        self,
        vocabulary: int,
        topics: int,
        features: str = "TPS",
        filters: int = 256,
        token_dim: int = 512,
        attention: int = 256,
        embedding: int = 512,
        heads: int = 4,
        forward_dim: int = 256,
        dropout: float = 0.1,
        topic_dropout: float = 0.0,
        clock: str = "hour",
        text_path: str = "auto",
    ):
        if attention % heads:
            raise ValueError(f"IUR has {heads} heads: its width must be a multiple of {heads}, not {attention}")
        known = topic_dropout, clock, text_path, {"stream": embedding}
        super().__init__(vocabulary, topics, features, filters, token_dim, (2, 3, 4, 5), *known)
        self.post = nn.Linear(self.width, attention)
        self.dropout = nn.Dropout(dropout)
        self.first, self.second = (nn.MultiheadAttention(attention, heads, batch_first=True) for _ in range(2))
        self.between = nn.Sequential(nn.Linear(attention, forward_dim), nn.ReLU(), nn.Linear(forward_dim, attention))
        self.norms = nn.ModuleList(nn.LayerNorm(attention, eps=1e-6) for _ in range(2))
        self.project = normed_projection(2 * attention, embedding)

    def forward(self, batch: Batch) -> Tensor:
        """Batch of (B, M, L) tokens, any M -> (B, D), unit length."""
        groups = -(-batch.mask.shape[1] // POSTS)
        posts = self.post(self.posts(batch))
        # an absent post is a zero vector that takes part like any other: the model was made for 16 and masks nothing
        full = posts.new_zeros(len(batch), groups * POSTS, posts.shape[1])
        full[:, : batch.mask.shape[1]][batch.mask] = posts
        group = self._encode(full.view(-1, POSTS, posts.shape[1])).view(len(batch), groups, -1)
        used = torch.arange(groups, device=group.device) * POSTS < batch.mask.sum(1, keepdim=True)
        return nnf.normalize((group * used[..., None]).sum(1), dim=1)

    def _encode(self, posts: Tensor) -> Tensor:
        """(G, 16, A) -> (G, D), unit length."""
        posts = self.dropout(posts * math.sqrt(posts.shape[2]))
        first, _ = self.first(posts, posts, posts, need_weights=False)
        posts = self.norms[0](posts + self.dropout(first))
        posts = self.norms[1](posts + self.dropout(self.between(posts)))
        second, _ = self.second(posts, posts, posts, need_weights=False)
        pooled = torch.cat([first.mean(1), second.mean(1)], 1)
        return nnf.normalize(self.project(pooled).float(), dim=1)
