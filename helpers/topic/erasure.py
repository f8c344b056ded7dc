"""Least-squares concept erasure, LEACE (Belrose et al., NeurIPS 2023): topic taken out of finished vectors.

ARR hopes that a student unlearns topic. This takes out, in closed form, all that a linear map can know of it: of all
affine changes r of a vector x after which x and the topic z do not covary, the one that moves the vectors least,

    r(x) = x - W^+ P W (x - mean),    W = cov(x)^(-1/2),    P the projection on the columns of W cov(x, z).

Any encoder's vectors will do, and nothing is trained. What is erased is the topics that it was fitted on: those of
others go as far as they lie in the same directions, and what authors of one topic have in common goes with it.
"""

from dataclasses import dataclass

import numpy as np

FLAT = 1e-8  # of the largest variance or covariance: what is below is rounding


@dataclass(frozen=True)
class Erasure:
    """r(x) as above. mean: (D,). kept: (D, D), the identity without the directions that tell the topic. Float64."""

    mean: np.ndarray
    kept: np.ndarray

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """(N, D) -> (N, D) float32 unit vectors; one that vanishes stays zero. Raises ValueError for another D."""
        vectors = np.asarray(vectors, np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != len(self.mean):
            raise ValueError(f"vectors {vectors.shape}: need (N, {len(self.mean)}), as those it was fitted on")
        erased = (vectors - self.mean) @ self.kept.T + self.mean
        length = np.linalg.norm(erased, axis=1, keepdims=True)
        return np.divide(erased, length, out=np.zeros_like(erased), where=length > 0).astype(np.float32)


def fit_erasure(vectors: np.ndarray, labels) -> Erasure:
    """The erasure of a concept from training vectors (N, D) and its labels (N,), names of any kind.

    Directions in which the vectors do not vary are left alone. Raises ValueError for other shapes, values that are not
    finite, or fewer than two different labels.
    """
    vectors, labels = np.asarray(vectors, np.float64), np.asarray(labels)
    if vectors.ndim != 2 or labels.shape != vectors.shape[:1]:
        raise ValueError(f"vectors {vectors.shape} and labels {labels.shape}: need (N, D) and (N,)")
    names, codes = np.unique(labels.astype(str), return_inverse=True)
    if len(names) < 2:
        raise ValueError(f"{len(names)} different labels in {len(labels)} rows: need at least 2")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors must be finite")
    mean = vectors.mean(0)
    centred, one_hot = vectors - mean, np.eye(len(names))[codes]
    variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
    varies = variances > FLAT * variances.max()
    axes, spread = axes[:, varies], np.sqrt(variances[varies])
    telling, size, _ = np.linalg.svd((axes / spread).T @ (centred.T @ one_hot) / len(vectors), full_matrices=False)
    telling = telling[:, size > FLAT * max(size.max(initial=0), 1)]
    erased = (axes * spread) @ telling @ telling.T @ (axes / spread).T
    return Erasure(mean, np.eye(len(mean)) - erased)
