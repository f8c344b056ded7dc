"""Choosing among trainings: settings that are lists stand for several experiments, and dev data decide."""

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.model_selection import ParameterGrid

from helpers.encoders.base import Encoder
from helpers.encoders.stream import StreamConfig
from helpers.evaluation import retrieval
from helpers.losses import LossConfig
from helpers.tokens.samplers import SamplerConfig
from helpers.tokens.store import TokenStore
from helpers.training.experiment import Experiment, Trained, TrainingConfig


def settings_grid(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Every combination of values where these may be lists. ValueError for an empty list."""
    return list(
        ParameterGrid(
            {key: each if isinstance(each, list) else [each] for key, each in settings.items()}
        )
    )


def experiments_of(
    encoder: StreamConfig,
    sampler: SamplerConfig,
    loss: str,
    settings: dict[str, Any],
    training: dict[str, Any],
) -> list[Experiment]:
    """One experiment for every combination of the lists in the settings of a loss and of TrainingConfig."""
    return [Experiment(encoder=encoder, sampler=sampler, loss=LossConfig.of({"name": loss, "settings": each}, loss),
                       training=TrainingConfig.of(schedule, "training"))
            for each in settings_grid(settings) for schedule in settings_grid(training)]  # fmt: skip


def select_best(experiments: Sequence[Experiment], seed: int, train_one: Callable[[Experiment], Trained],
           score: Callable[[Encoder], float]) -> Trained:  # fmt: skip
    """The training with the highest score, of equal ones the first; a single experiment is trained and not scored."""
    trained = [
        train_one(experiment.model_copy(update={"seed": seed})) for experiment in experiments
    ]
    return trained[0] if len(trained) == 1 else max(trained, key=lambda one: score(one.encoder))


def dev_recall(dev: TokenStore, max_tokens: int = 32) -> Callable[[Encoder], float]:
    """encoder -> R@8 of retrieval among the documents of a store, by which sawatphol2022 chooses (Appendix A.4)."""
    trials = retrieval.retrieval_trials(dev)
    return lambda encoder: retrieval.evaluate_retrieval(encoder, trials, max_tokens, resamples=0)[
        0
    ].value["R@8"]
