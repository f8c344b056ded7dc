"""Typed, frozen settings: what every experiment, sampler and protocol is described by."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from helpers.core.artifacts import fingerprint_of
from helpers.core.parameters import unknown


class Config(BaseModel):
    """A frozen set of named settings; unknown names, wrong types and values out of bounds are errors.

    Types are strict: "3", 3.0 and true are no integers. Every number has bounds; nan and inf are never within them.
    ``fingerprint`` is the identity of a config: equal settings have equal ones.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, strict=True
    )

    @classmethod
    def of(cls, settings: dict[str, Any], where: str = "") -> Self:
        """Build from a dict. ValueError, in one line, names the setting, its fault and the nearest valid name."""
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            where = where or cls.__name__
            raise ValueError(
                "; ".join(f"{where}: {_message(each, cls)}" for each in error.errors())
            ) from None

    @property
    def fingerprint(self) -> str:
        """A short hash of the settings and of the config's kind."""
        return fingerprint_of(type(self).__name__, self.model_dump(mode="json"))


def _message(error: dict, config: type[Config]) -> str:
    *parents, name = error["loc"] or ("settings",)
    if error["type"] == "extra_forbidden":
        for parent in parents:
            annotation = (
                config.model_fields[parent].annotation if parent in config.model_fields else None
            )
            config = (
                annotation
                if isinstance(annotation, type) and issubclass(annotation, Config)
                else config
            )
        return unknown([str(name)], config.model_fields, "setting")
    path = ".".join(map(str, (*parents, name)))
    hint = (
        " (in YAML write 1.0e-4 and 1.0e+6)"
        if error["type"] == "float_type" and "e" in str(error["input"])
        else ""
    )
    return f"{path!r} is {error.get('input')!r}: {error['msg'].removeprefix('Value error, ')}{hint}"
