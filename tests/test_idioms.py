"""Idioms that make code hard to read, counted over helpers/: each has a ceiling.

Ceilings lie above zero where an idiom is at times the plainest form: a pair such as
``low, high = 0.0, 1.0``, or a default value that is a conditional expression.
"""

import ast

import pytest

from helpers.core import paths

NO_NOUNS = set(
    "again asked both drawn each found here one other others rest some taken there told".split()
)
MAX_FUNCTION_LINES = 40
MAX_PARAMETERS = 8
MAX_LINE_LETTERS = 100


def is_several_values(node):
    """``a, b = x, y``, and ``a, b = (f(v) for v in values)``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return False
    return isinstance(node.value, ast.Tuple | ast.GeneratorExp | ast.ListComp)


def is_conditional(node):
    """``a if condition else b``."""
    return isinstance(node, ast.IfExp)


def is_nested_conditional(node):
    """``a if condition else b if condition else c``."""
    if not is_conditional(node):
        return False
    return any(is_conditional(inner) for inner in ast.walk(node) if inner is not node)


def is_choice_behind_in(node):
    """``for x in a if condition else b``, and ``for x in a or b``."""
    if not isinstance(node, ast.For | ast.comprehension):
        return False
    return isinstance(node.iter, ast.IfExp | ast.BoolOp)


def is_lambda(node):
    """``lambda x: x``."""
    return isinstance(node, ast.Lambda)


def is_no_noun(node):
    """A variable or a parameter with a name such as ``each``."""
    if isinstance(node, ast.arg):
        return node.arg in NO_NOUNS
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NO_NOUNS


def is_starred_map(node):
    """``[*map(f, xs)]``."""
    if not isinstance(node, ast.List):
        return False
    starred = [item.value for item in node.elts if isinstance(item, ast.Starred)]
    calls = [value.func for value in starred if isinstance(value, ast.Call)]
    return any(isinstance(function, ast.Name) and function.id == "map" for function in calls)


def is_boolean_product(node):
    """``x * (a > b)``, ``x * (a and b)``, and ``x * (not a)``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    return is_boolean(node.left) or is_boolean(node.right)


def is_boolean(node):
    """A comparison, ``and``, ``or``, ``not``."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare | ast.BoolOp)


def is_long_function(node):
    """A function of more lines than fit a screen, its docstring aside."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines > MAX_FUNCTION_LINES


def has_many_parameters(node):
    """A function that should take a config; self and cls do not count."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    parameters = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    names = [parameter.arg for parameter in parameters]
    return len([name for name in names if name not in ("self", "cls")]) > MAX_PARAMETERS


def is_long_line(line):
    """A line that a screen beside another one does not show whole."""
    return len(line) > MAX_LINE_LETTERS


def skips_format(line):
    """A statement that the formatter leaves alone."""
    return "fmt: skip" in line


# idiom: how it is found in the syntax tree, and how many helpers/ may have
IN_TREES = {
    "several values in one assignment": (is_several_values, 60),
    "conditional expression": (is_conditional, 150),
    "nested conditional expression": (is_nested_conditional, 0),
    "choice behind in": (is_choice_behind_in, 0),
    "lambda": (is_lambda, 30),
    "name that is no noun": (is_no_noun, 10),
    "[*map(": (is_starred_map, 0),
    "product with a boolean": (is_boolean_product, 0),
    "function over 40 lines": (is_long_function, 10),
    "more than 8 parameters": (has_many_parameters, 0),
}
# the same of single lines
IN_LINES = {
    "line over 100 characters": (is_long_line, 0),
    "fmt: skip": (skips_format, 15),
}
LIMITS = {idiom: limit for idiom, (_, limit) in (IN_TREES | IN_LINES).items()}


def lines_with(idiom, source):
    """Return the numbers of the lines of a module where an idiom stands."""
    if idiom in IN_LINES:
        is_idiom, _ = IN_LINES[idiom]
        return [number for number, line in enumerate(source.splitlines(), 1) if is_idiom(line)]
    is_idiom, _ = IN_TREES[idiom]
    nodes = [node for node in ast.walk(ast.parse(source)) if is_idiom(node)]
    # the iterable of a comprehension has a line, the comprehension itself has none
    places = [node.iter if isinstance(node, ast.comprehension) else node for node in nodes]
    return sorted(place.lineno for place in places)


@pytest.fixture(scope="module")
def sources():
    """The text of every module of helpers/, by its path."""
    files = sorted((paths.ROOT / "helpers").rglob("*.py"))
    return {file.relative_to(paths.ROOT): file.read_text("utf-8") for file in files}


@pytest.mark.parametrize("idiom", LIMITS)
def test_an_idiom_stays_rare(idiom, sources):
    places = []
    for path, source in sources.items():
        places += [f"{path}:{line}" for line in lines_with(idiom, source)]
    limit = LIMITS[idiom]
    message = f"{idiom}: {len(places)} places, at most {limit} are allowed"
    assert len(places) <= limit, "\n".join([message, *places])
