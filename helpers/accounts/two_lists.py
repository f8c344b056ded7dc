"""Two lists of accounts, each a gallery that the other one's accounts are asked in.

The score of a pair is the mean of both directions. How probabilities follow from scores is told in
:mod:`helpers.evaluation.matching`. Whatever is drawn or rounded is so in an order of the lists that
depends on their posts, so no answer depends on which of them is named first.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse

from ..core.paths import PROGRAM
from ..evaluation.matching import MatchConfig, as_pairs, estimate_overlap, sinkhorn
from ..evaluation.scores import Rows, as_rows, score_blocks
from .encoder import ENOUGH, AuthorEncoder
from .gallery import AccountGallery
from .passages import passage_hashes, without_passages
from .reading import FULL_GALLERY, OwnPosts
from .samples import MAX_TOKENS, MIN_POSTS, in_memory, spread_posts
from .scoring import HALF_POSTS
from .unjudged import BOTH_LISTS, set_aside_rows

LISTS = ("A", "B")
NEAREST = 100  # pairs of each account that are scored if a list has more than FULL_GALLERY accounts
MIN_FIT_POSTS = 2 * HALF_POSTS[0]  # of an account whose halves are compared
MAX_FIT_ACCOUNTS = 1000  # accounts whose halves are compared, drawn at random


def comparable_lists(a: OwnPosts, b: OwnPosts, kinds: np.ndarray) -> list[OwnPosts]:
    """Return two lists without what stands in both, whose hours count where both have them.

    Passages that stand word for word in both lists are removed; accounts that have too few posts
    left are set aside.

    Parameters
    ----------
    a, b : OwnPosts
        posts of both lists
    kinds : (vocabulary,)
        result of :func:`helpers.accounts.passages.token_kinds`

    Raises
    ------
    ValueError
        Only one of the lists has times.
    """
    if (a.card["columns"]["time"] is None) != (b.card["columns"]["time"] is None):
        raise ValueError(
            "only one of the files has times: name a time column of both, or of neither"
        )
    hours = a.hours and b.hours
    lists = []
    for posts, other_posts in ((a, b), (b, a)):
        store, _ = without_passages(posts.store, kinds, passage_hashes(other_posts.store, kinds))
        count = store.posts_per_author()
        is_new = (count < MIN_POSTS) & (posts.store.posts_per_author() >= MIN_POSTS)
        too_few = set_aside_rows(posts.names[is_new], count[is_new], BOTH_LISTS)
        set_aside = pd.concat([posts.set_aside, too_few], ignore_index=True)
        card = posts.card | {"posts_in_both": posts.store.posts - store.posts}
        changes = {"store": store, "set_aside": set_aside, "card": card, "hours": hours}
        lists.append(replace(posts, **changes))
    return lists


def is_in_order(a: OwnPosts, b: OwnPosts) -> bool:
    """Tell whether two lists stand in the order that their names and posts decide.

    Parameters
    ----------
    a, b : OwnPosts
        posts of both lists
    """
    sides = [(list(posts.names), int(posts.store.tokens.sum(dtype=np.int64))) for posts in (a, b)]
    return sides[0] <= sides[1]


def calibrated_on_list(
    encoder: AuthorEncoder, lists: list[OwnPosts]
) -> tuple[AuthorEncoder, str, int]:
    """Fit weights and calibration on halves of the accounts of one of two lists, if these do.

    It is the list with more accounts of MIN_FIT_POSTS posts. In both lists together, partners
    would count as two people: they would teach that likeness means little.

    Parameters
    ----------
    encoder : AuthorEncoder
        the encoder with the weights that ship
    lists : list of OwnPosts
        posts of both lists

    Returns
    -------
    An encoder, the list (one of LISTS) and the number of accounts that it was fitted on; where
    fewer than ENOUGH accounts of each list have so many posts, the given encoder, "" and 0
    """
    able = [np.flatnonzero(posts.store.posts_per_author() >= MIN_FIT_POSTS) for posts in lists]
    counts = [len(accounts) for accounts in able]
    number = int(np.argmax(counts))
    if counts[0] == counts[1] and not is_in_order(*lists):
        number = 1
    if counts[number] < ENOUGH:
        return encoder, "", 0
    posts = lists[number]
    accounts = np.random.default_rng(0).permutation(able[number])[:MAX_FIT_ACCOUNTS]
    store = in_memory(spread_posts(posts.store, np.sort(accounts))).store
    fitted = encoder.calibrated_on(store, posts.hours).fitted_for_lists(store, posts.hours)
    return fitted, LISTS[number], len(accounts)


def galleries_of_two(encoder: AuthorEncoder, lists: list[OwnPosts]) -> list[AccountGallery]:
    """Return the galleries of two lists, in which the accounts of the other one are asked.

    Parameters
    ----------
    encoder : AuthorEncoder
        embeds and scores the accounts
    lists : list of OwnPosts
        posts of both lists, without shared passages

    Raises
    ------
    ValueError
        A list has fewer than ENOUGH accounts.
    """
    galleries = []
    for letter, posts in zip(LISTS, lists, strict=True):
        samples = spread_posts(posts.store)
        if len(samples) < ENOUGH:
            raise ValueError(
                f"list {letter} has {len(samples)} accounts with enough posts that do not stand "
                f"word for word in the other list, too. Lists are matched from {ENOUGH} accounts "
                "on, since a score counts by how far it stands out among those of other accounts: "
                f"put both lists into one file, and ask `{PROGRAM} mine`"
            )
        galleries.append(posts.gallery(encoder, samples))
    for gallery, queries in (galleries, galleries[::-1]):  # no vectors are made twice
        for member in gallery.model.members:
            if member.name in queries.rows:
                rows = queries.rows[member.name]
                member.embeddings.put(member.encoder, queries.targets, MAX_TOKENS, rows)
    return galleries


def list_scores(galleries: list[AccountGallery], different: np.ndarray) -> sparse.coo_array:
    """Score the pairs that may be partners: all, or of larger lists the NEAREST of each account.

    Parameters
    ----------
    galleries : list of AccountGallery
        result of :func:`galleries_of_two`
    different : (K, 2) int
        rows of pairs that are known to be two people's
    """
    first, second = galleries
    shape = (len(first), len(second))
    if max(shape) > FULL_GALLERY:
        vectors = [
            as_rows(gallery.encoder.joined_rows(gallery.rows, gallery.hours))
            for gallery in galleries
        ]
        pairs = near_pairs(*vectors, NEAREST)
        pairs = pairs[~np.isin(pairs @ [shape[1], 1], different @ [shape[1], 1])]
        return sparse.coo_array((score_list_pairs(galleries, pairs), pairs.T), shape)
    scores = second.model.score_matrix(first.targets, second.targets, MAX_TOKENS)
    back = first.model.score_matrix(second.targets, first.targets, MAX_TOKENS)
    scores = (scores.astype(np.float64) + back.T) / 2
    scores[tuple(different.T)] = -np.inf
    return as_pairs(scores)


def near_pairs(first: Rows, second: Rows, nearest: int) -> np.ndarray:
    """Return the pairs (N, 2) of which one vector is among the nearest of the other.

    All pairs with the score of the last of the nearest are kept, so that the order of accounts
    never decides.

    Parameters
    ----------
    first, second : (Q, D) and (T, D)
        vectors of the accounts of both lists
    nearest : int
        number of pairs of each account
    """
    keys = []
    place = np.array([second.shape[0], 1])  # of a row of each list in the number of a pair
    for queries, targets, of_row in ((first, second, place), (second, first, place[::-1])):
        for part, scores in score_blocks(queries, targets):
            last = max(targets.shape[0] - nearest, 0)
            lowest = np.partition(scores, last, axis=1)[:, [last]]
            pairs = np.argwhere(scores >= lowest) + [part.start, 0]
            keys.append(pairs @ of_row)
    return np.stack(np.divmod(np.unique(np.concatenate(keys)), place[0]), 1)


def score_list_pairs(galleries: list[AccountGallery], pairs: np.ndarray) -> np.ndarray:
    """Score pairs of rows of two galleries in both directions, and return the means (N,).

    Parameters
    ----------
    galleries : list of AccountGallery
        result of :func:`galleries_of_two`
    pairs : (N, 2) int
        a row of each gallery
    """
    first, second = galleries
    scores = second.model.pair_scores(first.targets, second.targets, pairs, MAX_TOKENS)
    back = first.model.pair_scores(second.targets, first.targets, pairs[:, ::-1], MAX_TOKENS)
    return (scores.astype(np.float64) + back) / 2


def match_pairs(
    scores: sparse.coo_array, config: MatchConfig, overlap: float = 0.0, is_in_order: bool = True
) -> tuple[sparse.coo_array, float]:
    """Match two lists.

    Parameters
    ----------
    scores : (Q, T)
        scores of the pairs of both lists that may be partners
    config : MatchConfig
        line of the log-weights
    overlap : float
        share of the shorter list that has a partner; 0 to estimate it
    is_in_order : bool
        whether rows are scaled first, else columns

    Returns
    -------
    The probabilities, (Q, T) sparse, of which each account has at most one that is far above one
    half; and the overlap
    """
    if not is_in_order:
        swapped, overlap = match_pairs(scores.T, config, overlap)
        return swapped.T, overlap
    if not overlap:
        overlap = estimate_overlap(scores, config)
    return sinkhorn(scores, config, overlap), overlap
