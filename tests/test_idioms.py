"""Idioms that make code hard to read, counted over helpers/: each has a ceiling.

Ceilings lie above zero where an idiom is at times the plainest form: a pair such as
``low, high = 0.0, 1.0``, or a default value that is a conditional expression.
"""

import ast

from helpers.core import paths

NO_NOUNS = set(
    "again asked both drawn each found here one other others rest some taken there told".split()
)
MAX_FUNCTION_LINES = 40
# how many helpers/ may have
LIMITS = {
    "several values in one assignment": 60,
    "conditional expression": 150,
    "choice behind in": 0,
    "lambda": 30,
    "name that is no noun": 10,
    "product with a boolean": 0,
    "function over 40 lines": 10,
}


def idiom_of(node):
    """Return the idiom that a node of a syntax tree is, None where it is none."""
    match node:
        case ast.Assign(
            targets=[ast.Tuple()], value=ast.Tuple() | ast.GeneratorExp() | ast.ListComp()
        ):
            return "several values in one assignment"
        case ast.IfExp():
            return "conditional expression"
        case ast.For(iter=choice) | ast.comprehension(iter=choice):
            return "choice behind in" if isinstance(choice, ast.IfExp | ast.BoolOp) else None
        case ast.Lambda():
            return "lambda"
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) if name in NO_NOUNS:
            return "name that is no noun"
        case ast.BinOp(op=ast.Mult()) if is_boolean(node.left) or is_boolean(node.right):
            return "product with a boolean"
        case ast.FunctionDef() | ast.AsyncFunctionDef() if lines_of(node) > MAX_FUNCTION_LINES:
            return "function over 40 lines"


def is_boolean(node):
    """A comparison, ``and``, ``or``, ``not``."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare | ast.BoolOp)


def lines_of(function):
    """Return the number of lines of a function, its docstring aside."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def test_idioms_stay_rare():
    places = {idiom: [] for idiom in LIMITS}
    for file in sorted((paths.ROOT / "helpers").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            idiom = idiom_of(node)
            if idiom:
                # the iterable of a comprehension has a line, the comprehension itself has none
                place = node.iter if isinstance(node, ast.comprehension) else node
                places[idiom].append(f"{file.relative_to(paths.ROOT)}:{place.lineno}")
    for idiom, limit in LIMITS.items():
        found = places[idiom]
        message = f"{idiom}: {len(found)} places, at most {limit} are allowed"
        assert len(found) <= limit, "\n".join([message, *found])
