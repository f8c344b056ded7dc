"""Find the words that two accounts share because of their topic, and score them without these."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from ..cleaning.text import WORD
from ..evaluation.detection import DetectionCosts
from ..tokens.batch import Samples
from .gallery import LINK_COSTS, AccountGallery
from .samples import (
    UNKNOWN_TOPIC,
    concatenate_samples,
    in_memory,
    rooms_of,
    texts_of,
    whole_accounts,
)

MAX_P_VALUE = 0.001  # small, because thousands of words are tested
MIN_RATE_RATIO = 2  # share of posts with a word in the shared rooms, over that share elsewhere
MIN_OTHER_ACCOUNTS = 3  # so many other accounts must use a word in the shared rooms
MAX_OTHER_POSTS = 20_000  # posts of other accounts that are counted, drawn at random if more


class _WordCounts(NamedTuple):
    """For one part of the posts: how many hold each of W words, (W,), and how many there are."""

    holding: np.ndarray
    posts: int


def topic_words(gallery: AccountGallery, query: Samples, target: str, name: str = "") -> list[str]:
    """List the words that two accounts share because they write about the same topic.

    Only rooms in which both accounts write are looked at, and words that both use there. Such a
    word is listed if it is typical of these rooms, and of neither account:

    - at least MIN_OTHER_ACCOUNTS other accounts use it there;
    - the share of other accounts' posts that hold it is at least MIN_RATE_RATIO times as large
      there as in other rooms, and significantly larger;
    - neither of the two accounts uses it significantly more often there than the others.

    Significance is that of a one-sided hypergeometric test of numbers of posts, at MAX_P_VALUE.

    Parameters
    ----------
    gallery, query, target, name : AccountGallery, Samples, str, str
        as in :func:`helpers.accounts.contributions.contributions`.

    Returns
    -------
    The words in lower case. The list is empty where the two share no known room, or the other
    accounts have no posts in these rooms or none in other ones: topic and habit cannot be told
    apart then.
    """
    # imported here because it takes a second, which the rest of this room need not wait for
    from sklearn.feature_extraction.text import CountVectorizer

    target_row, query_row = gallery.columns([target, name])
    store = concatenate_samples(query, gallery.targets).store
    account = np.repeat(np.arange(store.authors), store.posts_per_author()) - 1  # -1: the query
    masks = _post_masks(rooms_of(store), account, target_row, query_row)
    others_here = masks["others_here"]
    if not (others_here.any() and masks["others_elsewhere"].any()):
        return []

    tokenizer = gallery.encoder.tokenizer
    shared = _words_of(store, masks["query_here"], tokenizer)
    shared &= _words_of(store, masks["target_here"], tokenizer)
    if not shared:
        return []
    counted = _counted_posts(masks)
    masks = {part: mask[counted] for part, mask in masks.items()}
    account = account[counted]
    others_here = masks["others_here"]
    counter = CountVectorizer(binary=True, analyzer=_words, vocabulary=sorted(shared))
    holds = counter.transform(texts_of(store, counted, tokenizer))
    columns = np.flatnonzero(_is_typical(holds, masks))
    names = counter.get_feature_names_out()
    words = []
    for column in columns:
        is_used = holds[others_here][:, [column]].toarray()[:, 0] > 0
        if len(np.unique(account[others_here][is_used])) >= MIN_OTHER_ACCOUNTS:
            words.append(names[column])
    return words


def _post_masks(rooms, account, target, query_row):
    """Return a mask of posts for each group of writers, in rooms where both accounts write or not.

    "here" are the rooms where both write, "elsewhere" all other known rooms.
    """
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


def _words_of(store, mask, tokenizer):
    """Return all words of some posts."""
    texts = texts_of(store, np.flatnonzero(mask), tokenizer)
    return {word for text in texts for word in _words(text)}


def _counted_posts(masks):
    """Return the numbers of all posts of both accounts, and of at most MAX_OTHER_POSTS others."""
    of_others = np.flatnonzero(masks["others_here"] | masks["others_elsewhere"])
    other_posts = np.random.default_rng(0).permutation(of_others)[:MAX_OTHER_POSTS]
    of_both = np.flatnonzero(masks["query_here"] | masks["target_here"])
    return np.sort(np.concatenate([of_both, other_posts]))


# Return the words of a text in lower case, without placeholders such as those of links.
def _words(text):
    return [match[0].lower() for match in WORD.finditer(text) if not match[1]]


def _is_typical(holds, masks):
    """Tell which of W words, (W,), are typical of the shared rooms and of neither account.

    ``holds`` is a sparse matrix (posts, W) that says which posts hold which words; ``masks`` is the
    result of :func:`_post_masks`.
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
    """Return the p-value (W,) of a one-sided hypergeometric test for each of W words.

    It is the probability that at least so many posts of ``sample`` hold the word if the posts of
    ``sample`` and ``remainder`` were assigned to the two at random.
    """
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
    """Rank a target for a query again after words are erased from the posts of both.

    All other accounts of the gallery stay as they are, and so do terms and idf of its TF-IDFs and
    the statistics that normalise the scores of these accounts.

    Parameters
    ----------
    gallery, query, target, name : AccountGallery, Samples, str, str
        as in :func:`helpers.accounts.contributions.contributions`.
    words : Collection[str]
        words in lower case, such as those that :func:`topic_words` returns.
    costs : DetectionCosts
        as in :meth:`~helpers.accounts.gallery.AccountGallery.rank`.

    Returns
    -------
    The target's row of :meth:`~helpers.accounts.gallery.AccountGallery.rank`.
    """
    tokenizer = gallery.encoder.tokenizer
    query = _erase_words(query, words, tokenizer)
    changed_target = _erase_words(gallery.accounts([target]), words, tokenizer)
    if name in gallery.names:
        both = concatenate_samples(query, changed_target)
        changed = gallery.exchanged(both, [name, target], keep_fitted=True)
    else:
        changed = gallery.exchanged(changed_target, [target], keep_fitted=True)
    ranking = changed.rank(query, [name], len(changed), costs)
    return ranking.set_index("target").loc[target]


# Copy samples without the tokens that are part of one of the words.
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
    """Tell which pieces of a post are part of one of the given words.

    Parameters
    ----------
    pieces : list[str]
        N texts, which make up the post when they are joined.
    words : Collection[str]
        words in lower case.

    Returns
    -------
    (N,) bool, True also for a piece that holds only a part of a word.
    """
    in_word = np.zeros(sum(len(piece) for piece in pieces), bool)  # one per letter of the post
    for match in WORD.finditer("".join(pieces)):
        in_word[match.start() : match.end()] = match[0].lower() in words
    piece_ends = np.cumsum([len(piece) for piece in pieces])
    letters_of_piece = np.split(in_word, piece_ends)[: len(pieces)]
    return np.array([letters.any() for letters in letters_of_piece], bool)
