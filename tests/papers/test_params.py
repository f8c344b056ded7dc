"""The YAML files of all runs make configs, and name models that are trained."""

from itertools import product

import pytest

from helpers.core import paths
from helpers.runs.stages import read_stages
from tests.paper_runs import settings

RUNS = sorted(path.name for path in paths.PARAMS.iterdir() if any(path.glob("*.yaml")))


@pytest.mark.parametrize("run", RUNS)
def test_the_configs_of_every_stage_can_be_built(run, monkeypatch, tmp_path):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    trained = set()
    compared = set()
    for stage in read_stages(run):
        names = settings(stage)
        if stage.notebook == "03_train":
            seed = f"-seed{names['seed']}" if names["seed"] else ""
            trained.add(names["name"] or f"{names['features']}-{names['loss']}{seed}")
        elif stage.notebook in ("06_evaluate", "08_link"):
            compared |= set(names["models"])
        elif stage.notebook == "07_visualize":
            compared |= {names["model"], names["single"], *names["compare"]}
    assert compared <= trained


def test_the_grids_of_the_papers(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    (losses,) = [stage for stage in read_stages("khan2021") if stage.name == "04_losses"]
    trained = settings(losses)["experiments"].values()
    grid = set()
    margins = set()
    for experiment in trained:
        settings_of_loss = experiment.loss.settings
        sampler = experiment.sampler
        if experiment.loss.name == "topk":
            samples = sampler.samples_per_author
            assert sampler.authors_per_batch * samples == 512
            grid.add((settings_of_loss["k"], samples, settings_of_loss["margin"]))
        if experiment.loss.name == "triplet":
            margins.add(settings_of_loss["margin"])
    assert grid == set(product((4, 8), (4, 8, 16), (0.05, 0.25, 0.4)))
    assert margins == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8}
