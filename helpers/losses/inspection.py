"""Measurements for notebook 04: which pairs a loss pulls together or pushes apart, and its cost."""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from ..tokens.batch import Batch

EXTRA_LENGTH = 1e-5  # coordinate of a unit vector on its extra axis; small, to leave cosines as is


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
        loss(embeddings, labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    return {
        "seconds": min(seconds[1:]),  # the first step is slower, as it makes AdamW's averages
        "kept_bytes": _kept_bytes(partial(loss, embeddings, labels), [embeddings, *weights]),
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
    weights = list(encoder.parameters())
    device = weights[0].device
    with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
        return _kept_bytes(partial(encoder, batch.to(device)), weights)


def _kept_bytes(forward, given):
    """Call a function; return the bytes of all but ``given`` kept for the backward pass.

    Several views of one storage count once.
    """
    bytes_of_storage = {}
    note = partial(_note, bytes_of_storage)
    with torch.autograd.graph.saved_tensors_hooks(note, nn.Identity()):
        forward()
    for tensor in given:
        bytes_of_storage.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(bytes_of_storage.values())


def _note(bytes_of_storage, tensor):
    # called for each tensor that is kept for the backward pass
    storage = tensor.untyped_storage()
    bytes_of_storage[storage.data_ptr()] = storage.nbytes()
    return tensor
