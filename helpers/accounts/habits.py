"""Habits that few others here have do not make strangers one person.

Two accounts are compared beside how alike each is with itself, and without words that are the habit
of few.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

from ..evaluation.models import Member
from ..evaluation.scores import Rows, cosine, pair_scores
from ..tokens.batch import Samples
from .samples import (
    MAX_TOKENS,
    PHRASE_SHARE,
    cut_in_half,
    in_memory,
    thinned,
    without_phrases,
    without_tokens,
)

# What few others here do (a frame of greetings, words of another kind of text) makes any two people
# who do it alike. But a person is about as much like an own second account as each of both is with
# itself, and two people are not: of 98 pairs of addresses of one person, on which nothing was
# fitted, nine of ten are above -.07. LIKENESS_WEIGHT times the logarithm of that ratio is added to
# the log-likelihood ratio, and where it is below UNLIKE, DOUBT times the difference is taken. The
# weight was chosen on 82 planted accounts of three communities, UNLIKE on 184
LIKENESS_WEIGHT = 4.0
MAX_LIKENESS = 0.3  # more adds no more: an account whose own halves differ is like many others
# Of an account with fewer posts little is certain: its halves look less alike than they are, so
# that others seem to be as like it. Likeness then adds nothing, and the highest likelihood ratio is
# lower by as much as posts are missing. Without both, of 742 pairs of halves of 1,020 accounts with
# 20 to 60 posts that had a probability of 95% and more, 21 were wrong, where 7 were expected
FEW_POSTS = 32
DOUBT = 40.0
UNLIKE = -0.03
DOUBT_MEMBERS = ("tfidf_subword", "lsa")
RARE_HABIT_SHARE = 0.05  # of the targets at most that use a word in PHRASE_SHARE of their posts
DOUBT_POSTS = 256  # of each account, evenly spread, are compared so, and in plain words
# Two people from another place, or with another kind of text, are alike beside all others, whoever
# they are. Both are far less like the others than these are like each other: so many standard
# deviations (of a normal distribution with their median and median deviation) below the median
# account. Of 153 pairs of accounts of one person in five communities none has both so low
OUTSIDER = -3.0
DOUBT_OF_OUTSIDERS = 10.0
COMPARED = 1000  # targets at most that say how like the others an account is
LEAST_SIMILARITY = 1e-6  # a smaller similarity of two accounts counts as this


def log_likeness(
    queries: tuple[Rows, Rows], targets: tuple[Rows, Rows], pairs: np.ndarray | None = None
) -> np.ndarray:
    """Compare how alike two accounts are with how alike each is with itself.

    The older posts of one account are compared with the newer ones of the other, both ways, and the
    higher similarity counts. Of the similarities of each account's own older and newer posts, the
    lower one does.

    Parameters
    ----------
    queries, targets : unit rows of the older posts (Q, D) and of the newer ones, and so of (T, D)
    pairs : (N, 2), rows of queries and of targets; by default all

    Returns
    -------
    (Q, T), or (N,) of listed pairs: the logarithm of the ratio of both similarities, below 0 where
    two accounts are less alike than each is with itself
    """
    own_of_query, own_of_target = (
        pair_scores(*halves, np.arange(halves[0].shape[0])[:, None].repeat(2, 1))
        for halves in (queries, targets)
    )
    if pairs is None:
        both_ways = [cosine(queries[0], targets[1]), cosine(queries[1], targets[0])]
        own = np.minimum(own_of_query[:, None], own_of_target)
    else:
        both_ways = [pair_scores(queries[way], targets[1 - way], pairs) for way in (0, 1)]
        own = np.minimum(own_of_query[pairs[:, 0]], own_of_target[pairs[:, 1]])
    likeness = np.maximum(*both_ways).clip(LEAST_SIMILARITY)
    return np.log(likeness / own.clip(LEAST_SIMILARITY))


def likeness_term(gallery, queries: Samples, pairs: np.ndarray | None = None) -> np.ndarray | float:
    """Return what likeness adds to log-likelihood ratios, see DOUBT and DOUBT_OF_OUTSIDERS.

    Parameters
    ----------
    gallery : AccountGallery
        of T targets; nothing is added if it does not normalise
    queries : Samples
        Q samples
    pairs : (N, 2)
        rows of queries and of targets; by default all

    Returns
    -------
    (Q, T), or (N,) of listed pairs
    """
    if not gallery.normalised:
        return 0.0
    likeness = [
        log_likeness(
            _rows_of_halves(gallery, queries, name),
            _rows_of_halves(gallery, gallery.targets, name),
            pairs,
        )
        for name in DOUBT_MEMBERS
    ]
    mean_likeness = np.mean(likeness, 0)
    most = np.where(fewer_posts(queries, gallery.targets, pairs) < FEW_POSTS, 0, MAX_LIKENESS)
    term = LIKENESS_WEIGHT * np.minimum(mean_likeness, most)
    term += DOUBT * np.minimum(mean_likeness - UNLIKE, 0)
    queries_outside, targets_outside = _are_outsiders(gallery, queries)
    if pairs is None:
        are_both = queries_outside[:, None] & targets_outside
    else:
        are_both = queries_outside[pairs[:, 0]] & targets_outside[pairs[:, 1]]
    return term - DOUBT_OF_OUTSIDERS * are_both


def fewer_posts(queries: Samples, targets: Samples, pairs: np.ndarray | None = None) -> np.ndarray:
    """Return the number of posts of the smaller account of each pair, (Q, T), or (N,) of listed.

    Parameters
    ----------
    queries, targets : Samples
        Q and T samples
    pairs : (N, 2)
        rows of queries and of targets; by default all
    """
    if pairs is None:
        return np.minimum(queries.count[:, None], targets.count)
    return np.minimum(queries.count[pairs[:, 0]], targets.count[pairs[:, 1]])


def _are_outsiders(gallery, queries):
    """Tell which queries (Q,) and which targets (T,) are far less like the targets than these."""
    from scipy.stats import median_abs_deviation  # takes long to import

    targets = gallery.encoder.vectors(gallery.targets, embeddings=gallery.embeddings)
    compared = targets[:: -(-len(targets) // COMPARED)]
    rows = gallery.encoder.vectors(queries, embeddings=gallery.embeddings)
    # the median does not depend on the account itself, nor on a few others who write like it
    of_targets = np.median(targets @ compared.T, 1)
    of_queries = np.median(rows @ compared.T, 1)
    lowest = np.median(of_targets) + OUTSIDER * median_abs_deviation(of_targets, scale="normal")
    return of_queries < lowest, of_targets < lowest


def _rows_of_halves(gallery, samples, name):
    """Return the rows of older and of newer posts by a member, phrases left out."""
    whole, rows = gallery.embeddings.whole(samples)
    if rows is not None and whole is gallery.targets:
        return tuple(half[rows] for half in _rows_of_halves(gallery, whole, name))
    member = Member(name, gallery.encoder.encoders[name], embeddings=gallery.embeddings)
    encoder = member.gallery(gallery.targets, MAX_TOKENS).encoder
    make = partial(cut_in_half, _without_phrases(gallery, samples))
    halves = gallery.embeddings.once(("halves", samples), make)
    return tuple(gallery.embeddings.of(encoder, half, MAX_TOKENS) for half in halves)


def _without_phrases(gallery, samples):
    """Return DOUBT_POSTS posts at most of each sample, without its phrases, made once."""
    make = partial(_thinned_without_phrases, samples, gallery.encoder.kinds)
    return gallery.embeddings.once(("without phrases", samples), make)


def _thinned_without_phrases(samples, kinds):
    return without_phrases(thinned(samples, DOUBT_POSTS), kinds)


def in_common_words(gallery, samples: Samples) -> Samples:
    """Return samples in plain words, without rare habits, made once for a gallery.

    A rare habit is a token that at most RARE_HABIT_SHARE of the targets use in PHRASE_SHARE of
    their posts: "u" for "you" where nobody else writes so.

    Parameters
    ----------
    gallery : AccountGallery
        of T targets
    samples : Samples
        N samples
    """
    key = ("in common words", gallery.targets, samples)
    whole, rows = gallery.embeddings.whole(samples)
    if rows is not None and whole is gallery.targets:
        of_targets = in_common_words(gallery, whole)
        return gallery.embeddings.once(key, partial(gallery.embeddings.some, of_targets, rows))
    plain = _plain(gallery, samples)
    is_rare = gallery.embeddings.once(
        ("rare habits", gallery.targets), partial(_rare_habits, gallery)
    )
    make = partial(without_habits, plain, is_rare)
    return gallery.embeddings.once(key, make)


def _plain(gallery, samples):
    """Return samples in plain words with all habits, made once."""
    make = partial(gallery.encoder.in_plain_words, _without_phrases(gallery, samples))
    return gallery.embeddings.once(("plain", samples), make)


def _rare_habits(gallery):
    """Tell which tokens are rare habits, see :func:`in_common_words`, (vocabulary,) bool."""
    habits = habits_of(_plain(gallery, gallery.targets), gallery.encoder.tokenizer.vocabulary)
    return habits.sum(0) <= max(RARE_HABIT_SHARE * len(gallery), 2)


def habits_of(samples: Samples, vocabulary: int) -> sparse.csr_array:
    """Tell which tokens stand in PHRASE_SHARE of the posts of a sample, (N, vocabulary) bool.

    Parameters
    ----------
    samples : Samples
        N samples
    vocabulary : int
        number of tokens
    """
    own = in_memory(samples)
    store = own.store
    cells = (np.ones(len(store.tokens)), store.tokens, store.post_offsets)
    in_posts = sparse.csr_array(cells, (store.posts, vocabulary), copy=True)
    in_posts.sum_duplicates()  # a post counts once
    cells = (np.ones(store.posts), np.arange(store.posts), np.append(own.first, store.posts))
    posts_of_sample = sparse.csr_array(cells)
    counts = (posts_of_sample @ in_posts.sign()).tocoo()
    is_habit = counts.data >= np.maximum(PHRASE_SHARE * own.count[counts.row], 2)
    cells = (counts.row[is_habit], counts.col[is_habit])
    return sparse.csr_array((np.ones(len(cells[0]), bool), cells), counts.shape)


def without_habits(samples: Samples, is_rare: np.ndarray) -> Samples:
    """Return samples without the tokens that are rare habits and habits of theirs.

    A post of nothing else stays as it is.

    Parameters
    ----------
    samples : Samples
        N samples
    is_rare : (vocabulary,) bool
        which tokens are habits of few
    """
    own = in_memory(samples)
    habits = habits_of(own, len(is_rare))
    lengths = np.diff(own.store.post_offsets)
    sample = np.repeat(np.repeat(np.arange(len(own)), own.count), lengths)
    is_habit = np.asarray(habits[sample, own.store.tokens]).ravel()
    is_own = ~(is_habit & is_rare[own.store.tokens])
    return replace(own, store=without_tokens(own.store, is_own))
