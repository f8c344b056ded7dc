"""Training: it learns, ends the same however often it is killed, and the same on two processes as on one."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from helpers.encoders.base import embed
from helpers.encoders.stream import build, stream_config
from helpers.losses import LOSSES, make_loss
from helpers.losses.supervised_contrastive import supervised_contrastive
from helpers.tokens.batch import Samples
from helpers.tokens.samplers import SamplerConfig, make_sampler
from helpers.training import checkpoints
from helpers.training.checkpoints import load_weights
from helpers.training.experiment import dev_score
from helpers.training.loop import Trainer, TrainingConfig, completed
from tests.factories import store_in_memory

CONFIG = TrainingConfig(steps=30, lr=0.003, eval_every=10, warmup=5)
TINY = {"filters": 8, "token_dim": 8, "attention": 8, "dim": 16, "layers": 2}
FOUR = SamplerConfig(authors_per_batch=12, samples_per_author=4, max_tokens=8)


def changed(**settings):
    return TrainingConfig(**{**CONFIG.model_dump(), **settings})


class OnTopic:
    """A loss that needs the batch: rows on one topic count as one author."""

    needs_batch = True

    def __init__(self):
        self.seen = []

    def __call__(self, embeddings, labels, batch):
        assert torch.equal(batch.authors, labels)
        self.seen.append(len(batch))
        return supervised_contrastive(embeddings, labels) + supervised_contrastive(embeddings, batch.topics[:, 0])


class Setting:
    """A tiny training: 40 authors with habits, the second half of each history for dev."""

    def __init__(self, make_store):
        self.store = make_store([24] * 40, longest=8, vocabulary=200, habits=True)
        self.drawn = []

        self.sampler = make_sampler(FOUR, self.store, 3)
        self.score = dev_score(self.store, FOUR.model_copy(update={"max_posts": 4}))

    def encoder(self, seed=0, **settings):
        return build(stream_config(**{**TINY, **settings}), 200, 5, seed)

    def draw(self, step):
        self.drawn.append(step)
        return self.sampler(step)

    def train(self, folder, config=CONFIG, fingerprint="v1", encoder=None, loss="supcon", **changed):
        self.drawn = []
        encoder = encoder or self.encoder()
        loss = make_loss(loss, 40, TINY["dim"]) if isinstance(loss, str) else loss
        parts = {"draw": self.draw, "score": self.score, **changed}
        return encoder, Trainer(encoder, loss, config, 0, folder, fingerprint).train(**parts, progress=False)


@pytest.fixture
def tiny(make_store):
    return Setting(make_store)


def equal(one, other):
    one, other = load_file(one), load_file(other)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def same_history(one, other):
    left, right = (pd.read_csv(path / "history.csv").drop(columns="seconds") for path in (one, other))
    return left.equals(right)


class Killed(BaseException):
    pass


def dies_at(step, draw):
    def draw_or_die(number):
        if number == step:
            raise Killed
        return draw(number)

    return draw_or_die


@pytest.fixture
def new_accelerator():
    """accelerate keeps one precision for a process."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)


@pytest.mark.usefixtures("new_accelerator")
class TestMixedPrecision:
    def test_what_was_trained_gives_the_vectors_of_what_is_loaded(self, tiny, tmp_path):
        """Training in bf16 must not leave an encoder behind that goes on in bf16 where nobody asked for it."""
        config = changed(steps=4, eval_every=2, precision="bf16")
        trained, _ = tiny.train(tmp_path, config)
        loaded, _ = tiny.train(tmp_path, config)  # complete: read from the files, nothing is trained
        assert not tiny.drawn
        one, other = (embed(each, Samples.of_posts(tiny.store), 8) for each in (trained, loaded))
        assert (one == other).all()


class TestLearning:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_loss_falls_and_dev_rises(self, tiny, tmp_path, loss):
        before = tiny.score(tiny.encoder())["MRR"]
        encoder, history = tiny.train(tmp_path, changed(steps=80, lr=0.01, eval_every=20), loss=loss)
        assert history.step.tolist() == [20, 40, 60, 80]
        assert history.loss.iloc[-1] < 0.8 * history.loss.iloc[0]
        assert history.MRR.max() > before + 0.2 and len(set(history.MRR)) > 1
        assert tiny.score(encoder)["MRR"] == history.MRR.max(), "left with its best weights"
        assert tiny.drawn == list(range(80))

    def test_every_dev_score_is_that_of_the_weights_of_its_step(self, tiny, tmp_path):
        """Scored again from the file: nothing an encoder keeps between evaluations is stale."""
        scores = []

        def score(encoder):
            fresh = tiny.encoder(seed=9)
            fresh.load_state_dict(encoder.state_dict())
            scores.append(tiny.score(fresh)["MRR"])
            return tiny.score(encoder)

        _, history = tiny.train(tmp_path, score=score)
        assert history.MRR.tolist() == pytest.approx(scores, abs=1e-12) and len(set(scores)) > 1

    def test_the_best_weights_are_kept_not_the_last(self, tiny, tmp_path):
        values = iter([0.2, 0.9, 0.5])
        weights = []

        def score(encoder):
            weights.append({name: value.clone() for name, value in encoder.state_dict().items()})
            return {"MRR": next(values)}

        encoder, history = tiny.train(tmp_path, score=score)
        assert history.MRR.tolist() == [0.2, 0.9, 0.5]
        assert all(torch.equal(value, weights[1][name]) for name, value in encoder.state_dict().items())
        fresh = tiny.encoder(seed=9)
        load_weights(fresh, tmp_path / "last.safetensors")
        assert all(torch.equal(value, weights[2][name]) for name, value in fresh.state_dict().items())
        summary = completed(tmp_path)
        assert (summary["best_step"], summary["best_dev_MRR"], summary["steps"]) == (20, 0.9, 30)
        assert summary["fingerprint"] == "v1" and summary["device"].startswith("cpu") and summary["lr"] == CONFIG.lr

    def test_a_loss_that_needs_the_batch_gets_it(self, tiny, tmp_path):
        loss = OnTopic()
        _, history = tiny.train(tmp_path, changed(steps=1), loss=loss)
        assert loss.seen == [48] and tiny.drawn == [0]
        batch = tiny.draw(0)
        embeddings = tiny.encoder()(batch)
        wanted = sum(supervised_contrastive(embeddings, labels) for labels in (batch.authors, batch.topics[:, 0]))
        assert history.loss[0] == pytest.approx(wanted.item())

    def test_the_last_step_is_scored_even_off_the_beat(self, tiny, tmp_path):
        _, history = tiny.train(tmp_path, changed(steps=13, eval_every=5))
        assert history.step.tolist() == [5, 10, 13]

    def test_the_gradient_is_clipped(self, tiny, tmp_path):
        start = tiny.encoder()
        config = TrainingConfig(steps=1, lr=1.0, optimizer="sgd", schedule="constant", weight_decay=0.0, clip=0.01)
        moved, _ = tiny.train(tmp_path, config)
        distance = sum((a - b).square().sum() for a, b in zip(start.parameters(), moved.parameters())).sqrt()
        assert distance.item() == pytest.approx(0.01, rel=1e-3)


class TestResuming:
    @pytest.mark.parametrize("optimizer, schedule, lr", [("adamw", "cosine", 0.003), ("sgd", "steps", 0.05)])
    def test_killed_and_continued_it_ends_bit_for_bit_the_same(self, tiny, tmp_path, capsys, optimizer, schedule, lr):
        """Killed before any checkpoint, twice within a stretch, and at the first step of one; with dropout."""
        config = changed(optimizer=optimizer, schedule=schedule, lr=lr)
        tiny.train(tmp_path / "whole", config, encoder=tiny.encoder(dropout=0.3))
        for step in (4, 13, 17, 20, 29):
            with pytest.raises(Killed):
                encoder, draw = tiny.encoder(dropout=0.3), dies_at(step, tiny.draw)
                tiny.train(tmp_path / "killed", config, encoder=encoder, draw=draw)
            with pytest.raises(ValueError, match="training.json is missing"):
                completed(tmp_path / "killed")
        capsys.readouterr()
        # an encoder that starts elsewhere: all must come from the file
        encoder, history = tiny.train(tmp_path / "killed", config, encoder=tiny.encoder(seed=8, dropout=0.3))
        assert tiny.drawn == list(range(20, 30)) and capsys.readouterr().out.strip() == "continuing from step 20"
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")
        assert history.seconds.is_monotonic_increasing

    @pytest.mark.parametrize("optimizer, lr", [("adamw", 0.003), ("sgd", 0.01)])
    def test_a_loss_that_learns_goes_on_where_it_was(self, tiny, tmp_path, optimizer, lr):
        config = changed(optimizer=optimizer, lr=lr)
        loss = make_loss("arcface", 40, 16)
        tiny.train(tmp_path / "whole", config, loss=loss)
        for step in (4, 17):
            with pytest.raises(Killed):
                tiny.train(tmp_path / "killed", config, loss="arcface", draw=dies_at(step, tiny.draw))
        other = make_loss("arcface", 40, 16, seed=5)  # starts elsewhere: all must come from the file
        tiny.train(tmp_path / "killed", config, encoder=tiny.encoder(seed=8), loss=other)
        assert tiny.drawn == list(range(10, 30))
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")
        last, best = (load_file(tmp_path / "killed" / name) for name in ("last.safetensors", "best.safetensors"))
        assert torch.equal(last["loss.weight"], loss.weight) and torch.equal(other.weight, loss.weight)
        assert not torch.equal(loss.weight, make_loss("arcface", 40, 16).weight), "it was trained"
        assert all(name.startswith("encoder.") for name in best)

    def test_killed_between_two_files(self, tiny, tmp_path, monkeypatch):
        """The history of a step is written, its checkpoint is not."""
        tiny.train(tmp_path / "whole")
        save = checkpoints.save

        def die_on_the_second(path, *rest):
            if path.name == "last.safetensors" and path.exists():
                raise Killed
            save(path, *rest)

        monkeypatch.setattr(checkpoints, "save", die_on_the_second)
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed")
        assert len(pd.read_csv(tmp_path / "killed" / "history.csv")) == 2
        monkeypatch.setattr(checkpoints, "save", save)
        tiny.train(tmp_path / "killed")
        assert tiny.drawn[0] == 10
        assert equal(tmp_path / "whole" / "best.safetensors", tmp_path / "killed" / "best.safetensors")
        assert same_history(tmp_path / "whole", tmp_path / "killed")

    def test_complete_training_is_loaded_without_a_step(self, tiny, tmp_path):
        encoder, history = tiny.train(tmp_path)
        again, told = tiny.train(tmp_path, encoder=tiny.encoder(seed=8), score=None)
        assert tiny.drawn == [] and told.equals(history)
        assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), again.parameters()))

    def test_training_made_from_something_else_starts_anew(self, tiny, tmp_path):
        tiny.train(tmp_path / "whole", fingerprint="v2")
        with pytest.raises(Killed):
            tiny.train(tmp_path / "other", draw=dies_at(15, tiny.draw))
        tiny.train(tmp_path / "other", fingerprint="v2")
        assert tiny.drawn == list(range(30))
        assert equal(tmp_path / "whole" / "best.safetensors", tmp_path / "other" / "best.safetensors")
        assert same_history(tmp_path / "whole", tmp_path / "other")

    def test_what_is_complete_is_not_mixed_with_what_is_not(self, tiny, tmp_path):
        """A new training over a complete one: until it is complete there is none."""
        tiny.train(tmp_path)
        with pytest.raises(Killed):
            tiny.train(tmp_path, fingerprint="v2", draw=dies_at(15, tiny.draw))
        with pytest.raises(ValueError, match="training.json is missing"):
            completed(tmp_path)
        tiny.train(tmp_path)
        assert tiny.drawn == list(range(30)), "the best weights of v1 are gone"

    def test_kill_9(self, tmp_path):
        """A process of its own, killed without warning in the middle of its second stretch, then run again."""
        assert run(tmp_path / "whole").returncode == 0
        assert run(tmp_path / "killed", die=15).returncode == -signal.SIGKILL
        again = run(tmp_path / "killed")
        drawn = " ".join(map(str, range(10, 20)))
        assert again.stdout.strip() == f"continuing from step 10\n{drawn}", again.stderr[-2000:]
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")


SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.factories import store_in_memory
from tests.training.test_loop import Setting, changed
from accelerate import notebook_launcher

folder, die, processes, lr, loss = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), sys.argv[6]

def draw(step):
    if step == die:
        os.kill(os.getpid(), signal.SIGKILL)
    steps.append(step)
    return tiny.draw(step)

def work():
    # not clipped: that would hide a gradient of the wrong length
    tiny.train(folder, changed(steps=20, lr=lr, optimizer="sgd", clip=1e9), draw=draw, loss=loss)
    print(*steps, flush=True)

steps, tiny = [], Setting(store_in_memory)
if __name__ == "__main__":
    notebook_launcher(work, num_processes=2) if processes == 2 else work()
"""


def run(folder, die=-1, processes=1, lr=0.05, loss="supcon"):
    """Twenty steps of a training in a process of its own, or in two that it starts."""
    (folder.parent / "script.py").write_text(SCRIPT)
    command = [sys.executable, folder.parent / "script.py", Path(__file__).parents[2], folder, die, processes, lr, loss]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, env=environment)


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


class TestDamage:
    @pytest.mark.parametrize("name", ["last.safetensors", "best.safetensors", "history.csv"])
    @pytest.mark.parametrize("damage", ["missing", "shorter", "head", "middle", "last"])
    def test_an_interrupted_training_starts_anew(self, tiny, tmp_path, capsys, name, damage):
        tiny.train(tmp_path / "whole")
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed", draw=dies_at(15, tiny.draw))
        path = tmp_path / "killed" / name
        data = path.read_bytes()
        if damage in ("missing", "shorter"):
            path.unlink() if damage == "missing" else path.write_bytes(data[:-20])
        elif name == "history.csv":  # all but the seconds
            flip(path, {"head": 1, "middle": data.index(b"\n") + 6, "last": data.rindex(b",") - 1}[damage])
        else:
            flip(path, {"head": 30, "middle": len(data) // 2, "last": -1}[damage])
        capsys.readouterr()
        tiny.train(tmp_path / "killed")
        assert tiny.drawn == list(range(30))
        said = capsys.readouterr().out
        assert "training starts anew: " in said or (name, damage) == ("last.safetensors", "missing")
        for each in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / each, tmp_path / "killed" / each)
        assert same_history(tmp_path / "whole", tmp_path / "killed")

    @pytest.mark.parametrize("name", ["best.safetensors", "history.csv"])
    def test_a_complete_training_is_refused(self, tiny, tmp_path, name):
        tiny.train(tmp_path)
        path = tmp_path / name
        size = path.stat().st_size
        for place in {0, 8, 30, size // 3, size // 2, size - 1}:
            flip(path, place)
            for open_it in (lambda: completed(tmp_path), lambda: tiny.train(tmp_path)):
                with pytest.raises(ValueError, match=f"{name} is missing or damaged: delete .* and train again"):
                    open_it()
            if name == "best.safetensors":
                with pytest.raises(ValueError, match=f"{name} is missing or damaged"):
                    load_weights(tiny.encoder(), path)
            flip(path, place)
        path.unlink()
        with pytest.raises(ValueError, match=f"{name} is missing or damaged"):
            completed(tmp_path)

    def test_no_byte_of_a_checkpoint_can_change_unseen(self, tmp_path):
        tensors = {"encoder.a": torch.arange(3.0), "encoder.b": torch.tensor(2), "loss.c": torch.zeros(0, 2)}
        checkpoints.save(tmp_path / "x", tensors, {"step": 7, "scaler": None})
        read, state = checkpoints.read(tmp_path / "x")
        assert state == {"step": 7, "scaler": None} and all(torch.equal(read[name], tensors[name]) for name in tensors)
        for place in range((tmp_path / "x").stat().st_size):
            flip(tmp_path / "x", place)
            try:  # a blank behind the description says nothing
                again, told = checkpoints.read(tmp_path / "x")
                assert told == state and all(torch.equal(again[name], tensors[name]) for name in tensors)
            except ValueError as error:
                assert "x is missing or damaged" in str(error)
            flip(tmp_path / "x", place)


class TestProcesses:
    @pytest.mark.parametrize("loss, lr", [("supcon", 0.002), ("arcface", 0.0002)])
    def test_two_end_where_one_ends(self, tmp_path, loss, lr):
        """Each encodes half of the batch, the loss sees all: without the others' samples the weights are others.

        At a low rate: the sums are rounded differently, and a maximum that changes hands would make that visible.
        """
        for processes in (1, 2):
            done = run(tmp_path / str(processes), processes=processes, lr=lr, loss=loss)
            assert done.returncode == 0, done.stderr[-2000:]
        for name in ("best.safetensors", "last.safetensors"):
            one, two = (load_file(tmp_path / number / name) for number in "12")
            assert one.keys() == two.keys()
            for key, value in one.items():
                close = 1e-5 * max(1, value.abs().max().item())
                assert torch.allclose(two[key], value, rtol=1e-5, atol=close), f"{name} {key}"
        one, two = (pd.read_csv(tmp_path / number / "history.csv") for number in "12")
        np.testing.assert_allclose(two.loss, one.loss, rtol=1e-5)
        start = Setting(store_in_memory).encoder().state_dict()
        moved = load_file(tmp_path / "1" / "last.safetensors")
        assert max((moved[f"encoder.{name}"] - value).abs().max() for name, value in start.items()) > 1e-2
        assert completed(tmp_path / "2")["best_step"] == completed(tmp_path / "1")["best_step"]


class TestRates:
    def rates(self, **settings):
        config = TrainingConfig(**{"steps": 100, "lr": 0.4, **settings})
        return [config.learning_rate(step) for step in range(config.steps)]

    def test_cosine(self):
        rates = self.rates(schedule="cosine")
        assert rates == pytest.approx([0.2 * (1 + math.cos(math.pi * step / 100)) for step in range(100)])
        assert rates[0] == 0.4 and rates == sorted(rates, reverse=True) and 0 < rates[-1] < 1e-3

    def test_steps_of_the_released_code(self):
        """250k, 500k and 750k of 1M."""
        config = TrainingConfig(steps=1_000_000, lr=0.05, schedule="steps", optimizer="sgd")
        steps = (0, 249_999, 250_000, 499_999, 500_000, 749_999, 750_000, 999_999)
        rates = (0.05, 0.05, 5e-3, 5e-3, 5e-4, 5e-4, 5e-5, 5e-5)
        assert [config.learning_rate(step) for step in steps] == pytest.approx(rates)

    def test_constant(self):
        assert set(self.rates(schedule="constant")) == {0.4}

    @pytest.mark.parametrize("schedule", ["cosine", "steps", "constant"])
    def test_warmup(self, schedule):
        rates = self.rates(schedule=schedule, warmup=10)
        assert rates[:10] == pytest.approx([0.04 * (step + 1) for step in range(10)])
        assert rates[10] == 0.4 and max(rates) == 0.4

    def test_nothing_but_warmup(self):
        assert self.rates(steps=5, warmup=5) == pytest.approx([0.08, 0.16, 0.24, 0.32, 0.4])
        assert max(self.rates(steps=5, warmup=50)) <= 0.4

    def test_the_optimizer_gets_them(self, tiny, tmp_path):
        _, history = tiny.train(tmp_path, changed(steps=20, warmup=7, eval_every=5))
        config = changed(steps=20, warmup=7)
        assert history.lr.tolist() == pytest.approx([config.learning_rate(step) for step in (4, 9, 14, 19)])
        start = tiny.encoder()
        still, _ = tiny.train(tmp_path / "still", changed(steps=3, lr=1e-30, eval_every=3))
        assert all(torch.allclose(a, b) for a, b in zip(start.parameters(), still.parameters()))


class TestErrors:
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_a_loss_that_is_not_finite(self, tiny, tmp_path, value):
        steps = []

        def loss(embeddings, labels):
            steps.append(1)
            return embeddings.sum() * (value if len(steps) == 13 else 1.0)

        with pytest.raises(FloatingPointError, match="the loss became (nan|-inf|inf) in step 13 at learning rate 0.00"):
            tiny.train(tmp_path, loss=loss)
        assert all(torch.isfinite(tensor).all() for tensor in load_file(tmp_path / "last.safetensors").values())
        with pytest.raises(ValueError, match="missing"):
            completed(tmp_path)

    def test_an_encoder_that_is_not_finite_ends_the_training(self, tiny, tmp_path):
        steps = []

        def loss(embeddings, labels):
            steps.append(1)
            value = embeddings.square().sum()
            return value + (0.0 * value).sqrt() if len(steps) == 20 else value  # an infinite slope

        with pytest.raises(ValueError, match="StreamEncoder: the vector of sample .* is not finite"):
            tiny.train(tmp_path, loss=loss)
        assert checkpoints.read(tmp_path / "last.safetensors")[1]["step"] == 10

    def test_weights_that_are_not_finite_are_not_saved(self, tiny, tmp_path):
        """The last step's loss is finite, its gradient is not, and the dev score does not show it."""
        loss, steps = make_loss("arcface", 40, 16), []

        def spoil(embeddings, labels):
            steps.append(1)
            value = loss(embeddings, labels)
            return value + (0.0 * loss.weight.sum()).sqrt() if len(steps) == 20 else value

        learned = torch.nn.Module()
        learned.weight, learned.forward = loss.weight, spoil
        with pytest.raises(FloatingPointError, match="has values that are not finite: lower lr"):
            tiny.train(tmp_path, loss=learned, score=lambda encoder: {"MRR": 0.5})
        assert checkpoints.read(tmp_path / "last.safetensors")[1]["step"] == 10

    @pytest.mark.parametrize("settings, message", [
        ({"optimizer": "adam"}, "training: 'optimizer' is 'adam'"),
        ({"schedule": "stairs"}, "training: 'schedule' is 'stairs'"),
        ({"steps": 0}, "'steps' is 0"),
        ({"eval_every": 0}, "'eval_every' is 0"),
        ({"clip": 0}, "'clip' is 0"),
        ({"warmup": -1}, "'warmup' is -1"),
        ({"stepz": 3}, "unknown setting 'stepz' .did you mean 'steps'"),
    ])  # fmt: skip
    def test_settings_that_make_no_sense(self, settings, message):
        with pytest.raises(ValueError, match=message):
            TrainingConfig.of({"steps": 3, "lr": 0.1, **settings}, "training")
