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
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
# the section ends where the next one begins
PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", re.M | re.S)
# "low, high : float", "*parts : Tensor", "connection", with more behind the colon or indented below
PARAMETER_LINE = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) ?(?::|$)", re.M)


def public(nodes):
    """Return the functions and classes among nodes by whose names others call them."""
    named = [node for node in nodes if isinstance(node, FUNCTION | ast.ClassDef)]
    return [node for node in named if not node.name.startswith("_")]


def defect(function):
    """Return what is wrong with the section Parameters of a function, in words, or ""."""
    taken = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)} - {
        "self",
        "cls",
    }
    section = PARAMETERS.search(ast.get_docstring(function) or "")
    if section is None:
        return "has no section Parameters" if len(taken) > 1 else ""
    lines = ", ".join(PARAMETER_LINE.findall(section[1]))
    documented = {name.lstrip("*") for name in lines.split(", ")}
    return "" if taken == documented else f"takes {taken} and documents {documented}"


def test_every_parameter_is_documented():
    defects = []
    for path in MODULES:
        nodes = public(ast.parse(path.read_text("utf-8")).body)
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                nodes += public(node.body)
            elif defect(node):
                defects.append(f"{path.name}: {node.name} {defect(node)}")
    assert not defects, "\n".join(defects)


def shared(places, allowed):
    """Return what has one name in several places, but for allowed names."""
    return {name: where for name, where in places.items() if len(where) > 1 and name not in allowed}


def test_a_public_name_means_one_thing():
    modules_of_name = defaultdict(list)
    for path in MODULES:
        for node in public(ast.parse(path.read_text("utf-8")).body):
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
