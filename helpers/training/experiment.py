"""Experiments: typed descriptions of trainings, which are run, resumed, loaded and chosen from.

``models/<folder>/experiment.json`` holds the description, so that later notebooks need only the
folder. Equal experiments on equal data have equal fingerprints, by which results refer to them.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from accelerate import PartialState
from pydantic import Field, SerializeAsAny, field_validator
from sklearn.model_selection import ParameterGrid

from ..core.artifacts import fingerprint_of, folder_lock, note, read_json, write_json
from ..core.parameters import Config
from ..core.paths import checked_name
from ..encoders.base import Encoder, load_tensors, read_checkpoint, weights_checksum
from ..encoders.lsa import init_as_wccn
from ..encoders.stream import StreamConfig, build_stream_encoder
from ..evaluation import ranking
from ..losses import LossConfig, make_loss
from ..tokens import tokenizer as tokenizers
from ..tokens.batch import training_windows
from ..tokens.samplers import Sampler, make_sampler, sampler_config
from ..tokens.store import TokenStore
from .loop import BEST, STATE, SUMMARY, TrainingConfig
from .loop import train as train_encoder

VERSION = 4  # raised when the same settings give other weights
WINDOWS_PER_AUTHOR = 4  # most samples of each training author from which WCCN weights are computed


class Experiment(Config):
    """All settings of a training, without its data.

    Attributes
    ----------
    encoder : settings of the encoder that is trained
    loss : the loss and its settings
    sampler : the sampler that makes the batches
    training : settings of the training loop
    seed : seed of the initial weights, of the batches and of the random state of every step
    start : fingerprint of the training whose weights this one begins with; empty for none
    teacher : fingerprint of the training whose encoder teaches the loss; empty for none
    """

    encoder: StreamConfig
    loss: LossConfig
    sampler: SerializeAsAny[Sampler]
    training: TrainingConfig
    seed: int = Field(0, ge=0)
    start: str = ""
    teacher: str = ""

    @field_validator("sampler", mode="before")
    @classmethod
    def _of_its_kind(cls, sampler: Sampler | dict) -> Sampler:
        # experiment.json holds the settings of a sampler, by its kind
        return sampler_config(sampler) if isinstance(sampler, dict) else sampler


@dataclass(frozen=True)
class Trained:
    """A trained encoder with its best weights, and the record of its training.

    Attributes
    ----------
    encoder : the encoder, in eval mode
    experiment : the description of the training
    history : the learning curve, columns ``step``, ``loss``, ``lr``, ``MRR``, ``R@8``, ``seconds``;
        with test accounts also ``test_MRR`` and ``test_R@8``
    summary : the rest of ``training.json``: ``fingerprint``, ``best_step``, ``best_dev_MRR``,
        ``seconds``, ``device``, ``seed`` and the settings of the training loop
    folder : the folder in which all of it is saved
    """

    encoder: Encoder
    experiment: Experiment
    history: pd.DataFrame
    summary: dict
    folder: Path

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the training, a hash of its experiment and data."""
        return self.summary["fingerprint"]

    @property
    def about(self) -> dict:
        """Return the arguments of ``helpers.core.results.record`` that describe the training."""
        return {
            "experiment": self.fingerprint,
            "seed": self.experiment.seed,
            "seconds": self.summary["seconds"],
            "device": self.summary["device"],
        }


def run_experiment(
    experiment: Experiment,
    train: TokenStore,
    dev: TokenStore | Sequence[TokenStore],
    models: str | Path,
    name: str = "",
    loss: Callable | None = None,
    start: Trained | None = None,
    tokenizer: tokenizers.Tokenizer | None = None,
) -> Trained:
    """Train on a store, continue a training that was interrupted, or load one that is complete.

    Parameters
    ----------
    experiment : the settings of the training
    train : the token store to train on
    dev : the token store of the authors on whom the best step is chosen, see :func:`dev_score`; or
        this one and that of test authors, who are ranked at every evaluation as well, for a
        learning curve as in Figure 5 of khan2021; nothing is chosen on them
    models : the folder of all models
    name : name of this model's folder; by default its fingerprint
    loss : a loss that :func:`helpers.losses.make_loss` cannot make, such as ARR with its teacher;
        ``experiment.loss`` must describe it. By default the loss is made from that description
    start : the training whose weights this one begins with; it also replaces ``experiment.start``
    tokenizer : the tokenizer of the stores, for a pretrained transformer with a tokenizer of its
        own, which reads their text again; ignored for other encoders

    Raises
    ------
    ValueError
        the named folder holds a complete training of something else or a damaged one, the name is
        not allowed, or ``experiment.start`` names a training and ``start`` is not given
    """
    if start:
        experiment = experiment.model_copy(update={"start": start.fingerprint})
    if not experiment.encoder.is_pretrained:
        tokenizer = None
    description = {
        "experiment": experiment.model_dump(mode="json"),
        "topics": len(train.meta["topics"]) + 1,
        "vocabulary": train.meta["vocabulary"],
        "encoding": train.meta["encoding"],
    }
    encoder = _new_encoder(experiment, description, tokenizer)
    ranked = list(dev) if isinstance(dev, Sequence) else [dev]
    fingerprint = _fingerprint(experiment, [train, *ranked], encoder)
    folder = Path(models) / (checked_name("model", name) if name else fingerprint)
    process = PartialState(cpu=not torch.cuda.is_available())
    with _writer_lock(folder, process):
        if not _is_trained(folder, fingerprint):
            if process.is_main_process:  # one of several processes writes the files
                write_json(folder / "experiment.json", {"fingerprint": fingerprint, **description})
                if tokenizer:
                    tokenizers.save_tokenizer(tokenizer, folder)
            encoder.to(process.device)
            _set_first_weights(encoder, experiment, train, start)
            _train(encoder, loss, experiment, folder, fingerprint, train, ranked)
        (folder / STATE).unlink(missing_ok=True)  # also where a kill has left it
        note(folder)
        return _opened(encoder, experiment, folder)


def _writer_lock(folder, process):
    """Return a context that keeps other trainings from the folder of this one.

    One of several processes writes the files, and so holds the lock. It does not wait for another
    training, since the other processes would wait for it, and have read the files too early.
    """
    if not process.is_main_process:
        return nullcontext()
    return folder_lock(folder, wait=process.num_processes == 1)


def _new_encoder(experiment, description, tokenizer):
    """Build an encoder for the tokens that ``experiment.json`` describes."""
    sizes = (description["vocabulary"], description["topics"])
    return build_stream_encoder(experiment.encoder, *sizes, experiment.seed, tokenizer)


def _fingerprint(experiment, stores, encoder):
    """Hash an experiment, its data, and the weights that a pretrained encoder begins with."""
    weights = ""
    if experiment.encoder.is_pretrained:
        # another file under the same name is another experiment
        weights = weights_checksum(encoder.state_dict(), {})
    data = [store.meta["fingerprint"] for store in stores]
    return fingerprint_of(VERSION, experiment.fingerprint, *data, weights)


def _is_trained(folder, fingerprint):
    """Tell whether a training is complete; ValueError where its folder holds another one."""
    summary = folder / SUMMARY
    if not summary.exists():
        return False
    if read_json(summary).get("fingerprint") != fingerprint:
        raise ValueError(
            f"{folder.name} is already trained with other settings, data or code: "
            f"give this one another name, or delete {folder}"
        )
    return True


def _set_first_weights(encoder, experiment, train, start):
    """Give an encoder the weights of another training, or a projection that is WCCN."""
    if start:
        encoder.load_state_dict(start.encoder.state_dict())
    elif experiment.start:
        raise ValueError(
            f"the training begins with the weights of another one, {experiment.start}: pass that "
            "one as start=load_trained(...)"
        )
    elif experiment.encoder.projection == "wccn":
        windows = training_windows(train, experiment.sampler.max_posts, WINDOWS_PER_AUTHOR)
        init_as_wccn(encoder, windows, experiment.sampler.max_tokens)


def _train(encoder, loss, experiment, folder, fingerprint, train, ranked):
    """Train an encoder by its description; a loss that is None is made from it, too."""
    if loss is None:
        settings = experiment.loss.settings
        loss = make_loss(experiment.loss.name, train.authors, encoder.dim, **settings)
    draw = make_sampler(experiment.sampler, train, experiment.seed)
    config = experiment.training
    if config.epochs:
        config = config.in_steps(train.posts, int(draw(0).mask.sum()))
    score = dev_score(ranked, experiment.sampler)
    train_encoder(encoder, loss, config, experiment.seed, folder, fingerprint, draw, score)


def load_trained(folder: str | Path, store: TokenStore) -> Trained:
    """Load a trained encoder with its best weights, in eval mode, onto the GPU if there is one.

    Parameters
    ----------
    folder : the folder of the training
    store : a token store that the encoder will read, to check that its tokens are the same

    Raises
    ------
    ValueError
        the training is incomplete or damaged, or the store was made with another tokenizer or topic
        list
    """
    folder = Path(folder)
    read_json(folder / SUMMARY)  # is there: the training is complete
    description = read_json(folder / "experiment.json")
    if description["encoding"] != store.meta["encoding"]:
        raise ValueError(
            f"model {folder.name} was trained on other tokens than {store.folder.name} holds "
            "(another tokenizer or topic list): train it again"
        )
    experiment = Experiment.of(description["experiment"], f"{folder.name}/experiment.json")
    tokenizer = None
    if (folder / "tokenizer.json").exists():
        tokenizer = tokenizers.load_tokenizer(folder)
    encoder = _new_encoder(experiment, description, tokenizer)
    return _opened(encoder, experiment, folder)


def _opened(encoder, experiment, folder):
    """Load the best weights of a complete training into its encoder."""
    summary = read_json(folder / SUMMARY)
    path = folder / BEST
    weights, _ = read_checkpoint(path)
    load_tensors(encoder, weights, path)
    encoder.to("cuda" if torch.cuda.is_available() else "cpu")
    history = pd.DataFrame(summary.pop("history"))
    return Trained(encoder.eval(), experiment, history, summary, folder)


def dev_score(
    stores: Sequence[TokenStore], sampler: Sampler
) -> Callable[[Encoder], dict[str, float]]:
    """Return a function from an encoder to MRR and R@8 on the authors of stores.

    An author's first posts are a query, and the last posts are a target; both have ``max_posts`` of
    the sampler. Authors with too few posts for both are left out.

    Parameters
    ----------
    stores : the token store of the dev authors, and perhaps that of test authors, whose metrics
        have names such as ``test_MRR``
    sampler : the sampler of the training, of which posts and tokens are used
    """
    trials = [ranking.ranking_trials(store, sampler.max_posts) for store in stores]
    return partial(_ranking_metrics, trials, sampler.max_tokens)


def _ranking_metrics(trials, max_tokens, encoder):
    values = {}
    for prefix, trials_of_store in zip(("", "test_"), trials):
        metrics, *_ = ranking.evaluate_ranking(encoder, trials_of_store, max_tokens, resamples=0)
        values |= metrics.value[["MRR", "R@8"]].add_prefix(prefix).to_dict()
    return values


def settings_grid(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one dict of settings for every combination of values.

    Parameters
    ----------
    settings : setting -> value, or a list of the values to combine, which must not be empty
    """
    choices = {}
    for key, value in settings.items():
        choices[key] = value if isinstance(value, list) else [value]
    return list(ParameterGrid(choices))


def experiments_of(
    encoder: StreamConfig,
    sampler: Sampler,
    loss: str,
    settings: dict[str, Any],
    training: dict[str, Any],
) -> list[Experiment]:
    """Return one experiment for every combination of settings of loss and training.

    Parameters
    ----------
    encoder : the encoder of all experiments
    sampler : the sampler of all experiments
    loss : name of the loss of all experiments
    settings : settings of the loss; a list stands for several values
    training : settings of TrainingConfig; a list stands for several values

    Raises
    ------
    ValueError
        a list is empty, or a setting is not valid
    """
    experiments = []
    for loss_settings, schedule in product(settings_grid(settings), settings_grid(training)):
        of_loss = LossConfig.of({"name": loss, "settings": loss_settings}, loss)
        config = TrainingConfig.of(schedule, "training")
        experiments.append(
            Experiment(encoder=encoder, sampler=sampler, loss=of_loss, training=config)
        )
    return experiments
