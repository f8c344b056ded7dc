"""A tiny training that every test of the loop runs: whole, killed, damaged, in processes."""

import os
import signal
import tempfile
from pathlib import Path

import pandas as pd
import torch
from accelerate import notebook_launcher

from helpers.core.artifacts import read_json
from helpers.encoders.base import read_checkpoint
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.losses import make_loss
from helpers.tokens.samplers import AuthorSampler, make_sampler
from helpers.training.experiment import dev_score
from helpers.training.loop import TrainingConfig, train
from tests.factories import store_in_memory
from tests.forks import Fork

CONFIG = TrainingConfig(steps=30, lr=0.003, eval_every=10, warmup=5)
TINY = {"filters": 8, "token_dim": 8, "attention": 8, "dim": 16, "layers": 2}
FOUR = AuthorSampler(authors_per_batch=12, samples_per_author=4, max_tokens=8)


def changed(**settings):
    return TrainingConfig(**{**CONFIG.model_dump(), **settings})


class Setting:
    """A tiny training: 40 authors with habits, the second half of each history for dev."""

    def __init__(self, make_store):
        self.store = make_store([24] * 40, longest=8, vocabulary=200, habits=True)
        self.drawn = []

        self.sampler = make_sampler(FOUR, self.store, 3)
        self.score = dev_score([self.store], FOUR.model_copy(update={"max_posts": 4}))

    def encoder(self, seed=0, **settings):
        return build_stream_encoder(stream_config(**{**TINY, **settings}), 200, 5, seed)

    def draw(self, step):
        self.drawn.append(step)
        return self.sampler(step)

    def train(
        self, folder, config=CONFIG, fingerprint="v1", encoder=None, loss="supcon", **changed
    ):
        self.drawn = []
        if encoder is None:
            encoder = self.encoder()
        if isinstance(loss, str):
            loss = make_loss(loss, 40, TINY["dim"])
        parts = {"draw": self.draw, "score": self.score, **changed}
        train(encoder, loss, config, 0, folder, fingerprint, **parts)
        weights, history = finished(folder)
        encoder.load_state_dict(weights)
        return encoder, history


def finished(folder):
    """Return the best weights and the learning curve of a complete training."""
    assert not (folder / "last.pt").exists(), "the state of a complete one is of no use"
    weights, state = read_checkpoint(folder / "best.safetensors")
    summary = read_json(folder / "training.json")
    assert state["step"] == summary["best_step"]
    return weights, pd.DataFrame(summary["history"])


def equal(left_folder, right_folder):
    """Whether two complete trainings have equal best weights and curves, all bits of them."""
    left, left_history = finished(left_folder)
    right, right_history = finished(right_folder)
    assert left.keys() == right.keys()
    same_curve = left_history.drop(columns="seconds").equals(right_history.drop(columns="seconds"))
    return same_curve and all(torch.equal(left[name], right[name]) for name in left)


class Killed(BaseException):
    pass


def dies_at(step, draw):
    def draw_or_die(number):
        if number == step:
            raise Killed
        return draw(number)

    return draw_or_die


class NotedTraining:
    """A training that prints its steps, writes down its losses, and may die at a step."""

    def __init__(self, folder, die, loss, dtype, settings):
        self.folder = folder
        self.die = die
        self.loss = loss
        self.dtype = getattr(torch, dtype)
        self.config = changed(**settings)
        self.steps = []
        self.tiny = Setting(store_in_memory)

    def draw(self, step):
        if step == self.die:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps.append(step)
        return self.tiny.draw(step)

    def noted_loss(self, *batch):
        # beside the folder, and at once: a process that is killed has told what it did
        value = self.supcon(*batch)
        with open(f"{self.folder}.losses", "a") as file:
            print(self.steps[-1], value.item(), file=file)
        return value

    def train(self):
        torch.set_default_dtype(self.dtype)
        loss = self.loss
        if loss == "supcon":
            self.supcon = make_loss(loss)
            loss = self.noted_loss
        self.tiny.train(self.folder, self.config, draw=self.draw, loss=loss)
        print(*self.steps, flush=True)


def train_in_processes(processes, *arguments):
    """Train a :class:`NotedTraining` in this process, or in two that it starts."""
    training = NotedTraining(*arguments)
    if processes == 1:
        training.train()
    else:
        # on a port that is free, as torchrun --standalone does it
        notebook_launcher(
            training.train,
            num_processes=processes,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
        )


def losses(folder):
    """The loss of every step, as the processes of :func:`run` wrote it down.

    A step that was taken twice must have had the same loss.
    """
    loss_of_step = {}
    for line in Path(f"{folder}.losses").read_text().splitlines():
        step, text = line.split()
        loss = float(text)
        first_loss = loss_of_step.setdefault(int(step), loss)
        assert abs(first_loss - loss) <= 1e-5 * abs(loss), step
    return loss_of_step


def start(folder, die=-1, processes=1, loss="supcon", dtype="float32", **settings):
    """Start twenty steps of a training, or as settings say, in a Fork, or in two of its own."""
    # not clipped: that would hide a gradient of the wrong length
    settings = {"steps": 20, "lr": 0.05, "optimizer": "sgd", "clip": 1e9} | settings
    place = Path(tempfile.mkdtemp(dir=folder.parent))
    variables = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    arguments = (processes, folder, die, loss, dtype, settings)
    return Fork(place, train_in_processes, *arguments, variables=variables)
