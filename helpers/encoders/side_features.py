"""What a post tells beside its text: its time (the P of khan2021's TPS) and its topic (the S).

The paper's features know the hour of day only. Its section 5 asks for a continuous-time encoder that sees the gaps
between posts; "continuous" is one, built of waves, so that near times have near vectors and nothing is cut into bins.
Every feature is a module: Batch -> (N, ``dim``), the N real posts of the batch in order.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.tokens.batch import Batch

FEATURES = {"T": (), "TP": ("time",), "TPS": ("time", "topic")}  # beside the text
HOURS = 24
DAY, WEEK = 86_400, 7 * 86_400
MONDAY = 4 * DAY  # 1970-01-01 was a Thursday
LEARNED = 256  # the only natural width with which the counts of Table 6 come out as printed
LONGEST_GAP = math.log1p(365 * DAY)  # longer gaps are told apart no more
GAP_WAVES = 4


class HourOneHot(nn.Module):
    """One of 24 hours, UTC, as released."""

    dim = HOURS

    def forward(self, batch: Batch) -> Tensor:
        """(N, 24)."""
        return nnf.one_hot(batch.hours[batch.mask], HOURS).float()


class HourEmbedding(nn.Module):
    """A learned vector for each hour: the reading that reproduces Table 6 (44.0, 44.1, 45.5 million)."""

    dim = LEARNED

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(HOURS, LEARNED)
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)

    def forward(self, batch: Batch) -> Tensor:
        """(N, 256)."""
        return self.embedding(batch.hours[batch.mask])


class ContinuousTime(nn.Module):
    """Time of day and of week as waves of 1 and 2 turns, and the logarithm of the gap to the post before.

    The first post of a sample has no gap: zeros, so that an embedding depends on its own posts only.
    """

    dim = 2 * 2 * 2 + 2 * GAP_WAVES

    def forward(self, batch: Batch) -> Tensor:
        """(N, 16)."""
        within = [
            (batch.times % DAY).double() / DAY,
            ((batch.times - MONDAY) % WEEK).double() / WEEK,
        ]
        turns = torch.stack([turn * part for part in within for turn in (1, 2)], 2) * (2 * math.pi)
        gap = (batch.times[:, 1:] - batch.times[:, :-1]).clamp(min=0).double().log1p() / LONGEST_GAP
        half_turns = (
            gap.clamp(max=1)[..., None]
            * torch.arange(1, GAP_WAVES + 1, device=gap.device)
            * math.pi
        )
        gaps = nnf.pad(torch.cat([half_turns.cos(), half_turns.sin()], 2), (0, 0, 1, 0))
        return torch.cat([turns.cos(), turns.sin(), gaps], 2).float()[batch.mask]


class TopicEmbedding(nn.Module):
    """A learned vector for each row of the topic list; the last row is "other".

    topics : rows of the list (paper: 2049); a topic beyond them is "other", too. dim : of the vectors.
    dropout : share of posts whose topic training hides behind "other" (paper: none). Where the list holds every
    training topic, "other" occurs in no training post, and its row would stay as it was drawn.
    """

    def __init__(self, topics: int, dim: int, dropout: float = 0.0):
        super().__init__()
        self.dim, self.dropout = dim, dropout
        self.embedding = nn.Embedding(topics, dim)
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)

    def forward(self, batch: Batch) -> Tensor:
        """(N, dim)."""
        topics = batch.topics[batch.mask].clamp(max=self.embedding.num_embeddings - 1)
        if self.training and self.dropout:
            hidden = torch.rand(topics.shape, device=topics.device) < self.dropout
            topics = topics.masked_fill(hidden, self.embedding.num_embeddings - 1)
        return self.embedding(topics)


TIMES = {"hour": HourOneHot, "learned": HourEmbedding, "continuous": ContinuousTime}
