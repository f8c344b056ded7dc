"""Find passages that several posts share word for word, and remove them.

Signatures, forms, copied footers and unmarked quotes would make accounts look alike that share
nothing else.
"""

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from ..tokens.store import TokenStore

# Length of a passage: a repetition of so many tokens is a form or a copy. In another language than
# English they are only three words. With 24 tokens Spanish accounts rank higher, but fewer of the
# likeliest pairs are one person's: formulas of one office then count as style.
PASSAGE_TOKENS = 8
MIN_OWN_SHARE = 0.25  # a post is dropped if less than this share of its tokens is left
CHUNK_POSTS = 2**15  # posts that are hashed at a time, to save memory
FORM_TOKENS = 3  # in a row that stand in many posts of an account are part of a form,
FORM_SHARE = 0.25  # of its posts at least
MIN_FORM_POSTS = 8  # of an account whose form is looked for
HASH_PARTS = 16  # hashes are compared in so many parts, because sorting takes memory


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
    begins = np.flatnonzero(_is_repeated(hashes, store.post_offsets, gallery_hashes))
    is_own = np.ones(len(store.tokens), bool)
    for place in range(PASSAGE_TOKENS):  # stays inside the post: shorter rests have hash 0
        is_own[begins + place] = False

    lengths = np.diff(store.post_offsets)
    own_before = np.concatenate([[0], is_own.cumsum(dtype=np.int64)])
    own_lengths = np.diff(own_before[store.post_offsets])
    # what is left of a filled-in form is too little to show a style
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


def posts_of_one_form(store: TokenStore, kinds: np.ndarray) -> np.ndarray:
    """Count the posts of one form of accounts most of whose posts are, as those of programs.

    Some people write so, too: of 1,125 authors of commit messages 7 do.

    A token is of a form if FORM_TOKENS tokens in a row, it among them, stand in at least
    FORM_SHARE of the account's posts, numbers being equal. A post is of a form if more than half of
    its tokens are, an account if more than half of its posts are; none is where most accounts are.
    How posts end in several accounts, as with the footer of a company, does not count.

    Parameters
    ----------
    store : TokenStore
        the posts.
    kinds : (vocabulary,)
        result of :func:`token_kinds`.

    Returns
    -------
    (authors,) int, 0 for all other accounts
    """
    counts = _count_posts_in_form(store, kinds)
    if counts.any():
        without_footers = _count_posts_in_form(_without_footers(store, kinds), kinds)
        counts[without_footers == 0] = 0
    # a form of most accounts is one of the place, in which people write
    if (counts > 0).mean() > 0.5:
        return np.zeros_like(counts)
    return counts


def _without_footers(store, kinds):
    """Cut the end of each post that several accounts share, unless nothing is left of the post."""
    hashes = passage_hashes(store, kinds)
    account_offsets = store.post_offsets[store.author_offsets]
    begins = np.flatnonzero(_is_repeated(hashes, account_offsets))
    is_shared = np.zeros(len(hashes), bool)
    for place in range(PASSAGE_TOKENS):
        is_shared[begins + place] = True

    places = np.arange(len(hashes))
    last_own = np.maximum.accumulate(np.where(is_shared, -1, places))
    post_begins, post_ends = store.post_offsets[:-1], store.post_offsets[1:]
    lengths = post_ends - post_begins
    own_lengths = last_own[post_ends - 1] + 1 - post_begins
    own_lengths = np.where(own_lengths > 0, own_lengths, lengths)
    is_own = places < np.repeat(post_begins + own_lengths, lengths)
    return replace(
        store,
        tokens=np.asarray(store.tokens)[is_own],
        post_offsets=np.concatenate([[0], own_lengths.cumsum()]),
    )


def _count_posts_in_form(store, kinds):
    """Return the number of posts of one form of each account, (authors,), 0 if not most are."""
    counts = np.zeros(store.authors, int)
    for account in np.flatnonzero(store.posts_per_author() >= MIN_FORM_POSTS):
        posts = slice(store.author_offsets[account], store.author_offsets[account + 1] + 1)
        offsets = store.post_offsets[posts]
        kind = kinds[store.tokens[offsets[0] : offsets[-1]]]
        lengths = np.diff(offsets)
        in_form = _posts_in_form(kind, lengths)
        if in_form > len(lengths) / 2:
            counts[account] = in_form
    return counts


def _posts_in_form(kind, lengths):
    """Return the number of one account's posts that are of a form; ``kind`` (tokens,)."""
    post = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.arange(max(len(kind) - FORM_TOKENS + 1, 0))
    begins = begins[post[begins] == post[begins + FORM_TOKENS - 1]]
    in_row = [kind[begins + place].astype(np.int64) for place in range(FORM_TOKENS)]
    is_known = np.all(in_row, axis=0)  # all unknown letters look the same
    begins = begins[is_known]
    if not len(begins):
        return 0
    code = np.ravel_multi_index(in_row, [kind.max() + 1] * FORM_TOKENS)[is_known]
    _, number = np.unique(code, return_inverse=True)
    of_posts = np.unique(number * len(lengths) + post[begins])
    posts_of_number = np.bincount(of_posts // len(lengths))
    is_common = posts_of_number[number] >= FORM_SHARE * len(lengths)
    in_form = np.zeros(len(kind), bool)
    for place in range(FORM_TOKENS):
        in_form[begins[is_common] + place] = True
    tokens_in_form = np.bincount(post[in_form], minlength=len(lengths))
    return int((tokens_in_form > lengths / 2).sum())


def _is_repeated(hashes, offsets, gallery_hashes=np.empty(0, np.uint64)):
    """Tell which hashes (tokens,) occur in two posts or accounts, or in the gallery; 0 never does.

    The posts, or accounts, begin at ``offsets``.
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
