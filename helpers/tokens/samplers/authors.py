"""P authors x K windows of consecutive posts of each: the batches of metric learning (khan2021 section 2.3)."""

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler, draw_authors
from helpers.tokens.samplers.sizes import draw_sizes


class AuthorSampler(Sampler):
    """P authors, uniform without replacement, x K samples: B = P * K rows, an author's samples side by side.

    Fewer rows where the store has fewer authors; ValueError where it has fewer than two.
    """

    reads = ("samples_per_author", "min_posts", "max_posts", "sizes", "overlap", "reach_smallest")

    def draw(self, rng: np.random.Generator) -> Batch:
        config, offsets, samples = (
            self.config,
            self.store.author_offsets,
            self.config.samples_per_author,
        )
        authors = draw_authors(
            self.store, config.authors_per_batch, 1 if config.overlap else samples, rng
        )
        size = draw_sizes(config.sizes, len(authors) * samples, rng, config.min_posts, config.max_posts,
                          config.reach_smallest)  # fmt: skip
        available = offsets[authors + 1] - offsets[authors]
        first, count = draw_windows(
            available, size.reshape(len(authors), samples), rng, config.overlap
        )
        first += offsets[authors][:, None]
        return self.gather(np.repeat(authors, samples), first.ravel(), count.ravel(), rng)


def draw_windows(
    available: np.ndarray, sizes: np.ndarray, rng: np.random.Generator, overlap: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Windows of consecutive posts, K for each of P authors.

    available : (P,) posts each author has. sizes : (P, K) sizes to draw, cut to the posts there are.
    overlap : starts are uniform in 0..n - M, as in the paper; False: an author's windows share no post (sizes are
    scaled down where they do not fit), so that a pair of samples cannot be matched by a post they have in common; every
    author needs K posts. Returns the first post within the author (P, K) and size (P, K).
    """
    available = available[:, None]
    if overlap:
        sizes = np.minimum(sizes, available)
        return (rng.random(sizes.shape) * (available - sizes + 1)).astype(np.int64), sizes
    total = sizes.sum(1, keepdims=True)
    samples = sizes.shape[
        1
    ]  # one post each, and the rest of the posts in proportion to the rest of the sizes
    fewer = 1 + (sizes - 1) * (available - samples) // np.maximum(total - samples, 1)
    sizes = np.where(total > available, fewer, sizes)
    slack = available - sizes.sum(1, keepdims=True)
    gaps = np.sort((rng.random(sizes.shape) * (slack + 1)).astype(np.int64), 1)
    order = rng.permuted(np.broadcast_to(np.arange(samples), sizes.shape), axis=1)
    placed = np.take_along_axis(sizes, order, 1)
    first = np.empty_like(sizes)
    np.put_along_axis(first, order, gaps + placed.cumsum(1) - placed, 1)
    return first, sizes
