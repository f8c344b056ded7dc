"""Other batches than P authors x K samples: pairs and random documents, for verification (tyo2021 section 2.1), and
those of :mod:`helpers.tokens.topic_sampler`; the registry of all.

Each sample is one post, so these are for stores of documents. Like :func:`helpers.tokens.samplers.draw_batch` a batch is a
function of (store, seed, step) alone.
"""

import numpy as np

from helpers.tokens.batch import Batch, gather
from helpers.tokens.samplers import draw_authors, draw_batch
from helpers.tokens.store import TokenStore
from helpers.tokens.topic_sampler import draw_topic_batch


def draw_pairs(
    store: TokenStore, seed: int, step: int, authors: int = 32, length: int = 512, window: str = "prefix"
) -> Batch:
    """``authors`` pairs, half of one author, half of two, as tyo2021 samples them: rows 2i and 2i + 1 are pair i.

    Authors are drawn alike, whoever wrote much or little. ``contrastive(neighbours=True)`` sees these pairs only.
    Raises ValueError where fewer than two authors have two documents.
    """
    rng = np.random.default_rng([seed, step])
    mine = draw_authors(store, authors - authors // 2, 2, rng)
    number = store.posts_per_author()[mine]
    one = (rng.random(len(mine)) * number).astype(np.int64)
    other = (one + 1 + (rng.random(len(mine)) * (number - 1)).astype(np.int64)) % number
    of_two = np.concatenate([draw_authors(store, 2, 1, rng) for _ in range(authors // 2)] or [mine[:0]])
    theirs = (rng.random(len(of_two)) * store.posts_per_author()[of_two]).astype(np.int64)
    author = np.concatenate([np.repeat(mine, 2), of_two])
    post = store.author_offsets[author] + np.concatenate([np.column_stack([one, other]).ravel(), theirs])
    return gather(store, author, post, np.ones_like(post), length, window, rng)


def draw_random(
    store: TokenStore, seed: int, step: int, authors: int = 64, length: int = 512, window: str = "prefix"
) -> Batch:
    """``authors`` documents at random, whoever wrote them: what a shuffled data loader gives.

    Two of one author meet by chance only, so a triplet loss finds hardly a positive (tyo2021 section 4).
    """
    rng = np.random.default_rng([seed, step])
    post = rng.choice(store.posts, min(authors, store.posts), replace=False)
    author = np.searchsorted(store.author_offsets, post, side="right") - 1
    return gather(store, author, post, np.ones_like(post), length, window, rng)


DRAWS = {"authors": draw_batch, "pairs": draw_pairs, "random": draw_random, "topic": draw_topic_batch}
