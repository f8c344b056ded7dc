"""Accounts' posts as samples that encoders read: from lists of texts, or from a token store."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from helpers.cleaning.text import clean_post
from helpers.sources.timestamps import unix_seconds
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, concat_ranges

MAX_TOKENS = 128  # read of each post
MIN_POSTS = 4  # of an account with fewer nothing is said
NEWEST_POSTS = 64  # of an account, which are read
UNKNOWN_TOPIC = ""  # the name of a topic that is not known

Posts = Sequence[Sequence[str]]  # of each account its posts, oldest first


def samples_of(
    posts: Posts, tokenizer, times: Sequence | None = None, topics: Sequence | None = None
) -> Samples:
    """Make one sample of each account's texts, cleaned as notebook 01 cleans them.

    A post of which nothing is left is dropped.

    Parameters
    ----------
    posts : Posts
        of each account its posts.
    tokenizer : tokenizer
        encodes texts.
    times : sequence
        of each account the times of its posts, as :func:`helpers.sources.timestamps.unix_seconds`
        takes them.
    topics : sequence
        of each account the rooms of its posts, None for one that is not known.

    Raises
    ------
    TypeError
        For one list of texts in place of a list of lists.
    ValueError
        For lengths that do not fit, no account, an account without a post, or a time that is none.
    """
    _check_lists(posts, times, topics)
    texts = [clean_post(post) for post in chain.from_iterable(posts)]
    is_kept = np.array([bool(text) for text in texts], bool)
    kept_before = np.append(0, is_kept.cumsum())
    account_ends = np.cumsum([0, *_lengths(posts)])

    seconds = np.zeros(len(texts), np.int64) if times is None else _seconds(times)
    rooms = [UNKNOWN_TOPIC] * len(texts)
    if topics is not None:
        rooms = [_topic_name(room) for room in chain.from_iterable(topics)]
    topic_list, topic = np.unique(rooms, return_inverse=True)

    tokens = tokenizer.encode([text for text in texts if text])
    store = TokenStore(
        folder=Path("memory"),
        meta={
            "topics": topic_list.tolist(),
            "vocabulary": tokenizer.vocabulary,
            "fingerprint": "",
        },
        tokens=np.concatenate([np.empty(0), *tokens]).astype(np.uint16),
        post_offsets=np.cumsum([0, *_lengths(tokens)]),
        hour=(seconds[is_kept] // 3600 % 24).astype(np.uint8),
        time=seconds[is_kept],
        topic=topic[is_kept],
        author_offsets=kept_before[account_ends],
    )
    return whole_accounts(store)


def _check_lists(posts, times, topics) -> None:
    """Raise where posts are no lists of texts, or times or topics do not fit them."""
    if isinstance(posts, str) or any(isinstance(texts, str) for texts in posts):
        raise TypeError("posts must be lists of texts, one list an account: [[post, post], [post]]")
    if not len(posts):
        raise ValueError("no account was given")
    for kind, lists in (("time", times), ("topic", topics)):
        if lists is None:
            continue
        if any(isinstance(values, str) for values in lists) or _lengths(lists) != _lengths(posts):
            raise ValueError(f"{kind}s must hold one {kind} for each post of each account")
    for account, texts in enumerate(posts):
        for post in texts:
            if not isinstance(post, str):
                raise ValueError(f"account {account} has the post {post!r}, which is no text")


def _lengths(lists: Iterable) -> list[int]:
    return [len(values) for values in lists]


def _seconds(times: Sequence) -> np.ndarray:
    """Return the times of all accounts in one row, in seconds since 1970."""
    flat = list(chain.from_iterable(times))
    if len({type(time) for time in flat}) > 1:  # Arrow takes one kind
        flat = [str(time) for time in flat]
    seconds = unix_seconds(pa.chunked_array([pa.array(flat)]))
    missing = (seconds < 0).sum()
    if missing:
        raise ValueError(f"{missing} times are none: give dates, ISO 8601 or seconds since 1970")
    return seconds


def _topic_name(room) -> str:
    return UNKNOWN_TOPIC if pd.isna(room) else str(room)


def rooms_of(store: TokenStore) -> np.ndarray:
    """Return the topic of each post, (posts,); UNKNOWN_TOPIC where the store does not list it."""
    return np.array([*store.meta["topics"], UNKNOWN_TOPIC], object)[store.topic]


def texts_of(store: TokenStore, posts: np.ndarray, tokenizer) -> list[str]:
    """Return the texts of some posts of a store, as the encoder reads them."""
    begins = store.post_offsets[posts]
    ends = store.post_offsets[posts + 1]
    return [tokenizer.decode(store.tokens[begin:end]) for begin, end in zip(begins, ends)]


def whole_accounts(store: TokenStore) -> Samples:
    """Return all posts of each account of a store. Raises ValueError where an account has none."""
    count = store.posts_per_author()
    empty = np.flatnonzero(count == 0)
    if len(empty):
        more = f", and {len(empty) - 1} more have none" if len(empty) > 1 else ""
        raise ValueError(f"account {empty[0]} has no post of its own words{more}")
    return Samples(store, store.author_offsets[:-1], count, np.arange(len(count)))


def newest_posts(
    store: TokenStore, accounts: np.ndarray | None = None, posts: int = NEWEST_POSTS
) -> Samples:
    """Return the newest posts of accounts of a store.

    Parameters
    ----------
    store : TokenStore
        of the accounts.
    accounts : (N,)
        numbers; by default all with at least MIN_POSTS posts.
    posts : int
        of an account, at most.
    """
    count = store.posts_per_author()
    if accounts is None:
        accounts = np.flatnonzero(count >= MIN_POSTS)
    newest = np.minimum(count[accounts], posts)
    return Samples(store, store.author_offsets[accounts + 1] - newest, newest, accounts)


def halves(
    store: TokenStore, min_posts: int, max_posts: int = NEWEST_POSTS
) -> tuple[Samples, Samples]:
    """Cut accounts in an older and a newer half: two accounts of one person for nothing.

    Calibration is fitted and checked on them.

    Parameters
    ----------
    store : TokenStore
        of the accounts; those with fewer than ``2 * min_posts`` posts are left out.
    min_posts : int
        of a half.
    max_posts : int
        of a half; the posts next to the cut are taken.
    """
    total = store.posts_per_author()
    accounts = np.flatnonzero(total >= 2 * min_posts)
    total = total[accounts]
    middle = store.author_offsets[accounts] + total // 2
    older = np.minimum(total // 2, max_posts)
    newer = np.minimum(total - total // 2, max_posts)
    older_half = Samples(store, middle - older, older, accounts)
    return older_half, Samples(store, middle, newer, accounts)


def last_posts(samples: Samples, posts: int) -> Samples:
    """Cut each sample to its last ``posts`` posts."""
    count = np.minimum(samples.count, posts)
    return replace(samples, first=samples.first + samples.count - count, count=count)


def in_memory(samples: Samples) -> Samples:
    """Copy samples into a store in memory that holds their posts and nothing else."""
    posts, offsets = concat_ranges(samples.first, samples.count)
    return Samples.of_lists(samples.store, posts, offsets, np.arange(len(samples)))


def concatenate_samples(first: Samples, second: Samples) -> Samples:
    """Return the samples of both, one after the other, in one store in memory."""
    left = in_memory(first).store
    right = in_memory(second).store
    rooms = [*rooms_of(left), *rooms_of(right)]
    topic_list, topic = np.unique(rooms, return_inverse=True)
    arrays = {"topic": topic}
    for name in ("tokens", "hour", "time"):
        arrays[name] = np.concatenate([getattr(left, name), getattr(right, name)])
    for name in ("post_offsets", "author_offsets"):
        offsets = getattr(left, name)
        arrays[name] = np.concatenate([offsets, getattr(right, name)[1:] + offsets[-1]])
    meta = left.meta | {"topics": topic_list.tolist()}
    return whole_accounts(replace(left, meta=meta, **arrays))
