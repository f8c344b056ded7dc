"""Make samples, which encoders read, from lists of texts or from the accounts of a token store.

Passages that several posts share word for word are removed from them: signatures, forms, copied
footers and unmarked quotes would make accounts look alike that share nothing else.
"""

import re
from collections.abc import Sequence, Sized
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from ..cleaning.text import clean_post
from ..sources.table import NO_TOPIC
from ..sources.table_columns import unix_seconds
from ..tokens.batch import Samples
from ..tokens.store import TokenStore, concat_ranges, with_tokens

MAX_TOKENS = 128  # number of tokens that are read of each post
MIN_POSTS = 4  # accounts with fewer posts are left out: they show too little of a style
MOST_POSTS = 512  # of each account are read at most, as many as calibration has seen
UNKNOWN_TOPIC = NO_TOPIC  # the name of a topic that is not known
# Length of a passage: a repetition of so many tokens is a form or a copy. In another language than
# English they are only three words. With 24 tokens Spanish accounts rank higher, but fewer of the
# likeliest pairs are one person's: formulas of one office then count as style.
PASSAGE_TOKENS = 8
MIN_OWN_SHARE = 0.25  # a post is dropped if less than this share of its tokens is left
CHUNK_POSTS = 2**15  # posts that are hashed at a time, to save memory
FORM_TOKENS = 3  # in a row that stand in many posts of an account are part of a form
MIN_FORM_POSTS = 8  # of an account whose form is looked for
PHRASE_SHARE = 0.1  # of an account's posts: a phrase in so many says nothing of a person
HASH_PARTS = 16  # hashes are compared in so many parts, because sorting takes memory

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
    account_ends = np.append(0, np.cumsum(list(map(len, posts))))

    seconds = np.zeros(len(texts), np.int64) if times is None else _seconds(times)
    rooms = [UNKNOWN_TOPIC] * len(texts)
    if topics is not None:
        given = pd.Series(list(chain.from_iterable(topics)), dtype=object)
        rooms = given.where(given.notna(), UNKNOWN_TOPIC).astype(str)
    topic_list, topic = np.unique(rooms, return_inverse=True)

    tokens = tokenizer.encode([text for text in texts if text])
    store = TokenStore(
        folder=Path("memory"),
        meta={"topics": list(topic_list), "vocabulary": tokenizer.vocabulary, "fingerprint": ""},
        tokens=np.concatenate([np.empty(0), *tokens]).astype(np.uint16),
        post_offsets=np.append(0, np.cumsum(list(map(len, tokens)))).astype(int),
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
    is_list = isinstance(posts, Sized) and not isinstance(posts, str)
    if not is_list or any(isinstance(texts, str) for texts in posts):
        raise TypeError("posts must be lists of texts, one list an account: [[post, post], [post]]")
    if not len(posts):
        raise ValueError("no account was given")
    for kind, lists in (("time", times), ("topic", topics)):
        if lists is None:
            continue
        is_text = any(isinstance(values, str) for values in lists)
        if is_text or list(map(len, lists)) != list(map(len, posts)):
            raise ValueError(f"{kind}s must hold one {kind} for each post of each account")
    for account, texts in enumerate(posts):
        for post in texts:
            if not isinstance(post, str):
                raise ValueError(f"account {account} has the post {post!r}, which is no text")


def _seconds(times: Sequence) -> np.ndarray:
    """Return the times of all posts, account by account, in seconds since 1970."""
    seconds = np.array([unix_seconds(time) for time in chain.from_iterable(times)], np.int64)
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


def without_phrases(samples: Samples, kinds: np.ndarray) -> Samples:
    """Return samples without what an account repeats in PHRASE_SHARE of its posts.

    A post of nothing else stays as it is.

    Parameters
    ----------
    samples : Samples
        N samples
    kinds : (vocabulary,)
        result of :func:`token_kinds`
    """
    own = in_memory(samples)
    is_own = ~tokens_in_form(own.store, kinds, PHRASE_SHARE)
    return replace(own, store=without_tokens(own.store, is_own))


def without_tokens(store: TokenStore, is_own: np.ndarray) -> TokenStore:
    """Return a store with some of its tokens; a post without any of them stays as it is.

    Parameters
    ----------
    store : TokenStore
        the posts
    is_own : (tokens,) bool
        which tokens stay
    """
    own_before = np.append(0, is_own.cumsum())
    has_none = np.diff(own_before[store.post_offsets]) == 0
    return with_tokens(store, is_own | np.repeat(has_none, np.diff(store.post_offsets)))


def without_frames(store: TokenStore, kinds: np.ndarray) -> TokenStore:
    """Cut phrases with which many posts of an account begin or end, as greetings and marks do.

    A phrase is one of PHRASE_SHARE of its posts. A post of nothing else stays as it is.

    Parameters
    ----------
    store : TokenStore
        the posts
    kinds : (vocabulary,)
        result of :func:`token_kinds`
    """
    is_phrase = tokens_in_form(store, kinds, PHRASE_SHARE)
    places = np.arange(len(is_phrase))
    post_begins, post_ends = store.post_offsets[:-1], store.post_offsets[1:]
    lengths = post_ends - post_begins
    last_own = np.maximum.accumulate(np.where(is_phrase, -1, places))
    next_own = np.minimum.accumulate(np.where(is_phrase, len(places), places)[::-1])[::-1]
    first = np.append(next_own, len(places))[post_begins]
    last = last_own[post_ends - 1]
    is_whole = first > last
    first = np.where(is_whole, post_begins, first)
    last = np.where(is_whole, post_ends - 1, last)
    is_own = (places >= np.repeat(first, lengths)) & (places <= np.repeat(last, lengths))
    return with_tokens(store, is_own)


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
    whole = Samples(store, store.author_offsets[accounts], count[accounts], accounts)
    return thinned(whole, posts)


def thinned(samples: Samples, posts: int) -> Samples:
    """Return so many posts of each sample at most, evenly spread over it.

    The posts are copied to memory where a sample has more.

    Parameters
    ----------
    samples : Samples
        N samples
    posts : int
        maximum number of posts of each
    """
    count = samples.count
    if (count <= posts).all():
        return samples
    kept = np.minimum(count, posts)
    number, offsets = concat_ranges(np.zeros_like(kept), kept)
    spacing = (count - 1) / np.maximum(kept - 1, 1)
    place = np.rint(number * np.repeat(spacing, kept)).astype(np.int64)
    rows = np.repeat(samples.first, kept) + place
    return Samples.of_lists(samples.store, rows, offsets, samples.authors)


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


def cut_in_half(samples: Samples) -> tuple[Samples, Samples]:
    """Return the older and the newer posts of each sample; of an odd number, more are newer."""
    older_count = samples.count // 2
    newer_count = samples.count - older_count
    older = replace(samples, count=older_count)
    return older, replace(samples, first=samples.first + older_count, count=newer_count)


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


def token_kinds(tokenizer) -> np.ndarray:
    """Return the kind of each token, (vocabulary,) uint64.

    All tokens with a digit have the kind 1, since forms differ in their numbers only. Tokens of
    letters that the tokenizer does not know have the kind 0: they belong to no passage, since all
    texts in such letters would look the same. Every other token is a kind of its own, from 2.
    """
    pieces = tokenizer.pieces
    has_digit = [bool(re.search(r"\d", piece)) for piece in pieces]
    kinds = np.where(has_digit, 1, np.arange(2, tokenizer.vocabulary + 2)).astype(np.uint64)
    kinds[["\ufffd" in piece for piece in pieces]] = 0
    return kinds


def passage_hashes(store: TokenStore, kinds: np.ndarray) -> np.ndarray:
    """Hash the passage of PASSAGE_TOKENS tokens that begins at each token of a store.

    Parameters
    ----------
    store : TokenStore
        the posts.
    kinds : (vocabulary,)
        result of :func:`token_kinds`; passages of equal kinds have equal hashes.

    Returns
    -------
    (tokens,) uint64, one hash per token of the store; 0 where the post ends before the passage
    does, or the passage holds unknown letters.
    """
    return _row_hashes(store, kinds, PASSAGE_TOKENS)


def _row_hashes(store, kinds, length):
    """Hash the ``length`` tokens that begin at each token, see :func:`passage_hashes`."""
    hashes = np.zeros(len(store.tokens), np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**63, length, dtype=np.uint64) | np.uint64(1)
    for begin in range(0, store.posts, CHUNK_POSTS):
        offsets = store.post_offsets[begin : begin + CHUNK_POSTS + 1]
        chunk = slice(offsets[0], offsets[-1])
        kind = kinds[store.tokens[chunk]]
        rows = len(kind) - length + 1
        if rows <= 0:
            continue
        of_rows = hashes[chunk][:rows]
        is_whole = np.repeat(offsets[1:], np.diff(offsets))[:rows] >= length + np.arange(
            offsets[0], offsets[0] + rows
        )
        for place, factor in enumerate(factors):
            of_rows += kind[place : place + rows] * factor
            is_whole &= kind[place : place + rows] > 0
        of_rows[~is_whole] = 0
    return hashes


def covered(begins: np.ndarray, length: int, tokens: int) -> np.ndarray:
    """Tell which tokens are one of the ``length`` that begin at some places, (tokens,) bool.

    Parameters
    ----------
    begins : array of int
        places of tokens
    length, tokens : int
        number of tokens from each of these on, and number of all
    """
    is_covered = np.zeros(tokens, bool)
    for place in range(length):  # stays inside the post: shorter rests have hash 0
        is_covered[begins + place] = True
    return is_covered


def without_passages(
    store: TokenStore, kinds: np.ndarray, gallery_hashes: np.ndarray = np.empty(0, np.uint64)
) -> tuple[TokenStore, int]:
    """Remove the passages that stand in several posts.

    A post is dropped where less than MIN_OWN_SHARE of its tokens is left. An account may lose all
    posts; it then stays in the store without any.

    Parameters
    ----------
    store : TokenStore
        the posts.
    kinds : (vocabulary,)
        result of :func:`token_kinds`.
    gallery_hashes : array
        hashes from :func:`passage_hashes` of more passages to remove, such as those of a gallery.

    Returns
    -------
    The store in memory, and the number of removed tokens, those of dropped posts included.
    """
    hashes = passage_hashes(store, kinds)
    begins = np.flatnonzero(are_repeated(hashes, store.post_offsets, gallery_hashes))
    is_own = ~covered(begins, PASSAGE_TOKENS, len(hashes))
    lengths = np.diff(store.post_offsets)
    own_before = np.append(0, is_own.cumsum())
    own_lengths = np.diff(own_before[store.post_offsets])
    # what is left of a filled-in form is too little to show a style
    is_kept = own_lengths >= MIN_OWN_SHARE * lengths
    is_own &= np.repeat(is_kept, lengths)

    kept_before = np.append(0, is_kept.cumsum())
    of_posts = {name: getattr(store, name)[is_kept] for name in ("hour", "time", "topic")}
    kept_store = replace(
        store,
        tokens=np.asarray(store.tokens)[is_own],
        post_offsets=np.append(0, own_lengths[is_kept].cumsum()),
        author_offsets=kept_before[store.author_offsets],
        **of_posts,
    )
    return kept_store, int((~is_own).sum())


def tokens_in_form(store: TokenStore, kinds: np.ndarray, share: float) -> np.ndarray:
    """Tell which tokens (tokens,) are of a form that stands in a share of an account's posts.

    None of an account with fewer than MIN_FORM_POSTS posts is.

    Parameters
    ----------
    store, kinds
        as in :func:`without_passages`
    share : float
        of the account's posts, in two at least
    """
    hashes = _row_hashes(store, kinds, FORM_TOKENS)
    in_form = np.zeros(len(hashes), bool)
    for account in np.flatnonzero(store.posts_per_author() >= MIN_FORM_POSTS):
        posts = slice(store.author_offsets[account], store.author_offsets[account + 1] + 1)
        offsets = store.post_offsets[posts]
        tokens = slice(offsets[0], offsets[-1])
        lengths = np.diff(offsets)
        post = np.repeat(np.arange(len(lengths)), lengths)
        begins = np.flatnonzero(hashes[tokens])
        number, _ = pd.factorize(hashes[tokens][begins])
        of_posts = pd.unique(number * len(lengths) + post[begins])
        posts_of_number = np.bincount(of_posts // len(lengths))
        is_common = posts_of_number[number] >= max(share * len(lengths), 2)
        in_form[tokens] = covered(begins[is_common], FORM_TOKENS, len(post))
    return in_form


def are_repeated(
    hashes: np.ndarray, offsets: np.ndarray, gallery_hashes: np.ndarray = np.empty(0, np.uint64)
) -> np.ndarray:
    """Tell which hashes (tokens,) occur in two posts or accounts, or in the gallery; 0 never does.

    Parameters
    ----------
    hashes : (tokens,) uint64
        result of :func:`passage_hashes`
    offsets : array of int
        where the posts, or accounts, begin
    gallery_hashes : array of uint64
        of the gallery
    """
    is_repeated = np.zeros(len(hashes), bool)
    part_of_hash = (hashes % HASH_PARTS).astype(np.uint8)
    for part in range(HASH_PARTS):
        places = np.flatnonzero((part_of_hash == part) & (hashes > 0))
        owner = pd.Series(np.searchsorted(offsets, places, side="right"))
        by_hash = owner.groupby(hashes[places], sort=False)
        # a repetition within one post, "ha ha ha", is style and stays
        in_several = by_hash.transform("max") > by_hash.transform("min")
        gallery_part = gallery_hashes[gallery_hashes % HASH_PARTS == part]
        is_repeated[places] = in_several | np.isin(hashes[places], gallery_part)
    return is_repeated
