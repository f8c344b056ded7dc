"""Least-squares concept erasure, LEACE (Belrose et al., NeurIPS 2023): topic taken out of finished vectors.

ARR trains a student that should unlearn topic. LEACE removes in closed form all that a linear map can predict of it.
Among the affine maps r after which the vector x and the topic z have no covariance, it is the one that moves the
vectors least:

    r(x) = x - W^+ P W (x - mean),    W = cov(x)^(-1/2),    P the projection on the columns of W cov(x, z).

It works on the vectors of any dense encoder, without training. It erases the topics that it was fitted on. Other topics
are erased as far as they lie in the same directions, and so is what the authors of one topic have in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from helpers.encoders.base import Encoder, embed
from helpers.tokens.batch import Batch, Samples

FLAT = 1e-8  # of the largest variance or covariance: what is below is rounding


@dataclass(frozen=True)
class LeaceEraser:
    """Erase a concept: r(x) as above.

    mean : (D,) float64. kept : (D, D) float64, the identity without the directions that predict the concept.
    """

    mean: np.ndarray
    kept: np.ndarray

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Map (N, D) to (N, D) float32 unit vectors; a vector that vanishes stays zero.

        Raises ValueError for another D.
        """
        vectors = np.asarray(vectors, np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != len(self.mean):
            raise ValueError(
                f"vectors {vectors.shape}: need (N, {len(self.mean)}), as those it was fitted on"
            )
        erased = (vectors - self.mean) @ self.kept.T + self.mean
        length = np.linalg.norm(erased, axis=1, keepdims=True)
        return np.divide(erased, length, out=np.zeros_like(erased), where=length > 0).astype(
            np.float32
        )

    @classmethod
    def fit(cls, vectors: np.ndarray, labels: Sequence) -> Self:
        """Fit the erasure of a concept on training vectors (N, D) and labels (N,) of any type.

        Directions in which the vectors do not vary stay as they are. Raises ValueError for other shapes, sparse
        vectors, values that are not finite, or fewer than two different labels.
        """
        if sparse.issparse(vectors):
            raise ValueError(f"vectors {vectors.shape} are sparse: an erasure needs dense ones")
        vectors, labels = np.asarray(vectors, np.float64), np.asarray(labels)
        if vectors.ndim != 2 or labels.shape != vectors.shape[:1]:
            raise ValueError(
                f"vectors {vectors.shape} and labels {labels.shape}: need (N, D) and (N,)"
            )
        names, codes = np.unique(labels.astype(str), return_inverse=True)
        if len(names) < 2:
            raise ValueError(
                f"{len(names)} different labels in {len(labels)} rows: need at least 2"
            )
        if not np.isfinite(vectors).all():
            raise ValueError("vectors must be finite")
        mean = vectors.mean(0)
        centred, one_hot = vectors - mean, np.eye(len(names))[codes]
        variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
        varies = variances > FLAT * variances.max()
        axes, spread = axes[:, varies], np.sqrt(variances[varies])
        covariance = (axes / spread).T @ (centred.T @ one_hot) / len(vectors)
        telling, size, _ = np.linalg.svd(covariance, full_matrices=False)
        telling = telling[:, size > FLAT * max(size.max(initial=0), 1)]
        erased = (axes * spread) @ telling @ telling.T @ (axes / spread).T
        return cls(mean, np.eye(len(mean)) - erased)


class Erased(Encoder):
    """Encode with a frozen dense encoder, then erase a concept from its vectors."""

    def __init__(self, encoder: Encoder, eraser: LeaceEraser):
        super().__init__()
        self.encoder, self.eraser, self.dim = encoder, eraser, encoder.dim

    @classmethod
    def fit(
        cls, encoder: Encoder, samples: Samples, labels: Sequence, max_tokens: int = 32
    ) -> Self:
        """Fit the erasure on N training samples and their labels (N,), such as topics."""
        return cls(encoder, LeaceEraser.fit(embed(encoder, samples, max_tokens), labels))

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D) float32 unit rows, without gradients."""
        rows = self.encoder(batch).detach()
        return torch.from_numpy(self.eraser(rows.float().cpu().numpy())).to(rows.device)
