"""The stages of a run on toy notebooks, and of the parameters for own posts."""

import re
import shutil

import pandas as pd
import pytest

from helpers.core import paths
from helpers.evaluation.ranking import ranking_trials
from helpers.runs import stages
from helpers.runs.__main__ import main
from helpers.runs.stages import read_stages
from helpers.tokens.store import open_store
from tests.factories import write_demo_csv
from tests.paper_runs import execute_here
from tests.toy_runs import DECLARED, log, notebook, params


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("01_a", "sise: 3", "unknown parameter 'sise' .did you mean 'size'"),
        ("01_a", "size: 1e3", "'size' is '1e3': Input should be a valid integer"),
        ("01_a", "- 1", "must hold lines of"),
        ("01_a", "run: other", "unknown parameter 'run'"),
        ("03_c", "size: 3", "no notebook '03_c', see notebooks"),
        ("00_x.T", "size: 3", "variant of 00_x.yaml, which does not exist"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(toy, capsys, name, text, message):
    params(toy, name, text)
    with pytest.raises(ValueError, match=message):
        read_stages("demo")
    assert main(["demo"]) == 1
    assert not log(toy) and "Traceback" not in capsys.readouterr().err


def test_prose_does_not_make_a_stage_stale(toy):
    before = read_stages("demo")
    source = toy / "notebooks/02_b.ipynb"
    source.write_text(source.read_text().replace("# Second", "# Two"))
    assert read_stages("demo") == before


def test_a_changed_room_makes_what_imports_it_stale(tmp_path, monkeypatch):
    used = set(stages._used_rooms("from helpers.tokens import open_store\nimport numpy"))
    assert used == {"tokens", "splits", "corpus", "sources", "cleaning", "core"}
    assert not stages._used_rooms("from helpers.runs import start\n# from the file")
    monkeypatch.setattr(paths, "PACKAGE", tmp_path)
    path = tmp_path / "figures" / "labels.py"
    path.parent.mkdir()
    path.write_text("x = 1")
    before = stages._used_rooms("from helpers.figures import bars")
    path.write_text("x = 2")
    assert stages._used_rooms("from helpers.figures import bars") != before


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


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    path = tmp_path_factory.mktemp("posts") / "posts.csv"
    write_demo_csv(path, accounts=120, posts=4000)
    frame = pd.read_csv(path).rename(columns={"nick": "user", "written": "date"})
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def ours(posts, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    folder = shutil.copytree(paths.PARAMS / "template", tmp_path / "params" / "ours")
    for path in folder.glob("*.yaml"):
        path.write_text(path.read_text().replace("data/posts.csv", str(posts)))
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    return {stage.name: stage for stage in read_stages("ours")}


def test_a_small_file_goes_through(ours, monkeypatch):
    execute_here([ours["01_collect"], ours["02_tokenizer"]], monkeypatch)
    posts = ours["06_evaluate"].parameters["posts"]
    for split in ("dev", "test"):
        assert (
            len(ranking_trials(open_store(paths.Run("ours").tokens / split), posts).queries) >= 10
        )
