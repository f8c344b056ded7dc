"""WCCN on top of any frozen encoder: directions in which samples of one author differ are scaled down.

Within-class covariance normalisation (Hatch et al. 2006) is closed form, fitted on training authors only.
"""

from contextlib import suppress

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.encoders.base import Encoder, embed
from helpers.tokens.batch import Batch, Samples


class WCCN(Encoder):
    """An encoder's vectors, centred and whitened within authors, unit length; a zero row stays zero."""

    def __init__(self, encoder: Encoder):
        super().__init__()
        self.encoder, self.dim = encoder, encoder.dim
        self.register_buffer("mean", torch.zeros(self.dim))
        self.register_buffer("whiten", torch.eye(self.dim))

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D)."""
        vectors = self.encoder(batch)
        return nnf.normalize((vectors - self.mean) @ self.whiten, dim=1) * vectors.any(
            1, keepdim=True
        )

    def fit(self, samples: Samples, max_tokens: int = 32, shrink: float = 0.3) -> "WCCN":
        """Fit on samples of training authors, several each.

        shrink : weight of the identity in the within-author covariance, 0..1.
        Raises ValueError where no author has two samples, or vectors or their covariance are no numbers to whiten with.
        """
        vectors = embed(self.encoder, samples, max_tokens)
        told = vectors.any(1)
        self.mean.copy_(torch.from_numpy(vectors[told].mean(0)))
        self.whiten.copy_(
            torch.from_numpy(wccn_matrix(vectors[told], samples.authors[told], shrink))
        )
        return self


@torch.no_grad()
def init_as_wccn(encoder, samples: Samples, max_tokens: int = 32) -> None:
    """Set the last layer of a stream encoder, a linear one, to WCCN of what it reads, scaled as new weights are.

    encoder : with the projection "wccn". samples : of training authors, several each. Raises as :meth:`Whitened.fit`.
    """
    last, unit = encoder.projection, encoder.unit
    encoder.projection, encoder.unit = nn.Sequential(), False  # what it reads, as it is
    fitted = WCCN(encoder).fit(samples, max_tokens)
    encoder.projection, encoder.unit = last, unit
    weight = fitted.whiten.T * encoder.dim**0.5 / fitted.whiten.norm()
    last[0].weight.copy_(weight)
    last[0].bias.copy_(-weight @ fitted.mean)


def wccn_matrix(vectors: np.ndarray, authors: np.ndarray, shrink: float = 0.3) -> np.ndarray:
    """The matrix W such that the rows of ``vectors @ W`` vary equally in all directions within an author.

    The within-author covariance is blended with a multiple of the identity; authors with one row say nothing about it.

    vectors : (N, D). authors : (N,). shrink : weight of the identity. Returns (D, D). Raises ValueError where no author
    has two rows, or the covariance cannot be inverted: raise ``shrink``.
    """
    if not 0 <= shrink <= 1:
        raise ValueError(f"shrink must lie in 0..1, not {shrink}")
    _, group, size = np.unique(authors, return_inverse=True, return_counts=True)
    if not (size > 1).any():
        raise ValueError(
            f"{len(vectors)} samples of {len(size)} authors: WCCN needs an author with two"
        )
    means = np.zeros((len(size), vectors.shape[1]))
    np.add.at(means, group, vectors)
    deviation = (vectors - (means / size[:, None])[group])[size[group] > 1]
    covariance = deviation.T @ deviation / len(deviation)
    dim = len(covariance)
    scale = np.trace(covariance) / dim or 1.0  # 0 where nobody ever varies: nothing to scale
    covariance = (1 - shrink) * covariance + shrink * scale * np.eye(dim)
    with suppress(np.linalg.LinAlgError):
        whiten = np.linalg.cholesky(np.linalg.inv(covariance))
        if np.isfinite(whiten).all():
            return whiten
    raise ValueError(f"the covariance of {len(deviation)} samples in {dim} dimensions cannot be inverted: raise shrink "
                     f"({shrink})")  # fmt: skip
