"""Which modules of ``helpers`` a notebook uses, and a hash of each, to tell whether it is stale."""

import ast
import re
from contextlib import suppress
from functools import cache

from ..core import artifacts, paths
from ..core.rooms import modules_of_names

REGISTRY = re.compile(r"(import_module|resolve_name)\(")  # code that imports modules by name
TABLE_SUFFIXES = (".csv", ".yaml")  # data of a module, in a file of the same stem beside it


def used_modules(code: str) -> list[tuple[str, str]]:
    """Return name and hash of each module that code imports, directly or through others.

    Of a room's front door, only the module counts that holds the name which is imported.
    """
    python = "\n".join(line for line in code.splitlines() if not line.lstrip().startswith("%"))
    names = set()
    with suppress(SyntaxError):  # the kernel will report it with a better message
        for node in ast.walk(ast.parse(python)):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
                offered = _offered_names(node.module)
                for alias in node.names:
                    names.add(offered.get(alias.name, f"{node.module}.{alias.name}"))
    graph = _imports()
    names &= graph.modules
    used = names.union(*(graph.find_upstream_modules(name) for name in names))
    return [(name, _module_fingerprint(name)) for name in sorted(used)]


@cache
def _offered_names(module):
    """Return the module of each name at a room's front door, {} where there is none."""
    path = _module_path(module)
    if path.exists():
        for statement in _statements(path):
            if _is_front_door(statement):
                return modules_of_names(module, ast.literal_eval(statement.value.args[1]))
    return {}


def _statements(path):
    return ast.parse(path.read_text("utf-8")).body


def _is_front_door(statement):
    """Tell whether a statement is ``__getattr__, __dir__ = front_door(__name__, {...})``."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return False
    return ast.unparse(statement.value.func) == "front_door"


@cache
def _imports():
    """Return the graph of who imports whom in ``helpers``.

    The room ``runs`` is left out: how notebooks are run and shown does not change what they find.
    So are front doors: what a room offers does not change what its modules do.
    Whoever imports a module imports its package, and a registry imports its whole package.
    """
    import grimp

    graph = grimp.build_graph("helpers", cache_dir=None)
    left_out = {"helpers.runs", "helpers.core.rooms"}
    for name in left_out | graph.find_descendants("helpers.runs"):
        graph.remove_module(name)
    for name in graph.modules - {"helpers"}:
        path = _module_path(name)
        package = name.rpartition(".")[0]
        if package != "helpers":
            graph.add_import(importer=name, imported=package)
        if REGISTRY.search(path.read_text("utf-8")):
            room = name if path.name == "__init__.py" else package
            for member in graph.find_children(room) - {name}:
                graph.add_import(importer=name, imported=member)
    return graph


def _module_path(name):
    path = paths.ROOT.joinpath(*name.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py")


@cache
def _module_fingerprint(name):
    """Return a hash of a module and its data that does not change with comments and layout."""
    path = _module_path(name)
    tables = [path.with_suffix(suffix) for suffix in TABLE_SUFFIXES]
    texts = [table.read_text("utf-8") for table in tables if table.exists()]
    code = [ast.dump(item) for item in _statements(path) if not _is_front_door(item)]
    return artifacts.fingerprint_of(code, *texts)
