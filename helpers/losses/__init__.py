"""Losses on a batch: ``loss(embeddings (B, D), labels (B,)) -> scalar``, and the registry of all.

Embeddings of any length and the authors of their samples come in, and a scalar to be made smaller
goes out, 0 where a loss of pairs has nothing to learn from. A loss never knows an encoder, a token
or a step of a training.

To add a loss, write it in a module of this room and add its line to ``LOSSES``. It is a function of
embeddings, labels and settings, or, where it has parameters, an ``nn.Module`` made from (classes,
dim) and settings. Names, types and defaults of the settings are read from its signature; a number
is 0 or more unless ``SETTING_BOUNDS`` says otherwise. Losses normalise their input to unit length,
but for distance "raw". Memory is O(B^2); only ``class_weights`` depend on the number of authors.
"""

from functools import partial
from inspect import isclass, signature
from typing import Any, Literal

from pydantic import Field, ValidationInfo, create_model, field_validator

from helpers.core.config import Config
from helpers.losses import class_weights, pairs, supervised_contrastive, top_k, triplets
from helpers.losses.base import Loss

LOSSES = {
    "triplet": triplets.semihard_triplet,
    "batch_hard": triplets.batch_hard_triplet,
    "topk": top_k.top_k,
    "supcon": supervised_contrastive.supervised_contrastive,
    "contrastive": pairs.contrastive,
    "modified_contrastive": pairs.modified_contrastive,
    "arcface": class_weights.ArcFace,
    "mll": class_weights.SoftmaxCrossEntropy,
}

# settings that repeat the papers' released code, where this is not what the defaults do
RELEASED = {
    "topk": {"per_row": False},  # khan2021
    "arcface": {"margin": 0.4, "scale": 64.0},  # khan2021's baseline IUR
    # tyo2021, the final model
    "modified_contrastive": {"negative_margin": 5.0, "distance": "raw", "paired": True},
    "supcon": {"base_temperature": 0.07},  # sawatphol2022
    "arr": {"targets": "released"},  # sawatphol2022
}

SETTING_BOUNDS = {
    "k": {"ge": 1},
    "temperature": {"gt": 0},
    "base_temperature": {"gt": 0},
    "scale": {"gt": 0},
}


class ARRConfig(Config):
    """Settings of ARR (sawatphol2022), :class:`helpers.topic.arr.ARR`.

    Attributes
    ----------
    temperature : of teacher, student and topic model (Appendix A.4: 0.5, 0.1, 0.05, 0.01)
    bias_temperature : of the topic model, if it is another; at 1e6 the topic model knows nothing,
        and ARR is plain distillation
    targets : "released" only to repeat the released code, see
        :func:`helpers.topic.arr.released_targets`
    """

    temperature: float = Field(0.1, gt=0)
    bias_temperature: float | None = Field(None, gt=0)
    targets: Literal["paper", "released"] = "paper"


class LossConfig(Config):
    """A loss and all its settings.

    Attributes
    ----------
    name : one of LOSSES, or "arr"
    settings : those that are left out have the defaults of the loss's signature
    """

    name: Literal[(*LOSSES, "arr")] = "supcon"
    settings: dict[str, Any] = {}

    @field_validator("settings")
    @classmethod
    def _are_complete(cls, settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if "name" not in info.data:  # an unknown one, which is an error of its own
            return settings
        return _complete(info.data["name"], settings)


def make_loss(
    name: str, classes: int | None = None, dim: int | None = None, **settings: Any
) -> Loss:
    """Bind the settings of a loss; one with parameters is a new ``nn.Module``.

    Parameters
    ----------
    name : one of LOSSES
    classes : number of authors, of labels 0..classes - 1; only for losses with parameters
    dim : D, the size of embeddings; only for losses with parameters
    **settings : of the loss

    Returns
    -------
    (embeddings (B, D), labels (B,)) -> scalar

    Raises
    ------
    ValueError
        the name or a setting is unknown, a setting is of another type, or a loss with parameters
        lacks classes or dim
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
    """Check settings against the signature of a loss, and add the defaults that are missing."""
    if name == "arr":
        return ARRConfig.of(settings, "loss 'arr'").model_dump()
    fields = {}
    for key, parameter in signature(LOSSES[name]).parameters.items():
        if key in ("embeddings", "labels", "classes", "dim"):
            continue
        bounds = SETTING_BOUNDS.get(key, {"ge": 0})
        if isinstance(parameter.default, bool | str):
            bounds = {}
        fields[key] = (parameter.annotation, Field(parameter.default, **bounds))
    config = create_model(name, __base__=Config, **fields)
    return config.of(settings, f"loss {name!r}").model_dump()
