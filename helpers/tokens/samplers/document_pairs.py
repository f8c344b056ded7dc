"""Single documents: pairs, half of them of one author, or whatever comes (tyo2021)."""

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler, draw_authors


class PairSampler(Sampler):
    """Draw ``authors_per_batch`` pairs of posts, half of one author, half of two.

    Rows 2i and 2i + 1 are pair i. Authors are drawn alike, whoever wrote much or little. A loss
    with ``paired=True`` sees these pairs only. ValueError where fewer than two authors have two
    posts.

    References
    ----------
    tyo2021 section 2.1.1.
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        """Draw one batch."""
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
        # of these only: a batch touches what it holds
        offsets = self.store.author_offsets
        return offsets[authors + 1] - offsets[authors]


class RandomDocumentSampler(Sampler):
    """Draw ``authors_per_batch`` different posts, whoever wrote them.

    It is what a shuffled data loader gives, as released. Two of one author meet by chance only, so
    a triplet loss finds hardly a positive (tyo2021 section 4).
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        """Draw one batch."""
        store = self.store
        count = min(self.config.authors_per_batch, store.posts)
        documents = rng.choice(store.posts, count, replace=False)
        authors = np.searchsorted(store.author_offsets, documents, side="right") - 1
        return self.gather(authors, documents, np.ones_like(documents), rng)
