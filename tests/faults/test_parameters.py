"""Parameters of the notebooks that make no sense: refused by the check cell, by name, in one line.

Each case executes the imports, the parameters and the check of a notebook in this process, see
:func:`tests.paper_runs.checking_code`. What needs data is left out.
"""

import math
from pathlib import Path

import pytest
import yaml

from helpers.core import paths
from helpers.runs.stages import Stage
from helpers.sources import open_source
from tests.paper_runs import checking_code, settings

NOTEBOOKS = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))

CASES = yaml.safe_load(Path(__file__).with_name("parameters.yaml").read_text("utf-8"))
MEANINGFUL = {(notebook, name, value) for notebook, name, value, _ in CASES["meaningful"]}
MAY_BE_EMPTY = {(notebook, name) for notebook, name, _ in CASES["may_be_empty"]}


def execute_check(notebook, **values):
    return settings(Stage("", notebook, values, ""))


@pytest.mark.parametrize("notebook, parameter, value, words", CASES["nonsense"])
def test_nonsense_is_refused_in_one_sentence(notebook, parameter, value, words):
    with pytest.raises(ValueError) as error:
        execute_check(notebook, **{parameter: value})
    message = str(error.value)
    assert parameter in message and words in message
    assert len(message.splitlines()) == 1


def bad_values(value, hint):
    """Values of a parameter's type that are too small, too large, empty or twice there."""
    if hint is int:
        return [-1, 0, 10**9, math.nan, ""]
    if hint is float:
        return [-1.0, 0.0, 1e9, math.nan, ""]
    if hint is str:
        return ["", " ", -1]
    if not isinstance(value, list):
        return []  # a dict, whose settings are in NONSENSE, or a bool
    element = value[0] if value else "a"
    values = ["", [], [element, element], [""], [math.nan]]
    if not isinstance(element, str):
        values += [[type(element)(number)] for number in (-1, 0, 10**9)]
    return values


def is_meaningful(notebook, parameter, value):
    if value == []:
        return (notebook, parameter) in MAY_BE_EMPTY
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if parameter in ("seed", "seeds"):
        return value in (0, 10**9)
    return not isinstance(value, list) and (notebook, parameter, value) in MEANINGFUL


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_every_value_is_refused_by_the_name_of_its_parameter_or_has_a_meaning(notebook):
    names = {}
    exec(checking_code(notebook)[0], names)
    for parameter, hint in names["__annotations__"].items():
        for value in bad_values(names[parameter], hint):
            if is_meaningful(notebook, parameter, value):
                execute_check(notebook, **{parameter: value})
                continue
            with pytest.raises(ValueError) as error:
                execute_check(notebook, **{parameter: value})
            assert f"'{parameter}'" in str(error.value)
            assert "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["", " ", [""]])
def test_an_empty_location_is_not_the_whole_repository(place):
    with pytest.raises(ValueError, match="an empty location"):
        open_source("zulip", place)
