"""LSA: an author's words as a dense vector, in closed form (TF-IDF, then a truncated singular value decomposition).

Convolutions with max-pooling see *whether* something occurs, and a network trained on a few hundred or thousand
authors memorises them. Counts of rare words carry over to authors it has never seen, which is why TF-IDF is hard to
beat. Latent semantic analysis (Deerwester et al. 1990) keeps that strength in few dimensions; with WCCN on top
(:class:`~helpers.encoders.wccn.WCCN`) it is the strongest single encoder of small archives here.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as nnf
from scipy import sparse
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.encoders.tfidf import count_matrix, ngram_counts
from helpers.tokens.batch import Batch, Samples


class LSAEncoder(Encoder):
    """Sublinear TF-IDF of subwords and of pairs of neighbouring subwords, hashed, projected on D singular vectors.

    vocabulary : kinds of tokens. dim : D. buckets : for the hashes of pairs.
    """

    def __init__(self, vocabulary: int, dim: int = 512, buckets: int = 2**16):
        super().__init__()
        self.vocabulary, self.buckets, self.dim = vocabulary, buckets, dim
        self.register_buffer("idf", torch.ones(vocabulary + buckets))
        self.register_buffer("axes", torch.zeros(vocabulary + buckets, dim))

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D), unit length; zero where a sample holds no token."""
        sample, feature, count = ngram_counts(batch.tokens, self.vocabulary, self.buckets)
        weight = (1 + count.float().log()) * self.idf[
            feature
        ]  # the length of a row goes with the normalisation
        begin = torch.searchsorted(sample, torch.arange(len(batch), device=sample.device))
        latent = nnf.embedding_bag(feature, self.axes, begin, mode="sum", per_sample_weights=weight)
        return nnf.normalize(latent, dim=1)

    @torch.no_grad()
    def fit(
        self,
        samples: Samples,
        max_tokens: int = 32,
        seed: int = 0,
        view: Callable[[Batch], Batch] = lambda batch: batch,
    ) -> "LSAEncoder":
        """Fit idf and axes on samples, as ``view`` shows their batches.

        Raises ValueError where samples are no more than dimensions, or these are none.
        """
        if not 0 < self.dim < len(samples):
            raise ValueError(
                f"{len(samples)} samples cannot fit an LSA encoder of {self.dim} dimensions"
            )
        from sklearn.preprocessing import (
            normalize,  # here: what is only loaded need not wait for it
        )
        from sklearn.utils.extmath import randomized_range_finder

        blocks = (
            samples.batch(slice(begin, begin + 512), max_tokens)
            for begin in range(0, len(samples), 512)
        )
        counts = [
            count_matrix(view(batch).tokens, self.vocabulary, self.buckets) for batch in blocks
        ]
        matrix = sparse.vstack(counts).tocsr()
        matrix.data = 1 + np.log(matrix.data)
        idf = (
            np.log(
                (1 + len(samples)) / (1 + np.bincount(matrix.indices, minlength=matrix.shape[1]))
            )
            + 1
        )
        matrix = normalize(matrix.multiply(idf.astype(np.float32)).tocsr(), copy=False)
        self.idf.copy_(torch.from_numpy(idf))
        # the first right singular vectors (F, D) of (N, F), by a randomised projection (Halko et al. 2011); of the
        # projected matrix, (D, F), the Gram matrix is decomposed: half the time of an SVD of itself
        size = min(self.dim + 10, *matrix.shape)
        projected = (
            randomized_range_finder(matrix, size=size, n_iter=2, random_state=seed).T @ matrix
        )
        squares, rotation = np.linalg.eigh((projected @ projected.T).astype(np.float64))
        largest = np.maximum(squares[::-1][: self.dim], np.finfo(np.float32).tiny)
        rotation = rotation[:, ::-1][:, : self.dim] / np.sqrt(largest)
        self.axes.copy_(
            torch.from_numpy(np.ascontiguousarray(projected.T @ rotation.astype(np.float32)))
        )
        return self
