"""IUR, the model that khan2021 compares itself with (Andrews & Bishop 2019), in the shape its authors released.

Trained with the angular-margin loss ("arcface", scale 64, margin 0.4) on samples of exactly 16 posts, so it knows no
other size: shorter samples are filled up, and of longer ones the vectors of contiguous groups of 16 are averaged
(khan2021 section 4.3), which :class:`~helpers.encoders.averaged.Averaged` does.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.encoders.pooling.padding import padded

POSTS = 16
HEADS = 4


class IURPooling(nn.Module):
    """Posts projected to A entries, a Transformer layer and a second attention; the means of both attentions' outputs.

    Raises ValueError where A is no multiple of the 4 heads, or a sample has more than 16 posts.
    """

    xavier = False
    group = POSTS  # posts of a group, whose vectors are averaged

    def __init__(self, width: int, settings):
        super().__init__()
        size = settings.attention
        if size % HEADS:
            raise ValueError(f"IUR has {HEADS} heads: attention must be a multiple of {HEADS}, not {size}")
        self.dim = 2 * size
        self.post = nn.Linear(width, size)
        self.dropout = nn.Dropout(settings.dropout)
        self.first, self.second = (nn.MultiheadAttention(size, HEADS, batch_first=True) for _ in range(2))
        self.between = nn.Sequential(nn.Linear(size, 256), nn.ReLU(), nn.Linear(256, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size, eps=1e-6) for _ in range(2))

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M <= 16) -> (B, 2 A)."""
        if mask.shape[1] > POSTS:
            raise ValueError(f"IUR reads {POSTS} posts, not {mask.shape[1]}")
        # an absent post is a zero vector that takes part like any other: the model was made for 16 and masks nothing
        posts = nnf.pad(padded(self.post(posts), mask), (0, 0, 0, POSTS - mask.shape[1]))
        posts = self.dropout(posts * math.sqrt(posts.shape[2]))
        first, _ = self.first(posts, posts, posts, need_weights=False)
        posts = self.norms[0](posts + self.dropout(first))
        posts = self.norms[1](posts + self.dropout(self.between(posts)))
        second, _ = self.second(posts, posts, posts, need_weights=False)
        return torch.cat([first.mean(1), second.mean(1)], 1)
