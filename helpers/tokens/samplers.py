"""Samples of posting histories: window sizes, P authors x K windows, and the batch they become (khan2021 section 2.3).

A batch is a function of (store, seed, step) alone: nothing is carried from step to step, so a resumed run draws
exactly what an undisturbed one would have drawn. No Python loop runs over samples.

Letters: B samples, M posts (longest of the batch), L tokens a post, P authors, K samples an author.
"""

import numpy as np
from scipy import stats

from helpers.tokens.batch import WINDOWS, Batch, gather
from helpers.tokens.store import TokenStore

SIZES = {
    "uniform": stats.uniform(),
    "beta21": stats.beta(2, 1),
    "beta31": stats.beta(3, 1),
    "beta41": stats.beta(4, 1),
    "poisson16": None,
    "fixed": None,
}
SCANNED = 100_000  # authors; more are drawn from without looking at all of them


def draw_sizes(
    distribution: str,
    count: int,
    rng: np.random.Generator,
    smallest: int = 1,
    largest: int = 16,
    reach_smallest: bool = False,
) -> np.ndarray:
    """Sample sizes, khan2021 section 2.3 and Table 4: ``R + ceil(x (S - R))`` with x from the named distribution.

    As printed the formula never gives R itself (x > 0); ``reach_smallest`` uses ``R + floor(x (S - R + 1))``.
    "poisson16" is Poisson(16) restricted to R..S; "fixed" is always S. Returns int64 (count,).
    Raises ValueError for an unknown distribution or sizes that make no sense.
    """
    if distribution not in SIZES:
        raise ValueError(f"sizes {distribution!r}: one of {', '.join(SIZES)}")
    if not 1 <= smallest <= largest:
        raise ValueError(f"sample sizes {smallest}..{largest}: need 1 <= smallest <= largest")
    if distribution == "fixed":
        return np.full(count, largest)
    if distribution == "poisson16":
        support, weight = _poisson16(smallest, largest)
        return rng.choice(support, count, p=weight)
    x = SIZES[distribution].ppf(rng.random(count))
    if reach_smallest:
        return smallest + np.minimum(np.floor(x * (largest - smallest + 1)), largest - smallest).astype(np.int64)
    return smallest + np.ceil(x * (largest - smallest)).astype(np.int64)


def _poisson16(smallest, largest):
    support = np.arange(smallest, largest + 1)
    weight = stats.poisson(16).pmf(support)
    return support, weight / weight.sum()


def skewness(distribution: str) -> float:
    """Skew of a size distribution (khan2021 Table 4): of x, or of Poisson(16) restricted to 1..16."""
    if distribution == "poisson16":
        return float(stats.rv_discrete(values=_poisson16(1, 16)).stats(moments="s"))
    return 0.0 if distribution == "fixed" else float(SIZES[distribution].stats(moments="s"))


def draw_windows(
    available: np.ndarray, sizes: np.ndarray, rng: np.random.Generator, overlap: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Windows of consecutive posts, K for each of P authors.

    available (P,): posts each author has. sizes (P, K): wanted sizes, cut to what is there.
    overlap: starts are uniform in 0..n - M, as in the paper; False: an author's windows share no post (sizes are
    scaled down where they do not fit), so that a pair of samples cannot be matched by a post they have in common;
    every author needs K posts.
    Returns first post within the author (P, K) and size (P, K).
    """
    available = available[:, None]
    if overlap:
        sizes = np.minimum(sizes, available)
        return (rng.random(sizes.shape) * (available - sizes + 1)).astype(np.int64), sizes
    total = sizes.sum(1, keepdims=True)
    samples = sizes.shape[1]  # one post each, and the rest of the posts in proportion to the rest of the sizes
    fewer = 1 + (sizes - 1) * (available - samples) // np.maximum(total - samples, 1)
    sizes = np.where(total > available, fewer, sizes)
    slack = available - sizes.sum(1, keepdims=True)
    gaps = np.sort((rng.random(sizes.shape) * (slack + 1)).astype(np.int64), 1)
    order = rng.permuted(np.broadcast_to(np.arange(samples), sizes.shape), axis=1)
    placed = np.take_along_axis(sizes, order, 1)
    first = np.empty_like(sizes)
    np.put_along_axis(first, order, gaps + placed.cumsum(1) - placed, 1)
    return first, sizes


def draw_batch(
    store: TokenStore,
    seed: int,
    step: int,
    authors: int = 64,
    samples: int = 8,
    sizes: str = "beta31",
    smallest: int = 1,
    largest: int = 16,
    length: int = 32,
    window: str = "prefix",
    overlap: bool = True,
    reach_smallest: bool = False,
) -> Batch:
    """P authors, uniform without replacement, x K samples: B = P * K rows, an author's samples side by side.

    length: L. window: each post's first L tokens ("prefix") or L consecutive ones from a random start ("random").
    Raises ValueError where the store has fewer than two authors or a setting is unknown.
    """
    rng = np.random.default_rng([seed, step])
    chosen = draw_authors(store, authors, 1 if overlap else samples, rng)
    wanted = draw_sizes(sizes, len(chosen) * samples, rng, smallest, largest, reach_smallest)
    available = store.author_offsets[chosen + 1] - store.author_offsets[chosen]
    first, count = draw_windows(available, wanted.reshape(len(chosen), samples), rng, overlap)
    first += store.author_offsets[chosen][:, None]
    return gather(store, np.repeat(chosen, samples), first.ravel(), count.ravel(), length, window, rng)


def draw_authors(store: TokenStore, count: int, fewest: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` different authors, or all there are, uniform among those with at least ``fewest`` posts.

    Up to SCANNED authors are all looked at; among more, authors are drawn and refused, so that the cost does not
    grow with the store. Raises ValueError where fewer than two qualify.
    """
    if store.authors > SCANNED:
        chosen = np.empty(0, np.int64)
        for _ in range(100):
            drawn = rng.integers(store.authors, size=2 * count)
            drawn = drawn[store.author_offsets[drawn + 1] - store.author_offsets[drawn] >= fewest]
            chosen = np.concatenate([chosen, drawn])
            _, first = np.unique(chosen, return_index=True)
            chosen = chosen[np.sort(first)]
            if len(chosen) >= count:
                return chosen[:count]
    eligible = np.flatnonzero(store.posts_per_author() >= fewest)
    if len(eligible) < 2:
        raise ValueError(f"{len(eligible)} authors have enough posts for {fewest} samples: need at least 2")
    return rng.choice(eligible, min(count, len(eligible)), replace=False)
