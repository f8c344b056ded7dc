"""Check a notebook's parameters: unknown name, wrong type or bad value is an error that names the valid ones.

papermill only warns about an unknown parameter and exits 0, and hands ``-p amp false`` over as the text "false".
So the cell after each ``parameters`` cell calls :func:`check`, which knows the declared names and types from the
cell's own annotations. A parameter that is a dict of a Config's settings is checked by ``Config.of``.
"""

import difflib
from collections.abc import Collection, Iterable
from typing import Annotated, Any, get_origin

from pydantic import AfterValidator, BeforeValidator, ConfigDict, ValidationError, create_model

PLAIN = (bool, int, float, str, list, tuple, dict, type(None))
IPYTHON = {"In", "Out", "exit", "quit"}
BOOLEANS = {"true": True, "false": False}  # as papermill's -p and YAML write them


def unknown(names: Iterable[str], valid: Iterable[str], what: str = "parameter") -> str | None:
    """The error text for ``names`` that are not in ``valid``, with the nearest valid one; None where all are."""
    wrong, valid = sorted(set(names) - set(valid)), sorted(valid)
    if not wrong:
        return None
    near = difflib.get_close_matches(wrong[0], valid, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {', '.join(map(repr, wrong))}{hint}; valid: {', '.join(valid)}"


def check(
    namespace: dict[str, Any], may_be_empty: Collection[str] = (), **allowed: Collection
) -> dict[str, Any]:
    """The declared parameters of a notebook, each of its declared type.

    namespace : the notebook's ``globals()``, right after its annotated ``parameters`` cell.
    may_be_empty : names of the lists, and of the dicts among ``allowed``, that may be empty.
    allowed : per name the valid values (any collection; of a dict its keys) or a ``(low, high)`` pair of numbers, both
    ends included. A list is checked element by element, a dict by its keys, None is left open. Seeds have bounds
    anyway. Raises ValueError in one line: an unknown name, a wrong type, out of bounds or not finite, an empty list.
    """
    declared = namespace.get("__annotations__", {})
    present = [
        name
        for name, value in namespace.items()
        if type(value) in PLAIN
        and not name.startswith("_")
        and not name.isupper()
        and name not in IPYTHON
    ]
    if message := unknown(present, declared) or unknown(
        {*allowed, *may_be_empty}, declared, "name in check()"
    ):
        raise ValueError(message)
    allowed = dict.fromkeys(("seed", "seeds"), (0, 2**32 - 1)) | allowed
    fields = {
        name: (_field(hint, allowed.get(name), name in may_be_empty), ...)
        for name, hint in declared.items()
    }
    # aliases: a field of pydantic may not be called `schema` or `copy`, a parameter may
    model = create_model(
        "Parameters",
        __config__=ConfigDict(
            strict=True, allow_inf_nan=False, alias_generator=lambda name: name[2:]
        ),
        **{f"p_{name}": field for name, field in fields.items()},
    )
    try:
        checked = model.model_validate({name: namespace[name] for name in declared})
    except ValidationError as error:
        messages = [_message(each, declared, namespace) for each in error.errors()]
        raise ValueError("; ".join(dict.fromkeys(messages))) from None
    return {name: getattr(checked, f"p_{name}") for name in declared}


def _field(hint: Any, allowed: Collection | None, may_be_empty: bool) -> Any:
    """The annotation with what else pydantic has to check."""
    if hint is bool:
        hint = Annotated[bool, BeforeValidator(lambda value: BOOLEANS.get(str(value), value))]
    return Annotated[hint, AfterValidator(lambda value: _within(value, allowed, may_be_empty))]


def _within(value: Any, allowed: Collection | None, may_be_empty: bool) -> Any:
    if not may_be_empty and (value == [] or value == {} and allowed is not None):
        raise ValueError("must not be empty")
    if allowed is None:
        return value
    bounds = (
        isinstance(allowed, tuple)
        and len(allowed) == 2
        and all(type(end) in (int, float) for end in allowed)
    )
    for element in value if isinstance(value, list | dict) else [value]:
        if element is None:
            continue
        if bounds and not allowed[0] <= element <= allowed[1]:
            raise ValueError(f"must lie in {allowed[0]}..{allowed[1]}, not {element!r}")
        if not bounds and element not in allowed:
            raise ValueError(f"must be one of {', '.join(map(str, allowed))}, not {element!r}")
    return value


def _message(error: dict, declared: dict, namespace: dict) -> str:
    name = error["loc"][0]
    if error["type"] == "value_error":
        return f"parameter {name!r} {error['ctx']['error']}"
    hint, value = declared[name], namespace[name]
    if error["type"] == "finite_number":
        return f"parameter {name!r} must be a finite number, not {value!r}"
    shown = (
        hint.__name__
        if isinstance(hint, type) and get_origin(hint) is None
        else str(hint).replace("typing.", "")
    )
    hint = " (in YAML write 1.0e-4, not 1e-4)" if hint is float and isinstance(value, str) else ""
    return f"parameter {name!r} must be {shown}, not {type(value).__name__} {value!r}{hint}"
