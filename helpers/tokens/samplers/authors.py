"""P authors x K windows of consecutive posts: batches of metric learning (khan2021 section 2.3)."""

import numpy as np

from ..batch import Batch
from .base import Sampler, draw_authors
from .sizes import draw_sizes


class AuthorSampler(Sampler):
    """Sample P authors, uniformly without replacement, and K windows of consecutive posts of each.

    A batch has P * K samples, those of an author side by side, or fewer where fewer than P authors
    qualify. With ``overlap`` any author qualifies, without it authors with K or more posts.
    ValueError where fewer than two qualify.
    """

    reads = ("samples_per_author", "min_posts", "max_posts", "sizes", "overlap", "reach_smallest")

    def draw(self, rng: np.random.Generator) -> Batch:
        """Sample one batch."""
        config = self.config
        offsets = self.store.author_offsets
        samples = config.samples_per_author
        fewest_posts = 1 if config.overlap else samples
        authors = self._draw_authors(fewest_posts, rng)
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

    def _draw_authors(self, min_posts, rng):
        # the authors of one batch, among those with at least min_posts posts
        return draw_authors(self.store, self.config.authors_per_batch, min_posts, rng)


class CorpusSampler(AuthorSampler):
    """Sample batches as :class:`AuthorSampler` does, each from one corpus of a joined store.

    So no author can be told from another by the corpus. A corpus is chosen with the share that it
    has of all authors. A store of one corpus gives the batches of one corpus.
    """

    def _draw_authors(self, min_posts, rng):
        # the authors of one batch, all of one corpus
        store = self.store
        begins = store.meta.get("corpora", [0])
        corpus = np.searchsorted(begins, rng.integers(store.authors), side="right") - 1
        among = (begins[corpus], [*begins[1:], store.authors][corpus])
        return draw_authors(store, self.config.authors_per_batch, min_posts, rng, among)


def draw_windows(
    available: np.ndarray, sizes: np.ndarray, rng: np.random.Generator, overlap: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Place K windows of consecutive posts at random among the posts of each of P authors.

    Parameters
    ----------
    available : (P,), number of posts of each author; at least K where windows must not overlap
    sizes : (P, K), wanted number of posts in each window
    rng : source of the random places
    overlap : whether windows of an author may share posts, as in the paper. If so, each window is
        placed uniformly and independently, and its size is cut to ``available``. If not, the K
        windows of an author are disjoint, so that two samples cannot be matched by a common post;
        where they do not fit, all of the author's sizes are scaled down, to one post at least

    Returns
    -------
    first : (P, K), number of the first post of each window, from 0 within the author
    size : (P, K), number of posts in each window
    """
    available = available[:, None]
    if overlap:
        sizes = np.minimum(sizes, available)
        first = (rng.random(sizes.shape) * (available - sizes + 1)).astype(np.int64)
        return first, sizes

    samples = sizes.shape[1]
    total = sizes.sum(1, keepdims=True)
    # Each window gets one post. The author's other posts are shared among the windows in proportion
    # to sizes - 1, the posts that each wants beyond its first, rounded down.
    scaled = 1 + (sizes - 1) * (available - samples) // np.maximum(total - samples, 1)
    sizes = np.where(total > available, scaled, sizes)

    unused = available - sizes.sum(1, keepdims=True)
    # sorted, as gaps[:, k] is the number of unused posts before the kth window from the left;
    # posts_before is the number of posts in the windows to its left
    gaps = np.sort((rng.random(sizes.shape) * (unused + 1)).astype(np.int64), 1)
    order = rng.permuted(np.broadcast_to(np.arange(samples), sizes.shape), axis=1)
    ordered_sizes = np.take_along_axis(sizes, order, 1)
    posts_before = ordered_sizes.cumsum(1) - ordered_sizes
    first = np.empty_like(sizes)
    np.put_along_axis(first, order, gaps + posts_before, 1)
    return first, sizes
