"""Typed, frozen settings, the base class of the descriptions of experiments, samplers and so on."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from .artifacts import fingerprint_of
from .parameters import shown, unknown


class Config(BaseModel):
    """A frozen set of named settings.

    Unknown names, wrong types and values out of bounds are errors. Types are strict: "3", 3.0 and
    true are not accepted as integers. Numbers have bounds, and nan and inf are never accepted.
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
            name of a setting -> its value; settings that are left out have their defaults
        where : str
            where the settings come from, the start of an error's message; by default the name of
            the class

        Raises
        ------
        ValueError
            with a message of one line that says for each wrong setting what is wrong, and for an
            unknown name the nearest valid one
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            where = where or cls.__name__
            messages = [f"{where}: {_message(fault, cls)}" for fault in error.errors()]
            raise ValueError("; ".join(messages)) from None

    @property
    def fingerprint(self) -> str:
        """Return a short hash of the name of the class and all settings, defaults included."""
        return fingerprint_of(type(self).__name__, self.model_dump(mode="json"))


def _message(fault: dict, config: type[Config]) -> str:
    """Return a message about one wrong setting, from an entry of pydantic's ``errors()``."""
    path = fault["loc"] or ("settings",)
    value = fault["input"]
    if fault["type"] == "extra_forbidden":
        for parent in path[:-1]:
            config = config.model_fields[parent].annotation
        return unknown([str(path[-1])], config.model_fields, "setting")
    name = ".".join(str(part) for part in path)
    if fault["type"] == "missing":
        return (
            f"the setting {name!r} is missing: it has no default, and a dict that you give "
            "replaces the notebook's whole dict, so it must hold this setting, too"
        )
    message = f"{name!r} is {shown(value)}: {fault['msg'].removeprefix('Value error, ')}"
    if fault["type"] == "float_type" and "e" in str(value):
        message += " (in YAML write 1.0e-4 and 1.0e+6)"
    return message
