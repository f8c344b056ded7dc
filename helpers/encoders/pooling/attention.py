"""The attention of khan2021 (section 2.1, Figure 2), as its authors released it and as its text says.

Letters: N real posts, B samples, M posts a sample, W entries of a post's vector, A attention outputs.
"""

import torch
from torch import Tensor, nn

from helpers.encoders.pooling.padding import padded


class ParallelAttention(nn.Module):
    """Released: posts projected to A entries, ``layers`` parallel dot-product attentions, maximum and mean of each.

    The attentions are unscaled and their value is their key. Padded posts take part in neither attention nor pooling.
    """

    xavier = True  # the attention is unscaled: its scale at the start matters

    def __init__(self, width: int, settings):
        super().__init__()
        self.layers, self.dim = settings.layers, 2 * settings.layers * settings.attention
        self.post = nn.Linear(width, settings.attention)
        self.dropout = nn.Dropout(settings.dropout)
        self.query = nn.Linear(settings.attention, settings.layers * settings.attention)
        self.key = nn.Linear(settings.attention, settings.layers * settings.attention)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, 2 * layers * A)."""
        attended = attend(padded(self.dropout(self.post(posts)), mask), mask, self.query, self.key, self.layers)
        real = mask[:, None, :, None]
        mean = (attended * real).sum(2) / real.sum(2)
        return torch.cat([attended.masked_fill(~real, float("-inf")).amax(2), mean], 2).flatten(1)


class SingleAttention(nn.Module):
    """The text: one attention over the posts' features as they are, pooled by maximum."""

    xavier = True

    def __init__(self, width: int, settings):
        super().__init__()
        self.dim = settings.attention
        self.dropout = nn.Dropout(settings.dropout)
        self.query = nn.Linear(width, settings.attention)
        self.key = nn.Linear(width, settings.attention)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, A)."""
        attended = attend(padded(self.dropout(posts), mask), mask, self.query, self.key, 1)
        return attended.masked_fill(~mask[:, None, :, None], float("-inf")).amax(2).flatten(1)


def attend(posts: Tensor, mask: Tensor, query: nn.Linear, key: nn.Linear, layers: int) -> Tensor:
    """(B, M, W) -> (B, layers, M, A): unscaled dot-product attention of real posts, the value being the key."""
    asked, keys = (linear(posts).view(*mask.shape, layers, -1).transpose(1, 2) for linear in (query, key))
    scores = (asked @ keys.transpose(2, 3)).masked_fill(~mask[:, None, None, :], float("-inf"))
    return scores.softmax(-1) @ keys
