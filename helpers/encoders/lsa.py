"""LSA: an author's words as a dense vector, in closed form.

TF-IDF is followed by a truncated singular value decomposition. Convolutions with max-pooling see
only *whether* something occurs, and a network that is trained on a few hundred or thousand authors
memorises them. Counts of rare words also work for authors that were not in the training, which is
why TF-IDF is hard to beat. Latent semantic analysis (Deerwester et al. 1990) keeps that strength in
few dimensions; with WCCN on top (:class:`~helpers.encoders.wccn.WCCN`) it is the strongest single
encoder of small archives here.

Letters: B samples of a batch, N training samples, F features, D dimensions.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as nnf
from scipy import sparse
from torch import Tensor

from ..tokens.batch import Batch, Samples
from .base import Encoder, batches_of
from .tfidf import count_matrix, ngram_counts


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
    def fit(
        self,
        samples: Samples,
        max_tokens: int = 32,
        seed: int = 0,
        view: Callable[[Batch], Batch] | None = None,
    ) -> "LSAEncoder":
        """Fit the idf weights and the singular vectors on training samples.

        Parameters
        ----------
        samples : Samples
            N training samples
        max_tokens : int
            L, tokens read of each post
        seed : int
            seed of the randomised decomposition
        view : callable or None
            changes each batch before its tokens are counted; None leaves batches as they are

        Raises
        ------
        ValueError
            If ``dim`` is 0, or not smaller than the number of samples.
        """
        if not 0 < self.dim < len(samples):
            raise ValueError(
                f"{len(samples)} samples cannot fit an LSA encoder of {self.dim} dimensions"
            )
        blocks = []
        for batch in batches_of(samples, max_tokens):
            if view is not None:
                batch = view(batch)
            blocks.append(count_matrix(batch.tokens, self.vocabulary, self.buckets))

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
    """
    from sklearn.utils.extmath import randomized_range_finder

    size = min(dim + 10, *matrix.shape)
    basis = randomized_range_finder(matrix, size=size, n_iter=2, random_state=seed)
    projected = basis.T @ matrix  # (size, F)

    squares, vectors = np.linalg.eigh((projected @ projected.T).astype(np.float64))
    largest_squares = np.maximum(squares[::-1][:dim], np.finfo(np.float32).tiny)
    rotation = vectors[:, ::-1][:, :dim] / np.sqrt(largest_squares)
    return projected.T @ rotation.astype(np.float32)
