"""What the library makes, small: every kind of artifact within seconds."""

import sys
from functools import cache

import pandas as pd

from helpers.accounts import reading
from helpers.accounts.encoder import AuthorEncoder
from helpers.core import results
from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect
from helpers.encoders.stream import stream_config
from helpers.losses import LossConfig
from helpers.splits import RULES
from helpers.splits.assignment import make_split
from helpers.tokens import tokenizer
from helpers.tokens.samplers import AuthorSampler
from helpers.tokens.store import build_store, list_topics
from helpers.training.experiment import Experiment, TrainingConfig, run_experiment
from tests.factories import write_demo_csv
from tests.faults.hook import sitecustomize

ENCODER = {"filters": 8, "token_dim": 8, "attention": 8, "dim": 16}
RULE = {"train_until": 0.6, "dev_until": 0.8, "heldout": 0.3, "min_posts": 6, "eval_posts": 8}
SAMPLER = {"authors_per_batch": 6, "samples_per_author": 2, "max_posts": 3, "max_tokens": 6}
TRAINING = {"steps": 4, "lr": 0.003, "warmup": 2, "eval_every": 2}
NAME = "TP-tiny"  # of the model


def settings():
    return CollectConfig(source="demo", options={"authors": 20, "posts": 600, "seed": 3})


def posts(run):
    return collect(run, settings(), workers=1)


def splits(run):
    posts(run)
    return make_split(run.folder / "posts.parquet", run.posts, RULES["time"].of(RULE, "rule"))


def tokens(run):
    """Return the tokenizer and the token stores of the splits train and dev."""
    splits(run)
    train_posts = run.posts / "train.parquet"
    words = tokenizer.prepare_text(run.tokenizer, "sentencepiece", 320, train_posts)
    topics = list_topics(train_posts)
    stores = {}
    for split in ("train", "dev"):
        path = run.posts / f"{split}.parquet"
        encoding = (topics, words.fingerprint, words.vocabulary)
        stores[split] = build_store(path, run.tokens / split, words.encode, *encoding)
    return words, stores


def training(run):
    """Train a network for six steps and record its dev score as a result."""
    words, stores = tokens(run)
    experiment = Experiment(
        encoder=stream_config(features="TP", **ENCODER),
        loss=LossConfig(name="supcon"),
        sampler=AuthorSampler.of(SAMPLER),
        training=TrainingConfig.of(TRAINING, "training"),
    )
    trained = run_experiment(experiment, stores["train"], stores["dev"], run.models, NAME)
    rows = pd.DataFrame({"value": trained.history.iloc[-1][["MRR", "R@8"]]}).astype(float)
    about = trained.about | {"data": stores["dev"].meta["fingerprint"], "split": "dev"}
    table = rows.assign(low=float("nan"), high=float("nan"))
    results.record(run, table, model=NAME, protocol="ranking", **about)
    return trained


def accounts(run):
    encoder = shipped()
    file = run.folder.parent.parent / "own.csv"  # the same for all outputs that stand beside it
    if not file.exists():
        write_demo_csv(file, evader="demo-0003", accounts=8, posts=200)
    own = reading.read_posts(run, str(file), encoder)
    gallery = own.gallery()
    query = [own.names[0]]
    gallery.rank(gallery.accounts(query), query, 3)
    return gallery


@cache
def shipped():
    return AuthorEncoder.load("open-small")


CALLS = {"training": training, "accounts": accounts}


def make(call):
    """Make a call, with the fault of the environment; return its process's exit code.

    See :func:`tests.faults.processes.run_call`.
    """
    sitecustomize.install()
    try:
        CALLS[call](Run("calls"))
    except (Exception, KeyboardInterrupt) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0
