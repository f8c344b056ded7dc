"""Authorship representation regularization, ARR (sawatphol2022 section 2): a student unlearns what topic explains.

A teacher G, trained and frozen, gives the probability that two samples of a batch have one author. So does a bias model
H that knows topics only. The more probability H gives to the same-author pairs, the flatter the probabilities of the
teacher become. The student F learns these; it begins with the pretrained weights that the teacher began with, or with
the teacher's own. Only F is needed afterwards. B is the size of a batch here; the paper's B, the bias, is written out.
"""

import copy
from collections.abc import Iterable
from pathlib import Path

import torch
from scipy import sparse
from torch import Tensor, nn

from helpers.encoders.base import Encoder
from helpers.losses import ARRConfig
from helpers.losses.distances import pairwise_cosines
from helpers.tokens.batch import Batch
from helpers.tokens.store import TokenStore
from helpers.topic.topic_corpus import TopicCorpus
from helpers.training.experiment import Experiment, Trained, run_experiment
from helpers.training.model_selection import dev_recall, select_best


def log_probabilities(similarity: Tensor, temperature: float) -> Tensor:
    """Eq. 1: (B, B) similarities -> log p(i, j), the softmax of ``similarity / temperature`` over all j but i.

    The diagonal is -inf. In float32 at least and never through p itself, which underflows at a temperature of 0.01.
    Raises ValueError for fewer than two samples.
    """
    if len(similarity) < 2:
        raise ValueError(f"{len(similarity)} samples in a batch: need at least 2")
    logits = similarity.to(torch.promote_types(similarity.dtype, torch.float32)) / temperature
    return logits.masked_fill(_diagonal(logits), float("-inf")).log_softmax(1)


def bias_of_batch(log_p_h: Tensor, labels: Tensor) -> Tensor:
    """Eq. 2: the mean of p_h (B, B) over the pairs i != j of one author, a scalar in 0..1; 0 where there are none."""
    same = (labels[:, None] == labels) & ~_diagonal(log_p_h)
    return (log_p_h.exp() * same).sum() / same.sum().clamp(min=1)


def soft_targets(log_p_g: Tensor, bias: Tensor | float) -> Tensor:
    """Eq. 3: S(i, j), p_g(i, j)^(1 - bias) divided by its sum over j != i. Rows add up to 1, the diagonal is 0.

    A bias of 0 leaves p_g (B, B) as it is, a bias of 1 makes all j != i alike.
    """
    return ((1 - bias) * log_p_g).masked_fill(_diagonal(log_p_g), float("-inf")).softmax(1)


def released_targets(similarity: Tensor, temperature: float, bias: Tensor | float) -> Tensor:
    """S of the released code: p_g(i, j)^(1 - bias) divided by (sum of p_g(i, k) over all k)^(1 - bias), k = i as well.

    similarity: (B, B) of the teacher, with its diagonal. Rows do not add up to 1: a sample is nearest to itself, so
    they shrink as the temperature falls, and the loss with them; at a bias of 1 each entry is 1. The diagonal is 0.
    """
    logits = similarity.to(torch.promote_types(similarity.dtype, torch.float32)) / temperature
    return ((1 - bias) * logits.log_softmax(1)).exp().masked_fill(_diagonal(logits), 0.0)


def arr_loss(log_p_f: Tensor, S: Tensor) -> Tensor:
    """Eq. 4 with the sign of the released code: the cross-entropy -sum over j of S(i, j) log p_f(i, j), mean over i."""
    return -(S * log_p_f.masked_fill(_diagonal(S), 0.0)).sum(1).mean()


def _diagonal(square: Tensor) -> Tensor:
    return torch.eye(len(square), dtype=torch.bool, device=square.device)


def bias_of_batches(topic_bias: Encoder, batches: Iterable[Batch], temperature: float) -> float:
    """The mean B of some batches, by a topic model such as TF-IDF of words."""
    return float(torch.stack([
        bias_of_batch(log_probabilities(_cosines(topic_bias(batch), batch.authors.device), temperature), batch.authors)
        for batch in batches]).mean())  # fmt: skip


class ARR(nn.Module):
    """The loss of a student F: eq. 4 against a teacher's probabilities, flattened by the bias of the batch.

    teacher : G. A copy is kept as it is now, without gradients, in eval mode whatever the mode of this module.
    topic_bias : H, frozen, such as a fitted :class:`helpers.encoders.tfidf.TfidfEncoder` of kind "tfidf" or "bow"; the
        cosines of its rows, sparse or dense, are the similarity. It stays on its own device.
    settings : of :class:`helpers.losses.ARRConfig`.

    ``last_bias`` is that of the last batch, a scalar tensor. Neither encoder is a part of this module: nothing trains
    or saves them, and a training that is continued must be given the same ones. Raises ValueError for other settings.
    """

    needs_batch = True

    def __init__(self, teacher: Encoder, topic_bias: Encoder, **settings):
        super().__init__()
        config = ARRConfig.of(settings, "loss 'arr'")
        # past nn.Module, which would make them parts; a copy of the teacher, for the student is often the same object
        object.__setattr__(self, "teacher", copy.deepcopy(teacher).requires_grad_(False))
        object.__setattr__(self, "topic_bias", topic_bias)
        self.temperature, self.targets = config.temperature, config.targets
        self.bias_temperature = config.bias_temperature or config.temperature
        self.last_bias = torch.tensor(float("nan"))

    def _apply(self, change, recurse=True):
        self.teacher._apply(
            change, recurse
        )  # no part, so it would not move to a device with the others
        return super()._apply(change, recurse)

    def forward(self, embeddings: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """The student's embeddings (B, D), the authors (B,) of a batch, and the batch itself -> scalar."""
        with torch.no_grad():
            topical = _cosines(self.topic_bias(batch.to(self.topic_bias.device)), embeddings.device)
            self.last_bias = bias_of_batch(
                log_probabilities(topical, self.bias_temperature), labels
            )
            similarity = _cosines(self.teacher.eval()(batch), embeddings.device)
            if self.targets == "released":
                S = released_targets(similarity, self.temperature, self.last_bias)
            else:
                S = soft_targets(log_probabilities(similarity, self.temperature), self.last_bias)
        return arr_loss(log_probabilities(pairwise_cosines(embeddings), self.temperature), S)


def _cosines(rows: Tensor | sparse.csr_matrix, device: torch.device) -> Tensor:
    """(B, B) cosines of an encoder's rows; those of a sparse one are unit rows, or zero."""
    if sparse.issparse(rows):
        return torch.from_numpy((rows @ rows.T).toarray()).to(device, torch.float32)
    return pairwise_cosines(rows).to(device)


def distil(experiment: Experiment, teacher: Trained, topic_bias: Encoder, train: TokenStore, dev: TokenStore,
           models: Path) -> Trained:  # fmt: skip
    """Train, resume or load a student, with ``experiment.loss`` the settings of its :class:`ARR`.

    A pretrained encoder begins with its pretrained weights, as in the paper. One that began at random has no such
    start, so its student begins with the teacher's weights.
    """
    loss = ARR(teacher.encoder, topic_bias, **experiment.loss.settings)
    experiment = experiment.model_copy(update={"teacher": teacher.fingerprint})
    start = None if experiment.encoder.is_pretrained else teacher
    return run_experiment(experiment, train, dev, models, loss=loss, start=start)


def train_with_students(bases: dict[str, list[Experiment]], students: dict[str, list[Experiment]], corpus: TopicCorpus,
                        topic_bias: Encoder, models: Path, seed: int = 0) -> dict[str, Trained]:  # fmt: skip
    """Train every base, then each kind of student with the base as its teacher: ``<base>`` and ``<base>_<student>``.

    Of several experiments the one with the highest R@8 on dev is chosen, before it teaches.
    """
    train, dev = corpus.stores["train"], corpus.stores["dev"]
    score = dev_recall(dev, next(iter(bases.values()))[0].sampler.max_tokens)
    trained = {}
    for base, plan in bases.items():
        teacher = select_best(
            plan, seed, lambda one: run_experiment(one, train, dev, models), score
        )
        trained[base] = teacher
        for student, plan in students.items():
            learn = lambda one: distil(one, teacher, topic_bias, train, dev, models)  # noqa: B023, E731
            trained[f"{base}_{student}"] = select_best(plan, seed, learn, score)
    return trained
