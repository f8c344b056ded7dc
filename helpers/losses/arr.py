"""Authorship representation regularization, ARR (sawatphol2022 section 2).

A student unlearns what topic explains. A teacher G, trained and frozen, gives the probability that
two samples of a batch have one author. A bias model H that knows topics only gives it, too. The
more probability H gives to the same-author pairs, the flatter the teacher's probabilities are made.
The student F learns the flattened probabilities. It begins with the pretrained weights that the
teacher began with, or with the teacher's own (:mod:`helpers.topic.cross_topic`). Only F is needed
afterwards. Teacher and bias model are encoders, which this room does not know.

Letters: B samples of a batch, D dimensions. The paper's B, the bias, is written out.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Literal

import torch
from scipy import sparse
from torch import Tensor, nn

from ..tokens.batch import Batch
from .pairwise import Positive, diagonal_of, pair_masks, pairwise_cosines, precise


def log_probabilities(similarity: Tensor, temperature: float) -> Tensor:
    """Return log p(i, j), the softmax of similarities over all j but i: eq. 1.

    It is computed in float32 at least, and never through p itself, which underflows at a
    temperature of 0.01.

    Parameters
    ----------
    similarity : (B, B)
        similarity of samples i and j
    temperature : float
        the number by which similarities are divided

    Returns
    -------
    (B, B), -inf on the diagonal.
    """
    logits = precise(similarity) / temperature
    return logits.masked_fill(diagonal_of(logits), float("-inf")).log_softmax(1)


def bias_of_batch(log_p_h: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of p_h over the pairs i != j of one author: eq. 2.

    Parameters
    ----------
    log_p_h : (B, B)
        log probabilities of the topic model H, of :func:`log_probabilities`
    labels : (B,)
        author of each sample

    Returns
    -------
    A scalar in 0..1; 0 where no author has two samples.
    """
    same, _ = pair_masks(labels)
    return (log_p_h.exp() * same).sum() / same.sum().clamp(min=1)


def soft_targets(log_p_g: Tensor, bias: Tensor | float) -> Tensor:
    """Return S(i, j), p_g(i, j)^(1 - bias) divided by its sum over j != i: eq. 3.

    A bias of 0 leaves p_g as it is, a bias of 1 makes all j != i alike.

    Parameters
    ----------
    log_p_g : (B, B)
        log probabilities of the teacher G, of :func:`log_probabilities`
    bias : scalar
        bias of the batch, 0..1

    Returns
    -------
    (B, B), whose rows add up to 1; 0 on the diagonal.
    """
    return ((1 - bias) * log_p_g).masked_fill(diagonal_of(log_p_g), float("-inf")).softmax(1)


def released_targets(similarity: Tensor, temperature: float, bias: Tensor | float) -> Tensor:
    """Return S of the released code, whose denominator has k = i as well.

    p_g(i, j)^(1 - bias) is divided by (sum of p_g(i, k) over all k)^(1 - bias). Rows do not add up
    to 1. A sample is nearest to itself, so the other entries and the loss shrink as the temperature
    falls. At a bias of 1 each entry off the diagonal is 1.

    Parameters
    ----------
    similarity : (B, B)
        similarities of the teacher, with those of each sample to itself
    temperature : float
        the number by which similarities are divided
    bias : scalar
        bias of the batch, 0..1

    Returns
    -------
    (B, B), 0 on the diagonal.
    """
    logits = precise(similarity) / temperature
    return ((1 - bias) * logits.log_softmax(1)).exp().masked_fill(diagonal_of(logits), 0.0)


def arr_loss(log_p_f: Tensor, S: Tensor) -> Tensor:
    """Return the cross-entropy of S and the student's p_f: eq. 4, the sign as released.

    It is the mean over i of -sum over j of S(i, j) log p_f(i, j).

    Parameters
    ----------
    log_p_f : (B, B)
        log probabilities of the student F, of :func:`log_probabilities`
    S : (B, B)
        targets, of :func:`soft_targets` or :func:`released_targets`

    Returns
    -------
    A scalar.
    """
    return -(S * log_p_f.masked_fill(diagonal_of(S), 0.0)).sum(1).mean()


def bias_of_batches(topic_bias: Callable, batches: Iterable[Batch], temperature: float) -> float:
    """Return the mean bias of some batches by a topic model such as TF-IDF of words.

    Parameters
    ----------
    topic_bias : encoder
        H
    batches : iterable of Batch
        training batches, at least one
    temperature : float
        temperature of H's probabilities
    """
    biases = []
    for batch in batches:
        cosines = _cosines(topic_bias(batch), batch.authors.device)
        biases.append(bias_of_batch(log_probabilities(cosines, temperature), batch.authors))
    return float(torch.stack(biases).mean())


class ARR(nn.Module):
    """The loss of a student F: eq. 4 against a teacher's probabilities, flattened by the bias.

    Neither encoder is a part of this module, so neither is trained or saved with it. A training
    that is continued must be given the same ones.

    Parameters
    ----------
    teacher : encoder
        G; a copy of it is kept, without gradients and always in eval mode
    topic_bias : encoder
        H, frozen, with sparse or dense rows, such as a fitted
        :class:`helpers.encoders.tfidf.TfidfEncoder` of kind "tfidf" or "bow"; it stays on its own
        device
    temperature : float
        temperature of the softmax of teacher, student and topic model (Appendix A.4 tries 0.5, 0.1,
        0.05, 0.01)
    bias_temperature : float or None
        temperature of the topic model, where it differs from ``temperature``; 1e6 makes its output
        uniform, so that ARR becomes plain distillation
    targets : str
        "paper", or "released" to reproduce the released code, see :func:`released_targets`
    """

    needs_batch = True

    def __init__(
        self,
        teacher: nn.Module,
        topic_bias: nn.Module,
        temperature: Positive = 0.1,
        bias_temperature: Positive | None = None,
        targets: Literal["paper", "released"] = "paper",
    ):
        super().__init__()
        self.temperature = temperature
        self.bias_temperature = bias_temperature or temperature
        self.targets = targets
        # in a tuple they are no parts; a copy, since the student is often the teacher's object
        self.frozen = (copy.deepcopy(teacher).requires_grad_(False), topic_bias)

    def forward(self, embeddings: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """Return the loss of a batch, a scalar.

        Parameters
        ----------
        embeddings : (B, D)
            vectors of the student
        labels : (B,)
            author of each sample
        batch : Batch
            the batch itself, for teacher and topic model
        """
        targets = self._soft_targets(batch, labels, embeddings.device)
        cosines = pairwise_cosines(embeddings)
        return arr_loss(log_probabilities(cosines, self.temperature), targets)

    @torch.no_grad()
    def _soft_targets(self, batch, labels, device):
        """Return the targets S (B, B)."""
        teacher, topic_bias = self.frozen
        topical = _cosines(topic_bias(batch.to(topic_bias.device)), device)
        bias = bias_of_batch(log_probabilities(topical, self.bias_temperature), labels)
        similarity = _cosines(teacher.to(device).eval()(batch), device)
        if self.targets == "released":
            return released_targets(similarity, self.temperature, bias)
        return soft_targets(log_probabilities(similarity, self.temperature), bias)


def _cosines(rows, device):
    """Return the (B, B) cosines of rows; sparse rows must be of unit length, or zero."""
    if sparse.issparse(rows):
        return torch.from_numpy((rows @ rows.T).toarray()).to(device, torch.float32)
    return pairwise_cosines(rows).to(device)
