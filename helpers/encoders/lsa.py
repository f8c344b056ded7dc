"""What can be counted: an author's words, hours and topics as one dense map, fitted in closed form.

Convolutions with max-pooling see *whether* something occurs, and a network trained on a few hundred or thousand
authors memorises them. Counts of rare words carry over to authors it has never seen, which is why TF-IDF is hard to
beat. This branch keeps that strength inside an embedding, with two classical steps:

1. three views of a sample: latent semantic analysis of its text (sublinear TF-IDF of subwords and of pairs of
   neighbouring subwords, hashed, truncated SVD), the mean hour as waves of 24 and 12 hours (P), the square roots of
   the shares of the topics (S);
2. within-class covariance normalisation of each view (Hatch et al. 2006, speaker recognition): directions in which
   samples of *one* author differ are scaled down, using training authors only.

A view is a unit vector, or zero where the sample says nothing: all its topics may be new ("other"), and to have
strayed into unknown topics is no trait of an author that training could have weighed.

Letters: B samples, M posts, L tokens; F text features = vocabulary + buckets; D dimensions of the text view.
"""

import math

import numpy as np
import torch
import torch.nn.functional as nnf
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from helpers.tokens.batch import Batch, gather
from helpers.tokens.store import TokenStore

HOURS = 24
WAVES = 2  # 16 posts say when a day begins and ends; a share for each of 24 hours would be mostly noise
TOPICS = 256  # topics told apart, the most frequent ones; what is beyond is not looked at


class CountBranch(nn.Module):
    """Batch -> the views of each sample. Fitted by :meth:`fit`, not by gradient: nothing in it is trained.

    vocabulary: token ids. topics: topic ids, the last one for "other". features: T, TP or TPS, as for the stream.
    dim: D. ``widths``: the views' names and dimensions, in the order in which :meth:`forward` gives them.
    """

    def __init__(self, vocabulary: int, topics: int, dim: int, features: str = "T", buckets: int = 2**16):
        super().__init__()
        self.vocabulary, self.buckets, self.known_topics = vocabulary, buckets, min(topics - 1, TOPICS)
        views = {"text": dim, "hours": 2 * WAVES * ("P" in features), "topics": self.known_topics * ("S" in features)}
        self.widths = {name: width for name, width in views.items() if width}
        # not part of the state_dict: training does not change them, so checkpoints need not repeat them
        self.register_buffer("idf", torch.ones(vocabulary + buckets), persistent=False)
        self.register_buffer("axes", torch.zeros(vocabulary + buckets, dim), persistent=False)
        for name, width in self.widths.items():
            self.register_buffer(f"{name}_mean", torch.zeros(width), persistent=False)
            self.register_buffer(f"{name}_whiten", torch.eye(width), persistent=False)

    def fitted(self) -> dict[str, Tensor]:
        """What :meth:`fit` found, to be kept in a file of its own."""
        return {name: buffer.cpu().contiguous() for name, buffer in self.named_buffers()}

    def restore(self, fitted: dict[str, Tensor]) -> None:
        """Take over what another branch of the same shape was fitted to."""
        for name, buffer in self.named_buffers():
            buffer.copy_(fitted[name])

    @torch.no_grad()
    def forward(self, batch: Batch) -> list[Tensor]:
        """Batch -> per view (B, width): unit vectors, zero where the sample says nothing."""
        whitened = []
        for name, view in self._views(batch).items():
            vector = (view - getattr(self, f"{name}_mean")) @ getattr(self, f"{name}_whiten")
            whitened.append(nnf.normalize(vector, dim=1) * view.any(1, keepdim=True))
        return whitened

    def counts(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, M, L) -> sample, feature and count of every text feature that occurs, sorted by sample, then feature."""
        sample = torch.arange(len(tokens), device=tokens.device)[:, None, None].expand_as(tokens)
        left, right = tokens[:, :, :-1], tokens[:, :, 1:]
        single, pair = tokens >= 0, right >= 0
        hashed = (left[pair] * 1_000_003 + right[pair] * 7_919) % self.buckets + self.vocabulary
        feature = torch.cat([tokens[single], hashed])
        key = torch.cat([sample[single], sample[:, :, 1:][pair]]) * len(self.idf) + feature
        key, count = key.unique(return_counts=True)
        return key // len(self.idf), key % len(self.idf), count

    def _views(self, batch: Batch) -> dict[str, Tensor]:
        """Per view (B, width), before whitening."""
        sample, feature, count = self.counts(batch.tokens)
        weight = (1 + count.float().log()) * self.idf[feature]  # the length of a row goes with the normalisation
        begin = torch.searchsorted(sample, torch.arange(len(batch), device=sample.device))
        latent = nnf.embedding_bag(feature, self.axes, begin, mode="sum", per_sample_weights=weight)
        views = {"text": nnf.normalize(latent, dim=1)}
        if "hours" in self.widths:
            views["hours"] = _waves(batch.hours, batch.mask)
        if "topics" in self.widths:
            views["topics"] = _shares(batch.topics, batch.mask, self.known_topics).sqrt()
        return views

    def count_matrix(self, store: TokenStore, first: np.ndarray, count: np.ndarray, length: int) -> sparse.csr_matrix:
        """Text features of many samples: (samples, F) counts, float32."""
        blocks = []
        for batch in _batches(store, first, count, length):
            sample, feature, number = (part.numpy() for part in self.counts(batch.tokens))
            shape = (len(batch), len(self.idf))
            blocks.append(sparse.csr_matrix((number.astype(np.float32), (sample, feature)), shape))
        return sparse.vstack(blocks).tocsr()

    @torch.no_grad()
    def fit(
        self,
        store: TokenStore,
        posts: int = 16,
        windows: int = 16,
        length: int = 32,
        shrink: float = 0.3,
        seed: int = 0,
    ) -> "CountBranch":
        """Fit on a training store: up to ``windows`` disjoint samples of ``posts`` posts of every author.

        shrink: weight of the identity in the within-author covariance, 0..1. Raises ValueError where no author has
        two samples, or the samples are fewer than the dimensions.
        """
        author, first, count = sample_windows(store, posts, windows)
        dim = self.axes.shape[1]
        if len(author) <= dim or len(np.unique(author)) == len(author):
            raise ValueError(f"{len(author)} samples of {store.authors} authors cannot fit a count branch of {dim} "
                             "dimensions: lower counts")  # fmt: skip
        matrix = self.count_matrix(store, first, count, length)
        matrix.data = 1 + np.log(matrix.data)
        idf = np.log((1 + len(author)) / (1 + np.bincount(matrix.indices, minlength=matrix.shape[1]))) + 1
        matrix = normalize(matrix.multiply(idf.astype(np.float32)).tocsr(), copy=False)
        _, _, axes = randomized_svd(matrix, dim, n_iter=2, random_state=seed)
        self.idf.copy_(torch.from_numpy(idf))
        self.axes.copy_(torch.from_numpy(np.ascontiguousarray(axes.T)))
        found = [self._views(batch) for batch in _batches(store, first, count, length)]
        for name in self.widths:
            view = torch.cat([views[name] for views in found]).numpy()
            told = view.any(1)
            getattr(self, f"{name}_mean").copy_(torch.from_numpy(view[told].mean(0)))
            whiten = within_author_whitening(view[told], author[told], shrink)
            getattr(self, f"{name}_whiten").copy_(torch.from_numpy(whiten))
        return self


def _waves(hours: Tensor, mask: Tensor) -> Tensor:
    """(B, M) hours -> (B, 2 * WAVES): mean cosines and sines of 1, 2 ... turns a day over the real posts."""
    angle = hours[..., None] * torch.arange(1, WAVES + 1, device=hours.device) * (2 * math.pi / HOURS)
    waves = torch.cat([angle.cos(), angle.sin()], 2) * mask[..., None]
    return waves.sum(1) / mask.sum(1, keepdim=True)


def _shares(values: Tensor, mask: Tensor, rows: int) -> Tensor:
    """(B, M) values -> (B, rows): how often each occurs among the real posts whose value is below ``rows``."""
    known = mask & (values < rows)
    count = torch.zeros(len(values), rows, device=values.device)
    count.scatter_add_(1, values.clamp(max=rows - 1), known.float())
    return count / known.sum(1, keepdim=True).clamp(min=1)


def _batches(store, first, count, length, size=512):
    for begin in range(0, len(first), size):
        rows = slice(begin, begin + size)
        yield gather(store, np.zeros(len(first[rows]), np.int64), first[rows], count[rows], length)


def within_author_whitening(vectors: np.ndarray, author: np.ndarray, shrink: float) -> np.ndarray:
    """(E, E) matrix W such that the rows of ``vectors @ W`` (N, E) vary equally in all directions within an author.

    The within-author covariance is blended with a multiple of the identity, weight ``shrink``; authors with one row
    say nothing about it.
    """
    _, group, size = np.unique(author, return_inverse=True, return_counts=True)
    means = np.zeros((len(size), vectors.shape[1]))
    np.add.at(means, group, vectors)
    deviation = (vectors - (means / size[:, None])[group])[size[group] > 1]
    covariance = deviation.T @ deviation / len(deviation)
    dim = len(covariance)
    scale = np.trace(covariance) / dim or 1.0  # 0 where nobody ever varies: nothing to scale
    covariance = (1 - shrink) * covariance + shrink * scale * np.eye(dim)
    return np.linalg.cholesky(np.linalg.inv(covariance))


def sample_windows(store: TokenStore, posts: int = 16, most: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Author, first post and size of up to ``most`` disjoint windows of each author; the last may be short."""
    number = np.clip(-(-store.posts_per_author() // posts), 1, most)
    author = np.repeat(np.arange(store.authors), number)
    nth = np.arange(len(author)) - np.repeat(number.cumsum() - number, number)
    first = store.author_offsets[author] + nth * posts
    return author, first, np.minimum(posts, store.author_offsets[author + 1] - first)
