"""Make weights small enough to ship: large tables get eight bits per value, one scale per row."""

import torch
from torch import Tensor

# Smaller tensors stay as they are: they need little space, and whitening matrices, which are among
# them, need full precision.
MIN_QUANTISED_VALUES = 2**18
SCALE = ".scale"  # "<table>.scale" is the name of a table's scales


def quantise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Turn large tables into int8, with one scale per row by which its largest value becomes 127.

    Tensors that are one-dimensional, not of floats or smaller than MIN_QUANTISED_VALUES stay as
    they are.

    Parameters
    ----------
    tensors : dict
        name -> tensor

    Returns
    -------
    The same names, and "<name>.scale" for each table that was turned into int8.
    """
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
    """Return the tensors that :func:`quantise` has packed: int8 tables become float32 again."""
    tensors = {}
    for name, value in packed.items():
        if name.endswith(SCALE):
            continue
        tensors[name] = value
        if name + SCALE in packed:
            rows = value.float().flatten(1) * packed[name + SCALE][:, None]
            tensors[name] = rows.view(value.shape)
    return tensors
