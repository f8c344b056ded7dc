"""Some of the accounts of a file."""

from dataclasses import replace

import numpy as np

from helpers.accounts.samples import in_memory
from helpers.tokens.batch import Samples


def subset_of_accounts(posts, accounts):
    """Keep only the accounts with the given numbers (N,) in the store, in the store's order."""
    accounts = np.sort(accounts)
    count = posts.store.posts_per_author()[accounts]
    samples = Samples(posts.store, posts.store.author_offsets[accounts], count, accounts)
    return replace(posts, store=in_memory(samples).store, names=posts.names[accounts])
