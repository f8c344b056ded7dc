"""When an account posts: the profile of its hours, nothing of the text."""

import math

import torch
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.encoders.side_features import HOURS
from helpers.tokens.batch import Batch


class HourProfile(Encoder):
    """Mean cosines and sines of 1, 2 ... turns a day over a sample's posts; the steadier the hours the longer.

    Sixteen posts say when a day begins and ends; a share for each of 24 hours would be mostly noise. Its rows have no
    unit length, which is part of what they say: compare them through :class:`~helpers.encoders.wccn.WCCN`.
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
