"""Words that two accounts share because of their topic, and a score without them."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from helpers.accounts.gallery import LINK_COSTS, AccountGallery
from helpers.accounts.samples import (
    UNKNOWN_TOPIC,
    concatenate_samples,
    in_memory,
    rooms_of,
    texts_of,
    whole_accounts,
)
from helpers.cleaning.text import WORD
from helpers.evaluation.detection import DetectionCosts
from helpers.tokens.batch import Samples

MAX_P_VALUE = 0.001
MIN_RATE_RATIO = 2  # of the posts that hold a word in the shared rooms and elsewhere
MIN_OTHER_ACCOUNTS = 3  # that use a word in the shared rooms


class _WordCounts(NamedTuple):
    """Counts of posts: the posts that hold each word (W,), and all of them."""

    holding: np.ndarray
    posts: int


def topic_words(gallery: AccountGallery, query: Samples, target: str, name: str = "") -> list[str]:
    """List words that two accounts share because they write about the same topic.

    They are the words that both use in rooms where both write, if other accounts' posts hold them
    there MIN_RATE_RATIO times as often as elsewhere, MIN_OTHER_ACCOUNTS of them or more, and
    neither of the two holds them more often than these: typical of the room, of neither account.
    Both are one-sided hypergeometric tests of posts, at MAX_P_VALUE.

    Parameters
    ----------
    gallery, query, target, name : AccountGallery
        as in :func:`helpers.accounts.contributions.contributions`.

    Returns
    -------
    Words in lower case. None where no room is shared or known, or everybody writes in the same:
    then nothing tells topic from habit.
    """
    # a second, which a first embedding need not wait for
    from sklearn.feature_extraction.text import CountVectorizer

    target_row, query_row = gallery.columns([target, name])
    store = concatenate_samples(query, gallery.targets).store
    account = np.repeat(np.arange(store.authors), store.posts_per_author()) - 1  # -1: the query
    masks = _post_masks(rooms_of(store), account, target_row, query_row)
    others_here = masks["others_here"]
    if not (others_here.any() and masks["others_elsewhere"].any()):
        return []

    counter = CountVectorizer(binary=True, analyzer=_words)
    texts = texts_of(store, np.arange(store.posts), gallery.encoder.tokenizer)
    holds = counter.fit_transform(texts)
    columns = np.flatnonzero(_is_typical(holds, masks))
    names = counter.get_feature_names_out()
    words = []
    for column in columns:
        is_used = holds[others_here][:, [column]].toarray()[:, 0] > 0
        if len(np.unique(account[others_here][is_used])) >= MIN_OTHER_ACCOUNTS:
            words.append(names[column])
    return words


def _post_masks(rooms, account, target, query_row):
    """Part posts by who wrote them, and whether in a room in which both accounts write ("here")."""
    of_query = account == -1
    of_target = account == target
    of_others = ~np.isin(account, [-1, target, query_row])
    shared_rooms = set(rooms[of_query]) & set(rooms[of_target]) - {UNKNOWN_TOPIC}
    in_shared_room = np.isin(rooms, list(shared_rooms))
    return {
        "others_here": of_others & in_shared_room,
        "others_elsewhere": of_others & ~in_shared_room & (rooms != UNKNOWN_TOPIC),
        "query_here": of_query & in_shared_room,
        "target_here": of_target & in_shared_room,
    }


def _words(text):
    return [match[0].lower() for match in WORD.finditer(text) if not match[1]]


def _is_typical(holds, masks):
    """Tell which words (W,) are typical of the shared rooms, and of neither of the two accounts.

    holds : (posts, W) sparse, which posts hold which words.
    """
    counts = {}
    for part, mask in masks.items():
        counts[part] = _WordCounts(np.asarray(holds[mask].sum(0))[0], mask.sum())
    crowd = counts["others_here"]
    elsewhere = counts["others_elsewhere"]
    least_rate = MIN_RATE_RATIO * elsewhere.holding / elsewhere.posts
    typical = _p_value(crowd, elsewhere) < MAX_P_VALUE
    typical &= crowd.holding / crowd.posts >= least_rate
    for account in (counts["query_here"], counts["target_here"]):
        typical &= (account.holding > 0) & (_p_value(account, crowd) >= MAX_P_VALUE)
    return typical


def _p_value(sample, remainder):
    """Return how likely that many posts of a sample hold a word (W,), were all dealt anew."""
    posts = sample.posts + remainder.posts
    holding = sample.holding + remainder.holding
    return hypergeom.sf(sample.holding - 1, posts, holding, sample.posts)


def without_words(
    gallery: AccountGallery,
    query: Samples,
    target: str,
    words: Collection[str],
    name: str = "",
    costs: DetectionCosts = LINK_COSTS,
) -> pd.Series:
    """Rank a pair again after words are erased from its posts; all other accounts stay as they are.

    Parameters
    ----------
    gallery, query, target, name : AccountGallery
        as in :func:`helpers.accounts.contributions.contributions`.
    words : Collection[str]
        in lower case, such as those of :func:`topic_words`.
    costs : DetectionCosts
        the costs of a link.

    Returns
    -------
    The target's row of :meth:`~helpers.accounts.gallery.AccountGallery.rank`.
    """
    tokenizer = gallery.encoder.tokenizer
    query = _erase_words(query, words, tokenizer)
    changed_target = _erase_words(gallery.accounts([target]), words, tokenizer)
    if name in gallery.names:
        changed = gallery.exchanged(concatenate_samples(query, changed_target), [name, target])
    else:
        changed = gallery.exchanged(changed_target, [target])
    ranking = changed.rank(query, [name], len(changed), costs)
    return ranking.set_index("target").loc[target]


def _erase_words(samples, words, tokenizer):
    store = in_memory(samples).store
    kept_posts = []
    for post in np.split(store.tokens, store.post_offsets[1:-1]):
        pieces = [tokenizer.piece(token) for token in post]
        kept_posts.append(post[~pieces_of_words(pieces, words)])
    post_offsets = np.cumsum([0, *(len(post) for post in kept_posts)])
    return whole_accounts(
        replace(store, tokens=np.concatenate(kept_posts), post_offsets=post_offsets)
    )


def pieces_of_words(pieces: list[str], words: Collection[str]) -> np.ndarray:
    """Tell which pieces of a post are part of one of the words.

    Parameters
    ----------
    pieces : list[str]
        N texts that make up the post.
    words : Collection[str]
        in lower case.

    Returns
    -------
    (N,) bool.
    """
    in_word = np.zeros(sum(len(piece) for piece in pieces), bool)  # of each letter
    for match in WORD.finditer("".join(pieces)):
        in_word[match.start() : match.end()] = match[0].lower() in words
    piece_ends = np.cumsum([len(piece) for piece in pieces])
    letters_of_piece = np.split(in_word, piece_ends)[: len(pieces)]
    return np.array([letters.any() for letters in letters_of_piece], bool)
