"""Weights small enough to ship: tables in eight bits a value with a scale a row."""

import torch
from torch import Tensor

# of a table; smaller tensors stay as they are: they are little, and whitening needs its digits
MIN_QUANTISED_VALUES = 2**18
SCALE = ".scale"  # the ending of the name of a table's scales


def quantise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Turn tables into int8 with a scale a row; the largest value of a row is 127."""
    packed = dict(tensors)
    for name, table in tensors.items():
        if table.dim() < 2 or not table.is_floating_point() or table.numel() < MIN_QUANTISED_VALUES:
            continue
        rows = table.float().flatten(1)
        scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
        packed[name] = (rows / scale).round().to(torch.int8).view(table.shape)
        packed[name + SCALE] = scale[:, 0]
    return packed


def restore(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors that :func:`quantise` has packed, float32."""
    tensors = {}
    for name, value in packed.items():
        if name.endswith(SCALE):
            continue
        tensors[name] = value
        if name + SCALE in packed:
            rows = value.float().flatten(1) * packed[name + SCALE][:, None]
            tensors[name] = rows.view(value.shape)
    return tensors
