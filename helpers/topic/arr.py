"""Authorship representation regularization, ARR (sawatphol2022 section 2).

A student unlearns what topic explains. A teacher G, trained and frozen, gives the probability that
two samples of a batch have one author. So does a bias model H that knows topics only. The more
probability H gives to the same-author pairs, the flatter the probabilities of the teacher become.
The student F learns these; it begins with the pretrained weights that the teacher began with, or
with the teacher's own (:mod:`helpers.topic.distillation`). Only F is needed afterwards.

B is the size of a batch here; the paper's B, the bias, is written out.
"""

import copy
from collections.abc import Iterable

import torch
from scipy import sparse
from torch import Tensor, nn

from helpers.encoders.base import Encoder
from helpers.losses import ARRConfig
from helpers.losses.distances import pairwise_cosines
from helpers.tokens.batch import Batch


def log_probabilities(similarity: Tensor, temperature: float) -> Tensor:
    """Return log p(i, j), the softmax of similarities over all j but i: eq. 1.

    It is computed in float32 at least, and never through p itself, which underflows at a
    temperature of 0.01.

    Parameters
    ----------
    similarity : (B, B)
        of samples i and j
    temperature : float
        by which similarities are divided

    Returns
    -------
    (B, B), the diagonal -inf.

    Raises
    ------
    ValueError
        For fewer than two samples.
    """
    if len(similarity) < 2:
        raise ValueError(f"{len(similarity)} samples in a batch: need at least 2")
    logits = _logits(similarity, temperature)
    return logits.masked_fill(_diagonal(logits), float("-inf")).log_softmax(1)


def bias_of_batch(log_p_h: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of p_h over the pairs i != j of one author: eq. 2.

    Parameters
    ----------
    log_p_h : (B, B)
        of the topic model, from :func:`log_probabilities`
    labels : (B,)
        authors

    Returns
    -------
    A scalar in 0..1; 0 where no author has two samples.
    """
    same = (labels[:, None] == labels) & ~_diagonal(log_p_h)
    return (log_p_h.exp() * same).sum() / same.sum().clamp(min=1)


def soft_targets(log_p_g: Tensor, bias: Tensor | float) -> Tensor:
    """Return S(i, j), p_g(i, j)^(1 - bias) divided by its sum over j != i: eq. 3.

    A bias of 0 leaves p_g as it is, a bias of 1 makes all j != i alike.

    Parameters
    ----------
    log_p_g : (B, B)
        of the teacher, from :func:`log_probabilities`
    bias : scalar
        of the batch, 0..1

    Returns
    -------
    (B, B), whose rows add up to 1, the diagonal 0.
    """
    return ((1 - bias) * log_p_g).masked_fill(_diagonal(log_p_g), float("-inf")).softmax(1)


def released_targets(similarity: Tensor, temperature: float, bias: Tensor | float) -> Tensor:
    """Return S of the released code, whose denominator has k = i as well.

    p_g(i, j)^(1 - bias) is divided by (sum of p_g(i, k) over all k)^(1 - bias). Rows do not add up
    to 1: a sample is nearest to itself, so they shrink as the temperature falls, and the loss with
    them; at a bias of 1 each entry is 1.

    Parameters
    ----------
    similarity : (B, B)
        of the teacher, with its diagonal
    temperature : float
        by which similarities are divided
    bias : scalar
        of the batch, 0..1

    Returns
    -------
    (B, B), the diagonal 0.
    """
    logits = _logits(similarity, temperature)
    return ((1 - bias) * logits.log_softmax(1)).exp().masked_fill(_diagonal(logits), 0.0)


def arr_loss(log_p_f: Tensor, S: Tensor) -> Tensor:
    """Return the cross-entropy of S and the student's p_f: eq. 4, the sign as released.

    It is -sum over j of S(i, j) log p_f(i, j), mean over i.

    Parameters
    ----------
    log_p_f : (B, B)
        of the student, from :func:`log_probabilities`
    S : (B, B)
        targets

    Returns
    -------
    A scalar.
    """
    return -(S * log_p_f.masked_fill(_diagonal(S), 0.0)).sum(1).mean()


def _logits(similarity, temperature):
    return similarity.to(torch.promote_types(similarity.dtype, torch.float32)) / temperature


def _diagonal(square):
    return torch.eye(len(square), dtype=torch.bool, device=square.device)


def bias_of_batches(topic_bias: Encoder, batches: Iterable[Batch], temperature: float) -> float:
    """Return the mean bias of some batches by a topic model such as TF-IDF of words.

    Parameters
    ----------
    topic_bias : Encoder
        H
    batches : iterable of Batch
        of training
    temperature : float
        of H
    """
    biases = []
    for batch in batches:
        cosines = _cosines(topic_bias(batch), batch.authors.device)
        biases.append(bias_of_batch(log_probabilities(cosines, temperature), batch.authors))
    return float(torch.stack(biases).mean())


class ARR(nn.Module):
    """The loss of a student F: eq. 4 against a teacher's probabilities, flattened by the bias.

    Neither encoder is a part of this module: nothing trains or saves them, and a training that is
    continued must be given the same ones.

    Parameters
    ----------
    teacher : Encoder
        G; a copy is kept as it is now, without gradients, in eval mode whatever the mode of this
        module
    topic_bias : Encoder
        H, frozen, such as a fitted :class:`helpers.encoders.tfidf.TfidfEncoder` of kind "tfidf" or
        "bow"; the cosines of its rows, sparse or dense, are the similarity; it stays on its own
        device
    **settings : Any
        of :class:`helpers.losses.ARRConfig`

    Attributes
    ----------
    last_bias : scalar tensor
        Of the last batch.

    Raises
    ------
    ValueError
        For other settings.
    """

    needs_batch = True

    def __init__(self, teacher: Encoder, topic_bias: Encoder, **settings):
        super().__init__()
        self.config = ARRConfig.of(settings, "loss 'arr'")
        # past nn.Module, which would make them parts; a copy, for the student is often the teacher
        object.__setattr__(self, "teacher", copy.deepcopy(teacher).requires_grad_(False))
        object.__setattr__(self, "topic_bias", topic_bias)
        self.last_bias = torch.tensor(float("nan"))

    def _apply(self, change, recurse=True):
        # the teacher is no part, so it would not move to a device with the others
        self.teacher._apply(change, recurse)
        return super()._apply(change, recurse)

    def forward(self, embeddings: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """Return the loss of a batch, a scalar.

        Parameters
        ----------
        embeddings : (B, D)
            of the student
        labels : (B,)
            authors
        batch : Batch
            for teacher and topic model
        """
        targets = self._soft_targets(batch, labels, embeddings.device)
        cosines = pairwise_cosines(embeddings)
        return arr_loss(log_probabilities(cosines, self.config.temperature), targets)

    @torch.no_grad()
    def _soft_targets(self, batch, labels, device):
        """Return the targets S (B, B), and note the bias of the batch."""
        temperature = self.config.temperature
        topical = _cosines(self.topic_bias(batch.to(self.topic_bias.device)), device)
        log_p_h = log_probabilities(topical, self.config.bias_temperature or temperature)
        self.last_bias = bias_of_batch(log_p_h, labels)

        similarity = _cosines(self.teacher.eval()(batch), device)
        if self.config.targets == "released":
            return released_targets(similarity, temperature, self.last_bias)
        return soft_targets(log_probabilities(similarity, temperature), self.last_bias)


def _cosines(rows, device):
    """Return the (B, B) cosines of an encoder's rows; sparse ones are of unit length, or zero."""
    if sparse.issparse(rows):
        return torch.from_numpy((rows @ rows.T).toarray()).to(device, torch.float32)
    return pairwise_cosines(rows).to(device)
