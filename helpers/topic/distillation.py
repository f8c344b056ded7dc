"""The training of ARR: base encoders first, then their students (sawatphol2022 section 2)."""

from functools import partial
from pathlib import Path

from ..encoders.base import Encoder
from ..training.experiment import Experiment, Trained, dev_recall, run_experiment, select_best
from .arr import ARR
from .topic_corpus import TopicCorpus


def train_with_students(
    bases: dict[str, list[Experiment]],
    students: dict[str, list[Experiment]],
    corpus: TopicCorpus,
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
    corpus : TopicCorpus
        one with parts ``train`` and ``dev``
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
    stores = {"train": corpus.stores["train"], "dev": corpus.stores["dev"], "models": models}
    first_experiment = next(iter(bases.values()))[0]
    score = dev_recall(stores["dev"], first_experiment.sampler.max_tokens)
    trained = {}
    for base, base_experiments in bases.items():
        teacher = select_best(base_experiments, seed, partial(run_experiment, **stores), score)
        trained[base] = teacher
        train_student = partial(_distil, teacher=teacher, topic_bias=topic_bias, **stores)
        for student, experiments in students.items():
            name = f"{base}_{student}"
            trained[name] = select_best(experiments, seed, train_student, score)
    return trained


def _distil(experiment, teacher, topic_bias, train, dev, models):
    """Train, resume or load a student; the settings of its loss are those of ARR.

    A pretrained encoder begins with its pretrained weights, as in the paper. One that began at
    random has no such start, so its student begins with the teacher's weights.
    """
    loss = ARR(teacher.encoder, topic_bias, **experiment.loss.settings)
    experiment = experiment.model_copy(update={"teacher": teacher.fingerprint})
    start = None if experiment.encoder.is_pretrained else teacher
    return run_experiment(experiment, train, dev, models, loss=loss, start=start)
