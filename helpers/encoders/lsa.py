"""Dense encoders in closed form: LSA, WCCN on any encoder, and the profile of hours.

TF-IDF is followed by a truncated singular value decomposition. Convolutions with max-pooling see
only *whether* something occurs, and a network that is trained on a few hundred or thousand authors
memorises them. Counts of rare words also work for authors that were not in the training, which is
why TF-IDF is hard to beat. Latent semantic analysis (Deerwester et al. 1990) keeps that strength in
few dimensions; with WCCN on top (:class:`WCCN`) it is the strongest single encoder of small
archives here.

Letters: B samples of a batch, N training samples, F features, D dimensions.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as nnf
from scipy import sparse
from torch import Tensor, nn

from ..tokens.batch import PAD, Batch, Samples
from .base import Encoder, batches_of, embed
from .parts import HOURS
from .tfidf import count_matrix, ngram_counts

POWER_ITERATIONS = 2  # of the random projection, which bring it nearer to the singular vectors
IDENTITY_SHARE = 0.3  # weight of the identity when it is blended with the covariance


class LSAEncoder(Encoder):
    """Project sublinear TF-IDF of subwords and hashed pairs of them on D singular vectors.

    Parameters
    ----------
    vocabulary : int
        number of different tokens
    dim : int
        D, the number of singular vectors
    buckets : int
        number of hash values for pairs of neighbouring tokens
    """

    def __init__(self, vocabulary: int, dim: int = 512, buckets: int = 2**16):
        super().__init__()
        self.vocabulary = vocabulary
        self.buckets = buckets
        self.dim = dim
        self.register_buffer("idf", torch.ones(vocabulary + buckets))
        self.register_buffer("axes", torch.zeros(vocabulary + buckets, dim))

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, D) rows of a batch; zero where a sample holds no token."""
        sample, feature, count = ngram_counts(batch.tokens, self.vocabulary, self.buckets)
        # the weights of a sample need no unit length: the normalisation below sets the length
        weight = (1 + count.float().log()) * self.idf[feature]
        begin = torch.searchsorted(sample, torch.arange(len(batch), device=sample.device))
        latent = nnf.embedding_bag(feature, self.axes, begin, mode="sum", per_sample_weights=weight)
        return nnf.normalize(latent, dim=1)

    @torch.no_grad()
    def fit(self, samples: Samples, max_tokens: int = 32, seed: int = 0) -> "LSAEncoder":
        """Fit the idf weights and the singular vectors on training samples.

        Parameters
        ----------
        samples : Samples
            N training samples
        max_tokens : int
            L, tokens read of each post
        seed : int
            seed of the randomised decomposition

        Raises
        ------
        ValueError
            If ``dim`` is 0, or not smaller than the number of samples.
        """
        if not 0 < self.dim < len(samples):
            raise ValueError(
                f"{len(samples)} samples cannot fit an LSA encoder of {self.dim} dimensions"
            )
        blocks = [
            count_matrix(batch.tokens, self.vocabulary, self.buckets)
            for batch in batches_of(samples, max_tokens)
        ]
        idf, tfidf = _fit_tfidf(sparse.vstack(blocks).tocsr())
        self.idf.copy_(torch.from_numpy(idf))
        self.axes.copy_(torch.from_numpy(_singular_vectors(tfidf, self.dim, seed)))
        return self


# scikit-learn is imported inside the functions that fit: an encoder that is only loaded need not
# wait for it


def _fit_tfidf(counts):
    """Return idf (F,) and sublinear TF-IDF in unit rows (N, F); counts (N, F) are overwritten."""
    from sklearn.preprocessing import normalize

    document_frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log((1 + counts.shape[0]) / (1 + document_frequency)) + 1
    counts.data = 1 + np.log(counts.data)
    tfidf = counts.multiply(idf.astype(np.float32)).tocsr()
    return idf, normalize(tfidf, copy=False)


def _singular_vectors(matrix, dim, seed):
    """Return the first right singular vectors (F, dim) of a sparse (N, F), approximately.

    The matrix is projected at random (Halko et al. 2011). Then the Gram matrix of the projection is
    decomposed, which takes half the time of a singular value decomposition of the projection.
    Features that no sample has take no part: their rows are zero.
    """
    from scipy import linalg

    size = min(dim + 10, *matrix.shape)
    used = np.unique(matrix.indices)
    of_used = matrix[:, used]
    directions = np.random.RandomState(seed).normal(size=(matrix.shape[1], size))[used]
    samples = of_used @ directions.astype(np.float32)
    for _ in range(POWER_ITERATIONS):
        samples = of_used @ (of_used.T @ samples)
    basis, _ = linalg.qr(samples, mode="economic", check_finite=False)
    projected = basis.T @ of_used  # (size, used)

    squares, vectors = np.linalg.eigh((projected @ projected.T).astype(np.float64))
    largest_squares = np.maximum(squares[::-1][:dim], np.finfo(np.float32).tiny)
    rotation = vectors[:, ::-1][:, :dim] / np.sqrt(largest_squares)
    axes = np.zeros((matrix.shape[1], dim), np.float32)
    axes[used] = projected.T @ rotation.astype(np.float32)
    return axes


class FrequentTokens(Encoder):
    """Encode the most frequent tokens; all others are one and the same token.

    This is text distortion (Stamatatos 2017) of tokens. How the most frequent subwords and marks
    follow each other tells authors apart, and makes other errors than counts of all words. So the
    view is useful in a fusion, and it shows how much style alone tells. Few frequent tokens are
    words of a topic, but in a corpus of few topics the most frequent words of these topics are
    among them.

    Parameters
    ----------
    encoder : LSAEncoder
        LSA whose ``vocabulary`` is the number of tokens that stay, plus one for all others
    vocabulary : int
        number of different tokens of the store
    """

    def __init__(self, encoder: LSAEncoder, vocabulary: int):
        super().__init__()
        self.encoder = encoder
        self.dim = encoder.dim
        self.register_buffer("shown", torch.zeros(vocabulary, dtype=torch.long))

    def view(self, batch: Batch) -> Batch:
        """Return the batch with its tokens renumbered as the encoder reads them; PAD stays."""
        shown = self.shown[batch.tokens.clamp(min=0)]
        return replace(batch, tokens=torch.where(batch.tokens == PAD, PAD, shown))

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, ``dim``) rows of a batch of B samples."""
        return self.encoder(self.view(batch))

    def fit(self, samples: Samples, max_tokens: int = 32, seed: int = 0) -> "FrequentTokens":
        """Choose the most frequent tokens of the samples' store, and fit the encoder on these.

        Of equally frequent tokens those with the lowest numbers are chosen.

        Parameters
        ----------
        samples : Samples
            samples of training authors; the frequent tokens are those of their whole store
        max_tokens : int
            L, tokens read of each post
        seed : int
            seed of LSA's randomised decomposition
        """
        store = samples.store
        frequency = np.zeros(len(self.shown), np.int64)
        tokens, count = np.unique(store.tokens, return_counts=True)
        frequency[tokens] = count
        by_frequency = np.argsort(-frequency, kind="stable")
        frequent = torch.from_numpy(by_frequency[: self.encoder.vocabulary - 1])
        self.shown.fill_(len(frequent))
        self.shown[frequent] = torch.arange(len(frequent))
        shown_tokens = self.shown.numpy().astype(np.uint16)[store.tokens]
        shown_store = replace(store, tokens=shown_tokens)
        self.encoder.fit(replace(samples, store=shown_store), max_tokens, seed)
        return self


class WCCN(Encoder):
    """Centre an encoder's vectors and whiten them within authors; a zero row stays zero.

    Within-class covariance normalisation (Hatch et al. 2006): directions in which samples of one
    author differ are scaled down. It is closed form, fitted on training authors only.

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
    fitted = WCCN(encoder).fit(samples, max_tokens)
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
    rows = pd.DataFrame(vectors, dtype=np.float64).groupby(authors)
    several = (rows.transform("size") > 1).to_numpy()
    if not several.any():
        raise ValueError(f"{len(vectors)} samples of {len(rows)} authors: WCCN needs one with two")
    deviation = (vectors - rows.transform("mean").to_numpy())[several]

    covariance = deviation.T @ deviation / len(deviation)
    dim = len(covariance)
    variance = np.trace(covariance) / dim or 1.0  # 1 where no author varies at all
    identity = IDENTITY_SHARE * variance * np.eye(dim)
    covariance = (1 - IDENTITY_SHARE) * covariance + identity
    return np.linalg.cholesky(np.linalg.inv(covariance))


class HourProfile(Encoder):
    """Average the hours of a sample's posts as cosines and sines of waves of 1, 2, ... turns a day.

    Sixteen posts show when an author's day begins and ends; the shares of 24 single hours would be
    mostly noise. The more regular the hours, the longer the row. The length is part of the
    information, so compare rows through :class:`WCCN`.

    Parameters
    ----------
    turns : int
        number of waves; wave k turns k times a day, and gives a cosine and a sine
    """

    unit = False

    def __init__(self, turns: int = 2):
        super().__init__()
        self.turns = turns
        self.dim = 2 * turns

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, 2 * turns) rows of a batch of B samples, not of unit length."""
        turns = torch.arange(1, self.turns + 1, device=batch.hours.device)
        angles = batch.hours[..., None] * turns * (2 * math.pi / HOURS)
        waves = torch.cat([angles.cos(), angles.sin()], 2) * batch.mask[..., None]
        return waves.sum(1) / batch.mask.sum(1, keepdim=True)
