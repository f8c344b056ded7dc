"""Losses on a batch: ``loss(embeddings (B, D), labels (B,)) -> scalar``, and the registry of all of them.

To add a loss, write it in a module of this room and add its line to ``PLACES``. It is a function of embeddings, labels
and settings, or, where it has parameters, an ``nn.Module`` made from (classes, dim) and settings; names, types and
defaults of the settings are read from its signature. Losses normalise their input to unit length, but for distance
"raw". Memory is O(B^2); only ``class_weights`` depend on the number of authors.
"""

from collections.abc import Callable
from functools import partial
from inspect import isclass, signature
from pkgutil import resolve_name
from typing import Any, Literal

from pydantic import Field, ValidationInfo, create_model, field_validator

from helpers.core.config import Config
from helpers.losses.base import Loss

PLACES = {
    "triplet": "triplets:semihard_triplet", "batch_hard": "triplets:batch_hard_triplet", "topk": "top_k:top_k",
    "supcon": "supervised_contrastive:supervised_contrastive", "contrastive": "pairs:contrastive",
    "modified_contrastive": "pairs:modified_contrastive", "arcface": "class_weights:ArcFace",
    "mll": "class_weights:SoftmaxCrossEntropy"}  # fmt: skip
LOSSES: dict[str, Callable] = {
    name: resolve_name(f"helpers.losses.{place}") for name, place in PLACES.items()
}

# settings that repeat the papers' released code, where this is not what the defaults do
RELEASED: dict[str, dict[str, Any]] = {
    "topk": {"per_row": False},  # khan2021
    "arcface": {"margin": 0.4, "scale": 64.0},  # khan2021's baseline IUR
    "modified_contrastive": {
        "negative_margin": 5.0,
        "distance": "raw",
        "paired": True,
    },  # tyo2021, the final model
    "supcon": {"base_temperature": 0.07},  # sawatphol2022
    "arr": {"targets": "released"},  # sawatphol2022
}


# of the numbers among the settings; what is not named here is 0 or more
BOUNDS = {
    "k": {"ge": 1},
    "temperature": {"gt": 0},
    "base_temperature": {"gt": 0},
    "scale": {"gt": 0},
}


class ARRConfig(Config):
    """Settings of ARR (sawatphol2022), :class:`helpers.topic.arr.ARR`.

    temperature : of teacher, student and topic model (Appendix A.4: 0.5, 0.1, 0.05, 0.01). bias_temperature : of the
    topic model, if it is another; at 1e6 the topic model knows nothing, and ARR is plain distillation. targets :
    "released" only to repeat the released code, see :func:`helpers.topic.arr.released_targets`.
    """

    temperature: float = Field(0.1, gt=0)
    bias_temperature: float | None = Field(None, gt=0)
    targets: Literal["paper", "released"] = "paper"


class LossConfig(Config):
    """A loss and all its settings: those that are left out have the defaults of the loss's signature."""

    name: Literal[(*LOSSES, "arr")] = "supcon"
    settings: dict[str, Any] = {}

    @field_validator("settings")
    @classmethod
    def _complete(cls, settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        return _complete(info.data["name"], settings) if "name" in info.data else settings


def make_loss(
    name: str, classes: int | None = None, dim: int | None = None, **settings
) -> Loss:
    """The named loss with its settings bound; one with parameters is a new ``nn.Module``.

    classes (labels are 0..classes - 1) and dim, the size of embeddings: only for losses with parameters. Raises
    ValueError for an unknown name or setting, another type of setting, or where a loss with parameters lacks either.
    """
    if name not in LOSSES:
        raise ValueError(f"loss {name!r}: one of {', '.join(LOSSES)}")
    settings = _complete(name, settings)
    if not isclass(LOSSES[name]):
        return partial(LOSSES[name], **settings)
    if classes is None or dim is None:
        raise ValueError(f"loss {name!r} learns a vector per author: it needs classes and dim")
    return LOSSES[name](classes, dim, **settings)


def _complete(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, checked against the loss's signature, with the defaults of those that are missing."""
    if name == "arr":
        return ARRConfig.of(settings, "loss 'arr'").model_dump()
    fields = {}
    for key, setting in signature(LOSSES[name]).parameters.items():
        if key not in ("embeddings", "labels", "classes", "dim"):
            is_number = not isinstance(default := setting.default, bool | str)
            fields[key] = (
                setting.annotation,
                Field(default, **BOUNDS.get(key, {"ge": 0})) if is_number else default,
            )
    return create_model(name, __base__=Config, **fields).of(settings, f"loss {name!r}").model_dump()
