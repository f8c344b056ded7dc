"""Parts of a stream encoder by name: features of a post beside its text, and poolings of posts.

The features are a post's time (the P of khan2021's TPS) and its topic (the S). The paper's time
feature is the hour of day only. Its section 5 asks for a continuous-time encoder that sees the gaps
between posts. "continuous" is one: it is built of waves, so that near times have near vectors and
nothing is cut into bins. Every feature is a module that maps a batch to (N, ``dim``), a row for
each of the N real posts in order. A pooling makes one vector of the posts of a sample.

Padding changes no result. Letters: N real posts of a batch, B samples, M posts a sample, W entries
of a post's vector, A outputs of an attention.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from ..tokens.batch import Batch

FEATURES = ("T", "TP", "TPS")  # text; text and time; text, time and topic
HOURS = 24
DAY = 86_400  # seconds
WEEK = 7 * DAY
MONDAY = 4 * DAY  # 1970-01-01 was a Thursday
HOUR_DIM = 256  # not printed in khan2021; with 256 the parameter counts are those of its Table 6
MAX_LOG_GAP = math.log1p(365 * DAY)  # gaps beyond a year are treated alike
GAP_WAVES = 4  # number of waves that encode a gap
IUR_POSTS = 16  # size of every sample on which IUR is trained
IUR_HEADS = 4  # heads of each of its attentions


class HourOneHot(nn.Module):
    """Encode the hour of a post (UTC) as one of 24, as released."""

    dim = HOURS

    def forward(self, batch: Batch) -> Tensor:
        """Return (N, 24)."""
        return nnf.one_hot(batch.hours[batch.mask], HOURS).float()


class HourEmbedding(nn.Module):
    """Learn a vector for each hour of the day (UTC).

    With it the parameter counts agree with khan2021 Table 6 (44.0, 44.1 and 45.5 million).
    """

    dim = HOUR_DIM

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(HOURS, HOUR_DIM)
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)

    def forward(self, batch: Batch) -> Tensor:
        """Return (N, 256)."""
        return self.embedding(batch.hours[batch.mask])


class ContinuousTime(nn.Module):
    """Encode the time of day, the time of week and the gap to the post before as waves.

    Day and week have waves of 1 and 2 turns, the logarithm of the gap waves of 1 to GAP_WAVES half
    turns. The first post of a sample has no gap: the entries of the gap are zero. A negative gap
    counts as 0.
    """

    # (day, week) x (1, 2 turns) x (cosine, sine), and for each wave of the gap cosine and sine
    dim = 2 * 2 * 2 + 2 * GAP_WAVES

    def forward(self, batch: Batch) -> Tensor:
        """Return (N, 16)."""
        day = (batch.times % DAY).double() / DAY
        week = ((batch.times - MONDAY) % WEEK).double() / WEEK
        turns = torch.stack([day, 2 * day, week, 2 * week], 2) * (2 * math.pi)

        gap = (batch.times[:, 1:] - batch.times[:, :-1]).clamp(min=0)
        log_gap = (gap.double().log1p() / MAX_LOG_GAP).clamp(max=1)
        waves = torch.arange(1, GAP_WAVES + 1, device=gap.device)
        half_turns = log_gap[..., None] * waves * math.pi
        gaps = nnf.pad(torch.cat([half_turns.cos(), half_turns.sin()], 2), (0, 0, 1, 0))

        return torch.cat([turns.cos(), turns.sin(), gaps], 2).float()[batch.mask]


class TopicEmbedding(nn.Module):
    """Learn a vector for each row of the topic list; the last row is "other".

    If the list holds every training topic, "other" occurs in no training post, and its row would
    keep its random first values; ``dropout`` trains it.

    Parameters
    ----------
    topics : int
        rows of the list (paper: 2049); a topic beyond them is "other", too
    dim : int
        size of the vectors
    dropout : float
        share of posts whose topic is replaced by "other" in training (paper: none)
    """

    def __init__(self, topics: int, dim: int, dropout: float = 0.0):
        super().__init__()
        self.dim = dim
        self.dropout = dropout
        self.embedding = nn.Embedding(topics, dim)
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)

    def forward(self, batch: Batch) -> Tensor:
        """Return (N, dim)."""
        last_row = self.embedding.num_embeddings - 1  # "other"
        topics = batch.topics[batch.mask].clamp(max=last_row)
        if self.training and self.dropout:
            hidden = torch.rand(topics.shape, device=topics.device) < self.dropout
            topics = topics.masked_fill(hidden, last_row)
        return self.embedding(topics)


TIMES = {"hour": HourOneHot, "learned": HourEmbedding, "continuous": ContinuousTime}


def pad_posts(posts: Tensor, mask: Tensor) -> Tensor:
    """Return real posts in their places, (B, M, W), with zeros where there is no post.

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
        settings of the stream encoder, of which ``attention``, ``layers`` and ``dropout`` are read

    Attributes
    ----------
    dim : int
        entries of a pooled sample
    xavier : bool
        whether its weights and those of the projection are initialised by Xavier's rule
    group : int or None
        most posts that it can pool; larger samples are cut into such groups, whose vectors are
        averaged; None for any number
    """

    xavier = False
    group: int | None = None

    def __init__(self, width: int, settings):
        super().__init__()
        self.dim = width


class ParallelAttention(Pooling):
    """Pool by parallel attentions (khan2021 section 2.1, Figure 2), as released.

    Posts are projected to A entries. Each of the ``layers`` attentions scores by unscaled dot
    products and takes its keys as values. Its maximum and its mean over the real posts are
    returned.
    """

    xavier = True  # the attention is unscaled, so the scale of its first weights matters

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        outputs = settings.layers * settings.attention
        self.dim = 2 * outputs
        self.layers = settings.layers
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
        shape = (*mask.shape, self.layers, -1)
        queries = self.query(posts).view(shape).transpose(1, 2)
        keys = self.key(posts).view(shape).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        attended = scores.softmax(-1) @ keys  # (B, layers, M, A)
        real = mask[:, None, :, None]
        highest = attended.masked_fill(~real, float("-inf")).amax(2)
        mean = (attended * real).sum(2) / real.sum(2)
        return torch.cat([highest, mean], 2).flatten(1)


class SingleAttention(ParallelAttention):
    """Pool by the maximum of one attention over unprojected posts, as khan2021's text says."""

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        self.dim = settings.attention
        self.layers = 1
        self.post = nn.Identity()
        self.query = nn.Linear(width, self.dim)
        self.key = nn.Linear(width, self.dim)

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """Return pooled samples, (B, A).

        Parameters
        ----------
        posts : (N, W)
            vectors of the real posts
        mask : (B, M) bool
            true for the real posts
        """
        return super().forward(posts, mask)[:, : self.dim]


class IURPooling(Pooling):
    """Pool as IUR (Andrews & Bishop 2019), with which khan2021 compares itself, as released.

    Posts are projected to A entries, and pass a Transformer layer and a second attention. The means
    of both attentions' outputs over the posts are returned. IUR is trained with the angular-margin
    loss ("arcface", scale 64, margin 0.4) on samples of exactly 16 posts. Shorter samples are
    filled up with zero vectors. Longer ones are cut into contiguous groups of 16, whose vectors
    :class:`~helpers.encoders.base.ChunkMean` averages (khan2021 section 4.3).
    A must be a multiple of the 4 heads.
    """

    group = IUR_POSTS

    def __init__(self, width: int, settings):
        super().__init__(width, settings)
        size = settings.attention
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
    """Average the real posts, without parameters; a document is a sample of one post."""

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
