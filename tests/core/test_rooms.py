"""Front doors: rooms offer names of their modules, and import none of them before its use."""

import ast
import subprocess
import sys
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


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_found_where_the_table_says_and_is_no_module(room):
    package = import_module(f"helpers.{room}")
    offered = package.__getattr__.args[1]
    for name in offered:
        assert getattr(package, name) is not None
    modules = {path.stem for path in (HELPERS / room).glob("*.py")}
    assert not offered.keys() & modules, "the import of the module hides the name"


def test_an_unknown_name_is_an_error_that_names_the_room():
    package = import_module("helpers.encoders")
    with pytest.raises(AttributeError, match="'helpers.encoders' has no attribute 'fit_basline'"):
        package.fit_basline


def test_a_name_is_imported_at_its_first_use():
    code = (
        "import sys; import helpers.accounts, helpers.evaluation, helpers.figures, helpers.runs; "
        "print({'numpy', 'pandas', 'torch', 'plotly', 'pydantic'} & set(sys.modules)); "
        "from helpers.runs import label; print('pandas' in sys.modules, label('mrr'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["set()", "False mrr"]


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
