"""Exchange between processes that train one encoder, and the name of the device in use."""

import torch
import torch.distributed as dist
from torch import Tensor


def gather_with_gradient(embeddings: Tensor) -> Tensor:
    """Gather the embeddings of all processes, such that each process gets its share of gradients.

    Every process computes the same loss, and the backward pass sums the gradients of all of them;
    the mean over processes in DistributedDataParallel then divides by their number again.

    Parameters
    ----------
    embeddings : (b, D), the embeddings of the b samples of this process, as many on each process

    Returns
    -------
    (b * processes, D), in the order of the processes; ``embeddings`` itself without other processes
    """
    if not (dist.is_available() and dist.is_initialized()):
        return embeddings
    from torch.distributed.nn.functional import all_gather

    return torch.cat(all_gather(embeddings.contiguous()))


def device_name(device: torch.device | None = None) -> str:
    """Return the name of a device, to print beside a time: the GPU's, or "cpu" and its threads.

    Parameters
    ----------
    device : a device of torch; by default the GPU if there is one, else the CPU
    """
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
