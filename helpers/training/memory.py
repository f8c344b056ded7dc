"""The memory that mixed precision saves in a training step (khan2021 Appendix B)."""

import torch
from torch import nn

from ..losses.inspection import kept_storages
from ..tokens.batch import Batch


def activation_bytes(encoder: nn.Module, batch: Batch, mixed: bool = False) -> int:
    """Return the bytes that an encoder keeps of a batch for the backward pass, on any device.

    Parameters
    ----------
    encoder : an encoder; its weights are not counted, but the copies of them that mixed precision
        keeps are
    batch : B samples
    mixed : whether it computes in bfloat16 where this loses little, as a training with the
        precision "bf16" does
    """
    device = next(encoder.parameters()).device
    with (
        torch.autocast(device.type, torch.bfloat16, enabled=mixed),
        kept_storages() as storage_bytes,
    ):
        encoder(batch.to(device))
    for weights in encoder.parameters():
        storage_bytes.pop(weights.untyped_storage().data_ptr(), None)
    return sum(storage_bytes.values())
