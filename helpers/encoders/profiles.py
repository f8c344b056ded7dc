"""When and where an account posts, counted: encoders of hours and of topics, nothing of the text."""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.encoders.side_features import HOURS
from helpers.tokens.batch import Batch


class HourProfile(Encoder):
    """Mean cosines and sines of 1, 2 ... turns a day over a sample's posts; the steadier the hours the longer.

    Sixteen posts say when a day begins and ends; a share for each of 24 hours would be mostly noise. Its rows have no
    unit length, which is part of what they say: compare them through :class:`~helpers.encoders.whitened.Whitened`.
    """

    unit = False

    def __init__(self, turns: int = 2):
        super().__init__()
        self.turns, self.dim = turns, 2 * turns

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, 2 turns)."""
        angle = batch.hours[..., None] * torch.arange(1, self.turns + 1, device=batch.hours.device)
        angle = angle * (2 * math.pi / HOURS)
        waves = torch.cat([angle.cos(), angle.sin()], 2) * batch.mask[..., None]
        return waves.sum(1) / batch.mask.sum(1, keepdim=True)


class TopicShares(Encoder):
    """Square roots of the shares of the most frequent topics: products are Bhattacharyya coefficients.

    A sample whose topics are all unknown ("other") is a zero row: to have strayed into unknown topics is no trait of
    an author that training could have weighed.

    topics : rows of the topic list, the last one for "other". dim : topics told apart at most, the most frequent ones.
    """

    def __init__(self, topics: int, dim: int = 256):
        super().__init__()
        self.dim = min(topics - 1, dim)

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, dim), unit length or zero."""
        known = batch.mask & (batch.topics < self.dim)
        count = torch.zeros(len(batch), self.dim, device=batch.topics.device)
        count.scatter_add_(1, batch.topics.clamp(max=self.dim - 1), known.float())
        return nnf.normalize(count.sqrt(), dim=1)
