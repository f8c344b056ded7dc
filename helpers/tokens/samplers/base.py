"""What every sampler is, and the draw of authors that several share."""

from typing import TYPE_CHECKING

import numpy as np

from helpers.tokens.batch import Batch, make_batch
from helpers.tokens.store import TokenStore

if TYPE_CHECKING:
    from helpers.tokens.samplers import SamplerConfig

MAX_SCANNED_AUTHORS = 100_000  # more are drawn from without looking at all of them


class Sampler:
    """Draw the batch of a step: ``sampler(step) -> Batch``, a pure function of (store, seed, step).

    Nothing is carried from step to step, so a resumed run draws exactly what an undisturbed one
    would have drawn.

    Parameters
    ----------
    config : of the sampler
    store : to draw from
    seed : of all steps
    """

    # settings of this kind, beside authors_per_batch, max_tokens and window
    reads: tuple[str, ...] = ()

    def __init__(self, config: "SamplerConfig", store: TokenStore, seed: int):
        self.config = config
        self.store = store
        self.seed = seed

    def __call__(self, step: int) -> Batch:
        """Return the batch of a step."""
        return self.draw(np.random.default_rng([self.seed, step]))

    def draw(self, rng: np.random.Generator) -> Batch:
        """Draw one batch, from nothing but the store, the config and ``rng``."""
        raise NotImplementedError

    def gather(
        self, authors: np.ndarray, first: np.ndarray, count: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Read the batch of chosen posts, with the config's tokens a post.

        Parameters
        ----------
        authors : (B,), who wrote each sample
        first : (B,), number of its first post
        count : (B,), number of its posts
        rng : draws the windows of tokens, where the config asks for random ones
        """
        window_rng = rng if self.config.window == "random" else None
        return make_batch(self.store, authors, first, count, self.config.max_tokens, window_rng)


def draw_authors(
    store: TokenStore, count: int, min_posts: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw different authors, uniformly among those with enough posts.

    Up to MAX_SCANNED_AUTHORS are all looked at; among more, authors are drawn and refused, so that
    the cost does not grow with the store.

    Parameters
    ----------
    store : to draw from
    count : of authors
    min_posts : of an author
    rng : of the draw

    Returns
    -------
    (count,) author numbers, or all that qualify where there are fewer

    Raises
    ------
    ValueError
        fewer than two authors qualify
    """
    if store.authors > MAX_SCANNED_AUTHORS:
        authors = np.empty(0, np.int64)
        for _ in range(100):
            candidates = rng.integers(store.authors, size=2 * count)
            posts = store.author_offsets[candidates + 1] - store.author_offsets[candidates]
            authors = np.concatenate([authors, candidates[posts >= min_posts]])
            _, first = np.unique(authors, return_index=True)
            authors = authors[np.sort(first)]
            if len(authors) >= count:
                return authors[:count]

    eligible = np.flatnonzero(store.posts_per_author() >= min_posts)
    if len(eligible) < 2:
        raise ValueError(
            f"{len(eligible)} authors with {min_posts} posts or more in {store.folder}: "
            "need at least 2"
        )
    return rng.choice(eligible, min(count, len(eligible)), replace=False)
