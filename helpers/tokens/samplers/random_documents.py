"""Documents at random: what a shuffled data loader gives (the released code of tyo2021)."""

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler


class RandomDocumentSampler(Sampler):
    """``authors_per_batch`` different posts, whoever wrote them.

    Two of one author meet by chance only, so a triplet loss finds hardly a positive (tyo2021 section 4).
    """

    def draw(self, rng: np.random.Generator) -> Batch:
        post = rng.choice(self.store.posts, min(self.config.authors_per_batch, self.store.posts), replace=False)
        author = np.searchsorted(self.store.author_offsets, post, side="right") - 1
        return self.gather(author, post, np.ones_like(post), rng)
