"""Find the words that two accounts share because of their topic."""

from collections import Counter
from collections.abc import Collection

import numpy as np
from scipy.stats import hypergeom

from ..cleaning.text import WORD
from ..tokens.batch import Samples
from .gallery import AccountGallery
from .samples import UNKNOWN_TOPIC, in_memory, rooms_of, texts_of

MAX_P_VALUE = 0.001  # small, because thousands of words are tested
MIN_RATE_RATIO = 2  # share of posts with a word in the shared rooms, over that share elsewhere
MIN_OTHER_ACCOUNTS = 3  # so many other accounts must use a word in the shared rooms
MAX_OTHER_POSTS = 20_000  # posts of other accounts that are counted, drawn at random if more
OF_QUERY = -1  # stands for the account of the query


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
    target_row, query_row = gallery.columns([target, name])
    stores = [in_memory(samples).store for samples in (query, gallery.targets)]
    rooms = np.concatenate([rooms_of(store) for store in stores])
    accounts = np.repeat(np.arange(len(gallery)), stores[1].posts_per_author())
    account = np.append(np.full(stores[0].posts, OF_QUERY), accounts)
    groups = _groups_of_posts(rooms, account, target_row, query_row)
    if not (len(groups["others_here"]) and len(groups["others_elsewhere"])):
        return []

    words = {}
    tokenizer = gallery.encoder.tokenizer
    for group in ("query_here", "target_here"):
        words[group] = _words_of_posts(stores, groups[group], tokenizer)
    shared = set().union(*words["query_here"]) & set().union(*words["target_here"])
    if not shared:
        return []
    groups |= _drawn_others(groups)
    for group in ("others_here", "others_elsewhere"):
        words[group] = _words_of_posts(stores, groups[group], tokenizer)
    accounts_of_word = {word: set() for word in shared}
    for number, words_of_post in zip(account[groups["others_here"]], words["others_here"]):
        for word in words_of_post & shared:
            accounts_of_word[word].add(number)
    counts = {group: _PostCounts(posts, shared) for group, posts in words.items()}
    return [
        word
        for word in sorted(shared)
        if len(accounts_of_word[word]) >= MIN_OTHER_ACCOUNTS and _is_typical(word, counts)
    ]


def _groups_of_posts(rooms, account, target, query_row):
    """Return the numbers of the posts of each group of writers, in rooms of both accounts or not.

    "here" are the rooms where both write, "elsewhere" all other known rooms.
    """
    of_query = account == OF_QUERY
    of_target = account == target
    of_others = ~np.isin(account, [OF_QUERY, target, query_row])
    shared_rooms = set(rooms[of_query]) & set(rooms[of_target]) - {UNKNOWN_TOPIC}
    in_shared_room = np.isin(rooms, list(shared_rooms))
    masks = {
        "others_here": of_others & in_shared_room,
        "others_elsewhere": of_others & ~in_shared_room & (rooms != UNKNOWN_TOPIC),
        "query_here": of_query & in_shared_room,
        "target_here": of_target & in_shared_room,
    }
    return {group: np.flatnonzero(mask) for group, mask in masks.items()}


def _drawn_others(groups):
    """Return the posts of others here and elsewhere, of which at most MAX_OTHER_POSTS are drawn."""
    of_others = np.union1d(groups["others_here"], groups["others_elsewhere"])
    drawn = np.random.default_rng(0).permutation(of_others)[:MAX_OTHER_POSTS]
    names = ("others_here", "others_elsewhere")
    return {group: np.intersect1d(groups[group], drawn) for group in names}


def _words_of_posts(stores, numbers, tokenizer):
    """Return the set of words of each post; ``numbers``, in order, count the posts of two stores.

    Words are in lower case; placeholders such as those of links are none.
    """
    of_first = numbers < stores[0].posts
    texts = texts_of(stores[0], numbers[of_first], tokenizer)
    texts += texts_of(stores[1], numbers[~of_first] - stores[0].posts, tokenizer)
    return [{match[0].lower() for match in WORD.finditer(text) if not match[1]} for text in texts]


class _PostCounts:
    """How many posts of a group there are, and how many of them hold each word."""

    def __init__(self, words_of_posts, counted):
        self.posts = len(words_of_posts)
        self.holding = Counter()
        for words in words_of_posts:
            self.holding.update(words & counted)

    def rate(self, word):
        """Return the share of posts with a word."""
        return self.holding[word] / self.posts


def _is_typical(word, counts):
    """Tell whether a word is typical of the shared rooms and of neither account."""
    crowd = counts["others_here"]
    elsewhere = counts["others_elsewhere"]
    if _p_value(word, crowd, elsewhere) >= MAX_P_VALUE:
        return False
    if crowd.rate(word) < MIN_RATE_RATIO * elsewhere.rate(word):
        return False
    accounts = (counts["query_here"], counts["target_here"])
    return all(_p_value(word, account, crowd) >= MAX_P_VALUE for account in accounts)


def _p_value(word, sample, remainder):
    """Return the p-value of a one-sided hypergeometric test for a word.

    It is the probability that at least so many posts of ``sample`` hold the word if the posts of
    ``sample`` and ``remainder`` were assigned to the two at random.
    """
    posts = sample.posts + remainder.posts
    holding = sample.holding[word] + remainder.holding[word]
    return hypergeom.sf(sample.holding[word] - 1, posts, holding, sample.posts)


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
