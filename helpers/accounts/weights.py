"""Weights small enough to ship: tables in eight bits a value with a scale a row, in safetensors, beside a JSON."""

from pathlib import Path

import torch
from torch import Tensor

from helpers.runs.artifacts import read_json, write_json
from helpers.training import checkpoints

LEAST = 2**18  # values; smaller tensors stay as they are: together they are little, and whitening needs its digits
SCALE = ".scale"  # the name of a table's scales


def quantised(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tables as int8 and float32 scales, one a row, so that the largest value of a row is 127; the rest as it is."""
    packed = {}
    for name, value in tensors.items():
        if value.dim() > 1 and value.is_floating_point() and value.numel() >= LEAST:
            rows = value.float().flatten(1)
            scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
            packed[name] = (rows / scale).round().to(torch.int8).view(value.shape)
            packed[name + SCALE] = scale[:, 0]
        else:
            packed[name] = value
    return packed


def restored(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors again, float32."""
    tensors = {name: value for name, value in packed.items() if not name.endswith(SCALE)}
    for name, value in tensors.items():
        if name + SCALE in packed:
            scale = packed[name + SCALE]
            tensors[name] = value.float() * scale.view(-1, *[1] * (value.dim() - 1))
    return tensors


def write(folder: Path, tensors: dict[str, Tensor], about: dict) -> None:
    """``weights.safetensors`` and ``model.json`` in a folder, each with its checksum."""
    checkpoints.save(folder / "weights.safetensors", quantised(tensors), {})
    write_json(folder / "model.json", about)


def read(folder: Path) -> tuple[dict[str, Tensor], dict]:
    """What :func:`write` wrote. Raises ValueError where a file is missing or damaged."""
    packed, _ = checkpoints.read(folder / "weights.safetensors")
    return restored(packed), read_json(folder / "model.json")
