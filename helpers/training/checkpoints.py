"""Files of a training: the state of an interrupted one, and the weights of a complete one.

Each is one file that is replaced in one step and has its checksum inside. So a process that is
killed leaves either the old file or the new one, and no file can disagree with another.
"""

import hashlib
import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..core.artifacts import atomic_write
from ..core.messages import file_error, readable_file
from ..encoders.base import all_finite

STATE = "last.pt"  # all that an interrupted training needs to go on
BEST = "best.safetensors"  # the encoder of a complete training
SUMMARY = "training.json"  # its settings, results and learning curve, written last


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict) -> None:
    """Write tensors, a state and the checksum of both to one safetensors file, in one step.

    Parameters
    ----------
    path : path of the file, which is replaced if it exists
    tensors : name -> tensor, such as weights
    state : other values that JSON can hold, such as the number of the step

    Raises
    ------
    FloatingPointError
        a tensor has a value that is not finite
    """
    for name, value in tensors.items():
        if not all_finite(value):
            raise FloatingPointError(
                f"{name} has values that are not finite: lower lr or raise warmup"
            )
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    state = {**state, "sha256": weights_checksum(tensors, state)}
    with atomic_write(path) as partial:
        # one entry, as safetensors writes several in random order, so that equal files would differ
        save_file(tensors, partial, {"state": json.dumps(state)})


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict]:
    """Read the tensors and the state of a file of :func:`save_checkpoint`.

    Raises
    ------
    ValueError
        the file is missing or damaged
    """
    with readable_file(path):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            state = json.loads(file.metadata()["state"])
        if state.pop("sha256") != weights_checksum(tensors, state):
            raise file_error(path)
    return tensors, state


def weights_checksum(tensors: dict[str, Tensor], state: dict) -> str:
    """Hash names, types, shapes and values of tensors, and a state.

    Parameters
    ----------
    tensors : name -> tensor, in any order
    state : other values that JSON can hold
    """
    digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def load_state(path: Path, fingerprint: str) -> dict[str, Any]:
    """Return the state of an interrupted training, or that of one that has not begun.

    Parameters
    ----------
    path : the file, which need not exist
    fingerprint : hash of everything that the training is made from; the state of a training with
        another one is not returned

    Returns
    -------
    ``fingerprint``; ``history``, the learning curve, a dict for each evaluation; ``best``, the
    encoder's weights where the curve's MRR was highest; of one that has begun also ``trained`` and
    ``optimizer``, what ``load_state_dict`` takes

    Raises
    ------
    ValueError
        the file is damaged
    """
    new = {"fingerprint": fingerprint, "history": [], "best": {}}
    if not path.exists():
        return new
    with readable_file(path):
        if ZipFile(path).testzip():  # torch does not look at the checksums
            raise file_error(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    return state if state["fingerprint"] == fingerprint else new
