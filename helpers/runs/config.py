"""Typed, frozen settings: what every experiment, sampler and protocol is described by."""

import difflib
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from helpers.runs.artifacts import fingerprint_of


class Config(BaseModel):
    """A frozen set of named settings; unknown names, wrong types and values out of bounds are errors.

    ``fingerprint`` is the identity of a config: equal settings have equal ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @classmethod
    def of(cls, settings: dict[str, Any], where: str = "") -> Self:
        """Build from a dict of settings, such as a notebook's parameter.

        Raises
        ------
        ValueError
            In one line, that names the setting, what is wrong with it and the nearest valid name.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            raise ValueError("; ".join(_told(each, cls, where or cls.__name__) for each in error.errors())) from None

    @property
    def fingerprint(self) -> str:
        """A short hash of the settings and of the config's kind."""
        return fingerprint_of(type(self).__name__, self.model_dump(mode="json"))


def _told(error: dict, cls: type[Config], where: str) -> str:
    name = ".".join(map(str, error["loc"])) or where
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(error["loc"][-1]), list(cls.model_fields), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"{where}: unknown setting {name!r}{hint}; valid: {', '.join(sorted(cls.model_fields))}"
    reason = error["msg"].removeprefix("Value error, ")
    return f"{where}: {name!r} is {error.get('input')!r}: {reason}"
