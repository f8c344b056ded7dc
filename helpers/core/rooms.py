"""The front door of a room: names that it offers, each imported from its module at first use.

A notebook writes ``from helpers.encoders import fit_baseline``, whichever module of the room holds
the function. Modules of ``helpers`` import each other directly.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import resolve_name
from typing import Any


def front_door(
    room: str, names_of_module: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a room (PEP 562), by which it offers names.

    No module is imported before one of its names is asked for.

    Parameters
    ----------
    room : str
        ``__name__`` of the room
    names_of_module : mapping
        for a module, relative to the room as in ".baselines" or "..core.names", the names that it
        holds; none of them is also the name of a module of the room
    """
    modules = {}
    for module, names in names_of_module.items():
        modules.update(dict.fromkeys(names, resolve_name(module, room)))
    return partial(_import_name, room, modules), partial(_list_names, room, modules)


def _import_name(room, modules, name):
    if name not in modules:
        message = f"module {room!r} has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[room])
    return getattr(import_module(modules[name]), name)


def _list_names(room, modules):
    return sorted({*vars(sys.modules[room]), *modules})
