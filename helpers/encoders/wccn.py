"""WCCN on any frozen encoder: directions in which samples of one author differ are scaled down.

Within-class covariance normalisation (Hatch et al. 2006) is closed form, fitted on training authors
only. Letters: B samples of a batch, N training samples, D dimensions.
"""

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.encoders.base import Encoder, embed
from helpers.tokens.batch import Batch, Samples

IDENTITY_SHARE = 0.3  # weight of the identity in the within-author covariance


class WCCN(Encoder):
    """Centre an encoder's vectors and whiten them within authors; a zero row stays zero."""

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
        """Fit mean and whitening.

        Parameters
        ----------
        samples : Samples
            of training authors, several each
        max_tokens : int
            L, tokens read of each post

        Raises
        ------
        ValueError
            Where no author has two samples, or vectors are no finite numbers.
        """
        vectors = embed(self.encoder, samples, max_tokens)
        has_tokens = vectors.any(1)
        vectors = vectors[has_tokens]
        self.mean.copy_(torch.from_numpy(vectors.mean(0)))
        self.whiten.copy_(torch.from_numpy(wccn_matrix(vectors, samples.authors[has_tokens])))
        return self


@torch.no_grad()
def init_as_wccn(encoder, samples: Samples, max_tokens: int = 32) -> None:
    """Set the last layer of a stream encoder to WCCN of what it reads, scaled as new weights are.

    Parameters
    ----------
    encoder : StreamEncoder
        with the projection "wccn", a linear layer
    samples : Samples
        of training authors, several each
    max_tokens : int
        L, tokens read of each post

    Raises
    ------
    ValueError
        As :meth:`WCCN.fit`.
    """
    projection = encoder.projection
    unit = encoder.unit
    # for the fit the encoder gives what the projection reads, as it is
    encoder.projection = nn.Sequential()
    encoder.unit = False
    fitted = WCCN(encoder).fit(samples, max_tokens)
    encoder.projection = projection
    encoder.unit = unit

    weight = fitted.whiten.T * encoder.dim**0.5 / fitted.whiten.norm()
    projection[0].weight.copy_(weight)
    projection[0].bias.copy_(-weight @ fitted.mean)


def wccn_matrix(vectors: np.ndarray, authors: np.ndarray) -> np.ndarray:
    """Return W such that rows of ``vectors @ W`` vary equally in all directions within an author.

    The within-author covariance is blended with a multiple of the identity, so that it can be
    inverted. Authors with one row say nothing about it.

    Parameters
    ----------
    vectors : (N, D)
        of training samples, finite
    authors : (N,)
        of the samples

    Returns
    -------
    (D, D) float64

    Raises
    ------
    ValueError
        Where no author has two rows.
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
    variance = np.trace(covariance) / dim or 1.0  # 0 where nobody ever varies: nothing to scale
    identity = IDENTITY_SHARE * variance * np.eye(dim)
    covariance = (1 - IDENTITY_SHARE) * covariance + identity
    return np.linalg.cholesky(np.linalg.inv(covariance))
