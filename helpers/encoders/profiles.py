"""The hours at which an account posts: a profile, and nothing of the text."""

import math

import torch
from torch import Tensor

from ..tokens.batch import Batch
from .base import Encoder
from .side_features import HOURS


class HourProfile(Encoder):
    """Average the hours of a sample's posts as cosines and sines of waves of 1, 2, ... turns a day.

    Sixteen posts show when an author's day begins and ends; the shares of 24 single hours would be
    mostly noise. The more regular the hours, the longer the row. The length is part of the
    information, so compare rows through :class:`~helpers.encoders.wccn.WCCN`.

    Parameters
    ----------
    turns : int
        number of waves; wave k turns k times a day, and gives a cosine and a sine
    """

    unit = False

    def __init__(self, turns: int = 2):
        super().__init__()
        self.turns = turns
        self.dim = 2 * turns

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, 2 * turns) rows of a batch of B samples, not of unit length."""
        turns = torch.arange(1, self.turns + 1, device=batch.hours.device)
        angles = batch.hours[..., None] * turns * (2 * math.pi / HOURS)
        waves = torch.cat([angles.cos(), angles.sin()], 2) * batch.mask[..., None]
        return waves.sum(1) / batch.mask.sum(1, keepdim=True)
