"""Numbers in the sentences of a page, and comparisons that its words state."""

import ast
import json
import math
import operator
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import page_rows
import page_tables
import pandas as pd
import yaml
from page_rows import ROOT, Choice, Value

from helpers.published import claims

BLOCK = re.compile(r"<!-- values\n(.*?)-->\n", re.S)
INLINE = re.compile(r"(<!-- = (.+?) -->).*?(?=<!-- / -->)")
HOLDS = re.compile(r"<!-- holds: (.+?) -->", re.S)
FORMAT = re.compile(r"(.+):(\+?,?(?:\.\d)?[fd%])")
GROUP_OPTIONS = ("systems", "settings", "pick")
PICKS = {"max": max, "min": min}
VERDICTS = {
    "published": claims.AGREE,
    "none": ("no difference",),
    "open": ("not told apart", "no interval"),
    "other": ("other sign", "a difference"),
}
PUBLISHED = ROOT / "helpers" / "published"
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
ELEMENTWISE = {"abs": np.abs, "log": np.log}
OF_ALL = {
    "all": np.all,
    "any": np.any,
    "count": np.count_nonzero,
    "max": np.max,
    "mean": np.mean,
    "min": np.min,
}


def named(text: str) -> dict[str, Any]:
    """Return the values that a page names: a :class:`Value`, a number, or for a group an array."""
    options = {}
    for block in BLOCK.findall(text):
        of_block = yaml.safe_load(block) or {}
        included = of_block.pop("include", "")
        if included:
            path = ROOT / included
            options |= _options_of(path, path.stat().st_mtime)
        options |= of_block
    values = {}
    for name, option in options.items():
        if not name.startswith("_"):  # such a line is only there for YAML to merge
            values |= values_of(name, option)
    return values


@lru_cache
def _options_of(path: Path, modified: float) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def values_of(name: str, option: dict[str, Any]) -> dict[str, Any]:
    """Return what one line of a block names: one value, or a group and its members.

    Raises ValueError where something was not measured.
    """
    if "json" in option:
        return {name: json.loads((ROOT / option["json"]).read_text("utf-8"))[option["key"]]}
    if "published" in option:
        table = pd.read_csv(PUBLISHED / f"{option['published']}.csv")
        return {name: table.query(option["row"])[option["metric"]].mean()}
    if "verdicts" in option:
        verdicts = page_tables.claims_of(option["verdicts"])["verdict"]
        counts = {
            f"{name}.{key}": int(verdicts.isin(words).sum()) for key, words in VERDICTS.items()
        }
        return {name: len(verdicts)} | counts
    systems = option.get("systems")
    settings = option.get("settings")
    choice = Choice.of({key: value for key, value in option.items() if key not in GROUP_OPTIONS})
    if systems is None and settings is None:
        return {name: page_rows.need(choice)}
    if settings is None:
        members = members_of(choice, systems)
    elif "pick" in option:
        members = {}
        for setting, change in settings.items():
            candidates = members_of(choice.but(**change), systems)
            pick = PICKS[option["pick"]]
            members[setting] = pick(candidates.values(), key=lambda member: member.value)
    else:
        members = {}
        for setting, change in settings.items():
            members[setting] = page_rows.need(choice.but(**change))
    array = np.array([member.value for member in members.values()])
    return {f"{name}.{member}": value for member, value in members.items()} | {name: array}


def members_of(choice: Choice, systems: dict[str, str] | list[str]) -> dict[str, Value]:
    """Return the values of several systems, by the keys of a dict or the names of a list."""
    if isinstance(systems, list):
        systems = {system: system for system in expanded(choice, systems)}
    values = {}
    for member, system in systems.items():
        values[member] = page_rows.need(choice.but(system=system))
    return values


def expanded(choice: Choice, patterns: list[str]) -> list[str]:
    """Return the names of measured systems that match one of the patterns, sorted."""
    matching = []
    for system in sorted(set(page_rows.rows_of(choice)["label"])):
        if any(fnmatchcase(system, pattern) for pattern in patterns):
            matching.append(system)
    if not matching:
        raise ValueError(f"{choice.place}: no system is called {' or '.join(patterns)}")
    return matching


def evaluate(expression: str, values: dict[str, Any]) -> Any:
    """Return what an expression of named values gives.

    It may hold numbers, operators, comparisons, ``and``, ``or``, ``not`` and a few functions. A
    name is its value; ``name.low`` and so on are the fields of :class:`Value`.
    Raises ValueError for all else, an unknown name too.
    """
    return _evaluate(ast.parse(expression.strip(), mode="eval").body, values, expression)


def _evaluate(node: ast.expr, values: dict[str, Any], expression: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name | ast.Attribute):
        return _number(ast.unparse(node), values)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left = _evaluate(node.left, values, expression)
        right = _evaluate(node.right, values, expression)
        return OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, values, expression)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _truth(node.operand, values, expression)
    if isinstance(node, ast.BoolOp):
        truths = [_truth(part, values, expression) for part in node.values]
        return all(truths) if isinstance(node.op, ast.And) else any(truths)
    if isinstance(node, ast.Compare) and all(type(step) in OPERATORS for step in node.ops):
        return _compare(node, values, expression)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node, values, expression)
    raise _forbidden(node, expression)


def _call(node: ast.Call, values: dict[str, Any], expression: str) -> Any:
    function = node.func.id
    arguments = [_evaluate(argument, values, expression) for argument in node.args]
    if function in ELEMENTWISE and len(arguments) == 1:
        return ELEMENTWISE[function](arguments[0])
    if function in OF_ALL and arguments:
        return OF_ALL[function](np.hstack(arguments))
    raise _forbidden(node, expression)


def _forbidden(node: ast.expr, expression: str) -> ValueError:
    return ValueError(f"{ast.unparse(node)!r} in {expression!r} is nothing that a page may compute")


def _compare(node: ast.Compare, values: dict[str, Any], expression: str) -> Any:
    sides = [_evaluate(side, values, expression) for side in (node.left, *node.comparators)]
    truth = True
    for step, left, right in zip(node.ops, sides, sides[1:]):
        truth = np.logical_and(truth, OPERATORS[type(step)](left, right))
    return truth


def _truth(node: ast.expr, values: dict[str, Any], expression: str) -> bool:
    truth = _evaluate(node, values, expression)
    if np.ndim(truth) or not isinstance(truth, bool | np.bool_):
        statement = f"{ast.unparse(node)!r} in {expression!r}"
        raise ValueError(f"{statement} is neither true nor false: compare, or use all(...)")
    return bool(truth)


def _number(name: str, values: dict[str, Any]) -> Any:
    if name in values:
        value = values[name]
        return value.value if isinstance(value, Value) else value
    owner, _, field = name.rpartition(".")
    if isinstance(values.get(owner), Value) and field in Value.__dataclass_fields__:
        return getattr(values[owner], field)
    raise ValueError(f"{name!r} is no value of this page")


def shown(expression: str, values: dict[str, Any]) -> str:
    """Return the result of an expression, perhaps with a format, as a sentence shows it.

    A name alone is shown with its interval or its standard deviation.
    """
    formatted = FORMAT.fullmatch(expression)
    if formatted:
        return format(evaluate(formatted[1], values), formatted[2])
    if isinstance(values.get(expression), Value):
        return values[expression].text()
    number = evaluate(expression, values)
    if np.ndim(number):
        raise ValueError(f"{expression!r} has several values: a sentence shows one")
    is_whole = math.isclose(number, round(number)) and abs(number) > 1
    if is_whole or isinstance(number, int | np.integer):
        return f"{number:,.0f}"
    return f"{number:.3f}"


def filled(text: str) -> str:
    """Return a page with the numbers of its sentences as the results say."""
    values = named(text)
    return INLINE.sub(lambda match: match[1] + shown(match[2], values), text)


def false_statements(text: str) -> list[str]:
    """Return the statements of a page that do not hold."""
    values = named(text)
    statements = [" ".join(statement.split()) for statement in HOLDS.findall(text)]
    return [statement for statement in statements if not _holds(statement, values)]


def _holds(statement: str, values: dict[str, Any]) -> bool:
    return _truth(ast.parse(statement, mode="eval").body, values, statement)
