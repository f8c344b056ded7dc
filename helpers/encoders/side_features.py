"""Features of a post beside its text: its time (the P of khan2021's TPS) and its topic (the S).

The paper's time feature is the hour of day only. Its section 5 asks for a continuous-time encoder
that sees the gaps between posts. "continuous" is one: it is built of waves, so that near times have
near vectors and nothing is cut into bins. Every feature is a module that maps a batch to
(N, ``dim``), a row for each of the N real posts in order.
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
