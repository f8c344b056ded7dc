"""Measurements for notebook 04: which pairs a loss pulls together or pushes apart, and its cost."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import pandas as pd
import torch
from torch import Tensor, nn

from ..tokens.batch import Batch
from . import make_loss
from .pairwise import pair_masks

EXTRA_LENGTH = 1e-5  # coordinate of a unit vector on its extra axis; small, to leave cosines as is
SMALLEST_GRADIENT = 1e-9  # a smaller derivative is an error of rounding


def pair_gradients(loss: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """Differentiate a loss by the cosine of each pair of its points.

    The gradient at a point is a sum over pairs, from which the share of one pair cannot be told.
    So each point gets an extra axis of its own: the gradient at point i along the axis of point j
    comes from the pair (i, j) only.

    Parameters
    ----------
    loss : function from points (N, D) to a scalar, which may not depend on the points' lengths
    points : (N, D), N points of D coordinates

    Returns
    -------
    (N, N) float64, symmetric, with a diagonal of 0. Where it is negative the loss pulls the pair
    together, where it is positive it pushes the pair apart
    """
    unit = nn.functional.normalize(points.detach().double(), dim=1)
    extra_axes = EXTRA_LENGTH * torch.eye(len(points), dtype=torch.float64)
    lifted = torch.cat([unit, extra_axes], 1).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(lifted), lifted)
    # The gradient at i is the sum over j of derivative (i, j) times point j, less its component
    # along point i, divided by the squared length of the lifted points, 1 + EXTRA_LENGTH^2. On the
    # axis of point j only point j has a coordinate, EXTRA_LENGTH.
    by_pair = gradient[:, points.shape[1] :].fill_diagonal_(0)
    return by_pair * (1 + EXTRA_LENGTH**2) / EXTRA_LENGTH


def acting_shares(losses: Iterable[str], embeddings: Tensor, authors: Tensor) -> pd.DataFrame:
    """Measure on which share of the pairs of a batch each loss acts, that is, has a gradient.

    Parameters
    ----------
    losses : names of losses without parameters, at their default settings
    embeddings : (B, D), B samples of D coordinates
    authors : (B,), the author of each sample

    Returns
    -------
    A row for each loss, columns ``same-author pairs`` and ``pairs of strangers``, from 0 to 1
    """
    same, strangers = pair_masks(authors)
    shares = {}
    for name in losses:
        loss = partial(make_loss(name), labels=authors)
        acts = (pair_gradients(loss, embeddings).abs() > SMALLEST_GRADIENT).double()
        shares[name] = {
            "same-author pairs": acts[same].mean().item(),
            "pairs of strangers": acts[strangers].mean().item(),
        }
    return pd.DataFrame(shares).T


@contextmanager
def kept_storages() -> Iterator[dict[int, int]]:
    """Note the bytes of every storage that is kept for a backward pass, by its address.

    Several views of one storage count once. Parameters are kept, too, where a gradient needs them.
    """
    storage_bytes = {}
    with torch.autograd.graph.saved_tensors_hooks(partial(_note, storage_bytes), _unchanged):
        yield storage_bytes


def step_cost(
    loss: Callable[..., Tensor], batch: int, dim: int, classes: int, repeats: int = 3
) -> dict[str, float]:
    """Measure one step of a loss on random embeddings, without the encoder.

    Parameters
    ----------
    loss : function from embeddings (B, D) and labels (B,) to a scalar
    batch : B, the number of samples, an even number
    dim : D, the size of embeddings
    classes : number of authors from whom the samples are chosen at random
    repeats : number of steps that are timed, after one that is not

    Returns
    -------
    ``seconds``: time of the fastest step (loss, gradients and AdamW); ``kept_bytes``: memory that
    the forward pass fills and keeps for the backward pass; ``parameter_bytes``: memory of the
    loss's parameters, their gradients and the two averages of AdamW, 0 without parameters
    """
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(batch, dim, generator=generator).requires_grad_()
    # at least two samples of each author that occurs
    labels = torch.randint(classes, (batch // 2,), generator=generator).repeat(2)
    weights = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    optimizer = torch.optim.AdamW([embeddings, *weights], fused=True)

    seconds = []
    for _ in range(repeats + 1):
        optimizer.zero_grad()
        began = time.perf_counter()
        with kept_storages() as storage_bytes:
            value = loss(embeddings, labels)
        value.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)

    for tensor in (embeddings, *weights):  # not made by the forward pass
        storage_bytes.pop(tensor.untyped_storage().data_ptr(), None)
    return {
        "seconds": min(seconds[1:]),  # the first step is slower, as it makes AdamW's averages
        "kept_bytes": sum(storage_bytes.values()),
        # a weight, its gradient and the two averages of AdamW are equally large
        "parameter_bytes": 4 * sum(weight.nbytes for weight in weights),
    }


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


def _note(storage_bytes: dict[int, int], tensor: Tensor) -> Tensor:
    # called for each tensor that is kept for the backward pass; notes the size of its storage
    storage = tensor.untyped_storage()
    storage_bytes[storage.data_ptr()] = storage.nbytes()
    return tensor


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor
