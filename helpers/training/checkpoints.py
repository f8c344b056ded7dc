"""Checkpoints of a training: one safetensors file with weights and optimizer, replaced in one step."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from helpers.core.artifacts import atomic_write, fingerprint_of


def model_weights(**parts: nn.Module) -> dict[str, Tensor]:
    """The tensors of named parts, such as ``encoder`` and ``loss``, as a checkpoint names them."""
    return {
        f"{part}.{name}": value.contiguous()
        for part, module in parts.items()
        for name, value in module.state_dict().items()
    }


def optimizer_state(optimizer) -> dict[str, Tensor]:
    """An optimizer's tensors, by number of the parameter and name."""
    return {
        f"optimizer.{number}.{name}": value
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
        if value is not None
    }


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict) -> None:
    """Write tensors, a JSON-able state and their checksum in one step. FloatingPointError: a value is not finite."""
    if bad := [name for name, value in tensors.items() if not value.isfinite().all()]:
        raise FloatingPointError(
            f"{bad[0]} has values that are not finite: lower lr or raise warmup"
        )
    state = {**state, "sha256": weights_checksum(tensors, state)}
    with atomic_write(
        path
    ) as partial:  # one entry: the order of several is random, and equal files would differ
        save_file(tensors, partial, {"state": json.dumps(state)})


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict]:
    """Tensors and state of a checkpoint. Raises ValueError where it is missing or damaged."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            state = json.loads(file.metadata()["state"])
        if state.pop("sha256") == weights_checksum(tensors, state):
            return tensors, state
    except (OSError, SafetensorError, TypeError, KeyError, ValueError, AttributeError):
        pass
    raise ValueError(f"{path} is missing or damaged: delete {Path(path).parent} and train again")


def weights_checksum(tensors: dict[str, Tensor], state: dict) -> str:
    """Of names, types, shapes and values of tensors, and of a JSON-able state."""
    digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def resume_training(
    folder: Path, fingerprint: str, parts: dict[str, nn.Module], optimizer, scaler
) -> tuple[int, list[dict]]:
    """Load ``last.safetensors`` where it belongs to this training, else start anew. Returns (step, history).

    A training whose files are damaged starts anew as well. parts: what is trained, as in :func:`model_weights`.
    """
    path = folder / "last.safetensors"
    if not path.exists():
        return 0, []
    try:
        tensors, saved = read_checkpoint(path)
        if saved["fingerprint"] != fingerprint:
            return 0, []
        read_checkpoint(folder / "best.safetensors")
        history = pd.read_csv(folder / "history.csv")
        history = history[history["step"] <= saved["step"]].to_dict("records")
        if history_fingerprint(history) != saved["history"]:
            raise ValueError(f"{folder / 'history.csv'} is damaged")
    except (ValueError, KeyError, OSError) as error:
        print(f"training starts from the beginning: {error}")
        return 0, []
    for part, module in parts.items():
        module.load_state_dict(_part(tensors, part))
    state = optimizer.state_dict()
    state["state"] = {}
    for name, value in _part(tensors, "optimizer").items():
        number, key = name.split(".", 1)
        state["state"].setdefault(int(number), {})[key] = value
    optimizer.load_state_dict(state)
    if scaler is not None and saved["scaler"]:
        scaler.load_state_dict(saved["scaler"])
    return saved["step"], history


def history_fingerprint(history: list[dict]) -> str:
    """Of a learning curve but its seconds, which differ between equal trainings."""
    return fingerprint_of(
        [{name: value for name, value in row.items() if name != "seconds"} for row in history]
    )


def load_weights(module: nn.Module, path: str | Path, part: str = "encoder") -> None:
    """Load one part of a checkpoint into a module of its shape. Raises ValueError where it is missing or damaged."""
    module.load_state_dict(_part(read_checkpoint(path)[0], part))


def _part(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(f"{part}."): value
        for name, value in tensors.items()
        if name.startswith(f"{part}.")
    }
