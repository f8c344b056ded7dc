"""Front doors: rooms offer names of their modules, and import none of them before its use."""

import ast
from functools import partial
from importlib import import_module
from importlib.util import resolve_name

import pytest

from helpers.core import paths

HELPERS = paths.ROOT / "helpers"
ROOMS = [
    path.parent.name
    for path in sorted(HELPERS.glob("*/__init__.py"))
    if "front_door(" in path.read_text("utf-8")
]


def test_every_name_is_found_where_the_table_says_and_is_no_module():
    for room in ROOMS:
        package = import_module(f"helpers.{room}")
        offered = package.__getattr__.args[1]
        for name in offered:
            assert getattr(package, name) is not None, f"{room}.{name}"
        modules = {path.stem for path in (HELPERS / room).glob("*.py")}
        assert not offered.keys() & modules, f"{room}: the import of the module hides the name"
    with pytest.raises(AttributeError, match=f"'helpers.{room}' has no attribute 'fit_basline'"):
        package.fit_basline


def test_modules_import_each_other_directly():
    """An import through a door would hide a module from the runner and from the layers."""
    through_doors = []
    for path in HELPERS.rglob("*.py"):
        package = ".".join(path.relative_to(paths.ROOT).parent.parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                room = resolve_name("." * node.level + (node.module or ""), package)
                door = getattr(import_module(room), "__getattr__", None)
                if isinstance(door, partial):
                    names = {alias.name for alias in node.names} & door.args[1].keys()
                    through_doors += [f"{package}.{path.stem}: {name}" for name in names]
    assert through_doors == []
