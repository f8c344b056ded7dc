"""What ``make train`` runs on a GPU: the YAML files, with toy sizes, through the one door."""

import pytest
import yaml

from helpers.core import paths
from helpers.runs.stages import Stage, read_stages
from helpers.tokens.tokenizer import Bytes
from helpers.training import experiment as door
from tests.factories import styled_store
from tests.paper_runs import settings

FOLDER = paths.PARAMS / "open"
FILES = {path.stem for path in FOLDER.glob("*.gpu*.yaml")}
SMALL = {"authors_per_batch": 8, "max_tokens": 12, "max_posts": 4}
# what a CPU trains in a second; a transformer that needs no download
TOYS = {
    "03_train.gpu": {"filters": 4, "token_dim": 4, "attention": 4, "dim": 8},
    "03_train.gpu_luar": {"model": "tiny"},
}
NAMES = sorted(TOYS)


def names_of(name, **changes):
    """What the notebook makes of its parameters.

    They are those of the stage that a file varies, with the file's above them.
    """
    base = yaml.safe_load((FOLDER / "03_train.yaml").read_text("utf-8"))
    varied = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    parameters = base | varied | changes | {"run": "open"}
    return settings(Stage("open", name, parameters, "test"))


def test_no_stage_of_the_run_is_for_a_gpu():
    assert set(NAMES) <= FILES
    names = {stage.name for stage in read_stages("open")}
    assert not names & FILES
    assert {"03_train", "03_train.T", "03_train.minilm"} <= names


def test_more_authors_are_the_only_difference(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    alone, more = names_of("03_train.gpu_long"), names_of("03_train.gpu_more")
    assert alone["experiment"] == more["experiment"]
    assert more["experiment"].training.steps == 1000
    assert (alone["more"], more["more"]) == ([], ["bloggers.train"])


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_at_toy_size(name, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    as_it_is = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    schedule = {"steps": 3, "eval_every": 3, "warmup": 1, "precision": "no"}
    made = names_of(
        name,
        encoder=as_it_is["encoder"] | TOYS[name],
        sampler=as_it_is["sampler"] | SMALL,
        training=as_it_is["training"] | schedule,
    )["experiment"]
    store = styled_store(tmp_path)
    trained = door.run_experiment(made, store, store, tmp_path, "toy", tokenizer=Bytes())
    assert len(trained.history) == 1 and 0 < trained.summary["best_dev_MRR"] <= 1
    assert trained.experiment.loss == made.loss and trained.encoder.dim == made.encoder.dim
