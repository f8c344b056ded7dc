"""Accounts' posts as samples that encoders read: from lists of texts in memory, or from the token store of a run."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from helpers.cleaning.text import clean_post
from helpers.sources.timestamps import unix_seconds
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, concat_ranges

MAX_TOKENS = 128  # read of each post
LEAST = 4  # posts: of an account with fewer nothing is said
NEWEST = 64  # posts of an account that are read
PASSAGE = 8  # tokens: what is repeated at this length is a form or a copy
OWN = 0.25  # of a post's tokens
UNKNOWN = ""  # the name of a topic that is not known
CHUNK = 2**15  # posts whose passages are hashed at a time
PARTS = 16  # in which hashes are compared, as sorting takes memory

Posts = Sequence[Sequence[str]]  # of each account its posts, oldest first


def samples_of(
    posts: Posts, tokenizer, times: Sequence | None = None, topics: Sequence | None = None
) -> Samples:
    """Texts of accounts in memory as one sample each, cleaned as notebook 01 cleans them.

    posts : of each account its posts. times : of each account the times of its posts, as
    :func:`helpers.sources.timestamps.unix_seconds` takes them. topics : of each account the rooms of its posts, None for one
    that is not known. A post of which nothing is left is dropped. Raises ValueError for lengths that do not fit, no
    account, an account without a post, or a time that is none.
    """
    if isinstance(posts, str) or any(isinstance(each, str) for each in posts):
        raise TypeError("posts must be lists of texts, one list an account: [[post, post], [post]]")
    if not len(posts):
        raise ValueError("no account was given")
    for kind, given in (
        ("time", posts if times is None else times),
        ("topic", posts if topics is None else topics),
    ):
        if any(isinstance(each, str) for each in given) or [*map(len, given)] != [*map(len, posts)]:
            raise ValueError(f"{kind}s must hold one {kind} for each post of each account")
    if wrong := [
        (account, post)
        for account, each in enumerate(posts)
        for post in each
        if not isinstance(post, str)
    ]:
        raise ValueError(f"account {wrong[0][0]} has the post {wrong[0][1]!r}, which is no text")
    cleaned = [clean_post(post) for each in posts for post in each]
    kept, moments = np.array([*map(bool, cleaned)], bool), np.zeros(len(cleaned), np.int64)
    if times is not None:
        told = [time for each in times for time in each]
        told = told if len({*map(type, told)}) == 1 else [*map(str, told)]  # Arrow takes one kind
        moments = unix_seconds(pa.chunked_array([pa.array(told)]))
        if (moments < 0).any():
            raise ValueError(
                f"{(moments < 0).sum()} times are none: give dates, ISO 8601 or seconds since 1970"
            )
    offsets = np.append(0, kept.cumsum())[np.append(0, np.cumsum([*map(len, posts)]))]
    rooms = [None] * len(kept) if topics is None else [room for each in topics for room in each]
    listed, topic = np.unique(
        [UNKNOWN if pd.isna(room) else str(room) for room in rooms], return_inverse=True
    )
    tokens, moments = tokenizer.encode([*filter(None, cleaned)]), moments[kept]
    meta = {"topics": listed.tolist(), "vocabulary": tokenizer.vocabulary, "fingerprint": ""}
    return whole_accounts(TokenStore(
        Path("memory"), meta, tokens=np.concatenate([np.empty(0), *tokens]).astype(np.uint16),
        post_offsets=np.cumsum([0, *map(len, tokens)]), hour=(moments // 3600 % 24).astype(np.uint8), time=moments,
        topic=topic[kept], author_offsets=offsets))  # fmt: skip


def rooms_of(store: TokenStore) -> np.ndarray:
    """Of each post the name of its topic (posts,), UNKNOWN where the store does not list it."""
    return np.array([*store.meta["topics"], UNKNOWN], object)[store.topic]


def whole_accounts(store: TokenStore) -> Samples:
    """All posts of each account of a store. Raises ValueError where an account has none."""
    count = store.posts_per_author()
    if empty := np.flatnonzero(count == 0).tolist():
        raise ValueError(f"account {empty[0]} has no post of its own words" +
                         (f", and {len(empty) - 1} more have none" if len(empty) > 1 else ""))  # fmt: skip
    return Samples(store, store.author_offsets[:-1], count, np.arange(len(count)))


def newest_posts(
    store: TokenStore, accounts: np.ndarray | None = None, posts: int = NEWEST
) -> Samples:
    """The newest ``posts`` posts of accounts of a store, of all with at least LEAST posts where none are named."""
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
    return (
        Samples(store, middle - older, older, accounts),
        Samples(store, middle, newer, accounts),
    )


def last_posts(samples: Samples, posts: int) -> Samples:
    """The same samples, each cut to its last ``posts`` posts."""
    count = np.minimum(samples.count, posts)
    return replace(samples, first=samples.first + samples.count - count, count=count)


def in_memory(samples: Samples) -> Samples:
    """The same samples of a store in memory that holds their posts and nothing else."""
    return Samples.of_lists(
        samples.store, *concat_ranges(samples.first, samples.count), np.arange(len(samples))
    )


def concatenate_samples(one: Samples, other: Samples) -> Samples:
    """The samples of both, one after the other, in one store in memory."""
    one, other = in_memory(one), in_memory(other)
    arrays = {name: np.concatenate([getattr(one.store, name), getattr(other.store, name)])
              for name in ("tokens", "hour", "time")}  # fmt: skip
    listed, arrays["topic"] = np.unique(
        [*rooms_of(one.store), *rooms_of(other.store)], return_inverse=True
    )
    for name in ("post_offsets", "author_offsets"):
        left, right = getattr(one.store, name), getattr(other.store, name)
        arrays[name] = np.concatenate([left, right[1:] + left[-1]])
    return whole_accounts(
        replace(one.store, meta=one.store.meta | {"topics": listed.tolist()}, **arrays)
    )


def token_kinds(tokenizer) -> np.ndarray:
    """Of each token a kind (vocabulary,): itself, 1 for all that hold a digit, 0 for that of unknown letters.

    Forms differ in their numbers; and texts in letters that the tokenizer does not know would all be one passage.
    """
    pieces = [tokenizer.piece(token) for token in range(tokenizer.vocabulary)]
    numbers = [bool(re.search(r"\d", piece)) for piece in pieces]
    kinds = np.where(numbers, 1, np.arange(2, tokenizer.vocabulary + 2)).astype(np.uint64)
    kinds[["\ufffd" in piece for piece in pieces]] = 0
    return kinds


def passages(store: TokenStore, kinds: np.ndarray, length: int = PASSAGE) -> np.ndarray:
    """The hashes (tokens,) of the ``length`` tokens that begin at each token, 0 where a post ends before them."""
    hashes = np.zeros(len(store.tokens), np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**63, length, dtype=np.uint64) | np.uint64(1)
    for begin in range(0, store.posts, CHUNK):
        ends = store.post_offsets[begin : begin + CHUNK + 1]
        tokens, found = kinds[store.tokens[ends[0] : ends[-1]]], hashes[ends[0] : ends[-1]]
        room = len(tokens) - length + 1
        for number, factor in enumerate(factors if room > 0 else ()):
            found[:room] += tokens[number : number + room] * factor
        left = np.repeat(ends[1:], np.diff(ends)) - np.arange(ends[0], ends[-1])
        found[left < length] = 0
        unknown = np.concatenate([[0], np.cumsum(tokens == 0)])
        found[: max(room, 0)][unknown[length:] > unknown[:-length]] = 0
    return hashes


def _in_several(hashes: np.ndarray, post_offsets: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which hashes (tokens,) stand in two posts or more, or among the others; 0 never does."""
    several, parts = np.zeros(len(hashes), bool), (hashes % PARTS).astype(np.uint8)
    for part in range(PARTS):
        at = np.flatnonzero((parts == part) & (hashes > 0))
        at = at[np.argsort(hashes[at])]
        known, first, count = np.unique(hashes[at], return_index=True, return_counts=True)
        post = np.searchsorted(post_offsets, at, side="right")
        found = np.isin(known, others[others % PARTS == part])
        found |= np.maximum.reduceat(post, first) > np.minimum.reduceat(
            post, first
        )  # in one post "ha ha ha" is style
        several[at] = np.repeat(found, count)
    return several


def texts_of(store: TokenStore, posts: np.ndarray, tokenizer) -> list[str]:
    """Posts of a store, as the encoder reads them."""
    return [
        tokenizer.decode(store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]])
        for post in posts
    ]


def without_passages(
    store: TokenStore,
    kinds: np.ndarray,
    others: np.ndarray = np.empty(0, np.uint64),
    length: int = PASSAGE,
) -> tuple[TokenStore, int]:
    """A store in memory without what is no account's own: ``length`` tokens or more that stand in several posts.

    Signatures, forms, copied footers and unmarked quotes would make accounts alike that share nothing else. kinds : of
    :func:`token_kinds`; numbers are all the same. others : passages, of :func:`passages`, that are taken out too, such as
    those of a gallery. A post of which less than the share OWN is left is no post of the store any more.
    Returns the store and the number of tokens taken out.
    """
    begins = np.flatnonzero(_in_several(passages(store, kinds, length), store.post_offsets, others))
    own = np.ones(len(store.tokens), bool)
    for number in range(length):  # a passage ends within its post
        own[begins + number] = False
    lengths = np.diff(store.post_offsets)
    left = np.diff(np.concatenate([[0], own.cumsum(dtype=np.int64)])[store.post_offsets])
    posts = left >= OWN * lengths  # of a form that is filled in little is left, and nobody's style
    own &= np.repeat(posts, lengths)
    arrays = {name: np.asarray(getattr(store, name))[posts] for name in ("hour", "time", "topic")}
    return replace(
        store,
        tokens=np.asarray(store.tokens)[own],
        post_offsets=np.concatenate([[0], left[posts].cumsum()]),
        author_offsets=np.concatenate([[0], posts.cumsum()])[store.author_offsets],
        **arrays,
    ), int((~own).sum())
