"""WCCN on any frozen encoder: directions in which samples of one author differ are scaled down.

Within-class covariance normalisation (Hatch et al. 2006) is closed form, fitted on training authors
only. Letters: B samples of a batch, N training samples, D dimensions.
"""

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from ..tokens.batch import Batch, Samples
from .base import Encoder, embed

IDENTITY_SHARE = 0.3  # weight of the identity when it is blended with the covariance


class WCCN(Encoder):
    """Centre an encoder's vectors and whiten them within authors; a zero row stays zero.

    Before it is fitted it changes only the length of the vectors.

    Parameters
    ----------
    encoder : Encoder
        a dense one, whose weights stay as they are
    """

    def __init__(self, encoder: Encoder):
        super().__init__()
        self.encoder = encoder
        self.dim = encoder.dim
        self.register_buffer("mean", torch.zeros(self.dim))
        self.register_buffer("whiten", torch.eye(self.dim))

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, D) rows of a batch of B samples."""
        vectors = self.encoder(batch)
        whitened = nnf.normalize((vectors - self.mean) @ self.whiten, dim=1)
        return whitened * vectors.any(1, keepdim=True)

    def fit(self, samples: Samples, max_tokens: int = 32) -> "WCCN":
        """Fit the mean and the whitening on training samples; zero rows are left out.

        Parameters
        ----------
        samples : Samples
            samples of training authors, several of each
        max_tokens : int
            L, tokens read of each post

        Raises
        ------
        ValueError
            If no author has two samples with tokens, or if a vector is not finite.
        """
        vectors = embed(self.encoder, samples, max_tokens)
        has_tokens = vectors.any(1)
        vectors = vectors[has_tokens]
        self.mean.copy_(torch.from_numpy(vectors.mean(0)))
        self.whiten.copy_(torch.from_numpy(wccn_matrix(vectors, samples.authors[has_tokens])))
        return self


@torch.no_grad()
def init_as_wccn(encoder, samples: Samples, max_tokens: int = 32) -> None:
    """Initialise the last layer of a stream encoder as WCCN of the vectors that it reads.

    Its weights are scaled to the Frobenius norm of an identity matrix.

    Parameters
    ----------
    encoder : StreamEncoder
        one with the projection "wccn", a linear layer, which is overwritten
    samples : Samples
        samples of training authors, several of each
    max_tokens : int
        L, tokens read of each post

    Raises
    ------
    ValueError
        As :meth:`WCCN.fit`.
    """
    projection = encoder.projection
    unit = encoder.unit
    # without projection and normalisation the encoder returns what the projection reads
    encoder.projection = nn.Sequential()
    encoder.unit = False
    try:
        fitted = WCCN(encoder).fit(samples, max_tokens)
    finally:
        encoder.projection = projection
        encoder.unit = unit

    weight = fitted.whiten.T * encoder.dim**0.5 / fitted.whiten.norm()
    projection[0].weight.copy_(weight)
    projection[0].bias.copy_(-weight @ fitted.mean)


def wccn_matrix(vectors: np.ndarray, authors: np.ndarray) -> np.ndarray:
    """Return W such that ``vectors @ W`` varies about equally in all directions within an author.

    The within-author covariance is blended with a multiple of the identity, so that it can be
    inverted. Authors with a single row are left out.

    Parameters
    ----------
    vectors : (N, D)
        vectors of N training samples, finite
    authors : (N,)
        the author of each sample

    Returns
    -------
    (D, D) float64

    Raises
    ------
    ValueError
        If no author has two rows.
    """
    _, author, n_samples = np.unique(authors, return_inverse=True, return_counts=True)
    if n_samples.max(initial=0) < 2:
        raise ValueError(
            f"{len(vectors)} samples of {len(n_samples)} authors: WCCN needs an author with two"
        )
    sums = np.zeros((len(n_samples), vectors.shape[1]))
    np.add.at(sums, author, vectors)
    means = sums / n_samples[:, None]
    deviation = (vectors - means[author])[n_samples[author] > 1]

    covariance = deviation.T @ deviation / len(deviation)
    dim = len(covariance)
    variance = np.trace(covariance) / dim or 1.0  # 1 where no author varies at all
    identity = IDENTITY_SHARE * variance * np.eye(dim)
    covariance = (1 - IDENTITY_SHARE) * covariance + identity
    return np.linalg.cholesky(np.linalg.inv(covariance))
