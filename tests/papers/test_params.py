"""Every YAML file of the papers' runs makes the configs that its notebook needs, and names models that are trained."""

import pytest

from helpers.core import paths
from helpers.core.names import MAX_LETTERS
from helpers.runs.stages import stages
from tests.paper_runs import settings

PAPERS = ("khan2021", "tyo2021", "sawatphol2022")
RUNS = sorted(path.name for path in paths.PARAMS.glob("*") if path.name.startswith(PAPERS))


@pytest.mark.parametrize("run", RUNS)
def test_the_configs_of_every_stage_can_be_built(run, monkeypatch, tmp_path):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    trained, asked = set(), set()
    for stage in stages(run):
        names = settings(stage)
        if stage.notebook == "03_train":
            seed = f"-seed{names['seed']}" if names["seed"] else ""
            trained.add(names["name"] or f"{names['features']}-{names['loss']}{seed}")
        elif stage.notebook in ("06_evaluate", "08_link"):
            asked |= set(names["models"])
        elif stage.notebook == "07_visualize":
            asked |= {names["model"], names["single"], *names["compare"]}
    assert asked <= trained


def test_the_papers_runs_are_there():
    assert RUNS == ["khan2021", "sawatphol2022", "sawatphol2022_fanfiction", "sawatphol2022_reddit", "tyo2021",
                    "tyo2021_pan21"]  # fmt: skip


def test_the_grids_of_the_papers(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    (losses,) = [stage for stage in stages("khan2021") if stage.name == "04_losses"]
    trained = settings(losses)["experiments"].values()
    tried = [one for one in trained if one.loss.name == "topk"]
    found = {
        (one.loss.settings["k"], one.sampler.samples_per_author, one.loss.settings["margin"])
        for one in tried
    }
    assert found == {
        (k, n, margin) for k in (4, 8) for n in (4, 8, 16) for margin in (0.05, 0.25, 0.4)
    }
    assert {one.sampler.authors_per_batch * one.sampler.samples_per_author for one in tried} == {
        512
    }
    margins = {one.loss.settings["margin"] for one in trained if one.loss.name == "triplet"}
    assert margins == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8}


@pytest.mark.parametrize(
    "run", ["demo", "open", *(run for run in RUNS if run.startswith("tyo2021"))]
)
def test_configurations_of_verification_are_named_as_people_read_them(run, monkeypatch, tmp_path):
    """Their names are rows and legends; notebook 12 asks for some of them."""
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    chosen = [stage for stage in stages(run) if stage.notebook in ("10_verify", "12_pairs")]
    names, asked = set(), set()
    for stage in chosen:
        names |= {name for name, _ in settings(stage).get("experiments", {})}
        asked |= set(settings(stage).get("models", []))
    assert names and asked <= names
    assert not [
        name
        for name in names
        if len(name) > MAX_LETTERS or "_" in name or " x " in name or not name[0].isupper()
    ]
