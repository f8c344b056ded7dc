"""Choice among trainings: lists of settings give several experiments, and dev data choose one."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import product
from typing import Any

from sklearn.model_selection import ParameterGrid

from ..encoders.base import Encoder
from ..encoders.stream import StreamConfig
from ..evaluation import ranking
from ..losses import LossConfig
from ..tokens.samplers import Sampler
from ..tokens.store import TokenStore
from .experiment import Experiment, Trained
from .loop import TrainingConfig


def settings_grid(
    settings: dict[str, Any],
    where: str = "settings",
    may_be_lists: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Return one dict of settings for every combination of values.

    Parameters
    ----------
    settings : setting -> value, or a list of the values to combine
    where : the name of the settings, the start of an error's message
    may_be_lists : the settings that may be lists; by default all

    Raises
    ------
    ValueError
        a list is empty, holds a value twice, or is not among those that may be lists
    """
    choices = {
        key: value if isinstance(value, list) else [value] for key, value in settings.items()
    }
    for key, values in choices.items():
        if may_be_lists is not None and len(values) > 1 and key not in may_be_lists:
            raise ValueError(f"{where}: {key!r} must be a single value, not {values}")
        if any(value in values[:number] for number, value in enumerate(values)):
            raise ValueError(f"{where}: {key!r} holds a value twice: {values}")
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
    for loss_settings, schedule in product(
        settings_grid(settings, f"settings of loss {loss!r}"), settings_grid(training, "training")
    ):
        experiment = Experiment(
            encoder=encoder,
            sampler=sampler,
            loss=LossConfig.of({"name": loss, "settings": loss_settings}, loss),
            training=TrainingConfig.of(schedule, "training"),
        )
        experiments.append(experiment)
    return experiments


def select_best(
    experiments: Sequence[Experiment],
    seed: int,
    train_one: Callable[[Experiment], Trained],
    score: Callable[[Encoder], float],
) -> Trained:
    """Train all experiments, and return the training with the highest score.

    Parameters
    ----------
    experiments : one or more experiments; a single one is trained and not scored
    seed : seed of all trainings, in place of that of the experiments
    train_one : function that trains an experiment
    score : function from a trained encoder to its score on dev; the first training wins a tie
    """
    trainings = [
        train_one(experiment.model_copy(update={"seed": seed})) for experiment in experiments
    ]
    if len(trainings) == 1:
        return trainings[0]
    scores = [score(trained.encoder) for trained in trainings]
    return trainings[scores.index(max(scores))]


def dev_recall(dev: TokenStore, max_tokens: int = 32) -> Callable[[Encoder], float]:
    """Return a function from an encoder to R@8 of retrieval among the documents of a store.

    Parameters
    ----------
    dev : the token store of dev, in which each post is a document
    max_tokens : how many tokens of each document are read

    References
    ----------
    sawatphol2022 Appendix A.4, which chooses settings by R@8.
    """
    trials = ranking.retrieval_trials(dev)
    return partial(_recall, trials=trials, max_tokens=max_tokens)


def _recall(encoder, trials, max_tokens):
    metrics, *_ = ranking.evaluate_retrieval(encoder, trials, max_tokens, resamples=0)
    return metrics.value["R@8"]
