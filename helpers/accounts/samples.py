"""Make samples, which encoders read, from lists of texts or from the accounts of a token store."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from ..cleaning.text import clean_post
from ..sources.table import NO_TOPIC
from ..sources.table_columns import unix_seconds
from ..tokens.batch import Samples
from ..tokens.store import TokenStore, concat_ranges

MAX_TOKENS = 128  # number of tokens that are read of each post
MIN_POSTS = 4  # accounts with fewer posts are left out: they show too little of a style
MOST_POSTS = 1024  # number of posts that are read of each account at most
APOSTROPHES = re.compile("['’]")
PUNCTUATION = re.compile(r"[.,;:!?\"“”()\[\]…–—*_-]+")
UNKNOWN_TOPIC = NO_TOPIC  # the name of a topic that is not known

Posts = Sequence[Sequence[str]]  # one list of texts per account, oldest first


def samples_of(
    posts: Posts,
    tokenizer,
    times: Sequence | None = None,
    topics: Sequence | None = None,
    may_be_empty: bool = False,
) -> Samples:
    """Make one sample of each account's texts, cleaned as notebook 01 cleans them.

    Posts that are empty after cleaning are dropped; of more than MOST_POSTS posts, so many are
    taken, evenly spread over the list.

    Parameters
    ----------
    posts : Posts
        one list of texts per account.
    tokenizer : Tokenizer
        turns texts into tokens.
    times : sequence, optional
        one list per account with the time of each post, in a form that
        :func:`helpers.sources.table_columns.unix_seconds` reads; by default every time is 0.
    topics : sequence, optional
        one list per account with the topic of each post, such as its room; None for a topic that
        is not known.
    may_be_empty : bool
        whether an account may be without a post after cleaning; its sample is then empty.

    Returns
    -------
    One sample per account, in the order of ``posts``, in a store in memory.

    Raises
    ------
    TypeError
        For one list of texts in place of a list of lists.
    ValueError
        For times or topics whose lengths are not those of the posts, no account, an account without
        a post after cleaning, a post that is no text, or a time that cannot be read.
    """
    _check_lists(posts, times, topics)
    texts = [clean_post(post) for post in chain.from_iterable(posts)]
    is_kept = np.array([bool(text) for text in texts], bool)
    kept_before = np.append(0, is_kept.cumsum())
    account_ends = np.cumsum([0, *_lengths(posts)])

    seconds = np.zeros(len(texts), np.int64) if times is None else _seconds(times)
    rooms = [UNKNOWN_TOPIC] * len(texts)
    if topics is not None:
        rooms = [
            UNKNOWN_TOPIC if pd.isna(room) else str(room) for room in chain.from_iterable(topics)
        ]
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
    if not may_be_empty:
        whole_accounts(store)
    return spread_posts(store, np.arange(len(posts)))


def _check_lists(posts, times, topics) -> None:
    """Raise an error where posts are not lists of texts, or times or topics have other lengths."""
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
    """Return the times of all posts, account by account, in seconds since 1970."""
    flat = list(chain.from_iterable(times))
    if len({type(time) for time in flat}) > 1:  # an Arrow array holds one type
        flat = [str(time) for time in flat]
    seconds = unix_seconds(pa.chunked_array([pa.array(flat)]))
    missing = (seconds < 0).sum()
    if missing:
        raise ValueError(f"{missing} times are none: give dates, ISO 8601 or seconds since 1970")
    return seconds


def rooms_of(store: TokenStore) -> np.ndarray:
    """Return the topic of each post by name, (posts,); UNKNOWN_TOPIC where the store names none."""
    return np.array([*store.meta["topics"], UNKNOWN_TOPIC], object)[store.topic]


def texts_of(store: TokenStore, posts: np.ndarray, tokenizer) -> list[str]:
    """Return the texts of posts, given by number, decoded from the tokens that the store holds.

    Parameters
    ----------
    store : TokenStore
        holds the posts
    posts : (N,) int
        numbers of posts in the store
    tokenizer : Tokenizer
        that the store was encoded with
    """
    begins = store.post_offsets[posts]
    ends = store.post_offsets[posts + 1]
    return [tokenizer.decode(store.tokens[begin:end]) for begin, end in zip(begins, ends)]


def in_one_spelling(samples: Samples, tokenizer) -> Samples:
    """Return samples whose posts are in lower case, without punctuation.

    A post of punctuation alone stays as it is.

    Parameters
    ----------
    samples : Samples
        N samples
    tokenizer : Tokenizer
        that the store was encoded with
    """
    own = in_memory(samples)
    texts = texts_of(own.store, np.arange(own.store.posts), tokenizer)
    tokens = tokenizer.encode([_in_one_spelling(text) or text for text in texts])
    store = replace(
        own.store,
        tokens=np.concatenate(tokens).astype(np.uint16),
        post_offsets=np.cumsum([0, *_lengths(tokens)]),
    )
    return replace(own, store=store)


def _in_one_spelling(text):
    words = PUNCTUATION.sub(" ", APOSTROPHES.sub("", text.lower()))
    return " ".join(words.split())


def whole_accounts(store: TokenStore) -> Samples:
    """Return one sample per account of a store, of all its posts.

    Raises
    ------
    ValueError
        Where an account has no post.
    """
    count = store.posts_per_author()
    empty = np.flatnonzero(count == 0)
    if len(empty):
        more = f", and {len(empty) - 1} more have none" if len(empty) > 1 else ""
        raise ValueError(f"account {empty[0]} has no post of its own words{more}")
    return Samples(store, store.author_offsets[:-1], count, np.arange(len(count)))


def spread_posts(
    store: TokenStore, accounts: np.ndarray | None = None, posts: int = MOST_POSTS
) -> Samples:
    """Return one sample per account: its posts, or so many of them, evenly spread over its time.

    The posts are copied to memory where an account has more.

    Parameters
    ----------
    store : TokenStore
        posts of the accounts.
    accounts : (N,)
        numbers of N accounts; by default all with at least MIN_POSTS posts.
    posts : int
        maximum number of posts per account.
    """
    count = store.posts_per_author()
    if accounts is None:
        accounts = np.flatnonzero(count >= MIN_POSTS)
    first = store.author_offsets[accounts]
    count = count[accounts]
    if (count <= posts).all():
        return Samples(store, first, count, accounts)
    kept = np.minimum(count, posts)
    number, offsets = concat_ranges(np.zeros_like(kept), kept)
    spacing = (count - 1) / np.maximum(kept - 1, 1)
    place = np.rint(number * np.repeat(spacing, kept)).astype(np.int64)
    return Samples.of_lists(store, np.repeat(first, kept) + place, offsets, accounts)


def halves(
    store: TokenStore, min_posts: int, max_posts: int = MOST_POSTS
) -> tuple[Samples, Samples]:
    """Return the first and the last posts of each account, as two accounts of one person.

    They are as far apart as its posts allow: one conversation may go on over a cut in the middle.

    Parameters
    ----------
    store : TokenStore
        posts of the accounts.
    min_posts : int
        minimum number of posts per half; accounts with fewer than twice as many are left out.
    max_posts : int
        maximum number of posts per half.

    Returns
    -------
    The first and the last posts, as many of each, in the same order of accounts.
    """
    total = store.posts_per_author()
    accounts = np.flatnonzero(total >= 2 * min_posts)
    count = np.minimum(total[accounts] // 2, max_posts)
    first = Samples(store, store.author_offsets[accounts], count, accounts)
    return first, replace(first, first=store.author_offsets[accounts + 1] - count)


def last_posts(samples: Samples, posts: int) -> Samples:
    """Keep the last ``posts`` posts of each sample, or all where it has fewer.

    Parameters
    ----------
    samples : Samples
        samples to shorten
    posts : int
        number of posts to keep at most
    """
    count = np.minimum(samples.count, posts)
    return replace(samples, first=samples.first + samples.count - count, count=count)


def in_memory(samples: Samples) -> Samples:
    """Copy samples into a new store in memory that holds only their posts."""
    posts, offsets = concat_ranges(samples.first, samples.count)
    return Samples.of_lists(samples.store, posts, offsets, np.arange(len(samples)))
