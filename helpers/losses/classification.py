"""Losses with one learned vector per training author: K x D values for K authors and D dimensions.

khan2021 section 2.4 rejects them because K grows with the data, and uses one in the baseline IUR
(Andrews and Bishop 2019); sawatphol2022 compares with them. Equal ``classes`` (K) and ``dim`` (D)
give equal initial weights.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from .pairwise import Margin, Positive, unit_vectors


class ArcFace(nn.Module):
    """Compute the additive angular margin softmax, mean over samples.

    A class is a training author. With t_k the angle between an embedding and the vector of class k,
    the loss is the cross-entropy of the logits ``scale * cos(t_k)``, except that the true class,
    with the angle t, has ``scale * cos(t + margin)``. For t > pi - margin this would rise again
    with t, so there ``cos(t) - margin * sin(margin)`` replaces ``cos(t + margin)``.

    Parameters
    ----------
    classes : K, the number of training authors; labels are 0..K - 1
    dim : D, the size of embeddings
    margin : angle in radians that is added to the angle of the true class
    scale : factor of all logits

    References
    ----------
    Deng et al. 2019, equation 3.
    """

    def __init__(self, classes: int, dim: int, margin: Margin = 0.5, scale: Positive = 64.0):
        super().__init__()
        self.margin = margin
        self.scale = scale
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight, generator=torch.Generator().manual_seed(0))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar, of embeddings (B, D) and labels (B,).

        Parameters
        ----------
        embeddings : (B, D), of any length
        labels : (B,) int64, the author of each sample, 0..classes - 1
        """
        cosine = unit_vectors(embeddings.to(self.weight.dtype)) @ unit_vectors(self.weight).T
        true_cosine = cosine.gather(1, labels[:, None])

        # clamped, as the root has an infinite slope at 0
        sine = (1 - true_cosine.square()).clamp(min=1e-12).sqrt()
        with_margin = true_cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        continued = true_cosine - self.margin * math.sin(self.margin)
        beyond_end = true_cosine < -math.cos(self.margin)
        true_logit = torch.where(beyond_end, continued, with_margin)

        logits = cosine.scatter(1, labels[:, None], true_logit)
        return nnf.cross_entropy(self.scale * logits, labels)


class SoftmaxCrossEntropy(nn.Module):
    """Classify the training authors: the multiclass log loss (MLL) of sawatphol2022 section 3.

    A linear layer with bias reads the embedding; the loss is its cross-entropy, mean over samples.
    Embeddings are scaled to length sqrt(D), so that their entries have a mean square of 1, as after
    a LayerNorm, and neither the encoder's scale nor unit length bounds the logits. The layer reads
    the same vector that is evaluated; the released code trains a layer on the first token and
    evaluates the mean over all tokens.

    Parameters
    ----------
    classes : K, the number of training authors; labels are 0..K - 1
    dim : D, the size of embeddings
    centred : subtract the mean of the batch from the unit vectors before they are scaled. An
        encoder with random weights gives nearly the same vector for every text; with many classes,
        training without this enlarges the common part until nothing else is left
    """

    def __init__(self, classes: int, dim: int, centred: bool = False):
        super().__init__()
        self.centred = centred
        self.weight = nn.Parameter(torch.empty(classes, dim))
        self.bias = nn.Parameter(torch.zeros(classes))
        bound = dim**-0.5  # logits of variance 1/3 at the start, for any K
        nn.init.uniform_(self.weight, -bound, bound, generator=torch.Generator().manual_seed(0))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar, of embeddings (B, D) and labels (B,).

        Parameters
        ----------
        embeddings : (B, D), of any length
        labels : (B,) int64, the author of each sample, 0..classes - 1
        """
        unit = unit_vectors(embeddings.to(self.weight.dtype))
        if self.centred:
            unit = unit_vectors(unit - unit.mean(0))
        scaled = unit * math.sqrt(embeddings.shape[1])
        return nnf.cross_entropy(nnf.linear(scaled, self.weight, self.bias), labels)
