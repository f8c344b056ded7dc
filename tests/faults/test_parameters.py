"""Parameters of the notebooks that make no sense: refused by the check cell, by name, in one line.

Each case executes the imports, the parameters and the check of a notebook in this process, see
:func:`tests.paper_runs.checking_code`. What needs data is left out.
"""

import math

import pytest

from helpers.core import paths
from helpers.corpus.posts_table import open_database
from helpers.runs.stages import Stage
from helpers.sources import open_source
from tests.paper_runs import checking_code, settings

NOTEBOOKS = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))

# (notebook, parameter, value, what the message says beside the parameter's name)
NONSENSE = [
    ("00_start_here", "run", "../x", "use letters, digits"),
    ("01_collect", "location", ["data/a", "data/a"], "twice"),
    ("01_collect", "memory_limit", "-1", "size of memory"),
    ("01_collect", "collecting", {"min_chars": 20, "max_chars": 10}, "min_chars (20)"),
    ("01_collect", "selection", {"start": "2020-02-01", "end": "2020-01-01"}, "before end"),
    ("01_collect", "split_settings", {"train_until": 0.9, "dev_until": 0.8}, "earlier than"),
    (
        "01_collect",
        "split_settings",
        {"train_until": "2020-02-01", "dev_until": "2020-02-01T00:00+01:00"},
        "earlier than",
    ),
    ("03_train", "name", "../x", "use letters, digits"),
    ("03_train", "encoder", {"filters": 10**6}, "'filters' is 1000000"),
    ("03_train", "encoder", {"widths": [2, 2]}, "a width twice"),
    ("03_train", "encoder", {"features": "T"}, "set elsewhere"),
    ("03_train", "training", {"steps": 10**12, "lr": 0.1}, "'steps' is 1000000000000"),
    ("04_losses", "losses", ["topk", "topk"], "twice"),
    ("04_losses", "top_k", {"positives": [0]}, "must divide the 128 samples"),
    ("05_arr", "documents", {"max_chars": 100, "min_chars": 200}, "min_chars (200)"),
    ("06_evaluate", "models", ["T-supcon", "T-supcon"], "twice"),
    ("07_visualize", "neighbours", 200, "must be below people * posts"),
    ("07_visualize", "single", "TPS-supcon", "'single' is not 'model'"),
    ("08_link", "protocol", {"min_enrolled": 9, "enrolled": 5}, "min_enrolled (9)"),
    (
        "08_link",
        "protocol",
        {"query_from": "2020-03-01", "target_from": "2020-02-01", "target_until": "2020-04-01"},
        "< target_from",
    ),
    ("08_link", "dev_protocol", {"target_until": 0.4}, "< target_until"),
    ("08_link", "costs", {"prior": 1.0}, "'prior' is 1.0"),
    ("09_tables", "variants", {"x": {"encodr": {}}}, "'encodr' (did you mean 'encoder'?)"),
    ("09_tables", "variants", {"x" * 29: {}}, "at most 28 characters"),
    ("10_verify", "configurations", {}, "must not be empty"),
    ("15_scale", "baseline", "lsa", "must be one of"),
]

# What the sweep below finds accepted, and what it means there. Seeds may be any of theirs.
MEANINGFUL = {
    ("13_your_accounts", "prior", 0.0): "it is estimated",
    ("00_start_here", "keep", 0): "masking keeps no word",
    ("03_train", "name", ""): "the folder is named after features, loss and seed",
    ("04_losses", "margins", 0.0): "the hinge begins at equal distances",
    ("05_arr", "name", ""): "the first encoder of a run has no prefix",
    ("06_evaluate", "beside", ""): "no second encoder",
    ("11_topic", "kept_words", 0): "masking keeps no word",
    ("13_your_accounts", "posts", ""): "the invented accounts",
    ("13_your_accounts", "decisions", ""): "nobody has decided about a pair",
    ("13_your_accounts", "false_link", 1e9): "costs count as a ratio only",
    ("15_scale", "authors", 10**9): "where a law is read, nothing is made of this size",
}
MAY_BE_EMPTY = {
    ("01_collect", "location"): "the demo corpus is read from nowhere",
    ("03_train", "more"): "the run's own authors only",
    ("04_losses", "margins"): "no further triplet is trained",
    ("05_arr", "baselines"): "trained encoders only",
    ("08_link", "baselines"): "trained encoders only",
    ("10_verify", "baselines"): "trained encoders only",
    ("11_topic", "remedies"): "the base alone",
    ("12_pairs", "baselines"): "trained encoders only",
    ("13_your_accounts", "accounts"): "all accounts",
    ("15_scale", "more"): "the run's own authors only",
    ("16_second_accounts", "chosen_on"): "no settings were chosen on projects of the table",
}


def execute_check(notebook, **values):
    """Execute the check cell of a notebook with some values other than the defaults."""
    return settings(Stage("", notebook, values, ""))


@pytest.mark.parametrize(
    "notebook, parameter, value, words", NONSENSE, ids=[f"{case[0]}-{case[1]}" for case in NONSENSE]
)
def test_nonsense_is_refused_in_one_sentence(notebook, parameter, value, words):
    with pytest.raises(ValueError) as error:
        execute_check(notebook, **{parameter: value})
    message = str(error.value)
    assert parameter in message and words in message
    assert len(message.splitlines()) == 1 and len(message) < 1000


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
            assert "\n" not in str(error.value) and len(str(error.value)) < 1000


@pytest.mark.parametrize("size", ["2 potatoes", "GB"])
def test_what_is_no_size_of_memory_opens_no_database(size, tmp_path):
    with pytest.raises(ValueError, match="must be a size of memory"):
        with open_database(tmp_path / "work", size):
            pass
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["", " ", [""]])
def test_an_empty_location_is_not_the_whole_repository(place):
    for source in ("zulip", "table"):
        with pytest.raises(ValueError, match="an empty location"):
            open_source(source, place)
