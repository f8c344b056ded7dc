"""What a reader of helpers/ may rely on: parameters are documented, one name means one thing."""

import ast
import re
from collections import defaultdict

from helpers.core import paths

HELPERS = paths.ROOT / "helpers"
MODULES = sorted(HELPERS.rglob("*.py"))
# every source has its parts, every command its main
SHARED_NAMES = {"main", "parts"}
# a room's own text, its command, and the contract of what it registers
SHARED_MODULES = {"__init__", "__main__", "base"}
# the section ends where the next one begins
PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", re.M | re.S)
# "low, high : float", "*parts : Tensor", "connection", with more behind the colon or indented below
PARAMETER_LINE = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) ?(?::|$)", re.M)


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


def documented_parameters(function):
    """Return the names in the section Parameters of a docstring, None where it has no section."""
    section = PARAMETERS.search(ast.get_docstring(function) or "")
    if section is None:
        return None
    lines = ", ".join(PARAMETER_LINE.findall(section[1]))
    return [name.lstrip("*") for name in lines.split(", ")]


def defects(source):
    """Yield what is wrong with the sections Parameters of a module, in words."""
    for name, function in public_functions(ast.parse(source)):
        parameters = parameters_of(function)
        documented = documented_parameters(function)
        if documented is None:
            if len(parameters) > 1:
                yield f"{name} has no section Parameters"
            continue
        if set(parameters) != set(documented):
            yield f"{name} takes {parameters} and documents {documented}"


def test_every_parameter_is_documented():
    sentences = []
    for path in MODULES:
        sentences += [f"{path.name}: {defect}" for defect in defects(path.read_text("utf-8"))]
    assert not sentences, "\n".join(sentences)


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
    """A subject's figures are in a module of its own name."""
    rooms_of_module = defaultdict(list)
    for path in MODULES:
        room = path.relative_to(HELPERS).parent
        if room.name != "figures":
            rooms_of_module[path.stem].append(str(room))
    assert shared(rooms_of_module, SHARED_MODULES) == {}
