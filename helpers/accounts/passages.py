"""Passages that several posts share word for word, and accounts without them.

Signatures, forms, copied footers and unmarked quotes would make accounts alike that share nothing
else.
"""

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from helpers.tokens.store import TokenStore

PASSAGE_TOKENS = 8  # what is repeated at this length is a form or a copy
MIN_OWN_SHARE = 0.25  # of a post's tokens
CHUNK_POSTS = 2**15  # whose passages are hashed at a time
HASH_PARTS = 16  # in which hashes are compared, as sorting takes memory


def token_kinds(tokenizer) -> np.ndarray:
    """Return a kind of each token, (vocabulary,) uint64.

    Each token is its own kind, but 1 are all that hold a digit, and 0 is that of unknown letters.
    Forms differ in their numbers; and texts in letters that the tokenizer does not know would all
    be one passage.
    """
    pieces = [tokenizer.piece(token) for token in range(tokenizer.vocabulary)]
    has_digit = [bool(re.search(r"\d", piece)) for piece in pieces]
    kinds = np.where(has_digit, 1, np.arange(2, tokenizer.vocabulary + 2)).astype(np.uint64)
    kinds[["\ufffd" in piece for piece in pieces]] = 0
    return kinds


def passage_hashes(store: TokenStore, kinds: np.ndarray) -> np.ndarray:
    """Hash the passage that begins at each token.

    Parameters
    ----------
    store : TokenStore
        of the posts.
    kinds : (vocabulary,)
        of :func:`token_kinds`.

    Returns
    -------
    (tokens,) uint64, 0 where a post ends before the passage does, or the passage holds unknown
    letters.
    """
    length = PASSAGE_TOKENS
    hashes = np.zeros(len(store.tokens), np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**63, length, dtype=np.uint64) | np.uint64(1)
    for begin in range(0, store.posts, CHUNK_POSTS):
        offsets = store.post_offsets[begin : begin + CHUNK_POSTS + 1]
        chunk = slice(offsets[0], offsets[-1])
        kind = kinds[store.tokens[chunk]]
        passages = len(kind) - length + 1
        if passages <= 0:
            continue

        chunk_hashes = hashes[chunk]
        for place, factor in enumerate(factors):
            chunk_hashes[:passages] += kind[place : place + passages] * factor
        tokens_left = np.repeat(offsets[1:], np.diff(offsets)) - np.arange(offsets[0], offsets[-1])
        chunk_hashes[tokens_left < length] = 0
        unknown_before = np.concatenate([[0], np.cumsum(kind == 0)])
        has_unknown = unknown_before[length:] > unknown_before[:-length]
        chunk_hashes[:passages][has_unknown] = 0
    return hashes


def without_passages(
    store: TokenStore, kinds: np.ndarray, gallery_hashes: np.ndarray = np.empty(0, np.uint64)
) -> tuple[TokenStore, int]:
    """Take out what is no account's own: passages that stand in several posts.

    A post of which less than MIN_OWN_SHARE is left is no post of the store any more.

    Parameters
    ----------
    store : TokenStore
        of the posts.
    kinds : (vocabulary,)
        of :func:`token_kinds`; numbers are all the same.
    gallery_hashes : array
        of :func:`passage_hashes`, of passages that are taken out too, such as those of a gallery.

    Returns
    -------
    The store in memory, and the number of tokens taken out.
    """
    hashes = passage_hashes(store, kinds)
    begins = np.flatnonzero(_is_repeated(hashes, store.post_offsets, gallery_hashes))
    is_own = np.ones(len(store.tokens), bool)
    for place in range(PASSAGE_TOKENS):  # a passage ends within its post
        is_own[begins + place] = False

    lengths = np.diff(store.post_offsets)
    own_before = np.concatenate([[0], is_own.cumsum(dtype=np.int64)])
    own_lengths = np.diff(own_before[store.post_offsets])
    # of a form that is filled in little is left, and nobody's style
    is_kept = own_lengths >= MIN_OWN_SHARE * lengths
    is_own &= np.repeat(is_kept, lengths)

    kept_before = np.concatenate([[0], is_kept.cumsum()])
    kept_store = replace(
        store,
        tokens=np.asarray(store.tokens)[is_own],
        post_offsets=np.concatenate([[0], own_lengths[is_kept].cumsum()]),
        author_offsets=kept_before[store.author_offsets],
        hour=np.asarray(store.hour)[is_kept],
        time=np.asarray(store.time)[is_kept],
        topic=np.asarray(store.topic)[is_kept],
    )
    return kept_store, int((~is_own).sum())


def _is_repeated(hashes, post_offsets, gallery_hashes):
    """Tell which hashes (tokens,) stand in two posts or more, or in the gallery; 0 never does."""
    is_repeated = np.zeros(len(hashes), bool)
    part_of_hash = (hashes % HASH_PARTS).astype(np.uint8)
    for part in range(HASH_PARTS):
        places = np.flatnonzero((part_of_hash == part) & (hashes > 0))
        post = pd.Series(np.searchsorted(post_offsets, places, side="right"))
        by_hash = post.groupby(hashes[places])
        # in one post "ha ha ha" is style
        in_several = by_hash.transform("max") > by_hash.transform("min")
        gallery_part = gallery_hashes[gallery_hashes % HASH_PARTS == part]
        is_repeated[places] = in_several | np.isin(hashes[places], gallery_part)
    return is_repeated
