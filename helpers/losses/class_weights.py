"""Losses with parameters of their own: one learned vector a training author, K x D values that grow with K.

khan2021 section 2.4 rejects them for that, and keeps them as the baseline IUR (Andrews and Bishop 2019);
sawatphol2022 compares with them. ``classes`` is K, ``dim`` is D; weights start as (classes, dim, seed) say.
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn


class ArcFace(nn.Module):
    """Additive angular margin softmax, Deng et al. 2019, eq. 3.

    With t_k the angle between an embedding and the vector of class k: cross-entropy of the logits ``scale * cos(t_k)``,
    that of the true class at ``cos(t + margin)``. Beyond t = pi - margin that would rise again; there it is continued
    by ``cos(t) - margin * sin(margin)``. Mean over samples. The margin is in radians.
    """

    def __init__(
        self, classes: int, dim: int, margin: float = 0.5, scale: float = 64.0, seed: int = 0
    ):
        super().__init__()
        self.margin, self.scale = margin, scale
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight, generator=torch.Generator().manual_seed(seed))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """(B, D) and (B,) -> scalar. Raises ValueError for a label outside 0..K - 1."""
        embeddings = _checked(embeddings, labels, self.weight)
        cosine = (
            nnf.normalize(embeddings, dim=1)
            @ nnf.normalize(self.weight.to(embeddings.dtype), dim=1).T
        )
        true = cosine.gather(1, labels[:, None])
        sine = (1 - true.square()).clamp(min=1e-12).sqrt()  # the root's slope is infinite at 0
        turned = true * math.cos(self.margin) - sine * math.sin(self.margin)
        continued = true - self.margin * math.sin(self.margin)
        true = torch.where(true < -math.cos(self.margin), continued, turned)
        return nnf.cross_entropy(self.scale * cosine.scatter(1, labels[:, None], true), labels)


class SoftmaxCrossEntropy(nn.Module):
    """Which of the training authors wrote this? The multiclass log loss, MLL, of sawatphol2022 section 3.

    A linear layer with bias on the embedding, then cross-entropy, mean over samples. Embeddings are brought to length
    sqrt(D), entries of mean square 1 as after a LayerNorm, so that neither the encoder's scale nor unit length bounds
    the logits. The layer reads the vector that is evaluated; the released code trains a layer on the first token and
    evaluates the mean of all.

    centred : subtract the batch's mean first. An encoder that begins at random gives nearly the same vector for every
    text; with many classes the layer enlarges what these have in common, until nothing else is left.
    """

    def __init__(self, classes: int, dim: int, seed: int = 0, centred: bool = False):
        super().__init__()
        self.centred = centred
        self.weight = nn.Parameter(torch.empty(classes, dim))
        self.bias = nn.Parameter(torch.zeros(classes))
        bound = dim**-0.5  # logits of variance 1/3 at the start, for any K
        nn.init.uniform_(self.weight, -bound, bound, generator=torch.Generator().manual_seed(seed))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """(B, D) and (B,) -> scalar. Raises ValueError for a label outside 0..K - 1."""
        embeddings = _checked(embeddings, labels, self.weight)
        unit = nnf.normalize(embeddings, dim=1)
        if self.centred:
            unit = nnf.normalize(unit - unit.mean(0), dim=1)
        scaled = unit * math.sqrt(embeddings.shape[1])
        return nnf.cross_entropy(
            nnf.linear(scaled, *(w.to(scaled.dtype) for w in (self.weight, self.bias))), labels
        )


def _checked(embeddings: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """The embeddings in the precision of the weights at least."""
    if labels.min() < 0 or labels.max() >= len(weight):
        raise ValueError(
            f"labels {labels.min()}..{labels.max()}: this loss knows 0..{len(weight) - 1}"
        )
    return embeddings.to(torch.promote_types(embeddings.dtype, weight.dtype))
