"""A tiny training that every test of the loop runs: whole, killed, damaged, in processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file

from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.losses import make_loss
from helpers.tokens.samplers import SamplerConfig, make_sampler
from helpers.training.experiment import dev_score
from helpers.training.loop import Trainer, TrainingConfig

CONFIG = TrainingConfig(steps=30, lr=0.003, eval_every=10, warmup=5)
TINY = {"filters": 8, "token_dim": 8, "attention": 8, "dim": 16, "layers": 2}
FOUR = SamplerConfig(authors_per_batch=12, samples_per_author=4, max_tokens=8)


def changed(**settings):
    return TrainingConfig(**{**CONFIG.model_dump(), **settings})


class Setting:
    """A tiny training: 40 authors with habits, the second half of each history for dev."""

    def __init__(self, make_store):
        self.store = make_store([24] * 40, longest=8, vocabulary=200, habits=True)
        self.drawn = []

        self.sampler = make_sampler(FOUR, self.store, 3)
        self.score = dev_score(self.store, FOUR.model_copy(update={"max_posts": 4}))

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
        trainer = Trainer(encoder, loss, config, 0, folder, fingerprint)
        return encoder, trainer.train(**parts)


def equal(left_file, right_file):
    left = load_file(left_file)
    right = load_file(right_file)
    if left.keys() != right.keys():
        return False
    return all(torch.equal(left[name], right[name]) for name in left)


def same_history(left_folder, right_folder):
    left = pd.read_csv(left_folder / "history.csv").drop(columns="seconds")
    right = pd.read_csv(right_folder / "history.csv").drop(columns="seconds")
    return left.equals(right)


class Killed(BaseException):
    pass


def dies_at(step, draw):
    def draw_or_die(number):
        if number == step:
            raise Killed
        return draw(number)

    return draw_or_die


SCRIPT = """
import json, os, signal, sys, torch
sys.path.insert(0, sys.argv[1])
from helpers.losses import make_loss
from tests.factories import store_in_memory
from tests.tiny_training import Setting, changed
from accelerate import notebook_launcher

folder = sys.argv[2]
die = int(sys.argv[3])
processes = int(sys.argv[4])
loss = sys.argv[5]
dtype = sys.argv[6]
settings = {"steps": 20, "lr": 0.05, "optimizer": "sgd", "clip": 1e9} | json.loads(sys.argv[7])

def draw(step):
    if step == die:
        os.kill(os.getpid(), signal.SIGKILL)
    steps.append(step)
    return tiny.draw(step)

def noted(loss):
    # beside the folder, and at once: a process that is killed has told what it did
    def noting(*batch):
        value = loss(*batch)
        print(steps[-1], value.item(), file=open(folder + ".losses", "a"), flush=True)
        return value

    return noting

def work():
    torch.set_default_dtype(getattr(torch, dtype))
    # not clipped: that would hide a gradient of the wrong length
    noted_loss = noted(make_loss(loss)) if loss == "supcon" else loss
    tiny.train(folder, changed(**settings), draw=draw, loss=noted_loss)
    print(*steps, flush=True)

steps = []
tiny = Setting(store_in_memory)
if __name__ == "__main__":
    if processes == 2:
        notebook_launcher(work, num_processes=2)
    else:
        work()
"""


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


def run(folder, die=-1, processes=1, loss="supcon", dtype="float32", **settings):
    """Twenty steps of a training, or as settings say, in a process, or in two that it starts."""
    (folder.parent / "script.py").write_text(SCRIPT)
    command = [
        sys.executable,
        folder.parent / "script.py",
        Path(__file__).parents[1],
        folder,
        die,
        processes,
        loss,
        dtype,
        json.dumps(settings),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)
