"""A training is described, run, continued, refused or loaded, and named by its fingerprint."""

import math
import threading
import time

import numpy as np
import pytest
import torch

from helpers.core.artifacts import folder_lock
from helpers.encoders.base import embed
from helpers.encoders.stream import StreamConfig, stream_config
from helpers.losses import LossConfig
from helpers.tokens.batch import Samples
from helpers.tokens.samplers import AuthorSampler, make_sampler
from helpers.tokens.store import build_store
from helpers.tokens.tokenizer import Bytes
from helpers.training import experiment as door
from helpers.training.experiment import Experiment, TrainingConfig, experiments_of, load_trained
from tests.factories import posts_table, styled_posts, styled_store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return styled_store(tmp_path_factory.mktemp("store"))


def described(**changed):
    parts = {
        "encoder": stream_config(filters=8, token_dim=8, attention=8, dim=16),
        "loss": LossConfig(name="supcon"),
        "sampler": AuthorSampler(
            authors_per_batch=8, samples_per_author=4, max_posts=8, max_tokens=20
        ),
        "training": TrainingConfig(steps=6, lr=1e-3, eval_every=3),
    }
    return Experiment(**{**parts, **changed})


def run(store, folder, name="", experiment=None, **more):
    dev = more.pop("dev", store)
    return door.run_experiment(experiment or described(), store, dev, folder, name, **more)


def test_a_model_comes_back_as_it_was(store, tmp_path):
    trained = run(store, tmp_path, "m")
    loaded = load_trained(tmp_path / "m", store)
    everything = Samples.of_posts(store)[:50]
    vectors, again = (embed(made.encoder, everything, 20) for made in (trained, loaded))
    np.testing.assert_array_equal(vectors, again)
    assert loaded.experiment == trained.experiment and loaded.fingerprint == trained.fingerprint
    assert trained.history.MRR.max() == trained.summary["best_dev_MRR"] > 0.1
    assert trained.about["experiment"] == loaded.about["experiment"]
    state = tmp_path / "m" / "last.pt"
    state.touch()  # what a kill leaves that comes right before it is deleted
    run(store, tmp_path, "m")
    assert not state.exists()


def test_two_trainings_of_one_model_at_once_are_one(store, tmp_path):
    """The second one waits, and finds a complete training: equal to its own, or another one."""
    others = described(training=TrainingConfig(steps=6, lr=2e-3, eval_every=3))
    results = {}

    def train(name, experiment):
        try:
            results[name] = run(store, tmp_path, "m", experiment)
        except ValueError as error:
            results[name] = error

    with folder_lock(tmp_path / "m"):
        both = [("equal", described()), ("others", others)]
        threads = [threading.Thread(target=train, args=about) for about in both]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        first = run(store, tmp_path, "m")
    for thread in threads:
        thread.join(30)
    assert results["equal"].summary == first.summary
    assert "m is already trained with other settings" in str(results["others"])


def test_equal_experiments_are_one_training_and_others_are_not(store, tmp_path):
    first = run(store, tmp_path)
    assert first.folder == tmp_path / first.fingerprint
    before = (first.folder / "best.safetensors").stat().st_mtime_ns
    assert run(store, tmp_path).fingerprint == first.fingerprint
    after = (first.folder / "best.safetensors").stat().st_mtime_ns
    assert after == before, "loaded, not trained again"
    for changed in ({"seed": 1}, {"loss": LossConfig(name="triplet")}):
        other = run(store, tmp_path, experiment=described(**changed))
        assert other.fingerprint != first.fingerprint


def test_epochs_are_passes_over_the_training_posts(store, tmp_path):
    half_epoch = described(training=TrainingConfig(epochs=0.5, lr=1e-3, eval_every=1))
    trained = run(store, tmp_path, experiment=half_epoch)
    batch = make_sampler(half_epoch.sampler, store, half_epoch.seed)(0)
    assert trained.history.step.iloc[-1] == math.ceil(store.posts / 2 / int(batch.mask.sum())) > 1
    assert trained.experiment.training.epochs == 0.5, "described as it was asked for"


def test_a_named_training_is_not_replaced_unasked(store, tmp_path, monkeypatch):
    run(store, tmp_path, "m")
    with pytest.raises(ValueError, match="m is already trained with other settings, data or"):
        run(store, tmp_path, "m", described(seed=1))
    monkeypatch.setattr(door, "VERSION", -1)
    with pytest.raises(ValueError, match="m is already trained"):
        run(store, tmp_path, "m")
    load_trained(tmp_path / "m", store)


def test_a_model_of_other_tokens_is_refused(store, tmp_path):
    run(store, tmp_path, "m")
    other_store = styled_store(tmp_path, ["t0"])
    with pytest.raises(ValueError, match="trained on other tokens"):
        load_trained(tmp_path / "m", other_store)


def test_a_training_that_begins_with_another_needs_it(store, tmp_path):
    first = run(store, tmp_path, "first")
    begun = run(store, tmp_path, "second", start=first)
    again = run(store, tmp_path, "second", experiment=begun.experiment)
    assert again.fingerprint == begun.fingerprint, "a complete one is loaded"
    told = f"begins with the weights of another one, {first.fingerprint}"
    with pytest.raises(ValueError, match=told):
        run(store, tmp_path, "third", experiment=begun.experiment)


def test_test_accounts_have_a_curve_and_no_say(store, tmp_path):
    """The curve is that of the test accounts, and the weights are those without any."""
    folder = tmp_path / "late"
    posts = posts_table(tmp_path / "late.parquet", styled_posts()[::2], row_group_size=400)
    late = build_store(posts, folder, Bytes().encode, store.meta["topics"], "v1", 256)
    trained = run(store, tmp_path, "with", dev=[store, late])
    score = door.dev_score([late], trained.experiment.sampler)(trained.encoder)
    best = trained.history.set_index("step").loc[trained.summary["best_step"]]
    assert best["test_MRR"] == pytest.approx(score["MRR"])
    assert best["test_R@8"] == pytest.approx(score["R@8"])
    assert (trained.history["test_MRR"] != trained.history["MRR"]).any()
    alone = run(store, tmp_path, "without")
    assert "test_MRR" not in alone.history
    assert trained.summary["best_dev_MRR"] == alone.summary["best_dev_MRR"]
    for name, weights in alone.encoder.state_dict().items():
        assert torch.equal(weights, trained.encoder.state_dict()[name])


def test_experiments_of_lists_in_loss_and_training():
    losses, trainings = {"temperature": [0.1, 0.5]}, {"steps": 3, "lr": [0.1, 0.2]}
    made = experiments_of(StreamConfig(), AuthorSampler(), "arr", losses, trainings)
    found = [(one.loss.settings["temperature"], one.training.lr) for one in made]
    assert found == [(0.1, 0.1), (0.1, 0.2), (0.5, 0.1), (0.5, 0.2)]
    with pytest.raises(ValueError, match="unknown setting 'warmth'.*temperature"):
        experiments_of(StreamConfig(), AuthorSampler(), "arr", {"warmth": 1}, trainings)
