"""The stages of a run on toy notebooks: their order, their parameters, and when one is stale."""

import re

import pytest

from helpers.core import paths
from helpers.runs import imports
from helpers.runs.__main__ import main
from helpers.runs.stages import read_stages
from tests.toy_runs import DECLARED, log, notebook, params


def test_stages_are_in_order_base_first(toy):
    toy_stages = read_stages("demo")
    assert [stage.name for stage in toy_stages] == ["01_a", "02_b", "02_b.T", "02_b.Z"]
    assert [stage.parameters.get("size") for stage in toy_stages] == [3, None, 8, 9]
    assert all(stage.parameters["run"] == "demo" for stage in toy_stages)
    assert len({stage.fingerprint for stage in toy_stages}) == 4


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("01_a", "sise: 3", "unknown parameter 'sise' .did you mean 'size'"),
        ("01_a", "size: {x: 1}", "params/demo/01_a.yaml: parameter 'size' must be int, not dict"),
        ("01_a", "size: 1e3", "'size' must be int, not str '1e3'"),
        ("01_a", "rate: 1e-3", "'rate' must be float, not str '1e-3' .in YAML write 1.0e-4"),
        ("01_a", "size: 2020-01-01", "must be int, not date"),
        ("01_a", "2020-01-01: 3", "unknown parameter '2020-01-01'"),
        ("01_a", "size: [1", "params/demo/01_a.yaml is not valid YAML"),
        ("01_a", "- 1", "must hold lines of"),
        ("01_a", "run: other", "sets 'run'"),
        ("03_c", "size: 3", "no notebook '03_c'; the notebooks are: 01_a, 02_b"),
        ("00_x.T", "size: 3", "variant of 00_x.yaml, which does not exist"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(toy, capsys, name, text, message):
    params(toy, name, text)
    with pytest.raises(ValueError, match=message):
        read_stages("demo")
    assert main(["demo"]) == 1
    assert not log(toy) and "Traceback" not in capsys.readouterr().err


def test_an_unknown_run_lists_the_runs(toy, capsys):
    assert main(["dmeo"]) == 1
    assert "The runs are: demo." in capsys.readouterr().err
    with pytest.raises(ValueError, match="letters, digits"):
        read_stages("../demo")


def test_prose_does_not_make_a_stage_stale(toy):
    before = read_stages("demo")
    source = toy / "notebooks/02_b.ipynb"
    source.write_text(source.read_text().replace("# Second", "# Two"))
    assert read_stages("demo") == before


def test_what_starts_the_collection_makes_nothing_after_it_stale(toy):
    before = [stage.fingerprint for stage in read_stages("demo")]
    notebook(toy / "notebooks/00_start.ipynb", "print(1)")
    params(toy, "00_start", "")
    first, *later = read_stages("demo")
    assert first.name == "00_start" and [stage.fingerprint for stage in later] == before


def modules(code):
    """The modules of helpers that code uses."""
    return {name for name, _ in imports.used_modules(code)}


def test_a_changed_helper_makes_what_imports_it_stale():
    core = {"helpers.core", "helpers.core.paths"}
    assert modules("from helpers.core import paths\nfrom helpers.runs import stages") == core, (
        "how notebooks are run does not count"
    )
    assert core < modules("def f():\n    from helpers.core.artifacts import atomic_write")
    assert "helpers.core.messages" in modules("import helpers.core.artifacts\n%matplotlib inline")
    assert modules("import json, numpy\nfrom pathlib import Path") == set()
    assert modules("def broken(") == set()


def test_of_a_front_door_the_module_counts_that_holds_the_name():
    baselines = modules("from helpers.encoders.baselines import fit_baseline")
    assert modules("from helpers.encoders import fit_baseline") == baselines
    masking = modules("from helpers.topic import mask_text")
    assert {"helpers.topic.masking"} < masking and "helpers.losses.arr" not in masking
    assert modules("from helpers.topic import mask_text, arr_loss") > masking
    record = modules("from helpers.core.results import record")
    assert modules("from helpers.runs import ensure, record") == record


def test_a_room_that_offers_more_makes_nothing_stale(room):
    door = "from ..core.rooms import front_door\n__getattr__, __dir__ = front_door(__name__, {})\n"
    path = room / "__init__.py"

    def fingerprint(code):
        path.write_text(code)
        return imports._module_fingerprint.__wrapped__("helpers.figures")

    assert fingerprint(door) == fingerprint(door.replace("{}", '{".labels": ["x"]}'))
    assert fingerprint(door) != fingerprint(door + "x = 1")


def test_what_a_registry_looks_up_by_name_counts():
    assert "helpers.sources.pan" in modules("from helpers.sources import open_source")


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A module with its data; its fingerprint is made anew at each call."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    room = tmp_path / "helpers" / "figures"
    room.mkdir(parents=True)
    (room / "labels.py").write_text("x = 1")
    (room / "labels.csv").write_text("T,text\n")
    (room / "other.csv").write_text("a,b\n")
    return room


def fingerprint_of_labels():
    return imports._module_fingerprint.__wrapped__("helpers.figures.labels")


def test_a_comment_in_a_module_changes_nothing(room):
    before = fingerprint_of_labels()
    (room / "labels.py").write_text("x = 1  # one")
    assert fingerprint_of_labels() == before
    (room / "labels.py").write_text("x = 2")
    assert fingerprint_of_labels() != before


def test_a_table_beside_a_module_is_a_part_of_it(room):
    before = fingerprint_of_labels()
    (room / "other.csv").write_text("a,c\n")
    assert fingerprint_of_labels() == before
    (room / "labels.csv").write_text("T,words\n")
    assert fingerprint_of_labels() != before


def test_what_is_for_a_gpu_is_no_stage(toy):
    before = read_stages("demo")
    params(toy, f"{before[0].name}.gpu", "size: 2")
    params(toy, f"{before[0].name}.gpu_large", "size: 3")
    assert read_stages("demo") == before


def test_a_changed_input_file_makes_the_stages_stale(toy, monkeypatch):
    path = toy / "posts.csv"
    path.write_text("a")
    notebook(
        toy / "notebooks/01_a.ipynb", parameters=DECLARED + "\nlocation: list[str] = []  # files"
    )
    monkeypatch.setattr(paths, "ROOT", toy)
    params(toy, "01_a", "location: [posts.csv]")
    before = [stage.fingerprint for stage in read_stages("demo")]
    assert before == [stage.fingerprint for stage in read_stages("demo")]
    path.write_text("ab")
    assert not set(before) & {stage.fingerprint for stage in read_stages("demo")}


def test_who_opens_token_stores_waits_for_the_notebook_that_makes_them():
    needs = {stage.name: set(stage.needs) for stage in read_stages("demo")}
    for stage in read_stages("demo"):
        book = (paths.NOTEBOOKS / f"{stage.notebook}.ipynb").read_text("utf-8")
        if stage.notebook == "02_tokenizer" or not re.search(r"open_stores?\(", book):
            continue
        earlier = set()
        new = needs[stage.name]
        while new:
            earlier |= new
            new = set().union(*(needs[name] for name in new)) - earlier
        assert "02_tokenizer" in earlier, stage.name
