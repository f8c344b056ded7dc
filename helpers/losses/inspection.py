"""What a loss does: which pairs it pulls together and pushes apart, and what one step of it costs."""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

LIFT = 1e-5  # length of the extra axis of each point, beside 1


def pair_gradients(value: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """Derivative of a loss by the cosine of each pair of its points: below 0 the pair is pulled together.

    In a plane the gradient at a point does not tell which pairs it comes from; here each point gets a short axis of
    its own, on which only its pairs can be seen. value: points (N, D) -> scalar, the same for points of any length.
    Returns (N, N) float64, symmetric, with a diagonal of 0.
    """
    unit = nn.functional.normalize(points.detach().double(), dim=1)
    lifted = torch.cat(
        [unit, LIFT * torch.eye(len(points), dtype=torch.float64)], 1
    ).requires_grad_()
    (gradient,) = torch.autograd.grad(value(lifted), lifted)
    # gradient at i: sum over j of derivative * point j, less what lies along point i; the square is the lifted length
    return gradient[:, points.shape[1] :].fill_diagonal_(0) * (1 + LIFT**2) / LIFT


def step_cost(
    loss: Callable[..., Tensor], batch: int, dim: int, classes: int, repeats: int = 3
) -> dict[str, float]:
    """What a loss costs in one step on ``batch`` random embeddings of ``classes`` authors, without the encoder.

    Returns ``seconds``, the fastest of ``repeats`` (loss, gradients and, where the loss has parameters, AdamW);
    ``kept_bytes``, what the forward pass makes and keeps for the backward pass; ``parameter_bytes``, parameters, their
    gradients and the two averages of AdamW.
    """
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(batch, dim, generator=generator).requires_grad_()
    labels = torch.randint(classes, (batch // 2,), generator=generator).repeat(
        2
    )  # two samples of an author at least
    weights = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    optimizer = torch.optim.AdamW([embeddings, *weights], fused=True)
    seconds = []
    for _ in range(repeats + 1):  # the first makes the optimizer's averages: not timed
        kept = {}  # storage -> bytes; views share a storage

        def keep(tensor, kept=kept):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        optimizer.zero_grad()
        began = time.perf_counter()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            value = loss(embeddings, labels)
        value.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    for tensor in (embeddings, *weights):  # there before
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    held = [tensor for weight in weights for tensor in (weight, weight.grad, *optimizer.state[weight].values())
            if tensor.shape == weight.shape]  # fmt: skip
    parameter_bytes = sum(tensor.nbytes for tensor in held)
    return {
        "seconds": min(seconds[1:]),
        "kept_bytes": sum(kept.values()),
        "parameter_bytes": parameter_bytes,
    }
