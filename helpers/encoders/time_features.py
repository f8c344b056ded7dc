"""How an encoder reads the time of a post (the P of khan2021): a batch -> one vector per post.

The paper's features know the hour of day only. Its section 5 asks for a continuous-time encoder that sees the gaps
between posts; "continuous" is one, built of waves, so that near times have near vectors and nothing is cut into bins.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.encoders.lsa import HOURS
from helpers.tokens.batch import Batch

DAY, WEEK = 86_400, 7 * 86_400
LEARNED = 256  # the only natural width with which the counts of Table 6 come out as printed
LONGEST = math.log1p(365 * DAY)  # of a gap; longer ones are told apart no more
GAP_WAVES = 4
MONDAY = 4 * DAY  # 1970-01-01 was a Thursday


class Hour(nn.Module):
    """One of 24, UTC, as released."""

    width = HOURS

    def forward(self, batch: Batch) -> Tensor:
        """(B, M, 24)."""
        return nnf.one_hot(batch.hours, HOURS).float()


class Learned(nn.Module):
    """A learned vector for each hour: the reading that reproduces Table 6 (44.0, 44.1, 45.5 million)."""

    width = LEARNED

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(HOURS, LEARNED)
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)

    def forward(self, batch: Batch) -> Tensor:
        """(B, M, 256)."""
        return self.embedding(batch.hours)


class Continuous(nn.Module):
    """Time of day and of week as waves of 1 and 2 turns, and the logarithm of the gap to the post before.

    The first post of a sample has no gap: zeros, so that an embedding depends on its own posts only.
    """

    width = 2 * 2 * 2 + 2 * GAP_WAVES

    def forward(self, batch: Batch) -> Tensor:
        """(B, M, 16)."""
        within = [(batch.times % DAY).double() / DAY, ((batch.times - MONDAY) % WEEK).double() / WEEK]
        turns = torch.stack([turn * part for part in within for turn in (1, 2)], 2) * (2 * math.pi)
        gap = (batch.times[:, 1:] - batch.times[:, :-1]).clamp(min=0).double().log1p() / LONGEST
        half_turns = gap.clamp(max=1)[..., None] * torch.arange(1, GAP_WAVES + 1, device=gap.device) * math.pi
        gaps = torch.cat([half_turns.cos(), half_turns.sin()], 2)
        return torch.cat([turns.cos(), turns.sin(), nnf.pad(gaps, (0, 0, 1, 0))], 2).float()


CLOCKS = {"hour": Hour, "learned": Learned, "continuous": Continuous}


def make(name: str) -> nn.Module:
    """The named clock, with its ``width``. Raises ValueError for an unknown one."""
    if name not in CLOCKS:
        raise ValueError(f"clock {name!r}: one of {', '.join(CLOCKS)}")
    return CLOCKS[name]()
