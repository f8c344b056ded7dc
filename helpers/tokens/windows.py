"""Samples of every author of a store, without chance, to fit a layer or statistics on.

This is not part of the samplers, as an encoder imports it, and samplers import all of scipy.stats.
"""

import numpy as np

from .batch import Samples
from .store import TokenStore, concat_ranges


def training_windows(store: TokenStore, posts: int = 16, windows: int = 16) -> Samples:
    """Return disjoint samples of consecutive posts of each author, from the author's first post on.

    Parameters
    ----------
    store : the token store of the training authors
    posts : number of posts in a sample; an author's last sample may have fewer
    windows : most samples per author; the posts after them are left out
    """
    windows_of_author = np.clip(-(-store.posts_per_author() // posts), 1, windows)
    author = np.repeat(np.arange(store.authors), windows_of_author)
    number, _ = concat_ranges(np.zeros_like(windows_of_author), windows_of_author)
    first = store.author_offsets[author] + number * posts
    count = np.minimum(posts, store.author_offsets[author + 1] - first)
    return Samples(store, first, count, author)
