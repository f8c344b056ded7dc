"""Single documents: pairs, half of them of one author, or whatever comes (tyo2021)."""

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler, draw_authors


class PairSampler(Sampler):
    """``authors_per_batch`` pairs of posts, half of one author, half of two: rows 2i and 2i + 1 are pair i.

    As in tyo2021 section 2.1.1. Authors are drawn alike, whoever wrote much or little. A loss with ``paired=True`` sees
    these pairs only. ValueError where fewer than two authors have two posts.
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        store, pairs, offsets = self.store, self.config.authors_per_batch, self.store.author_offsets
        same = draw_authors(store, pairs - pairs // 2, 2, rng)
        posts = offsets[same + 1] - offsets[same]  # of these only: a batch touches what it holds
        one = (rng.random(len(same)) * posts).astype(np.int64)
        other = (one + 1 + (rng.random(len(same)) * (posts - 1)).astype(np.int64)) % posts
        different = np.concatenate([draw_authors(store, 2, 1, rng) for _ in range(pairs // 2)])
        any_post = (
            rng.random(len(different)) * (offsets[different + 1] - offsets[different])
        ).astype(np.int64)
        author = np.concatenate([np.repeat(same, 2), different])
        post = offsets[author] + np.concatenate([np.column_stack([one, other]).ravel(), any_post])
        return self.gather(author, post, np.ones_like(post), rng)


class RandomDocumentSampler(Sampler):
    """``authors_per_batch`` different posts, whoever wrote them: what a shuffled data loader gives, as released.

    Two of one author meet by chance only, so a triplet loss finds hardly a positive (tyo2021 section 4).
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        post = rng.choice(
            self.store.posts, min(self.config.authors_per_batch, self.store.posts), replace=False
        )
        author = np.searchsorted(self.store.author_offsets, post, side="right") - 1
        return self.gather(author, post, np.ones_like(post), rng)
