"""Checkpoints of a training: one safetensors file with weights and optimizer, replaced in one step."""

import json
from pathlib import Path

import pandas as pd
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from helpers.runs.artifacts import atomic_write


def weights(**parts: nn.Module) -> dict[str, Tensor]:
    """The tensors of named parts, such as ``encoder`` and ``loss``, as a checkpoint names them."""
    return {
        f"{part}.{name}": value.contiguous()
        for part, module in parts.items()
        for name, value in module.state_dict().items()
    }


def optimizer_state(optimizer) -> dict[str, Tensor]:
    """An optimizer's tensors, by number of the parameter and name."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{number}.{name}": value
        for number, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def save(path: Path, tensors: dict[str, Tensor], state: dict) -> None:
    """Write tensors and a small JSON-able state, whole or not at all."""
    with atomic_write(path) as partial:  # one entry: the order of several is random, and equal files would differ
        save_file(tensors, partial, {"state": json.dumps(state)})


def save_history(folder: Path, history: list[dict]) -> None:
    """Write the learning curve, whole or not at all."""
    with atomic_write(folder / "history.csv") as partial:
        pd.DataFrame(history).to_csv(partial, index=False)


def resume(folder: Path, fingerprint: str, parts: dict[str, nn.Module], optimizer, scaler) -> tuple[int, list[dict]]:
    """Load ``last.safetensors`` where it belongs to this training, else start anew. Returns (step, history).

    parts: what is trained, by name, as given to :func:`weights`.
    """
    path = folder / "last.safetensors"
    if not path.exists():
        return 0, []
    with safe_open(path, "pt") as file:
        saved = json.loads((file.metadata() or {}).get("state", "{}"))
        if saved.get("fingerprint") != fingerprint:
            return 0, []
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    for part, module in parts.items():
        load_weights(module, path, part)
    state = optimizer.state_dict()
    state["state"] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            state["state"].setdefault(int(number), {})[key] = value
    optimizer.load_state_dict(state)
    if scaler is not None and saved["scaler"]:
        scaler.load_state_dict(saved["scaler"])
    step = saved["step"]
    history = pd.read_csv(folder / "history.csv")
    return step, history[history.step <= step].to_dict("records")


def load_weights(module: nn.Module, path: str | Path, part: str = "encoder") -> None:
    """Load one part of ``best.safetensors`` (the encoder) or ``last.safetensors`` into a module of the same shape."""
    tensors = {
        name.removeprefix(f"{part}."): value
        for name, value in load_file(path).items()
        if name.startswith(f"{part}.")
    }
    module.load_state_dict(tensors)
