"""P authors x K windows of consecutive posts: batches of metric learning (khan2021 section 2.3)."""

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler, draw_authors
from helpers.tokens.samplers.sizes import draw_sizes


class AuthorSampler(Sampler):
    """Draw P authors, uniform without replacement, and K samples of each.

    B = P * K rows, an author's samples side by side. Fewer rows where the store has fewer authors;
    ValueError where it has fewer than two.
    """

    reads = ("samples_per_author", "min_posts", "max_posts", "sizes", "overlap", "reach_smallest")

    def draw(self, rng: np.random.Generator) -> Batch:
        """Draw one batch."""
        config = self.config
        offsets = self.store.author_offsets
        samples = config.samples_per_author
        fewest_posts = 1 if config.overlap else samples
        authors = draw_authors(self.store, config.authors_per_batch, fewest_posts, rng)
        sizes = draw_sizes(
            config.sizes,
            len(authors) * samples,
            rng,
            config.min_posts,
            config.max_posts,
            config.reach_smallest,
        ).reshape(len(authors), samples)

        begin = offsets[authors]
        available = offsets[authors + 1] - begin
        first, count = draw_windows(available, sizes, rng, config.overlap)
        first += begin[:, None]
        return self.gather(np.repeat(authors, samples), first.ravel(), count.ravel(), rng)


def draw_windows(
    available: np.ndarray, sizes: np.ndarray, rng: np.random.Generator, overlap: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Draw windows of consecutive posts, K for each of P authors.

    Parameters
    ----------
    available : (P,), posts of each author
    sizes : (P, K), posts of each window, cut to those there are
    rng : of the draw
    overlap : starts are uniform in 0..n - M, as in the paper. False: an author's windows share no
        post (sizes are scaled down where they do not fit), so that a pair of samples cannot be
        matched by a post they have in common; every author needs K posts

    Returns
    -------
    first : (P, K), the first post of each window, counted within the author
    size : (P, K), posts of each window
    """
    available = available[:, None]
    if overlap:
        sizes = np.minimum(sizes, available)
        first = (rng.random(sizes.shape) * (available - sizes + 1)).astype(np.int64)
        return first, sizes

    samples = sizes.shape[1]
    total = sizes.sum(1, keepdims=True)
    # one post each, and the posts beyond in proportion to the sizes beyond
    scaled = 1 + (sizes - 1) * (available - samples) // np.maximum(total - samples, 1)
    sizes = np.where(total > available, scaled, sizes)

    unused = available - sizes.sum(1, keepdims=True)
    # posts left out before each window, from the first to the last
    gaps = np.sort((rng.random(sizes.shape) * (unused + 1)).astype(np.int64), 1)
    order = rng.permuted(np.broadcast_to(np.arange(samples), sizes.shape), axis=1)
    ordered_sizes = np.take_along_axis(sizes, order, 1)
    posts_before = ordered_sizes.cumsum(1) - ordered_sizes
    first = np.empty_like(sizes)
    np.put_along_axis(first, order, gaps + posts_before, 1)
    return first, sizes
