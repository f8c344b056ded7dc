"""Training: it learns, ends the same however often it is killed, and the same on two processes as on one."""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from helpers.embedding import embed
from helpers.encoders import StreamEncoder
from helpers.evaluation.ranking import query_target_windows, ranks, summarise
from helpers.losses import make_loss
from helpers.sampling import draw_batch
from helpers.training import Recipe, completed, load_weights, train

RECIPE = Recipe(steps=30, lr=0.003, eval_every=10, warmup=5)
TINY = {"filters": 8, "token_dim": 8, "attention": 8, "embedding": 16, "layers": 2}


class Setting:
    """A tiny training: 40 authors with habits, the second half of each history for dev."""

    def __init__(self, make_store):
        self.store = make_store([24] * 40, longest=8, vocabulary=200, habits=True)

    def encoder(self, seed=0, **settings):
        torch.manual_seed(seed)
        return StreamEncoder(200, 5, "TPS", **{**TINY, **settings})

    def draw(self, step):
        self.drawn.append(step)
        return draw_batch(self.store, 3, step, authors=12, samples=4, length=8)

    def score(self, encoder):
        author, query, target = query_target_windows(self.store, 4)
        four = np.full(len(author), 4)
        embeddings = [embed(encoder, self.store, author, first, four, 8) for first in (query, target)]
        metrics = summarise(ranks(*embeddings), len(author), resamples=2)
        return {"MRR": metrics["MRR"], "R@8": metrics["R@8"]}

    def train(self, folder, recipe=RECIPE, made_from="v1", encoder=None, loss="supcon", **changed):
        self.drawn, self.said = [], []
        encoder = encoder or self.encoder()
        parts = {"draw": self.draw, "loss": make_loss(loss), "score": self.score, **changed}
        history = train(encoder, folder=folder, recipe=recipe, made_from=made_from, progress=False, log=self.said.append, **parts)
        return encoder, history


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


class TestLearning:
    @pytest.mark.parametrize("loss", ["supcon", "triplet", "topk"])
    def test_the_loss_falls_and_dev_rises(self, tiny, tmp_path, loss):
        before = tiny.score(tiny.encoder())["MRR"]
        encoder, history = tiny.train(tmp_path, replace(RECIPE, steps=80, lr=0.01, eval_every=20), loss=loss)
        assert history.step.tolist() == [20, 40, 60, 80]
        assert history.loss.iloc[-1] < 0.8 * history.loss.iloc[0] if loss != "topk" else history.loss.iloc[-1] < history.loss.iloc[0]
        assert history.MRR.max() > max(2 * before, 0.3) and len(set(history.MRR)) > 1
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
        assert summary["made_from"] == "v1" and summary["device"].startswith("cpu") and summary["lr"] == RECIPE.lr

    def test_the_last_step_is_scored_even_off_the_beat(self, tiny, tmp_path):
        _, history = tiny.train(tmp_path, replace(RECIPE, steps=13, eval_every=5))
        assert history.step.tolist() == [5, 10, 13]

    def test_the_gradient_is_clipped(self, tiny, tmp_path):
        start = tiny.encoder()
        recipe = replace(RECIPE, steps=1, optimizer="sgd", lr=1.0, weight_decay=0.0, schedule="constant", warmup=0, clip=0.01)
        moved, _ = tiny.train(tmp_path, recipe)
        distance = sum((a - b).square().sum() for a, b in zip(start.parameters(), moved.parameters())).sqrt()
        assert distance.item() == pytest.approx(0.01, rel=1e-3)


class TestResuming:
    @pytest.mark.parametrize("optimizer, settings", [("adamw", {"schedule": "cosine"}), ("sgd", {"schedule": "steps", "lr": 0.05})])
    def test_killed_and_continued_it_ends_bit_for_bit_the_same(self, tiny, tmp_path, optimizer, settings):
        """Killed before any checkpoint, twice within a stretch, and at the first step of one; with dropout."""
        recipe = replace(RECIPE, optimizer=optimizer, **settings)
        tiny.train(tmp_path / "whole", recipe, encoder=tiny.encoder(dropout=0.3))
        for step in (4, 13, 17, 20, 29):
            with pytest.raises(Killed):
                tiny.train(tmp_path / "killed", recipe, encoder=tiny.encoder(dropout=0.3), draw=dies_at(step, tiny.draw))
            with pytest.raises(ValueError, match="training.json is missing"):
                completed(tmp_path / "killed")
        # an encoder that starts elsewhere: all must come from the file
        encoder, history = tiny.train(tmp_path / "killed", recipe, encoder=tiny.encoder(seed=8, dropout=0.3))
        assert tiny.drawn == list(range(20, 30)) and tiny.said == ["continuing from step 20"]
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")
        assert history.seconds.is_monotonic_increasing

    def test_killed_between_two_files(self, tiny, tmp_path, monkeypatch):
        """The history of a step is written, its checkpoint is not."""
        from helpers import training

        tiny.train(tmp_path / "whole")
        save = training._save

        def die_on_the_second(path, *rest):
            if path.name == "last.safetensors" and path.exists():
                raise Killed
            save(path, *rest)

        monkeypatch.setattr(training, "_save", die_on_the_second)
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed")
        assert len(pd.read_csv(tmp_path / "killed" / "history.csv")) == 2
        monkeypatch.setattr(training, "_save", save)
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
        tiny.train(tmp_path / "whole", made_from="v2")
        with pytest.raises(Killed):
            tiny.train(tmp_path / "other", draw=dies_at(15, tiny.draw))
        tiny.train(tmp_path / "other", made_from="v2")
        assert tiny.drawn == list(range(30)) and tiny.said == []
        assert equal(tmp_path / "whole" / "best.safetensors", tmp_path / "other" / "best.safetensors")
        assert same_history(tmp_path / "whole", tmp_path / "other")

    def test_what_is_complete_is_not_mixed_with_what_is_not(self, tiny, tmp_path):
        """A new training over a complete one: until it is complete there is none."""
        tiny.train(tmp_path)
        with pytest.raises(Killed):
            tiny.train(tmp_path, made_from="v2", draw=dies_at(15, tiny.draw))
        with pytest.raises(ValueError, match="training.json is missing"):
            completed(tmp_path)
        tiny.train(tmp_path)
        assert tiny.drawn == list(range(30)), "the best weights of v1 are gone"

    def test_kill_9(self, tmp_path):
        """A process of its own, killed without warning in the middle of its second stretch, then run again."""
        run(tmp_path, "whole")
        killed = run(tmp_path, "killed", die=15)
        assert killed.returncode == -signal.SIGKILL
        assert run(tmp_path, "killed").stdout.split() == ["continuing", "from", "step", "10", *map(str, range(10, 20))]
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")


SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    import torch
    sys.path.insert(0, sys.argv[1])
    import conftest, test_training
    from test_training import RECIPE, Setting
    from dataclasses import replace

    folder, die, processes = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])

    def work():
        tiny = Setting(conftest.make_store.__wrapped__())

        def draw(step):
            if step == die:
                os.kill(os.getpid(), signal.SIGKILL)
            if processes == 1:
                print(step)
            return Setting.draw(tiny, step)

        # tiny steps: what differs between one process and two is the rounding of sums
        recipe = replace(RECIPE, steps=20, lr=0.003 if processes == 1 and len(sys.argv) == 5 else 1e-3, optimizer="sgd")
        tiny.train(folder, recipe, draw=draw) if processes > 1 else print(*tiny_said(tiny, recipe, draw))

    def tiny_said(tiny, recipe, draw):
        tiny.train(folder, recipe, draw=draw)
        return []
"""


def run(folder, name, die=-1, processes=1):
    raise NotImplementedError
