"""Check a notebook's parameters: an unknown name, a wrong type or a bad value is an error.

papermill only warns about an unknown parameter and exits 0, and passes ``-p amp false`` on as the
text "false". So the cell after each ``parameters`` cell calls :func:`start`, which reads the
declared names and types from the annotations in the ``parameters`` cell. For a parameter that is a
dict of a Config's settings, ``Config.of`` checks the settings.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .artifacts import fingerprint_of
from .names import MAX_LETTERS
from .paths import Run, checked_name

PLAIN_TYPES = (bool, int, float, str, list, tuple, dict, type(None))
IPYTHON_NAMES = {"In", "Out", "exit", "quit"}
BOOLEANS = {"true": True, "false": False}  # papermill's -p passes booleans as these texts
# kind of pydantic's error -> what to do where a text stands in place of another value
REMEDIES = {
    "float_type": "in YAML write 1.0e-4 and 1.0e+6",
    "list_type": 'papermill\'s -p passes a text: write -y "name: [a, b]"',
    "dict_type": 'papermill\'s -p passes a text: write -y "name: {a: b}"',
}
SEED_BOUNDS = (0, 2**32 - 1)
MAX_SHOWN_CHARS = 200  # of a value in a message
MEMORY_SIZE = re.compile(r"\d{1,6}(?:\.\d{1,6})? ?[MGT]i?B")
STRICT = ConfigDict(strict=True, allow_inf_nan=False)


class Config(BaseModel):
    """A frozen set of named settings.

    Unknown names, wrong types and values out of bounds are errors. Types are strict: "3", 3.0 and
    true are not accepted as integers. Numbers have bounds, and nan and inf are never accepted.
    """

    model_config = STRICT | ConfigDict(frozen=True, extra="forbid", validate_default=True)

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
    if fault["type"] == "extra_forbidden":
        for parent in path[:-1]:
            config = config.model_fields[parent].annotation
        return unknown([str(path[-1])], config.model_fields, "setting")
    name = ".".join(map(str, path))
    if fault["type"] == "missing":
        return (
            f"the setting {name!r} is missing: it has no default, and a dict that you give "
            "replaces the notebook's whole dict, so it must hold this setting, too"
        )
    return f"{name!r} {_wrong_value(fault)}"


def _wrong_value(fault):
    """Return which value is wrong and why, from an entry of pydantic's ``errors()``."""
    message = f"is {shown(fault['input'])}: {fault['msg'].removeprefix('Value error, ')}"
    if isinstance(fault["input"], str) and fault["type"] in REMEDIES:
        message += f" ({REMEDIES[fault['type']]})"
    return message


def unknown(names: Iterable[str], valid: Iterable[str], what: str = "parameter") -> str | None:
    """Return the message of an error about unknown names, or None if all names are valid.

    Parameters
    ----------
    names : iterable of str
        the names to check
    valid : iterable of str
        all valid names; the message lists them, and suggests the nearest to the first unknown name
    what : str
        the noun for a name in the message
    """
    wrong = sorted(set(names) - set(valid))
    if not wrong:
        return None
    valid = sorted(valid)
    near = difflib.get_close_matches(wrong[0], valid, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {', '.join(map(repr, wrong))}{hint}; valid: {', '.join(valid)}"


def shown(value: Any) -> str:
    """Return a value as Python writes it, for a message; of a long one only both ends."""
    text = repr(value)
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return f"{text[: MAX_SHOWN_CHARS - 20]}...{text[-10:]}"


def memory_size(text: str) -> str:
    """Return a size of memory, such as "2GB", unchanged; ValueError where it is none."""
    if not MEMORY_SIZE.fullmatch(text):
        raise ValueError(f"must be a size of memory such as 500MB or 2GB, not {shown(text)}")
    return text


def file_name(text: str) -> str:
    """Return a name that is safe as that of a file or folder unchanged, else raise ValueError."""
    return checked_name("is", text)


def row_title(text: str) -> str:
    """Return a name that fits into a row of a table and a legend, else raise ValueError."""
    if len(text) > MAX_LETTERS:
        raise ValueError(f"must hold names of at most {MAX_LETTERS} characters, not {shown(text)}")
    return text


def check(
    namespace: dict[str, Any],
    may_be_empty: Collection[str] = (),
    set_elsewhere: dict[str, Collection[str]] | None = None,
    **allowed: Collection | Callable,
) -> dict[str, Any]:
    """Check the declared parameters of a notebook, and return them: name -> value of its type.

    No list may hold the same element twice, and no text may be blank.

    Parameters
    ----------
    namespace : dict
        the notebook's ``globals()``, right after its annotated ``parameters`` cell
    may_be_empty : collection of str
        names of the texts, lists and dicts that may be empty; a dict that is not in ``allowed``
        always may
    set_elsewhere : dict
        for the name of a dict the keys that it may not have, because parameters of their own, or
        the notebook, give their values
    **allowed : collection or function
        for a parameter's name its valid values, as a collection, or its bounds, as a tuple of two
        numbers, the lowest and the highest, or a function that raises ValueError for what is not
        valid, such as :func:`memory_size`. Each element of a list, and each key of a dict, must be
        valid; None and a text that may be empty always are. Parameters that are left out may have
        any value of their type, except "run", a name of a folder, and "seed" and "seeds", which
        have bounds

    Raises
    ------
    ValueError
        with a message of one line, where a parameter is unknown, has a wrong type, is not finite,
        not allowed, empty, or a list with the same element twice
    """
    declared = namespace.get("__annotations__", {})
    given = [name for name, value in namespace.items() if _is_parameter(name, value)]
    if message := unknown(given, declared):
        raise ValueError(message)
    allowed = {"run": file_name, "seed": SEED_BOUNDS, "seeds": SEED_BOUNDS} | allowed
    checked = {}
    messages = []
    for name, hint in declared.items():
        try:
            checked[name] = _of_type(namespace[name], hint)
            _check_value(checked[name], allowed.get(name), name in may_be_empty)
            for key in (set_elsewhere or {}).get(name, ()):
                if key in checked[name]:
                    raise ValueError(f"must not hold {key!r}, which is set elsewhere")
        except ValidationError as error:
            messages.append(f"parameter {name!r} {_wrong_value(error.errors()[0])}")
        except ValueError as error:
            messages.append(f"parameter {name!r} {error}")
    if messages:
        raise ValueError("; ".join(messages))
    return checked


def start(namespace: dict[str, Any], may_be_empty: Collection[str] = (), **rules: Any) -> Run:
    """Check the declared parameters of a notebook, and return the files of the run that they name.

    Parameters
    ----------
    namespace, may_be_empty, **rules
        see :func:`check`

    Raises
    ------
    ValueError
        see :func:`check`
    """
    return Run(check(namespace, may_be_empty, **rules)["run"])


def _is_parameter(name, value):
    """Return whether a name in a namespace is a parameter, not an import, constant or the like."""
    if name.startswith("_") or name.isupper() or name in IPYTHON_NAMES:
        return False
    return type(value) in PLAIN_TYPES


def _of_type(value, hint):
    """Return the value of a parameter converted to the type of its annotation ``hint``."""
    if hint is bool:
        value = BOOLEANS.get(str(value), value)
    return TypeAdapter(hint, config=STRICT).validate_python(value)


def _check_value(value, allowed, may_be_empty):
    # ValueError where a value is empty or not allowed; ``allowed`` as in check(), None for anything
    if may_be_empty and value in ("", [], {}):
        return
    if value == [] or value == {} and allowed is not None:
        raise ValueError("must not be empty")
    elements = value if isinstance(value, list | dict) else [value]
    if len(set(elements)) < len(elements):
        raise ValueError(f"must not hold an element twice, as {shown(value)} does")
    for element in elements:
        if isinstance(element, str) and not element.strip():
            raise ValueError("must not be empty or hold an empty text")
        if element is not None and allowed is not None:
            _check_element(element, allowed)


def _check_element(element, allowed):
    if callable(allowed):
        allowed(element)
    elif isinstance(allowed, tuple) and all(isinstance(end, int | float) for end in allowed):
        low, high = allowed
        if not low <= element <= high:
            raise ValueError(f"must lie in {low}..{high}, not {shown(element)}")
    elif element not in allowed:
        raise ValueError(f"must be one of {', '.join(map(str, allowed))}, not {shown(element)}")
