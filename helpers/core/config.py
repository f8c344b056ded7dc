"""Typed, frozen settings: what every experiment, sampler and protocol is described by."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from helpers.core.artifacts import fingerprint_of
from helpers.core.parameters import unknown


class Config(BaseModel):
    """A frozen set of named settings.

    Unknown names, wrong types and values out of bounds are errors. Types are strict: "3", 3.0 and
    true are no integers. Every number has bounds; nan and inf are never within them.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, strict=True
    )

    @classmethod
    def of(cls, settings: dict[str, Any], where: str = "") -> Self:
        """Build a config from a dict.

        Parameters
        ----------
        settings : dict
            name -> value
        where : str
            what the settings are of, for the message; by default the name of the class

        Raises
        ------
        ValueError
            in one line: the setting, its fault and the nearest valid name
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            where = where or cls.__name__
            messages = [f"{where}: {_message(fault, cls)}" for fault in error.errors()]
            raise ValueError("; ".join(messages)) from None

    @property
    def fingerprint(self) -> str:
        """Return a short hash of the settings and of the config's kind: equal ones are equal."""
        return fingerprint_of(type(self).__name__, self.model_dump(mode="json"))


def _message(fault: dict, config: type[Config]) -> str:
    """Say what is wrong with a setting, from an error of pydantic."""
    path = fault["loc"] or ("settings",)
    value = fault["input"]
    if fault["type"] == "extra_forbidden":
        for parent in path[:-1]:
            config = config.model_fields[parent].annotation
        return unknown([str(path[-1])], config.model_fields, "setting")
    name = ".".join(str(part) for part in path)
    message = f"{name!r} is {value!r}: {fault['msg'].removeprefix('Value error, ')}"
    if fault["type"] == "float_type" and "e" in str(value):
        message += " (in YAML write 1.0e-4 and 1.0e+6)"
    return message
