"""The poolings by name: ways in which the posts of a sample become one vector.

An absent post takes part in nothing. Letters: N real posts of a batch, B samples, M posts a sample,
W entries of a post's vector, A attention outputs.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

IUR_POSTS = 16
IUR_HEADS = 4


def pad_posts(posts: Tensor, mask: Tensor) -> Tensor:
    """Return real posts in their places, (B, M, W), zero where there is no post.

    Parameters
    ----------
    posts : (N, W)
        vectors of the real posts
    mask : (B, M) bool
        true for the N real posts
    """
    padded = posts.new_zeros(*mask.shape, posts.shape[1])
    padded[mask] = posts
    return padded


class Pooling(nn.Module):
    """Map ``(posts (N, W), mask (B, M))`` to (B, ``dim``).

    Parameters
    ----------
    width : int
        W
    settings : StreamConfig
        of :mod:`helpers.encoders.stream`

    Attributes
    ----------
    dim : int
        entries of a pooled sample
    xavier : bool
        whether its weights and those of the projection are drawn by Xavier's rule
    group : int or None
        posts of a group, where the vectors of groups are averaged
    """

    xavier = False
    group: int | None = None

    def __init__(self, width: int, settings):
        super().__init__()
        self.dim = width


class ParallelAttention(Pooling):
    """Pool by parallel attentions (khan2021 section 2.1, Figure 2), as released.

    Posts are projected to A entries. Each of ``layers`` attentions is an unscaled dot product whose
    value is its key; of each the maximum and the mean over real posts are taken.
    """

    xavier = True  # the attention is unscaled: its scale at the start matters

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        self.layers = settings.layers
        outputs = settings.layers * settings.attention
        self.dim = 2 * outputs
        self.post = nn.Linear(width, settings.attention)
        self.dropout = nn.Dropout(settings.dropout)
        self.query = nn.Linear(settings.attention, outputs)
        self.key = nn.Linear(settings.attention, outputs)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """Return pooled samples, (B, 2 * layers * A).

        Parameters
        ----------
        posts : (N, W)
            vectors of the real posts
        mask : (B, M) bool
            true for the real posts
        """
        posts = pad_posts(self.dropout(self.post(posts)), mask)
        attended = attention(posts, mask, self.query, self.key, self.layers)
        real = mask[:, None, :, None]
        highest = attended.masked_fill(~real, float("-inf")).amax(2)
        mean = (attended * real).sum(2) / real.sum(2)
        return torch.cat([highest, mean], 2).flatten(1)


class SingleAttention(Pooling):
    """Pool as khan2021's text says: the maximum of one attention over the posts as they are."""

    xavier = True

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        self.dim = settings.attention
        self.dropout = nn.Dropout(settings.dropout)
        self.query = nn.Linear(width, settings.attention)
        self.key = nn.Linear(width, settings.attention)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """Return pooled samples, (B, A).

        Parameters
        ----------
        posts : (N, W)
            vectors of the real posts
        mask : (B, M) bool
            true for the real posts
        """
        posts = pad_posts(self.dropout(posts), mask)
        attended = attention(posts, mask, self.query, self.key, layers=1)
        return attended.masked_fill(~mask[:, None, :, None], float("-inf")).amax(2).flatten(1)


def attention(posts: Tensor, mask: Tensor, query: nn.Linear, key: nn.Linear, layers: int) -> Tensor:
    """Attend to real posts by unscaled dot products, the value being the key.

    Parameters
    ----------
    posts : (B, M, W)
        vectors of posts in their places
    mask : (B, M) bool
        true for real posts
    query, key : Linear
        W -> layers * A
    layers : int
        attentions side by side

    Returns
    -------
    (B, layers, M, A)
    """
    shape = (*mask.shape, layers, -1)
    queries = query(posts).view(shape).transpose(1, 2)
    keys = key(posts).view(shape).transpose(1, 2)
    scores = queries @ keys.transpose(2, 3)
    scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
    return scores.softmax(-1) @ keys


class IURPooling(Pooling):
    """Pool as IUR (Andrews & Bishop 2019), with which khan2021 compares itself, as released.

    Posts are projected to A entries, and pass a Transformer layer and a second attention; the means
    of both attentions' outputs are taken. IUR is trained with the angular-margin loss ("arcface",
    scale 64, margin 0.4) on samples of exactly 16 posts, so it knows no other size: shorter samples
    are filled up. Of longer ones the vectors of contiguous groups of 16 are averaged (khan2021
    section 4.3), which :class:`~helpers.encoders.chunk_mean.ChunkMean` does.

    Raises
    ------
    ValueError
        Where A is no multiple of the 4 heads.
    """

    group = IUR_POSTS

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        size = settings.attention
        if size % IUR_HEADS:
            raise ValueError(
                f"IUR has {IUR_HEADS} heads: attention must be a multiple of {IUR_HEADS}, "
                f"not {size}"
            )
        self.dim = 2 * size
        self.post = nn.Linear(width, size)
        self.dropout = nn.Dropout(settings.dropout)
        self.first = nn.MultiheadAttention(size, IUR_HEADS, batch_first=True)
        self.second = nn.MultiheadAttention(size, IUR_HEADS, batch_first=True)
        self.between = nn.Sequential(nn.Linear(size, 256), nn.ReLU(), nn.Linear(256, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size, eps=1e-6) for _ in range(2))

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """Return pooled samples, (B, 2 A).

        Parameters
        ----------
        posts : (N, W)
            vectors of the real posts
        mask : (B, M <= 16) bool
            true for the real posts
        """
        # an absent post is a zero vector that takes part like any other: the model was made for 16
        # posts and masks nothing
        posts = nnf.pad(pad_posts(self.post(posts), mask), (0, 0, 0, IUR_POSTS - mask.shape[1]))
        posts = self.dropout(posts * math.sqrt(posts.shape[2]))
        first, _ = self.first(posts, posts, posts, need_weights=False)
        posts = self.norms[0](posts + self.dropout(first))
        posts = self.norms[1](posts + self.dropout(self.between(posts)))
        second, _ = self.second(posts, posts, posts, need_weights=False)
        return torch.cat([first.mean(1), second.mean(1)], 1)


class LUARPooling(Pooling):
    """Pool as LUAR (Rivera-Soto et al., EMNLP 2021, section 3).

    Each post attends to its sample's posts by scaled dot products of the vectors themselves,
    without parameters; then the maximum over posts is taken.
    """

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """Return pooled samples, (B, W).

        Parameters
        ----------
        posts : (N, W)
            vectors of the real posts
        mask : (B, M) bool
            true for the real posts
        """
        padded = pad_posts(posts, mask)
        scores = padded @ padded.transpose(1, 2) / math.sqrt(self.dim)
        attended = scores.masked_fill(~mask[:, None, :], float("-inf")).softmax(-1) @ padded
        return attended.masked_fill(~mask[..., None], float("-inf")).amax(1)


class MeanPooling(Pooling):
    """Average real posts, nothing learned: also for a document, which is a stream of length one."""

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """Return pooled samples, (B, W).

        Parameters
        ----------
        posts : (N, W)
            vectors of the real posts
        mask : (B, M) bool
            true for the real posts
        """
        return pad_posts(posts, mask).sum(1) / mask.sum(1, keepdim=True)


POOLINGS: dict[str, type[Pooling]] = {
    "khan2021": ParallelAttention,
    "khan2021_text": SingleAttention,
    "iur": IURPooling,
    "luar": LUARPooling,
    "mean": MeanPooling,
}
