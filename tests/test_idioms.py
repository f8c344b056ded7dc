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


def is_several_values(node):
    """``a, b = x, y``, and ``a, b = (f(v) for v in values)``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return False
    return isinstance(node.value, ast.Tuple | ast.GeneratorExp | ast.ListComp)


def is_conditional(node):
    """``a if condition else b``."""
    return isinstance(node, ast.IfExp)


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


# idiom: how it is found in the syntax tree, and how many helpers/ may have
LIMITS = {
    "several values in one assignment": (is_several_values, 60),
    "conditional expression": (is_conditional, 150),
    "choice behind in": (is_choice_behind_in, 0),
    "lambda": (is_lambda, 30),
    "name that is no noun": (is_no_noun, 10),
    "product with a boolean": (is_boolean_product, 0),
    "function over 40 lines": (is_long_function, 10),
}


@pytest.fixture(scope="module")
def nodes():
    """Every node of the syntax trees of helpers/, with the path of its module."""
    files = sorted((paths.ROOT / "helpers").rglob("*.py"))
    trees = [(file.relative_to(paths.ROOT), ast.parse(file.read_text("utf-8"))) for file in files]
    return [(path, node) for path, tree in trees for node in ast.walk(tree)]


@pytest.mark.parametrize("idiom", LIMITS)
def test_an_idiom_stays_rare(idiom, nodes):
    is_idiom, limit = LIMITS[idiom]
    places = []
    for path, node in nodes:
        if is_idiom(node):
            # the iterable of a comprehension has a line, the comprehension itself has none
            place = node.iter if isinstance(node, ast.comprehension) else node
            places.append(f"{path}:{place.lineno}")
    message = f"{idiom}: {len(places)} places, at most {limit} are allowed"
    assert len(places) <= limit, "\n".join([message, *places])
