"""What an author writes about and with which words: a dense map of subword counts, fitted in closed form.

Convolutions with max-pooling see *whether* something occurs, and a network trained on some thousand authors
memorises their words. Counts of rare words carry over to authors it has never seen, which is why TF-IDF is hard to
beat. This branch keeps that strength inside an embedding, with two classical steps:

1. latent semantic analysis: sublinear TF-IDF of subwords and of pairs of neighbouring subwords (hashed), truncated SVD;
2. within-class covariance normalisation (Hatch et al. 2006, speaker recognition): directions in which samples of
   *one* author differ are scaled down, using training authors only.

Letters: B samples, M posts, L tokens; F features = vocabulary + buckets; D dimensions.
"""

import numpy as np
import torch
import torch.nn.functional as nnf
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from helpers.sampling import gather
from helpers.store import TokenStore


class Lexical(nn.Module):
    """(B, M, L) tokens -> (B, D) unit vectors. Fitted by :meth:`fit`, not by gradient; its state is all buffers."""

    def __init__(self, vocabulary: int, dim: int, buckets: int = 2**16):
        super().__init__()
        self.vocabulary, self.buckets, self.dim = vocabulary, buckets, dim
        features = vocabulary + buckets
        self.register_buffer("idf", torch.ones(features))
        self.register_buffer("axes", torch.zeros(features, dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("whiten", torch.eye(dim))

    def counts(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sample, feature and count of every feature that occurs, sorted by sample, then feature."""
        sample = torch.arange(len(tokens), device=tokens.device)[:, None, None].expand_as(tokens)
        left, right = tokens[:, :, :-1], tokens[:, :, 1:]
        single, pair = tokens >= 0, right >= 0
        hashed = (left[pair] * 1_000_003 + right[pair] * 7_919) % self.buckets + self.vocabulary
        feature = torch.cat([tokens[single], hashed])
        key = torch.cat([sample[single], sample[:, :, 1:][pair]]) * len(self.idf) + feature
        key, count = key.unique(return_counts=True)
        return key // len(self.idf), key % len(self.idf), count

    def _weighted(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Unit rows of sublinear TF-IDF: sample, feature, weight."""
        sample, feature, count = self.counts(tokens)
        weight = (1 + count.float().log()) * self.idf[feature]
        length = torch.zeros(len(tokens), device=tokens.device).index_add_(0, sample, weight**2).sqrt()
        return sample, feature, weight / length[sample]

    @torch.no_grad()
    def forward(self, tokens: Tensor) -> Tensor:
        sample, feature, weight = self._weighted(tokens)
        begin = torch.searchsorted(sample, torch.arange(len(tokens), device=tokens.device))
        latent = nnf.embedding_bag(feature, self.axes, begin, mode="sum", per_sample_weights=weight)
        return nnf.normalize((nnf.normalize(latent, dim=1) - self.mean) @ self.whiten, dim=1)

    @torch.no_grad()
    def fit(
        self, store: TokenStore, posts: int = 16, windows: int = 16, length: int = 32, shrink: float = 0.3, seed: int = 0
    ) -> "Lexical":
        """Fit on a training store: up to ``windows`` disjoint samples of ``posts`` posts of every author.

        shrink: weight of the identity in the within-author covariance, 0..1. Raises ValueError where no author has
        two samples, or the samples are fewer than the dimensions.
        """
        author, first, count = _windows(store, posts, windows)
        if len(author) <= self.dim or len(np.unique(author)) == len(author):
            raise ValueError(f"{len(author)} samples of {store.authors} authors cannot fit {self.dim} dimensions")
        blocks = []
        for begin in range(0, len(author), 512):
            rows = slice(begin, begin + 512)
            sample, feature, number = self.counts(gather(store, author[rows], first[rows], count[rows], length).tokens)
            shape = (len(author[rows]), len(self.idf))
            blocks.append(sparse.csr_matrix((1 + np.log(number.numpy()), (sample.numpy(), feature.numpy())), shape))
        matrix = sparse.vstack(blocks).astype(np.float32).tocsr()
        frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
        idf = np.log((1 + len(author)) / (1 + frequency)) + 1
        matrix = matrix.multiply(idf.astype(np.float32)).tocsr()
        matrix = normalize(matrix, copy=False)
        _, _, axes = randomized_svd(matrix, self.dim, n_iter=2, random_state=seed)
        latent = normalize(matrix @ axes.T)
        self.idf.copy_(torch.from_numpy(idf))
        self.axes.copy_(torch.from_numpy(np.ascontiguousarray(axes.T)))
        self.mean.copy_(torch.from_numpy(latent.mean(0)))
        self.whiten.copy_(torch.from_numpy(within_author_whitening(latent, author, shrink)))
        return self


def within_author_whitening(vectors: np.ndarray, author: np.ndarray, shrink: float) -> np.ndarray:
    """(D, D) matrix W such that the rows of ``vectors @ W`` vary equally in all directions within an author.

    The within-author covariance is blended with a multiple of the identity, weight ``shrink``; authors with one row
    say nothing about it.
    """
    _, group, size = np.unique(author, return_inverse=True, return_counts=True)
    means = np.zeros((len(size), vectors.shape[1]))
    np.add.at(means, group, vectors)
    deviation = (vectors - (means / size[:, None])[group])[size[group] > 1]
    covariance = deviation.T @ deviation / len(deviation)
    dim = len(covariance)
    covariance = (1 - shrink) * covariance + shrink * np.trace(covariance) / dim * np.eye(dim)
    return np.linalg.cholesky(np.linalg.inv(covariance))


def _windows(store: TokenStore, posts: int, most: int):
    """Author, first post and size of up to ``most`` disjoint windows of each author; the last may be short."""
    number = np.clip(-(-store.posts_per_author() // posts), 1, most)
    author = np.repeat(np.arange(store.authors), number)
    nth = np.arange(len(author)) - np.repeat(number.cumsum() - number, number)
    first = store.author_offsets[author] + nth * posts
    return author, first, np.minimum(posts, store.author_offsets[author + 1] - first)
