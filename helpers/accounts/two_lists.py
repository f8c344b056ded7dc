"""Compare the accounts of two lists: log-odds of their pairs, and the match of all together.

Each list is a gallery in which the accounts of the other one are asked, and the log-odds of a pair
are the mean of both directions. In two lists a person has one account each at most, so all pairs
are decided together, see :mod:`helpers.evaluation.matching`.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse

from ..core.paths import PROGRAM
from ..evaluation.matching import MatchConfig, as_pairs, estimate_overlap, sinkhorn
from ..evaluation.models import Embeddings
from ..evaluation.scores import Rows, as_rows, score_blocks
from .encoder import ENOUGH, AuthorEncoder
from .gallery import AccountGallery
from .reading import FULL_GALLERY, OwnPosts
from .samples import MIN_POSTS, passage_hashes, spread_posts, without_passages
from .unjudged import BOTH_LISTS, set_aside_rows

LISTS = ("A", "B")
NEAREST = 100  # pairs of each account that are scored if a list has more than FULL_GALLERY accounts
LOG_ODDS = MatchConfig(1.0, 0.0)  # the log-weight of a pair is its log-odds


def comparable_lists(a: OwnPosts, b: OwnPosts, kinds: np.ndarray) -> list[OwnPosts]:
    """Return two lists without what stands in both, whose hours count where both have them.

    Passages that stand word for word in both lists are removed; accounts that have too few posts
    left are set aside.

    Parameters
    ----------
    a, b : OwnPosts
        posts of both lists
    kinds : (vocabulary,)
        result of :func:`helpers.accounts.samples.token_kinds`

    Raises
    ------
    ValueError
        Only one of the lists has times.
    """
    if (a.card["columns"]["time"] is None) != (b.card["columns"]["time"] is None):
        raise ValueError(
            "only one of the files has times: name a time column of both, or of neither"
        )
    lists = []
    for posts, other_posts in ((a, b), (b, a)):
        store, _ = without_passages(posts.store, kinds, passage_hashes(other_posts.store, kinds))
        count = store.posts_per_author()
        is_new = (count < MIN_POSTS) & (posts.store.posts_per_author() >= MIN_POSTS)
        too_few = set_aside_rows(posts.names[is_new], count[is_new], BOTH_LISTS)
        set_aside = pd.concat([posts.set_aside, too_few], ignore_index=True)
        card = posts.card | {"posts_in_both": posts.store.posts - store.posts}
        hours = a.hours and b.hours
        lists.append(replace(posts, store=store, set_aside=set_aside, card=card, hours=hours))
    return lists


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
    embeddings = Embeddings()  # shared, so that no vectors are made twice
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
        names = posts.names[samples.authors]
        galleries.append(
            AccountGallery(encoder, samples, names, posts.hours, embeddings=embeddings)
        )
    return galleries


def log_odds_of_pairs(galleries: list[AccountGallery], different: np.ndarray) -> sparse.coo_array:
    """Return the log-odds of pairs that may be partners, the mean of both directions.

    These are all pairs, or of larger lists the NEAREST of each account.

    Parameters
    ----------
    galleries : list of AccountGallery
        result of :func:`galleries_of_two`
    different : (K, 2) int
        rows of pairs that are known to be two people's
    """
    first, second = galleries
    shape = (len(first), len(second))
    if max(shape) <= FULL_GALLERY:
        log_odds = (second.log_odds(first.targets) + first.log_odds(second.targets).T) / 2
        log_odds[tuple(different.T)] = -np.inf
        return as_pairs(log_odds)
    vectors = []
    for gallery in galleries:
        made = gallery.encoder.vectors(gallery.targets, gallery.hours, gallery.embeddings)
        vectors.append(as_rows(made))
    pairs = near_pairs(*vectors, NEAREST)
    pairs = pairs[~np.isin(pairs @ [shape[1], 1], different @ [shape[1], 1])]
    forward = second.log_odds_of_pairs(first.targets, pairs)
    back = first.log_odds_of_pairs(second.targets, pairs[:, ::-1])
    return sparse.coo_array(((forward + back) / 2, pairs.T), shape)


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


def match_pairs(log_odds: sparse.coo_array, overlap: float = 0.0) -> tuple[sparse.coo_array, float]:
    """Match two lists; which of them is named first does not matter.

    Parameters
    ----------
    log_odds : (Q, T)
        of the pairs of both lists that may be partners
    overlap : float
        share of the shorter list that has a partner; 0 to estimate it

    Returns
    -------
    The probabilities, (Q, T) sparse, of which each account has at most one that is far above one
    half; and the overlap
    """
    sides = (log_odds, log_odds.T.tocoo())
    if not overlap:
        overlap = float(np.mean([estimate_overlap(side, LOG_ODDS) for side in sides]))
    forward, back = [sinkhorn(side, LOG_ODDS, overlap) for side in sides]
    chance = (forward.data + back.data) / 2
    return sparse.coo_array((chance, log_odds.coords), log_odds.shape), overlap
