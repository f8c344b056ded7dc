"""LUAR's pooling (Rivera-Soto et al., EMNLP 2021, section 3): attention without parameters, then the maximum."""

import math

from torch import Tensor, nn

from helpers.encoders.pooling.padding import highest, padded


class LUARPooling(nn.Module):
    """Each post attends to its sample's posts by scaled dot products of the vectors themselves; maximum over posts."""

    xavier = False

    def __init__(self, width: int, settings):
        super().__init__()
        self.dim = width

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, W)."""
        full = padded(posts, mask)
        scores = full @ full.transpose(1, 2) / math.sqrt(self.dim)
        attended = scores.masked_fill(~mask[:, None, :], float("-inf")).softmax(-1) @ full
        return highest(attended, mask)
