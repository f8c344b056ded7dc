"""The training of ARR: base encoders first, then their students (sawatphol2022 section 2)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..encoders.base import Encoder
from ..evaluation.ranking import evaluate_retrieval, retrieval_trials
from ..losses.arr import ARR
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
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
    stores = (documents.stores["train"], documents.stores["dev"], models)
    trained = {}
    for base, experiments in bases.items():
        teachers = [
            run_experiment(_seeded(experiment, seed), *stores) for experiment in experiments
        ]
        teacher = best_on_dev(teachers, documents.stores["dev"])
        trained[base] = teacher
        for student, lessons in students.items():
            pupils = [
                _distil(_seeded(lesson, seed), teacher, topic_bias, *stores) for lesson in lessons
            ]
            trained[f"{base}_{student}"] = best_on_dev(pupils, documents.stores["dev"])
    return trained


def _seeded(experiment, seed):
    return experiment.model_copy(update={"seed": seed})


def best_on_dev(trainings: Sequence[Trained], dev: TokenStore) -> Trained:
    """Return the training with the highest R@8 on dev; the first wins a tie.

    Parameters
    ----------
    trainings : sequence of Trained
        one or more trainings; a single one is not scored
    dev : TokenStore
        store in which each post is a document

    References
    ----------
    sawatphol2022 Appendix A.4.
    """
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
