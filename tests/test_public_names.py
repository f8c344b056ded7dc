"""What a reader of helpers/ may rely on: parameters are documented, one name means one thing."""

import ast
import re
from collections import defaultdict

import pytest

from helpers.core import paths

HELPERS = paths.ROOT / "helpers"
MODULES = sorted(HELPERS.rglob("*.py"))
# every source has its parts, every command its main
SHARED_NAMES = {"main", "parts"}
# a room's own text, its command, and the base class of what it registers
SHARED_MODULES = {"__init__", "__main__", "base"}
PARAMETERS = re.compile(r"^ *Parameters\n *-+$", re.M)


def is_function(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def is_public(node):
    """A function or class by whose name others call it."""
    return (is_function(node) or isinstance(node, ast.ClassDef)) and not node.name.startswith("_")


def public_functions(tree):
    """Yield the functions of a module and the methods of its classes, as (name, function)."""
    for node in filter(is_public, tree.body):
        if is_function(node):
            yield node.name, node
        else:
            for method in node.body:
                if is_public(method) and is_function(method):
                    yield f"{node.name}.{method.name}", method


def parameters_of(function):
    """Return the names of what a function takes, self and cls aside."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for parameter in (arguments.vararg, arguments.kwarg):
        if parameter is not None:
            parameters.append(parameter)
    return [parameter.arg for parameter in parameters if parameter.arg not in ("self", "cls")]


def undocumented(source):
    """Return the public functions of two parameters or more without a section on them."""
    names = []
    for name, function in public_functions(ast.parse(source)):
        docstring = ast.get_docstring(function) or ""
        if len(parameters_of(function)) > 1 and not PARAMETERS.search(docstring):
            names.append(name)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HELPERS)))
def test_parameters_have_a_section(path):
    names = undocumented(path.read_text("utf-8"))
    assert not names, "a docstring has no section `Parameters`; ruff checks what stands in it"


def test_a_missing_section_is_found():
    section = '"""Add.\n\n    Parameters\n    ----------\n    a : number.\n    b : number.\n    """'
    assert undocumented("def add(a, b):\n    return a + b") == ["add"]
    assert undocumented('def add(a, *b):\n    """Add."""') == ["add"]
    assert undocumented('class Sum:\n    def add(self, a, *, b=1):\n        """Add."""') == [
        "Sum.add"
    ]
    assert undocumented(f"def add(a, b):\n    {section}") == []
    assert undocumented('class Sum:\n    def add(self, a):\n        """Add."""') == []
    assert undocumented("class _Sum:\n    def add(self, a, b):\n        pass") == []


def shared(places, allowed):
    """Return what has one name in several places, but for allowed names."""
    return {name: where for name, where in places.items() if len(where) > 1 and name not in allowed}


def test_a_public_name_means_one_thing():
    modules_of_name = defaultdict(list)
    for path in MODULES:
        for node in filter(is_public, ast.parse(path.read_text("utf-8")).body):
            modules_of_name[node.name].append(str(path.relative_to(HELPERS)))
    assert shared(modules_of_name, SHARED_NAMES) == {}


def test_a_module_name_means_one_thing():
    """The figures of a subject are in a module of its name, so the room figures does not count."""
    rooms_of_module = defaultdict(list)
    for path in MODULES:
        room = path.relative_to(HELPERS).parent
        if room.name != "figures":
            rooms_of_module[path.stem].append(str(room))
    assert shared(rooms_of_module, SHARED_MODULES) == {}
