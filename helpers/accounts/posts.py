"""Accounts' posts as samples that encoders read: from lists of texts in memory, or from the token store of a run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from helpers.cleaning.text import clean, normalise_unicode
from helpers.sources.timestamps import seconds
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, take

LEAST = 4  # posts: of an account with fewer nothing is said
NEWEST = 64  # posts of an account that are read
PASSAGE = 8  # tokens: what is repeated at this length is a form or a copy

Posts = Sequence[Sequence[str]]  # of each account its posts, oldest first


def samples_of(posts: Posts, tokenizer, times: Sequence | None = None, raw: bool = False) -> Samples:
    """Texts of accounts in memory as one sample each, cleaned as notebook 01 cleans them.

    posts : of each account its posts. times : of each account the times of its posts, as
    :func:`helpers.sources.timestamps.seconds` takes them. raw : the posts are clean already.
    A post of which nothing is left is dropped. Raises ValueError for lengths that do not fit, no account, an account
    without a post, or a time that is none.
    """
    if isinstance(posts, str) or any(isinstance(each, str) for each in posts):
        raise TypeError("posts must be lists of texts, one list an account: [[post, post], [post]]")
    if not len(posts):
        raise ValueError("no account was given")
    if times is not None and [*map(len, times)] != [*map(len, posts)]:
        raise ValueError("times must hold one time for each post of each account")
    texts = [[normalise_unicode(post) if raw else clean(post) for post in each] for each in posts]
    kept = [[bool(text) for text in each] for each in texts]
    if empty := [number for number, each in enumerate(kept) if not any(each)]:
        raise ValueError(f"account {empty[0]} has no post of its own words" +
                         (f", and {len(empty) - 1} more have none" if len(empty) > 1 else ""))  # fmt: skip
    flat = [text for each in texts for text in each if text]
    moments = np.zeros(sum(map(len, posts)), np.int64)
    if times is not None:
        moments = seconds(_column([time for each in times for time in each]))
        if (moments < 0).any():
            raise ValueError(f"{(moments < 0).sum()} times are none: give dates, ISO 8601 or seconds since 1970")
    moments = moments[np.concatenate(kept).astype(bool)]
    offsets = np.concatenate([[0], np.cumsum([sum(each) for each in kept])])
    store = memory_store(flat, moments, offsets, tokenizer)
    return Samples(store, offsets[:-1], np.diff(offsets), np.arange(len(posts)))


def _column(values: list):
    import pyarrow as pa

    return pa.chunked_array([pa.array(values)])


def memory_store(texts: list[str], times: np.ndarray, author_offsets: np.ndarray, tokenizer) -> TokenStore:
    """A token store of N texts in memory: times (N,) seconds since 1970, author_offsets (accounts + 1,)."""
    tokens = tokenizer.encode(texts) if texts else [np.empty(0)]
    post_offsets = np.concatenate([[0], np.cumsum([*map(len, tokens)])])
    meta = {"topics": [], "vocabulary": tokenizer.vocabulary, "fingerprint": ""}
    return TokenStore(
        Path("memory"), meta, tokens=np.concatenate(tokens).astype(np.uint16), post_offsets=post_offsets,
        hour=(times // 3600 % 24).astype(np.uint8), time=times, topic=np.zeros(len(times), np.uint16),
        author_offsets=author_offsets)


def newest(store: TokenStore, accounts: np.ndarray | None = None, posts: int = NEWEST) -> Samples:
    """The newest ``posts`` posts of accounts of a store, all of those with at least LEAST posts where none are named."""
    count = store.posts_per_author()
    accounts = np.flatnonzero(count >= LEAST) if accounts is None else np.asarray(accounts)
    taken = np.minimum(count[accounts], posts)
    return Samples(store, store.author_offsets[accounts + 1] - taken, taken, accounts)


def halves(store: TokenStore, least: int, posts: int = NEWEST) -> tuple[Samples, Samples]:
    """Of each account with 2 * least posts its older and its newer half, at most ``posts`` of each, next to the gap.

    Two accounts of one person for nothing: what calibration and its check are made on.
    """
    total = store.posts_per_author()
    accounts = np.flatnonzero(total >= 2 * least)
    middle = store.author_offsets[accounts] + total[accounts] // 2
    older = np.minimum(total[accounts] // 2, posts)
    newer = np.minimum(total[accounts] - total[accounts] // 2, posts)
    return (Samples(store, middle - older, older, accounts), Samples(store, middle, newer, accounts))


def in_memory(samples: Samples) -> Samples:
    """The same samples of a store in memory that holds their posts and nothing else."""
    posts = np.concatenate([np.arange(first, first + count) for first, count in zip(samples.first, samples.count)])
    offsets = np.concatenate([[0], np.cumsum(samples.count)])
    return Samples(take(samples.store, posts, offsets), offsets[:-1], samples.count, np.arange(len(samples)))


def concatenated(one: Samples, other: Samples) -> Samples:
    """The samples of both, one after the other, in one store in memory."""
    one, other = in_memory(one), in_memory(other)
    arrays = {name: np.concatenate([getattr(one.store, name), getattr(other.store, name)])
              for name in ("tokens", "hour", "time", "topic")}  # fmt: skip
    for name in ("post_offsets", "author_offsets"):
        left, right = getattr(one.store, name), getattr(other.store, name)
        arrays[name] = np.concatenate([left, right[1:] + left[-1]])
    store = replace(one.store, **arrays)
    return Samples(store, store.author_offsets[:-1], np.diff(store.author_offsets), np.arange(len(one) + len(other)))


def passages(store: TokenStore, length: int = PASSAGE) -> np.ndarray:
    """The hashes (tokens,) of the ``length`` tokens that begin at each token, 0 where a post ends before them."""
    tokens, hashes = np.asarray(store.tokens, np.uint64), np.zeros(len(store.tokens), np.uint64)
    room = len(tokens) - length + 1
    if room > 0:
        factors = np.random.default_rng(0).integers(1, 2**63, length, dtype=np.uint64) | np.uint64(1)
        for number, factor in enumerate(factors):
            hashes[:room] += (tokens[number : number + room] + np.uint64(1)) * factor
        left = np.repeat(store.post_offsets[1:], np.diff(store.post_offsets)) - np.arange(len(tokens))
        hashes[left < length] = 0
    return hashes


def without_passages(store: TokenStore, others: TokenStore | None = None, length: int = PASSAGE) -> tuple[TokenStore, int]:
    """A store in memory without what is no account's own: ``length`` tokens or more that stand in several posts.

    Signatures, forms, copied footers and unmarked quotes would make accounts alike that share nothing else. others :
    posts whose passages are taken out too, such as those of a gallery. Returns the store and the tokens taken out.
    """
    hashes = passages(store, length)
    known, count = np.unique(hashes[hashes > 0], return_counts=True)
    repeated = known[count > 1]
    if others is not None:
        repeated = np.union1d(repeated, passages(others, length))
    begins = np.isin(hashes, repeated[repeated > 0])
    steps = np.zeros(len(hashes) + length, np.int64)
    np.add.at(steps, np.flatnonzero(begins), 1)
    np.add.at(steps, np.flatnonzero(begins) + length, -1)
    kept = steps.cumsum()[: len(hashes)] == 0
    offsets = np.concatenate([[0], kept.cumsum()])[store.post_offsets]
    return replace(store, tokens=np.asarray(store.tokens)[kept], post_offsets=offsets), int((~kept).sum())
