"""Weights small enough to ship: tables in eight bits a value with a scale a row."""

import torch
from torch import Tensor

LEAST = (
    2**18
)  # values; smaller tensors stay as they are: together they are little, and whitening needs its digits
SCALE = ".scale"  # the name of a table's scales


def quantise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tables as int8 and float32 scales, one a row, so that the largest value of a row is 127; the rest as it is."""
    packed = dict(tensors)
    for name, value in tensors.items():
        if value.dim() > 1 and value.is_floating_point() and value.numel() >= LEAST:
            rows = value.float().flatten(1)
            scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
            packed[name] = (rows / scale).round().to(torch.int8).view(value.shape)
            packed[name + SCALE] = scale[:, 0]
    return packed


def restore(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors again, float32."""
    tensors = {name: value for name, value in packed.items() if not name.endswith(SCALE)}
    for name in [name for name in tensors if name + SCALE in packed]:
        tensors[name] = (tensors[name].float().flatten(1) * packed[name + SCALE][:, None]).view(
            tensors[name].shape
        )
    return tensors
