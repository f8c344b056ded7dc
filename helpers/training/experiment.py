"""The one door for experiments: a typed description of a training, run, resumed or loaded by one function.

``models/<folder>/experiment.json`` holds the description, so that later notebooks need the folder only. Equal
experiments on equal data have equal fingerprints, which is how results name them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from helpers.core.artifacts import fingerprint_of, is_current, read_json, write_json
from helpers.core.config import Config
from helpers.core.paths import checked_name
from helpers.encoders.base import Encoder
from helpers.encoders.stream import StreamConfig, build_stream_encoder
from helpers.encoders.wccn import init_as_wccn, training_windows
from helpers.evaluation import ranking
from helpers.losses import LossConfig, make_loss
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.samplers import SamplerConfig, make_sampler
from helpers.tokens.store import TokenStore
from helpers.training import checkpoints
from helpers.training.loop import Trainer, TrainingConfig, is_completed

VERSION = 4  # raised when the same settings give other weights
WINDOWS = 4  # samples of each training author that a layer is whitened with


class Experiment(Config):
    """Everything that a training is made of but its data.

    start : fingerprint of the training whose weights this one begins with, and teacher : of that which its loss
    learns from; empty for none.
    """

    encoder: StreamConfig
    loss: LossConfig
    sampler: SamplerConfig
    training: TrainingConfig
    seed: int = Field(0, ge=0)
    start: str = ""
    teacher: str = ""


@dataclass(frozen=True)
class Trained:
    """A trained encoder with its best weights, and what is known of its training.

    summary : ``training.json``: ``fingerprint``, ``best_step``, ``best_dev_MRR``, ``seconds``, ``device`` and the
    settings. history : the learning curve, columns ``step``, ``loss``, ``lr``, ``MRR``, ``R@8``, ``seconds``.
    """

    encoder: Encoder
    experiment: Experiment
    history: pd.DataFrame
    summary: dict
    folder: Path

    @property
    def fingerprint(self) -> str:
        """The identity of the training: experiment and data."""
        return self.summary["fingerprint"]

    @property
    def about(self) -> dict:
        """What a row of results says of its training, for :func:`helpers.core.results.record`."""
        seconds, device = self.summary["seconds"], self.summary["device"]
        return {
            "experiment": self.fingerprint,
            "seed": self.experiment.seed,
            "seconds": seconds,
            "device": device,
        }


def run_experiment(experiment: Experiment, train: TokenStore, dev: TokenStore, models: str | Path, name: str = "",
        loss: Callable | None = None, start: Trained | None = None,
        tokenizer: tokenizers.Tokenizer | None = None) -> Trained:  # fmt: skip
    """Train on a store, continue where a training stopped, or load it where it is complete.

    dev : authors whose ranking (first posts against last ones) chooses the best step.
    models : folder of all models. name : of this one's folder, its fingerprint where empty.
    loss : a loss that a config cannot build, such as ARR around its teacher; ``experiment.loss`` describes it.
    start : the training whose weights this one begins with.
    tokenizer : of the stores, for a pretrained transformer whose tokens are others.
    Raises ValueError where a named folder holds a complete training of something else, or the name is none of a folder.
    """
    experiment = experiment.model_copy(update={"start": start.fingerprint}) if start else experiment
    topics = len(train.meta["topics"]) + 1
    tokenizer = tokenizer if experiment.encoder.is_pretrained else None
    encoder = build_stream_encoder(
        experiment.encoder, train.meta["vocabulary"], topics, experiment.seed, tokenizer
    )
    # what a transformer begins with: another file under the same name is another experiment
    weights = (
        checkpoints.weights_checksum(encoder.state_dict(), {})
        if experiment.encoder.is_pretrained
        else ""
    )
    fingerprint = fingerprint_of(
        VERSION, experiment.fingerprint, train.meta["fingerprint"], dev.meta["fingerprint"], weights
    )
    folder = Path(models) / (checked_name("model", name) if name else fingerprint)
    if (folder / "training.json").exists() and not is_current(
        folder / "training.json", fingerprint
    ):
        raise ValueError(f"{folder.name} is already trained with other settings, data or code: "
                         f"give this one another name, or delete {folder}")  # fmt: skip
    if start:
        encoder.load_state_dict(start.encoder.state_dict())
    loss = loss or make_loss(
        experiment.loss.name, train.authors, encoder.dim, **experiment.loss.settings
    )
    draw = make_sampler(experiment.sampler, train, experiment.seed)
    schedule = experiment.training
    schedule = (
        schedule.in_steps(train.posts, int(draw(0).mask.sum())) if schedule.epochs else schedule
    )
    trainer = Trainer(encoder, loss, schedule, experiment.seed, folder, fingerprint)
    if trainer.accelerator.is_main_process:  # of several
        write_json(
            folder / "experiment.json",
            {
                "fingerprint": fingerprint,
                "experiment": experiment.model_dump(mode="json"),
                "topics": topics,
                "vocabulary": train.meta["vocabulary"],
                "encoding": train.meta["encoding"],
            },
        )
        if tokenizer:
            tokenizers.save_tokenizer(tokenizer, folder)
    begin = None
    if experiment.encoder.projection == "wccn" and not start:
        windows = training_windows(train, experiment.sampler.max_posts, WINDOWS)
        begin = partial(init_as_wccn, encoder, windows, experiment.sampler.max_tokens)
    history = trainer.train(draw, dev_score(dev, experiment.sampler), begin=begin)
    return Trained(encoder.eval(), experiment, history, is_completed(folder), folder)


def load_trained(folder: str | Path, store: TokenStore) -> Trained:
    """A trained encoder with its best weights, in eval mode. Raises ValueError where incomplete, or of other tokens."""
    folder = Path(folder)
    summary, about = is_completed(folder), read_json(folder / "experiment.json")
    if about["encoding"] != store.meta["encoding"]:
        raise ValueError(f"model {folder.name} was trained on other tokens than {store.folder.name} holds (another "
                         "tokenizer or topic list): train it again")  # fmt: skip
    experiment = Experiment.of(about["experiment"], f"{folder.name}/experiment.json")
    encoder = build_stream_encoder(
        experiment.encoder,
        about["vocabulary"],
        about["topics"],
        experiment.seed,
        tokenizers.load_tokenizer(folder) if (folder / "tokenizer.json").exists() else None,
    )
    checkpoints.load_weights(encoder, folder / "best.safetensors")
    encoder.to("cuda" if torch.cuda.is_available() else "cpu")
    return Trained(encoder.eval(), experiment, pd.read_csv(folder / "history.csv"), summary, folder)


def dev_score(store: TokenStore, sampler: SamplerConfig) -> Callable[[Encoder], dict[str, float]]:
    """encoder -> MRR and R@8 on a store's authors: their first posts against their last, as many as training draws."""
    trials = ranking.ranking_trials(store, sampler.max_posts)
    return lambda encoder: ranking.evaluate_ranking(
        encoder, trials, sampler.max_tokens, resamples=0)[0].value[["MRR", "R@8"]].to_dict()  # fmt: skip
