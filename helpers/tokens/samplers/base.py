"""What every sampler is, and the draw of authors that several share."""

from typing import TYPE_CHECKING

import numpy as np

from helpers.tokens.batch import Batch, make_batch
from helpers.tokens.store import TokenStore

if TYPE_CHECKING:
    from helpers.tokens.samplers import SamplerConfig

SCANNED = 100_000  # authors; more are drawn from without looking at all of them


class Sampler:
    """``sampler(step) -> Batch``, a pure function of (store, seed, step).

    Nothing is carried from step to step, so a resumed run draws exactly what an undisturbed one would have drawn.
    """

    reads: tuple[
        str, ...
    ] = ()  # settings of this kind, beside authors_per_batch, max_tokens and window

    def __init__(self, config: "SamplerConfig", store: TokenStore, seed: int):
        self.config, self.store, self.seed = config, store, seed

    def __call__(self, step: int) -> Batch:
        return self.draw(np.random.default_rng([self.seed, step]))

    def draw(self, rng: np.random.Generator) -> Batch:
        """One batch, from nothing but the store, the config and ``rng``."""
        raise NotImplementedError

    def gather(
        self, authors: np.ndarray, first: np.ndarray, count: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The batch of chosen posts (B,), with the config's tokens a post."""
        return make_batch(
            self.store, authors, first, count, self.config.max_tokens, self.config.window, rng
        )


def draw_authors(
    store: TokenStore, count: int, min_posts: int, rng: np.random.Generator
) -> np.ndarray:
    """``count`` different authors, or all there are, uniform among those with at least ``min_posts`` posts.

    Up to SCANNED authors are all looked at; among more, authors are drawn and refused, so that the cost does not
    grow with the store. Raises ValueError where fewer than two qualify.
    """
    if store.authors > SCANNED:
        chosen = np.empty(0, np.int64)
        for _ in range(100):
            drawn = rng.integers(store.authors, size=2 * count)
            drawn = drawn[
                store.author_offsets[drawn + 1] - store.author_offsets[drawn] >= min_posts
            ]
            chosen = np.concatenate([chosen, drawn])
            _, first = np.unique(chosen, return_index=True)
            chosen = chosen[np.sort(first)]
            if len(chosen) >= count:
                return chosen[:count]
    eligible = np.flatnonzero(store.posts_per_author() >= min_posts)
    if len(eligible) < 2:
        raise ValueError(
            f"{len(eligible)} authors with {min_posts} posts or more in {store.folder}: need at least 2"
        )
    return rng.choice(eligible, min(count, len(eligible)), replace=False)
