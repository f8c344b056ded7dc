"""Checkpoints of a training: one safetensors file with weights and optimizer, replaced in one step.

The checksum stands inside the file, so that a kill leaves the old file or the new one, and never a
file whose checksum is missing.
"""

import hashlib
import json
from pathlib import Path

import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from helpers.core.artifacts import atomic_write, file_fingerprint, fingerprint_of, read_json


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's tensors, by number of the parameter and name."""
    tensors = {}
    for number, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            tensors[f"optimizer.{number}.{name}"] = value
    return tensors


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict) -> None:
    """Write tensors, a state and the checksum of both in one step.

    Parameters
    ----------
    path : of the file
    tensors : by name
    state : JSON-able

    Raises
    ------
    FloatingPointError
        a value is not finite
    """
    for name, value in tensors.items():
        if not value.isfinite().all():
            raise FloatingPointError(
                f"{name} has values that are not finite: lower lr or raise warmup"
            )
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    state = {**state, "sha256": weights_checksum(tensors, state)}
    with atomic_write(path) as partial:
        # one entry: the order of several is random, and equal files would differ
        save_file(tensors, partial, {"state": json.dumps(state)})


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict]:
    """Read the tensors and the state of a checkpoint.

    Raises
    ------
    ValueError
        the file is missing or damaged
    """
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            state = json.loads(file.metadata()["state"])
        is_whole = state.pop("sha256") == weights_checksum(tensors, state)
    except (OSError, SafetensorError, TypeError, KeyError, ValueError, AttributeError):
        is_whole = False
    if not is_whole:
        folder = Path(path).parent
        raise ValueError(f"{path} is missing or damaged: delete {folder} and train again")
    return tensors, state


def weights_checksum(tensors: dict[str, Tensor], state: dict) -> str:
    """Hash names, types, shapes and values of tensors, and a state.

    Parameters
    ----------
    tensors : by name
    state : JSON-able
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
    """Load ``last.safetensors`` where it belongs to this training, else start anew.

    A training whose files are damaged starts anew as well.

    Parameters
    ----------
    folder : of the training
    fingerprint : what the training is made from
    trained : the modules that are trained, by name
    optimizer : of all of them
    scaler : of gradients in mixed precision

    Returns
    -------
    step : the steps that are done, 0 where the training starts anew
    history : the learning curve up to that step, one dict a row
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
    except (ValueError, KeyError, OSError) as error:
        print(f"training starts from the beginning: {error}")
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
    """Read the learning curve up to the step of a checkpoint; later rows were not finished."""
    rows = pd.read_csv(path)
    history = rows[rows["step"] <= state["step"]].to_dict("records")
    if history_fingerprint(history) != state["history"]:
        raise ValueError(f"{path} is damaged")
    return history


def history_fingerprint(history: list[dict]) -> str:
    """Hash a learning curve without its seconds, which differ between equal trainings."""
    return fingerprint_of([{**row, "seconds": None} for row in history])


def load_weights(encoder: nn.Module, path: str | Path) -> None:
    """Load the encoder of a checkpoint into a module of its shape.

    Parameters
    ----------
    encoder : takes the weights
    path : of the checkpoint

    Raises
    ------
    ValueError
        the file is missing or damaged
    """
    tensors, _ = read_checkpoint(path)
    encoder.load_state_dict(_without_prefix("encoder.", tensors))


def _without_prefix(prefix, tensors):
    """Return the tensors whose names begin with the prefix, by the rest of their names."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}


def read_summary(folder: str | Path) -> dict:
    """Read ``training.json`` of a complete training, and compare the files that it names.

    Raises
    ------
    ValueError
        there is none, or a file that it names is missing or damaged
    """
    folder = Path(folder)
    summary = read_json(folder / "training.json")
    for name, fingerprint in summary["sha256"].items():
        path = folder / name
        if not path.exists() or file_fingerprint(path) != fingerprint:
            raise ValueError(f"{path} is missing or damaged: delete {folder} and train again")
    return summary
