"""Checkpoints: one safetensors file with tensors and what they are of, replaced in one step.

The checksum is inside the file, so a process that is killed leaves either the old file or the new
one, and never a file without its checksum. All that a training needs to go on is one such file,
which so cannot disagree with another.
"""

import hashlib
import json
import math
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ..core.artifacts import atomic_write, write_json
from ..core.messages import file_error, readable_file
from ..encoders.base import all_finite

BEST = "best.safetensors"  # the encoder of a complete training
SUMMARY = "training.json"  # its settings, results and learning curve, written last


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


class TrainingState:
    """What a training needs to go on: weights, optimizer, best weights and learning curve.

    All of it is in one file, from which it is loaded if that is whole and of this training. Else
    the training has to start from the beginning, and its ``history`` is empty.

    Parameters
    ----------
    path : path of the file
    fingerprint : hash of everything that the training is made from
    trained : the modules that are trained, with an "encoder"; get their weights
    optimizer : the optimizer of these modules; gets its state

    Attributes
    ----------
    history : the learning curve, one dict per evaluation, with "step", "MRR" and "seconds"
    best : name -> weight of the encoder, where the curve's MRR was highest
    """

    def __init__(
        self,
        path: Path,
        fingerprint: str,
        trained: nn.ModuleDict,
        optimizer: torch.optim.Optimizer,
    ):
        self.path = path
        self.fingerprint = fingerprint
        self.trained = trained
        self.optimizer = optimizer
        self.history = []
        self.best = {}
        if path.exists():
            try:
                tensors, state = read_checkpoint(path)
            except ValueError as error:
                print(f"training starts from the beginning: {error}")
                return
            if state["fingerprint"] == fingerprint:
                self._load(tensors, state["history"])

    def _load(self, tensors, history):
        optimizer_state = {}
        for name, value in _without_prefix("optimizer.", tensors).items():
            number, key = name.split(".", 1)
            optimizer_state.setdefault(int(number), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": optimizer_state})
        self.trained.load_state_dict(_without_prefix("trained.", tensors))
        self.best = _without_prefix("best.", tensors)
        self.history = history

    def add(self, row: dict) -> None:
        """Add an evaluation to the curve, and keep the encoder's weights if it is the best one."""
        if row["MRR"] > max((past["MRR"] for past in self.history), default=-math.inf):
            weights = self.trained["encoder"].state_dict()
            self.best = {name: value.clone() for name, value in weights.items()}
        self.history.append(row)

    def save(self) -> None:
        """Write the file; FloatingPointError, and no change of it, where a value is not finite."""
        tensors = self.trained.state_dict(prefix="trained.")
        for number, values in self.optimizer.state_dict()["state"].items():
            for name, value in values.items():
                tensors[f"optimizer.{number}.{name}"] = value
        for name, value in self.best.items():
            tensors[f"best.{name}"] = value
        state = {"fingerprint": self.fingerprint, "history": self.history}
        save_checkpoint(self.path, tensors, state)

    def complete(self, settings: dict) -> None:
        """Write the files of a complete training, and delete that of the state.

        Parameters
        ----------
        settings : what ``training.json`` says of the training beside its results
        """
        best = max(self.history, key=lambda row: row["MRR"])
        save_checkpoint(self.path.with_name(BEST), self.best, {"step": best["step"]})
        summary = {
            "fingerprint": self.fingerprint,
            **settings,
            "best_step": best["step"],
            "best_dev_MRR": best["MRR"],
            "seconds": self.history[-1]["seconds"],
            "history": self.history,
        }
        write_json(self.path.with_name(SUMMARY), summary)
        self.path.unlink()


def _without_prefix(prefix, tensors):
    """Return the tensors whose names begin with the prefix, under their names without it."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}
