"""The YAML files of all runs make configs, those for a GPU too, and name what is trained."""

from itertools import product

import pytest
import yaml

from helpers.core import paths
from helpers.runs.stages import Stage, read_stages
from helpers.tokens.tokenizer import Bytes
from helpers.training.experiment import run_experiment
from tests.factories import styled_store
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


FOLDER = paths.PARAMS / "open"
FILES = sorted(path.stem for path in FOLDER.glob("03_train.gpu*.yaml"))
SMALL = {"authors_per_batch": 8, "max_tokens": 12, "max_posts": 4}
SHORT = {"steps": 3, "eval_every": 3, "warmup": 1, "precision": "no"}
# what a CPU trains in a second; a transformer that needs no download
TOYS = {
    "03_train.gpu": {"filters": 4, "token_dim": 4, "attention": 4, "dim": 8},
    "03_train.gpu_luar": {"model": "tiny"},
}


@pytest.mark.parametrize("name", FILES)
def test_it_makes_an_experiment_that_trains_at_toy_size(name, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    base = yaml.safe_load((FOLDER / "03_train.yaml").read_text("utf-8"))
    parameters = base | yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    parameters["run"] = "open"
    assert settings(Stage("open", name, parameters, "test"))["experiment"]
    if name not in TOYS:
        return
    for key, changes in {"encoder": TOYS[name], "sampler": SMALL, "training": SHORT}.items():
        parameters[key] = parameters[key] | changes
    made = settings(Stage("open", name, parameters, "test"))["experiment"]
    store = styled_store(tmp_path)
    trained = run_experiment(made, store, store, tmp_path, "toy", tokenizer=Bytes())
    assert len(trained.history) == 1 and 0 < trained.summary["best_dev_MRR"] <= 1
    assert trained.experiment.loss == made.loss and trained.encoder.dim == made.encoder.dim
