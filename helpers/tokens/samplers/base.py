"""The base class of samplers, and the random choice of authors that several samplers share."""

from typing import TYPE_CHECKING

import numpy as np

from ..batch import Batch, make_batch
from ..store import TokenStore

if TYPE_CHECKING:
    from . import SamplerConfig

MAX_SCANNED_AUTHORS = 100_000  # in larger stores authors are sampled without a look at all of them


class Sampler:
    """Sample the batch of a step: ``sampler(step) -> Batch``, a function of store, seed and step.

    Nothing is carried from step to step, so a resumed run samples exactly what an undisturbed one
    would have sampled.

    Parameters
    ----------
    config : the settings of the sampler
    store : the token store to sample from
    seed : seed of the random numbers, used together with the number of the step
    """

    # names of the settings that this kind reads beside authors_per_batch, max_tokens and window
    reads: tuple[str, ...] = ()

    def __init__(self, config: "SamplerConfig", store: TokenStore, seed: int):
        self.config = config
        self.store = store
        self.seed = seed

    def __call__(self, step: int) -> Batch:
        """Return the batch of a step."""
        return self.draw(np.random.default_rng([self.seed, step]))

    def draw(self, rng: np.random.Generator) -> Batch:
        """Sample one batch, which depends only on the store, the config and ``rng``."""
        raise NotImplementedError

    def gather(
        self, authors: np.ndarray, first: np.ndarray, count: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Read B samples of consecutive posts into a batch, with ``max_tokens`` of the config.

        Parameters
        ----------
        authors : (B,), who wrote each sample
        first : (B,), the store's number of the first post of each sample
        count : (B,), the number of posts in each sample
        rng : chooses where in a post its tokens begin, if the config's ``window`` is "random";
            ignored otherwise
        """
        window_rng = rng if self.config.window == "random" else None
        return make_batch(self.store, authors, first, count, self.config.max_tokens, window_rng)


def draw_authors(
    store: TokenStore,
    count: int,
    min_posts: int,
    rng: np.random.Generator,
    among: tuple[int, int] | None = None,
) -> np.ndarray:
    """Sample different authors, uniformly among those with enough posts.

    In a store of more than MAX_SCANNED_AUTHORS authors, random authors are taken and those with too
    few posts refused, so that the cost does not grow with the store. Only where 100 rounds of this
    do not find enough authors, all are looked at.

    Parameters
    ----------
    store : the token store to sample from
    count : wanted number of authors
    min_posts : fewest posts of an author
    rng : source of the random choice
    among : first author, and the one after the last, of those to choose from; by default all

    Returns
    -------
    (count,) author numbers, in random order; all that qualify where these are fewer

    Raises
    ------
    ValueError
        fewer than two authors qualify
    """
    first, end = among or (0, store.authors)
    if end - first > MAX_SCANNED_AUTHORS:
        authors = np.empty(0, np.int64)
        for _ in range(100):
            candidates = rng.integers(first, end, size=2 * count)
            posts = store.author_offsets[candidates + 1] - store.author_offsets[candidates]
            authors = np.concatenate([authors, candidates[posts >= min_posts]])
            _, place = np.unique(authors, return_index=True)
            authors = authors[np.sort(place)]
            if len(authors) >= count:
                return authors[:count]

    posts = store.posts_per_author()[first:end]
    eligible = first + np.flatnonzero(posts >= min_posts)
    if len(eligible) < 2:
        raise ValueError(
            f"{len(eligible)} authors with {min_posts} posts or more in {store.folder}: "
            "need at least 2"
        )
    return rng.choice(eligible, min(count, len(eligible)), replace=False)
