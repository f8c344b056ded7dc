"""Batches of single documents: pairs, half of them by one author, or any documents (tyo2021)."""

import numpy as np

from ..batch import Batch
from .base import Sampler, draw_authors


class PairSampler(Sampler):
    """Sample ``authors_per_batch`` pairs of posts: one half by one author, the other by two.

    Samples 2i and 2i + 1 of the batch are pair i. Pairs by one author come first; no author has two
    of them, so they are fewer where too few authors have two posts. Every author is equally likely,
    however many posts they wrote. A loss with ``paired=True`` uses only these pairs. ValueError
    where fewer than two authors have two or more posts.

    References
    ----------
    tyo2021 section 2.1.1.
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        """Sample one batch."""
        store = self.store
        pairs = self.config.authors_per_batch
        same = draw_authors(store, pairs - pairs // 2, 2, rng)
        posts = self._posts_of(same)
        first = (rng.random(len(same)) * posts).astype(np.int64)
        step = 1 + (rng.random(len(same)) * (posts - 1)).astype(np.int64)
        second = (first + step) % posts

        different = np.concatenate([draw_authors(store, 2, 1, rng) for _ in range(pairs // 2)])
        place = (rng.random(len(different)) * self._posts_of(different)).astype(np.int64)

        authors = np.concatenate([np.repeat(same, 2), different])
        places = np.concatenate([np.column_stack([first, second]).ravel(), place])
        documents = store.author_offsets[authors] + places
        return self.gather(authors, documents, np.ones_like(documents), rng)

    def _posts_of(self, authors):
        # posts_per_author would read the offsets of all authors of the store
        offsets = self.store.author_offsets
        return offsets[authors + 1] - offsets[authors]


class RandomDocumentSampler(Sampler):
    """Sample ``authors_per_batch`` different posts uniformly, whoever wrote them.

    This is the batch of a shuffled data loader, as in the released code. Two posts by one author
    are in it by chance only, so a triplet loss finds hardly any positive (tyo2021 section 4). All
    posts are taken where the store has fewer.
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        """Sample one batch."""
        store = self.store
        count = min(self.config.authors_per_batch, store.posts)
        documents = rng.choice(store.posts, count, replace=False)
        authors = np.searchsorted(store.author_offsets, documents, side="right") - 1
        return self.gather(authors, documents, np.ones_like(documents), rng)
