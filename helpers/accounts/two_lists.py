"""Two lists of accounts, each a gallery that the other one's accounts are asked in.

The score of a pair is the mean of both directions. How probabilities follow from scores is told in
:mod:`helpers.evaluation.matching`. Whatever is drawn or rounded is so in an order of the lists that
depends on their posts, so no answer depends on which of them is named first.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from ..core.paths import PROGRAM
from ..evaluation.candidates import Candidates, all_candidates, best_candidates
from ..evaluation.matching import MatchConfig, Matching, estimate_overlap, sinkhorn
from ..evaluation.scores import as_rows, score_blocks
from .encoder import ENOUGH, AuthorEncoder
from .gallery import AccountGallery
from .passages import passage_hashes, without_passages
from .reading import FULL_GALLERY, OwnPosts
from .samples import MAX_TOKENS, MIN_POSTS, in_memory, spread_posts
from .scoring import HALF_POSTS
from .set_aside import BOTH_LISTS, set_aside_rows

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


def list_candidates(galleries: list[AccountGallery], different: np.ndarray) -> Candidates:
    """Score the pairs that may be partners: all, or of larger lists the NEAREST of each account.

    Parameters
    ----------
    galleries : list of AccountGallery
        result of :func:`galleries_of_two`
    different : (K, 2) int
        rows of pairs that are known to be two people's
    """
    first, second = galleries
    if max(len(first), len(second)) > FULL_GALLERY:
        pairs = near_pairs(galleries, NEAREST)
        candidates = Candidates(pairs, score_list_pairs(galleries, pairs), len(first), len(second))
    else:
        scores = second.model.score_matrix(first.targets, second.targets, MAX_TOKENS)
        back = first.model.score_matrix(second.targets, first.targets, MAX_TOKENS)
        candidates = all_candidates((scores.astype(np.float64) + back.T) / 2)
    return candidates.without(different)


def near_pairs(galleries: list[AccountGallery], nearest: int) -> np.ndarray:
    """Return the pairs (N, 2) of rows of two galleries whose vectors are nearest.

    Parameters
    ----------
    galleries : list of AccountGallery
        result of :func:`galleries_of_two`
    nearest : int
        number of pairs of each account
    """
    vectors = [
        as_rows(gallery.encoder.joined_rows(gallery.rows, gallery.hours)) for gallery in galleries
    ]
    return best_candidates(score_blocks(*vectors), *map(len, galleries), nearest).pairs


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


def among(candidates: Candidates, stays: list[np.ndarray]) -> tuple[Candidates, np.ndarray]:
    """Return the candidates among some accounts of both lists, and the pairs as they were.

    Parameters
    ----------
    candidates : Candidates
        pairs of both lists
    stays : list of (Q,) and (T,) bool
        the accounts of each list
    """
    row, column = candidates.pairs.T
    kept = stays[0][row] & stays[1][column]
    numbers = [np.cumsum(of_list) - 1 for of_list in stays]
    pairs = np.stack([numbers[0][row[kept]], numbers[1][column[kept]]], 1)
    sizes = [int(of_list.sum()) for of_list in stays]
    return Candidates(pairs, candidates.scores[kept], *sizes), candidates.pairs[kept]


def match_pairs(
    candidates: Candidates, config: MatchConfig, overlap: float = 0.0, is_in_order: bool = True
) -> tuple[Matching, float]:
    """Match candidates of two lists.

    Parameters
    ----------
    candidates : Candidates
        N pairs of both lists
    config : MatchConfig
        line of the log-weights
    overlap : float
        share of the shorter list that has a partner; 0 to estimate it
    is_in_order : bool
        whether rows are scaled first, else columns

    Returns
    -------
    The matching, and the highest probability that the fit of the line supports; none is above it.
    So of each account at most one pair has a probability that is far above one half.
    """
    if not is_in_order:
        sizes = (candidates.targets, candidates.queries)
        swapped = Candidates(candidates.pairs[:, ::-1], candidates.scores, *sizes)
        matching, highest = match_pairs(swapped, config, overlap)
        nobody = (matching.nobody_of_targets, matching.nobody_of_queries)
        probability = matching.probability
        return Matching(candidates, probability, *nobody, matching.overlap), highest
    if not overlap:
        overlap = estimate_overlap(candidates, config)
    matching = sinkhorn(candidates, config, overlap)
    accounts = max(candidates.queries, candidates.targets)
    highest = config.highest_probability(overlap, accounts)
    return replace(matching, probability=np.minimum(matching.probability, highest)), highest
