"""Several processes that train one encoder, and the name of the device a process computes on."""

import torch
import torch.distributed as dist
from torch import Tensor


def gather_with_gradient(embeddings: Tensor) -> Tensor:
    """Gather the embeddings of all processes; the gradient comes back to each.

    Every process computes the same loss, so the gradients that come back add up; DDP's mean then
    leaves them once.

    Parameters
    ----------
    embeddings : (b, D), of this process

    Returns
    -------
    (b * processes, D), in the order of the processes; unchanged where there is one
    """
    if not (dist.is_available() and dist.is_initialized()):
        return embeddings
    from torch.distributed.nn.functional import all_gather

    return torch.cat(all_gather(embeddings.contiguous()))


def device_name(device: torch.device | None = None) -> str:
    """Return what to print beside a number: the GPU's name, or "cpu" with the threads used.

    Parameters
    ----------
    device : by default the one that trains here
    """
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
