"""Check a notebook's parameters: unknown name, wrong type or bad value is an error that names the valid ones.

papermill only warns about an unknown parameter and exits 0, and hands ``-p amp false`` over as the text "false".
So the cell after each ``parameters`` cell calls :func:`check`, which knows the declared names and types from the
cell's own annotations.
"""

import difflib
import inspect
import types
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin

PLAIN = (bool, int, float, str, list, tuple, dict, type(None))
IPYTHON = {"In", "Out", "exit", "quit"}


def unknown(given, valid, what="parameter") -> str | None:
    """The error text for names in ``given`` that are not in ``valid``, or None."""
    wrong = sorted(set(given) - set(valid))
    if not wrong:
        return None
    near = difflib.get_close_matches(wrong[0], list(valid), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {', '.join(map(repr, wrong))}{hint}; valid: {', '.join(sorted(valid))}"


def check(namespace: dict, **allowed) -> dict[str, Any]:
    """Return the declared parameters of a notebook as a dict, after checking each one.

    namespace: the notebook's ``globals()``, right after its annotated ``parameters`` cell.
    allowed: per name the valid values (any collection; of a dict its keys) or a ``(low, high)`` pair of numbers,
        both ends included. A list-valued parameter is checked element by element.
    Raises ValueError on an unknown name or a value out of bounds, TypeError on a wrong type.
    """
    declared = namespace.get("__annotations__", {})
    given = {
        name
        for name, value in namespace.items()
        if not name.startswith("_") and name not in IPYTHON and type(value) in PLAIN
    }
    if message := unknown(given, declared):
        raise ValueError(message)
    if message := unknown(allowed, declared, "name in check()"):
        raise ValueError(message)
    settings = {}
    for name, hint in declared.items():
        value = namespace[name]
        if not _fits(value, hint):
            raise TypeError(f"parameter {name!r} must be {_describe(hint)}, not {type(value).__name__} {value!r}")
        if type(value) is int and hint is float:
            value = float(value)
        if name in allowed:
            for element in value if isinstance(value, list) else [value]:
                _check_value(name, element, allowed[name])
        settings[name] = value
    return settings


def check_entries(settings: dict, takers: dict[str, Callable], given: tuple[str, ...] = ()) -> None:
    """Check parameters that are dicts of arguments: ``takers`` names the function or class that takes each.

    given: arguments that the notebook gives itself. Raises ValueError on an entry that the taker does not take, that is
    a parameter of its own, or given.
    """
    for name, taker in takers.items():
        valid = set(inspect.signature(taker).parameters) - set(settings) - set(given)
        if message := unknown(settings[name], valid, f"entry of {name!r}"):
            raise ValueError(message)


def check_filled(settings: dict, *names: str) -> None:
    """Raises ValueError where one of the named lists or dicts, or a list in such a dict, is empty."""
    for name in names:
        value = settings[name]
        inner = value.values() if isinstance(value, dict) else ()
        if not value or any(isinstance(each, list) and not each for each in inner):
            raise ValueError(f"parameter {name!r} is empty or holds an empty list, {value!r}: name at least one")


def _check_value(name, value, allowed):
    if value is None:
        return
    if isinstance(allowed, tuple) and len(allowed) == 2 and all(type(end) in (int, float) for end in allowed):
        low, high = allowed
        if not low <= value <= high:  # also catches nan
            raise ValueError(f"parameter {name!r} must lie in {low}..{high}, not {value!r}")
    elif value not in allowed:
        raise ValueError(f"parameter {name!r} must be one of {', '.join(map(str, allowed))}, not {value!r}")


def _fits(value, hint) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is list:
        return isinstance(value, list) and all(_fits(element, args[0]) for element in value)
    if origin is dict:
        return isinstance(value, dict)
    if hint is float:
        return type(value) in (int, float)
    if hint is type(None) or hint is None:
        return value is None
    return type(value) is (origin or hint)


def _describe(hint) -> str:
    return getattr(hint, "__name__", None) if get_origin(hint) is None else str(hint).replace("typing.", "")
