"""Instruments of notebook 04: which pairs a loss pulls together or pushes apart, and its cost."""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

EXTRA_LENGTH = 1e-5  # of the extra axis of each point, beside 1


def pair_gradients(loss: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """Differentiate a loss by the cosine of each pair of its points.

    In a plane the gradient at a point does not tell which pairs it comes from; here each point gets
    a short axis of its own, on which only its pairs can be seen.

    Parameters
    ----------
    loss : points (N, D) -> scalar, the same for points of any length
    points : (N, D)

    Returns
    -------
    (N, N) float64, symmetric, with a diagonal of 0; below 0 the loss pulls the pair together
    """
    unit = nn.functional.normalize(points.detach().double(), dim=1)
    extra_axes = EXTRA_LENGTH * torch.eye(len(points), dtype=torch.float64)
    lifted = torch.cat([unit, extra_axes], 1).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(lifted), lifted)
    # gradient at i: sum over j of derivative * point j, less what lies along point i; the square is
    # the lifted length
    by_pair = gradient[:, points.shape[1] :].fill_diagonal_(0)
    return by_pair * (1 + EXTRA_LENGTH**2) / EXTRA_LENGTH


def step_cost(
    loss: Callable[..., Tensor], batch: int, dim: int, classes: int, repeats: int = 3
) -> dict[str, float]:
    """Measure one step of a loss on random embeddings, without the encoder.

    Parameters
    ----------
    loss : (embeddings (B, D), labels (B,)) -> scalar
    batch : B
    dim : D
    classes : number of authors
    repeats : steps that are timed

    Returns
    -------
    ``seconds`` of the fastest step (loss, gradients and AdamW); ``kept_bytes``, what the forward
    pass makes and keeps for the backward pass; ``parameter_bytes``, the loss's parameters, their
    gradients and the two averages of AdamW
    """
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(batch, dim, generator=generator).requires_grad_()
    # two samples of an author at least
    labels = torch.randint(classes, (batch // 2,), generator=generator).repeat(2)
    weights = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    optimizer = torch.optim.AdamW([embeddings, *weights], fused=True)

    seconds = []
    for _ in range(repeats + 1):
        storage_bytes = {}  # by address; views share a storage
        optimizer.zero_grad()
        began = time.perf_counter()
        with torch.autograd.graph.saved_tensors_hooks(partial(_note, storage_bytes), _unchanged):
            value = loss(embeddings, labels)
        value.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)

    for tensor in (embeddings, *weights):  # there before the forward pass
        storage_bytes.pop(tensor.untyped_storage().data_ptr(), None)
    return {
        "seconds": min(seconds[1:]),  # the first step makes the optimizer's averages
        "kept_bytes": sum(storage_bytes.values()),
        # a weight, its gradient and the two averages of AdamW are equally large
        "parameter_bytes": 4 * sum(weight.nbytes for weight in weights),
    }


def _note(storage_bytes: dict[int, int], tensor: Tensor) -> Tensor:
    storage = tensor.untyped_storage()
    storage_bytes[storage.data_ptr()] = storage.nbytes()
    return tensor


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor
