"""Losses with parameters of their own: one learned vector per training author, K x D values that grow with K.

khan2021 section 2.4 rejects them for that, and keeps them as the baseline IUR (Andrews and Bishop 2019).
"""

import math

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn


class ArcFace(nn.Module):
    """Additive angular margin softmax, Deng et al. 2019 eq. 3; margin and scale as released for IUR.

    With angle t_k between an embedding and the vector of class k, cross-entropy of the logits ``scale * cos(t_k)``,
    the own class at ``cos(t + margin)``. Beyond t = pi - margin that would rise again; there it is continued by
    ``cos(t) - margin * sin(margin)``. Mean over samples. O(B K) memory and O(K D) parameters.

    classes: K. dim: D. margin: radians. seed: the vectors at the start are a function of (classes, dim, seed), so
    that every process begins with the same.
    """

    def __init__(self, classes: int, dim: int, margin: float = 0.5, scale: float = 64.0, seed: int = 0):
        super().__init__()
        self.margin, self.scale = margin, scale
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight, generator=torch.Generator().manual_seed(seed))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """embeddings (B, D), labels (B,) -> scalar. Raises ValueError for a label outside 0..classes - 1."""
        if labels.min() < 0 or labels.max() >= len(self.weight):
            raise ValueError(f"labels {labels.min()}..{labels.max()}: this loss knows 0..{len(self.weight) - 1}")
        embeddings = embeddings.to(torch.promote_types(embeddings.dtype, self.weight.dtype))
        cosine = nnf.normalize(embeddings, dim=1) @ nnf.normalize(self.weight.to(embeddings.dtype), dim=1).T
        own = cosine.gather(1, labels[:, None])
        sine = (1 - own.square()).clamp(min=1e-12).sqrt()  # the root's slope is infinite at 0
        beyond = own < -math.cos(self.margin)
        farther = own * math.cos(self.margin) - sine * math.sin(self.margin)
        own = torch.where(beyond, own - self.margin * math.sin(self.margin), farther)
        return nnf.cross_entropy(self.scale * cosine.scatter(1, labels[:, None], own), labels)
