"""What ``make train`` runs on a GPU: the YAML files make configs, and they train at toy sizes."""

import pytest
import yaml

from helpers.core import paths
from helpers.runs.stages import Stage
from helpers.tokens.tokenizer import Bytes
from helpers.training.experiment import run_experiment
from tests.factories import styled_store
from tests.paper_runs import settings

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
