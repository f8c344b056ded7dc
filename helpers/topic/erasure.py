"""Least-squares concept erasure, LEACE (Belrose et al., NeurIPS 2023): topic out of vectors.

ARR trains a student that should unlearn topic. LEACE removes in closed form all that a linear map
can predict of it. Among the affine maps r after which the vector x and the topic z have no
covariance, it is the one that moves the vectors least:

    r(x) = x - W^+ P W (x - mean),    W = cov(x)^(-1/2),    P the projection on the columns of
                                                            W cov(x, z).

It works on the vectors of any dense encoder, without training. It erases the topics that it was
fitted on. Other topics are erased as far as they lie in the same directions, and so is what the
authors of one topic have in common.

Letters: N samples, B samples of a batch, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from sklearn.preprocessing import normalize
from torch import Tensor

from ..encoders.base import Encoder, embed
from ..tokens.batch import Batch, Samples

NO_VARIANCE = 1e-8  # variances below this share of the largest one are rounding errors


@dataclass(frozen=True)
class LeaceEraser:
    """Erase a concept from vectors by r(x), as in the module's docstring.

    Attributes
    ----------
    mean : (D,) float64
        Mean of the vectors that it was fitted on.
    kept : (D, D) float64
        Linear part of r: I - W^+ P W.
    """

    mean: np.ndarray
    kept: np.ndarray

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return r of vectors (N, D), scaled to unit length, float32; a zero r(x) stays zero."""
        erased = (vectors - self.mean) @ self.kept.T + self.mean
        return normalize(erased).astype(np.float32)

    @classmethod
    def fit(cls, vectors: np.ndarray, labels: Sequence) -> Self:
        """Fit the erasure of a concept; directions without variance stay as they are.

        Parameters
        ----------
        vectors : (N, D)
            vectors of N training samples, finite
        labels : (N,)
            the concept of each sample, of any type; labels with the same text are equal

        Raises
        ------
        ValueError
                If fewer than two labels differ.
        """
        names, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        if len(names) < 2:
            raise ValueError(f"{len(names)} different labels in {len(codes)} rows: need at least 2")
        mean = vectors.mean(0, dtype=np.float64)
        centred = vectors - mean
        one_hot = np.eye(len(names))[codes]

        variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
        varies = variances > NO_VARIANCE * variances.max()
        axes = axes[:, varies]
        spread = np.sqrt(variances[varies])
        covariance = (axes / spread).T @ (centred.T @ one_hot) / len(vectors)

        # an orthogonal basis of the columns of W cov(x, z)
        predicting, size, _ = np.linalg.svd(covariance, full_matrices=False)
        predicting = predicting[:, size > NO_VARIANCE * max(size.max(initial=0), 1)]
        erased = (axes * spread) @ predicting @ predicting.T @ (axes / spread).T
        return cls(mean, np.eye(len(mean)) - erased)


class Erased(Encoder):
    """Encode with a frozen dense encoder, then erase a concept from its vectors.

    Parameters
    ----------
    encoder : Encoder
        a dense one
    eraser : LeaceEraser
        an erasure that was fitted on the encoder's vectors
    """

    def __init__(self, encoder: Encoder, eraser: LeaceEraser):
        super().__init__()
        self.encoder = encoder
        self.eraser = eraser
        self.dim = encoder.dim

    @classmethod
    def fit(
        cls, encoder: Encoder, samples: Samples, labels: Sequence, max_tokens: int = 32
    ) -> Self:
        """Fit the erasure on an encoder's vectors of training samples.

        Parameters
        ----------
        encoder : Encoder
            a dense one
        samples : Samples
            N training samples
        labels : (N,)
            the concept of each sample, such as its topic
        max_tokens : int
            L, tokens read of each post

        Raises
        ------
        ValueError
            As :meth:`LeaceEraser.fit`.
        """
        return cls(encoder, LeaceEraser.fit(embed(encoder, samples, max_tokens), labels))

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, D) float32 unit rows of a batch, without gradients."""
        rows = self.encoder(batch).detach()
        return torch.from_numpy(self.eraser(rows.float().cpu().numpy())).to(rows.device)
