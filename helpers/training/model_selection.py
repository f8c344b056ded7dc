"""Choice among trainings: settings that are lists are several experiments, dev data decide."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from sklearn.model_selection import ParameterGrid

from helpers.encoders.base import Encoder
from helpers.encoders.stream import StreamConfig
from helpers.evaluation import retrieval
from helpers.losses import LossConfig
from helpers.tokens.samplers import SamplerConfig
from helpers.tokens.store import TokenStore
from helpers.training.experiment import Experiment, Trained
from helpers.training.loop import TrainingConfig


def settings_grid(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of values where these may be lists.

    Raises
    ------
    ValueError
        a list is empty
    """
    choices = {
        key: value if isinstance(value, list) else [value] for key, value in settings.items()
    }
    return list(ParameterGrid(choices))


def experiments_of(
    encoder: StreamConfig,
    sampler: SamplerConfig,
    loss: str,
    settings: dict[str, Any],
    training: dict[str, Any],
) -> list[Experiment]:
    """Describe an experiment for every combination of the lists in settings.

    Parameters
    ----------
    encoder : the same of all
    sampler : the same of all
    loss : its name
    settings : of the loss; a list stands for several
    training : settings of TrainingConfig; a list stands for several
    """
    experiments = []
    for loss_settings, schedule in product(settings_grid(settings), settings_grid(training)):
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
    experiments : one or more; a single one is trained and not scored
    seed : of all
    train_one : experiment -> its training
    score : of a trained encoder; of equal scores the first training is taken
    """
    trainings = [
        train_one(experiment.model_copy(update={"seed": seed})) for experiment in experiments
    ]
    if len(trainings) == 1:
        return trainings[0]
    scores = [score(trained.encoder) for trained in trainings]
    return trainings[scores.index(max(scores))]


def dev_recall(dev: TokenStore, max_tokens: int = 32) -> Callable[[Encoder], float]:
    """Return a function encoder -> R@8 of retrieval among the documents of a store.

    Parameters
    ----------
    dev : a document a post
    max_tokens : read of each document, L

    References
    ----------
    sawatphol2022 Appendix A.4, where it chooses among settings.
    """
    trials = retrieval.retrieval_trials(dev)
    return partial(_recall, trials=trials, max_tokens=max_tokens)


def _recall(encoder, trials, max_tokens):
    metrics, *_ = retrieval.evaluate_retrieval(encoder, trials, max_tokens, resamples=0)
    return metrics.value["R@8"]
