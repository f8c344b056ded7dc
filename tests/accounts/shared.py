"""What several tests of the room need."""

import re
from dataclasses import replace
from html import unescape

import numpy as np

from helpers.accounts.samples import in_memory
from helpers.tokens.batch import Samples


def subset_of_accounts(posts, accounts):
    """Keep only the accounts with the given numbers (N,) in the store, in the store's order."""
    accounts = np.sort(accounts)
    count = posts.store.posts_per_author()[accounts]
    samples = Samples(posts.store, posts.store.author_offsets[accounts], count, accounts)
    return replace(posts, store=in_memory(samples).store, names=posts.names[accounts])


def visible(page):
    """The words of a page, without tags, style and script."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def posts_of(store):
    parts = np.split(store.tokens, store.post_offsets[1:-1])
    return [part.tolist() for part in parts]
