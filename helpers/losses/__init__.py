"""Losses on a batch: ``loss(embeddings (B, D), labels (B,)) -> scalar``, and the registry of all.

The input is the embeddings of B samples, vectors of D values and of any length, and the authors of
the samples. The output is a scalar to be minimised, 0 where a loss over pairs has no pairs to learn
from. Losses know nothing of encoders, tokens or training steps.

To add a loss, write it in a module of this room and add its line to ``LOSSES``. It is a function of
embeddings, labels and settings, or, where it has parameters, an ``nn.Module`` made from (classes,
dim) and settings. Names, types, bounds and defaults of the settings are read from its signature:
they are the arguments that have defaults.
Losses scale embeddings to unit length, except with the distance "raw".

A loss without parameters depends only on which labels are equal, not on their values, and, unless
it is ``paired``, not on the order of the samples. Where a batch has nothing to learn from, such as
samples of a single author, the loss and its gradient are 0. No tensor is larger than B x B. The
losses in ``classification`` differ in both: they depend on the values of the labels, and have
tensors of B or D times the number of authors.
"""

from collections.abc import Callable
from functools import partial
from inspect import isclass, signature
from typing import Any, Literal

from pydantic import ValidationInfo, create_model, field_validator
from torch import Tensor

from ..core.parameters import Config
from ..core.rooms import front_door
from . import classification, pairwise
from .arr import ARR

LOSSES = {
    "triplet": pairwise.semihard_triplet,
    "batch_hard": pairwise.batch_hard_triplet,
    "topk": pairwise.top_k,
    "supcon": pairwise.supervised_contrastive,
    "contrastive": pairwise.contrastive,
    "modified_contrastive": pairwise.modified_contrastive,
    "arcface": classification.ArcFace,
    "mll": classification.SoftmaxCrossEntropy,
}

# settings that reproduce a paper's released code, where the defaults differ from it
RELEASED = {
    "topk": {"per_row": False},  # khan2021
    "arcface": {"margin": 0.4, "scale": 64.0},  # khan2021's baseline IUR
    # tyo2021, the final model
    "modified_contrastive": {"negative_margin": 5.0, "distance": "raw", "paired": True},
    "supcon": {"base_temperature": 0.07},  # sawatphol2022
    "arr": {"targets": "released"},  # sawatphol2022
}


class LossConfig(Config):
    """A loss and all its settings.

    Attributes
    ----------
    name : one of LOSSES, or "arr", see :class:`helpers.losses.arr.ARR`
    settings : setting -> value; settings that are left out are filled in with their defaults
    """

    name: Literal[(*LOSSES, "arr")] = "supcon"
    settings: dict[str, Any] = {}

    @field_validator("settings")
    @classmethod
    def _are_complete(cls, settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        # checks the settings of the loss, and fills in the defaults of those left out
        if "name" not in info.data:  # the name is unknown, and pydantic reports that already
            return settings
        return complete_settings(info.data["name"], settings)


def make_loss(
    name: str, classes: int | None = None, dim: int | None = None, **settings: Any
) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a loss with its settings; a loss with parameters is a new ``nn.Module``.

    Parameters
    ----------
    name : one of LOSSES
    classes : number of training authors, whose labels are 0..classes - 1; ignored by losses without
        parameters
    dim : D, the size of embeddings; ignored by losses without parameters
    **settings : the settings of the loss; those left out have their defaults

    Returns
    -------
    function from embeddings (B, D) and labels (B,) of B samples to a scalar

    Raises
    ------
    ValueError
        the name or a setting is unknown, or a setting has a wrong type or is out of bounds; or a
        loss with parameters gets no number of authors or no size
    """
    if name not in LOSSES:
        raise ValueError(f"loss {name!r}: one of {', '.join(LOSSES)}")
    settings = complete_settings(name, settings)
    if isclass(LOSSES[name]):
        if classes is None or dim is None:
            raise ValueError(f"loss {name!r}: give the number of training authors and dim")
        return LOSSES[name](classes, dim, **settings)
    return partial(LOSSES[name], **settings)


def complete_settings(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Check settings against the signature of a loss, and add the defaults that are missing.

    Parameters
    ----------
    name : one of LOSSES, or "arr"
    settings : setting -> value

    Raises
    ------
    ValueError
        a setting is unknown, or has a wrong type or is out of bounds
    """
    fields = {}
    for key, parameter in signature({**LOSSES, "arr": ARR}[name]).parameters.items():
        if parameter.default is not parameter.empty:
            fields[key] = (parameter.annotation, parameter.default)
    config = create_model(name, __base__=Config, **fields)
    return config.of(settings, f"loss {name!r}").model_dump()


__getattr__, __dir__ = front_door(
    __name__,
    {
        ".inspection": ["activation_bytes", "pair_gradients", "step_cost"],
        ".pairwise": ["pair_masks", "pairwise_cosines"],
    },
)
