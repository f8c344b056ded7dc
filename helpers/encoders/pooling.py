"""How the posts of a sample become one vector: the poolings by name. An absent post takes part in nothing.

Letters: N real posts, B samples, M posts a sample, W entries of a post's vector, A attention outputs.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

IUR_POSTS, IUR_HEADS = 16, 4


def pad_posts(posts: Tensor, mask: Tensor) -> Tensor:
    """(N, W) real posts, mask (B, M) -> (B, M, W), zero where there is no post."""
    full = posts.new_zeros(*mask.shape, posts.shape[1])
    full[mask] = posts
    return full


class Pooling(nn.Module):
    """``(posts (N, W), mask (B, M)) -> (B, dim)``, of the N real posts of a batch and where they belong.

    settings: a :class:`~helpers.encoders.stream.StreamConfig`.
    """

    xavier = False  # are its weights and those of the projection drawn so?
    group: int | None = None  # posts of a group, where the vectors of groups are averaged

    def __init__(self, width: int, settings):
        super().__init__()
        self.dim = width


class ParallelAttention(Pooling):
    """khan2021 (section 2.1, Figure 2) as released: posts projected to A entries, ``layers`` parallel attentions.

    These are unscaled dot products whose value is their key; of each the maximum and the mean over real posts.
    """

    xavier = True  # the attention is unscaled: its scale at the start matters

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        self.layers, self.dim = settings.layers, 2 * settings.layers * settings.attention
        self.post = nn.Linear(width, settings.attention)
        self.dropout = nn.Dropout(settings.dropout)
        self.query = nn.Linear(settings.attention, settings.layers * settings.attention)
        self.key = nn.Linear(settings.attention, settings.layers * settings.attention)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, 2 * layers * A)."""
        attended = attention(
            pad_posts(self.dropout(self.post(posts)), mask), mask, self.query, self.key, self.layers
        )
        real = mask[:, None, :, None]
        mean = (attended * real).sum(2) / real.sum(2)
        return torch.cat([attended.masked_fill(~real, float("-inf")).amax(2), mean], 2).flatten(1)


class SingleAttention(Pooling):
    """khan2021 as its text says: one attention over the posts' features as they are, pooled by maximum."""

    xavier = True

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        self.dim = settings.attention
        self.dropout = nn.Dropout(settings.dropout)
        self.query = nn.Linear(width, settings.attention)
        self.key = nn.Linear(width, settings.attention)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, A)."""
        attended = attention(pad_posts(self.dropout(posts), mask), mask, self.query, self.key, 1)
        return attended.masked_fill(~mask[:, None, :, None], float("-inf")).amax(2).flatten(1)


def attention(posts: Tensor, mask: Tensor, query: nn.Linear, key: nn.Linear, layers: int) -> Tensor:
    """(B, M, W) -> (B, layers, M, A): unscaled dot-product attention of real posts, the value being the key."""
    asked, keys = (
        linear(posts).view(*mask.shape, layers, -1).transpose(1, 2) for linear in (query, key)
    )
    scores = (asked @ keys.transpose(2, 3)).masked_fill(~mask[:, None, None, :], float("-inf"))
    return scores.softmax(-1) @ keys


class IURPooling(Pooling):
    """IUR, the model that khan2021 compares itself with (Andrews & Bishop 2019), in the shape its authors released.

    Posts projected to A entries, a Transformer layer and a second attention; the means of both attentions' outputs.
    Trained with the angular-margin loss ("arcface", scale 64, margin 0.4) on samples of exactly 16 posts, so it knows
    no other size: shorter samples are filled up, and of longer ones the vectors of contiguous groups of 16 are averaged
    (khan2021 section 4.3), which :class:`~helpers.encoders.chunk_mean.ChunkMean` does. Raises ValueError where A is no
    multiple of the 4 heads, or a sample has more than 16 posts.
    """

    group = IUR_POSTS

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        size = settings.attention
        if size % IUR_HEADS:
            raise ValueError(
                f"IUR has {IUR_HEADS} heads: attention must be a multiple of {IUR_HEADS}, not {size}"
            )
        self.dim = 2 * size
        self.post = nn.Linear(width, size)
        self.dropout = nn.Dropout(settings.dropout)
        self.first, self.second = (
            nn.MultiheadAttention(size, IUR_HEADS, batch_first=True) for _ in range(2)
        )
        self.between = nn.Sequential(nn.Linear(size, 256), nn.ReLU(), nn.Linear(256, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size, eps=1e-6) for _ in range(2))

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M <= 16) -> (B, 2 A)."""
        if mask.shape[1] > IUR_POSTS:
            raise ValueError(f"IUR reads {IUR_POSTS} posts, not {mask.shape[1]}")
        # an absent post is a zero vector that takes part like any other: the model was made for 16 and masks nothing
        posts = nnf.pad(pad_posts(self.post(posts), mask), (0, 0, 0, IUR_POSTS - mask.shape[1]))
        posts = self.dropout(posts * math.sqrt(posts.shape[2]))
        first, _ = self.first(posts, posts, posts, need_weights=False)
        posts = self.norms[0](posts + self.dropout(first))
        posts = self.norms[1](posts + self.dropout(self.between(posts)))
        second, _ = self.second(posts, posts, posts, need_weights=False)
        return torch.cat([first.mean(1), second.mean(1)], 1)


class LUARPooling(Pooling):
    """LUAR's (Rivera-Soto et al., EMNLP 2021, section 3): each post attends to its sample's posts, then the maximum.

    The attention is scaled dot products of the vectors themselves, without parameters.
    """

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, W)."""
        full = pad_posts(posts, mask)
        scores = full @ full.transpose(1, 2) / math.sqrt(self.dim)
        attended = scores.masked_fill(~mask[:, None, :], float("-inf")).softmax(-1) @ full
        return attended.masked_fill(~mask[..., None], float("-inf")).amax(1)


class MeanPooling(Pooling):
    """The mean over real posts, nothing learned: also that of a document, which is a stream of length one."""

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, W)."""
        return pad_posts(posts, mask).sum(1) / mask.sum(1, keepdim=True)


POOLINGS: dict[str, type[Pooling]] = {
    "khan2021": ParallelAttention, "khan2021_text": SingleAttention, "iur": IURPooling,
    "luar": LUARPooling, "mean": MeanPooling}  # fmt: skip
