"""Checkpoints of a training: one safetensors file with weights and optimizer, replaced in one step.

The checksum is inside the file, so a process that is killed leaves either the old file or the new
one, and never a file without its checksum.
"""

import hashlib
import json
from pathlib import Path

import pandas as pd
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ..core.artifacts import atomic_write, file_fingerprint, fingerprint_of, read_json
from ..core.messages import file_error, readable_file
from ..encoders.base import all_finite, load_tensors


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's tensors, named ``optimizer.<number of the parameter>.<name>``."""
    tensors = {}
    for number, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            tensors[f"optimizer.{number}.{name}"] = value
    return tensors


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict) -> None:
    """Write tensors, a state and the checksum of both to one file, in one step.

    Parameters
    ----------
    path : path of the file, which is replaced if it exists
    tensors : name -> tensor, such as weights and the averages of an optimizer
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
    """Read the tensors and the state of a checkpoint.

    Raises
    ------
    ValueError
        the file is missing or damaged, or holds values that are not finite
    """
    with readable_file(path):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            state = json.loads(file.metadata()["state"])
        if state.pop("sha256") != weights_checksum(tensors, state):
            raise file_error(path)
        for name, value in tensors.items():
            if not all_finite(value):
                raise file_error(path, f"holds values in {name!r} that are not finite")
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


def resume_training(
    folder: Path,
    fingerprint: str,
    trained: nn.ModuleDict,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler | None,
) -> tuple[int, list[dict]]:
    """Load the last checkpoint into modules and optimizer, if it is whole and of this training.

    Otherwise nothing is loaded, and the training has to start from the beginning. This is also so
    if the best weights or the learning curve are damaged; then a message is printed.

    Parameters
    ----------
    folder : the folder of the training
    fingerprint : hash of everything that the training is made from
    trained : name -> module that is trained; gets its weights
    optimizer : the optimizer of all these modules; gets its state
    scaler : the scaler of gradients in fp16, which gets its state; None without one

    Returns
    -------
    step : number of steps done, 0 where the training has to start from the beginning
    history : the learning curve up to that step, one dict per row
    """
    path = folder / "last.safetensors"
    if not path.exists():
        return 0, []
    try:
        tensors, state = read_checkpoint(path)
        if state["fingerprint"] != fingerprint:
            return 0, []
        read_checkpoint(folder / "best.safetensors")
        history = _read_history(folder / "history.csv", state)
    except (ValueError, KeyError, OSError):
        print(f"training starts from the beginning: a file in {folder} is missing or damaged")
        return 0, []

    optimizer_state = {}
    for name, value in _without_prefix("optimizer.", tensors).items():
        number, key = name.split(".", 1)
        optimizer_state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": optimizer_state})
    for name, module in trained.items():
        module.load_state_dict(_without_prefix(f"{name}.", tensors))
    if scaler is not None and state["scaler"]:
        scaler.load_state_dict(state["scaler"])
    return state["step"], history


def _read_history(path, state):
    """Read the learning curve up to the step of a checkpoint.

    Later rows were written by a run that was killed before it wrote its checkpoint.
    """
    rows = pd.read_csv(path)
    history = rows[rows["step"] <= state["step"]].to_dict("records")
    if history_fingerprint(history) != state["history"]:
        raise file_error(path)
    return history


def history_fingerprint(history: list[dict]) -> str:
    """Hash a learning curve without its seconds, which differ between equal trainings."""
    return fingerprint_of([{**row, "seconds": None} for row in history])


def load_weights(encoder: nn.Module, path: str | Path) -> None:
    """Load the encoder's weights from a checkpoint.

    Parameters
    ----------
    encoder : the module that gets the weights; its parameters must have the same names and shapes
    path : path of the checkpoint

    Raises
    ------
    ValueError
        the file is missing or damaged, or of another encoder
    """
    tensors, _ = read_checkpoint(path)
    load_tensors(encoder, _without_prefix("encoder.", tensors), path)


def _without_prefix(prefix, tensors):
    """Return the tensors whose names begin with the prefix, under their names without it."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}


def read_summary(folder: str | Path) -> dict:
    """Read ``training.json`` of a complete training, and check the files whose checksums it has.

    Raises
    ------
    ValueError
        there is none, or a file that it names is missing or damaged
    """
    folder = Path(folder)
    path = folder / "training.json"
    summary = read_json(path)
    with readable_file(path):
        checksums = dict(summary["sha256"])
    for name, checksum in checksums.items():
        path = folder / name
        with readable_file(path):
            if file_fingerprint(path) != checksum:
                raise file_error(path)
    return summary
