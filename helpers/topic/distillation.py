"""The training of ARR: base encoders first, then their students (sawatphol2022 section 2)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ..encoders.base import Encoder
from ..evaluation.ranking import evaluate_retrieval, retrieval_trials
from ..losses.arr import ARR
from ..tokens.document_sets import Documents
from ..training.experiment import Experiment, Trained, run_experiment


def train_with_students(
    bases: dict[str, list[Experiment]],
    students: dict[str, list[Experiment]],
    documents: Documents,
    topic_bias: Encoder,
    models: Path,
    seed: int = 0,
) -> dict[str, Trained]:
    """Train every base, then each kind of student with the base as its teacher.

    Of each list of experiments the one with the highest R@8 on dev is kept. Only that base teaches.

    Parameters
    ----------
    bases, students : dict of str to list of Experiment
        by name a list of experiments, of which the best on dev is kept
    documents : Documents
        documents with the splits ``train`` and ``dev``
    topic_bias : Encoder
        H, the frozen model that knows topics only
    models : Path
        folder in which all models are saved
    seed : int
        seed of every training

    Returns
    -------
    The trained encoders by the names ``<base>`` and ``<base>_<student>``.
    """
    train = documents.stores["train"]
    dev = documents.stores["dev"]
    trained = {}
    for base, experiments in bases.items():
        train_base = partial(run_experiment, train=train, dev=dev, models=models)
        trained[base] = select_best(experiments, seed, train_base, dev)
        given = {"teacher": trained[base], "topic_bias": topic_bias}
        train_student = partial(_distil, train=train, dev=dev, models=models, **given)
        for student, lessons in students.items():
            trained[f"{base}_{student}"] = select_best(lessons, seed, train_student, dev)
    return trained


def select_best(
    experiments: Sequence[Experiment], seed: int, train_one: Callable[[Experiment], Trained], dev
) -> Trained:
    """Train all experiments, and return the training with the highest R@8 on dev.

    Parameters
    ----------
    experiments : sequence of Experiment
        one or more experiments; a single one is trained and not scored
    seed : int
        seed of all trainings, in place of that of the experiments
    train_one : callable
        trains an experiment
    dev : TokenStore
        store in which each post is a document; the first training wins a tie

    References
    ----------
    sawatphol2022 Appendix A.4.
    """
    trainings = [
        train_one(experiment.model_copy(update={"seed": seed})) for experiment in experiments
    ]
    if len(trainings) == 1:
        return trainings[0]
    trials = retrieval_trials(dev)
    recalls = []
    for trained in trainings:
        max_tokens = trained.experiment.sampler.max_tokens
        metrics, *_ = evaluate_retrieval(trained.encoder, trials, max_tokens, resamples=0)
        recalls.append(metrics.value["R@8"])
    return trainings[np.argmax(recalls)]


def _distil(experiment, teacher, topic_bias, train, dev, models):
    """Train, resume or load a student; the settings of its loss are those of ARR.

    A pretrained encoder begins with its pretrained weights, as in the paper. One that began at
    random has no such start, so its student begins with the teacher's weights.
    """
    loss = ARR(teacher.encoder, topic_bias, **experiment.loss.settings)
    experiment = experiment.model_copy(update={"teacher": teacher.fingerprint})
    start = None if experiment.encoder.is_pretrained else teacher
    return run_experiment(experiment, train, dev, models, loss=loss, start=start)
