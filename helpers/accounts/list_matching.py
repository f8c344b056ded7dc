"""Match two lists of accounts: who of list A is who in list B, decided for all of them together.

Each list is a gallery that the accounts of the other one are asked in. The score of a pair is the
mean of both directions. How probabilities follow from scores is told in
:mod:`helpers.evaluation.matching`. Whatever is drawn or rounded is so in an order of the lists
that depends on their posts, so no answer depends on which of them is named first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..core.paths import PROGRAM
from ..evaluation.candidates import Candidates, all_candidates, best_candidates
from ..evaluation.detection import DetectionCosts
from ..evaluation.matching import (
    MatchConfig,
    Matching,
    estimate_overlap,
    mutual_best,
    sinkhorn,
)
from ..evaluation.scores import as_rows, score_blocks
from .contributions import contributions
from .decided_pairs import DecidedPairs
from .encoder import ENOUGH, AuthorEncoder
from .gallery import LINK_COSTS, AccountGallery
from .passages import passage_hashes, without_passages
from .reading import FULL_GALLERY, OwnPosts
from .samples import MAX_TOKENS, MIN_POSTS, in_memory, spread_posts
from .scoring import HALF_POSTS
from .set_aside import BOTH_LISTS, NOT_JUDGED, set_aside_rows

COLUMNS = "account_a account_b probability llr linked posts_a posts_b known".split()
LEAST_PROBABILITY = 0.01  # of a pair that is reported
NEAREST = 100  # pairs of each account that are scored if a list has more than FULL_GALLERY accounts
MIN_FIT_POSTS = 2 * HALF_POSTS[0]  # of an account whose halves are compared
MAX_FIT_ACCOUNTS = 1000  # accounts whose halves are compared, drawn at random


def without_shared_passages(a: OwnPosts, b: OwnPosts, kinds: np.ndarray) -> list[OwnPosts]:
    """Remove from the posts of two lists the passages that stand word for word in both.

    Accounts that have too few posts left are set aside.

    Parameters
    ----------
    a, b : OwnPosts
        posts of both lists
    kinds : (vocabulary,)
        result of :func:`helpers.accounts.passages.token_kinds`
    """
    hashes = [passage_hashes(posts.store, kinds) for posts in (b, a)]
    lists = []
    for posts, shared in zip((a, b), hashes, strict=True):
        store, _ = without_passages(posts.store, kinds, shared)
        count = store.posts_per_author()
        is_new = (count < MIN_POSTS) & (posts.store.posts_per_author() >= MIN_POSTS)
        too_few = set_aside_rows(posts.names[is_new], count[is_new], BOTH_LISTS)
        set_aside = pd.concat([posts.set_aside, too_few], ignore_index=True)
        lists.append(replace(posts, store=store, set_aside=set_aside))
    return lists


def accounts_set_aside(posts: OwnPosts, gallery: AccountGallery) -> pd.DataFrame:
    """Return the accounts of a list that are nobody's partner, and why.

    Parameters
    ----------
    posts : OwnPosts
        result of :func:`without_shared_passages`
    gallery : AccountGallery
        the accounts of the list

    Returns
    -------
    See :mod:`helpers.accounts.set_aside`
    """
    unjudged = np.flatnonzero(gallery.problems != "")
    count = gallery.targets.count[unjudged]
    details = gallery.problems[unjudged]
    rows = set_aside_rows(gallery.names[unjudged], count, NOT_JUDGED, details)
    return pd.concat([rows, posts.set_aside])


def calibrated_on_list(
    encoder: AuthorEncoder, a: OwnPosts, b: OwnPosts
) -> tuple[AuthorEncoder, str, int]:
    """Fit weights and calibration on halves of the accounts of one list, if these are enough.

    It is the list with more accounts of MIN_FIT_POSTS posts. In both lists together, partners
    would count as two people: they would teach that likeness means little.

    Parameters
    ----------
    encoder : AuthorEncoder
        the encoder with the weights that ship
    a, b : OwnPosts
        posts of both lists

    Returns
    -------
    An encoder, the letter of the list and the number of accounts that it was fitted on; where
    fewer than ENOUGH accounts of each list have so many posts, the given encoder, "" and 0
    """
    able = {}
    lists = _ordered({"a": a, "b": b})
    for letter, posts in lists.items():
        able[letter] = np.flatnonzero(posts.store.posts_per_author() >= MIN_FIT_POSTS)
    counts = {letter: len(accounts) for letter, accounts in able.items()}
    letter = max(counts, key=counts.get)
    if counts[letter] < ENOUGH:
        return encoder, "", 0
    accounts = np.random.default_rng(0).permutation(able[letter])[:MAX_FIT_ACCOUNTS]
    samples = spread_posts(lists[letter].store, np.sort(accounts))
    own_posts = in_memory(samples).store
    fitted = encoder.calibrated_on(own_posts, a.hours).fitted_for_lists(own_posts, a.hours)
    return fitted, letter, len(accounts)


def _ordered(posts: dict[str, OwnPosts]) -> dict[str, OwnPosts]:
    """Return the lists in an order that their names and posts decide."""
    return dict(sorted(posts.items(), key=_names_and_posts))


def _names_and_posts(item):
    _, posts = item
    return list(posts.names), int(posts.store.tokens.sum(dtype=np.int64))


@dataclass(frozen=True, eq=False)
class TwoLists:
    """Two lists of accounts, each a gallery that the other one's accounts are asked in.

    Attributes
    ----------
    galleries : letter of a list, "a" or "b", -> its accounts. Rows of pairs are in the order of
        this dict: the first list's account, then the second's
    """

    galleries: dict[str, AccountGallery]

    @classmethod
    def of(cls, encoder: AuthorEncoder, a: OwnPosts, b: OwnPosts) -> "TwoLists":
        """Make the galleries.

        Parameters
        ----------
        encoder : embeds and scores the accounts
        a, b : posts of both lists, without shared passages

        Raises
        ------
        ValueError
            A list has fewer than ENOUGH accounts.
        """
        galleries = {}
        for letter, posts in _ordered({"a": a, "b": b}).items():
            samples = spread_posts(posts.store)
            if len(samples) < ENOUGH:
                raise ValueError(
                    f"list {letter.upper()} has {len(samples)} accounts with enough posts that do "
                    "not stand word for word in the other list, too. Lists are matched from "
                    f"{ENOUGH} accounts on, since a score counts by how far it stands out among "
                    "those of other accounts: put both lists into one file, and ask "
                    f"`{PROGRAM} mine`"
                )
            galleries[letter] = posts.gallery(encoder, samples)
        first, second = galleries.values()
        _share_rows(first, second)
        _share_rows(second, first)
        return cls(galleries)

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of accounts of both lists."""
        first, second = self.galleries.values()
        return len(first), len(second)

    @property
    def config(self) -> MatchConfig:
        """The log-weights of pairs that the encoder brings."""
        return self.galleries["a"].use.match

    def pairs_of(self, pairs: np.ndarray) -> np.ndarray:
        """Return pairs (N, 2) of a row of list A and one of list B as pairs of these lists."""
        if list(self.galleries) == ["b", "a"]:
            pairs = pairs[:, ::-1]
        return np.unique(pairs, axis=0)

    def candidates(self) -> Candidates:
        """Score the pairs that may be partners: all, or of larger lists the NEAREST of each."""
        if max(self.sizes) > FULL_GALLERY:
            pairs = self.near_pairs(NEAREST)
            return Candidates(pairs, self.pair_scores(pairs), *self.sizes)
        first, second = self.galleries.values()
        scores = second.model.score_matrix(first.targets, second.targets, MAX_TOKENS)
        reverse_scores = first.model.score_matrix(second.targets, first.targets, MAX_TOKENS)
        return all_candidates((scores.astype(np.float64) + reverse_scores.T) / 2)

    def near_pairs(self, nearest: int) -> np.ndarray:
        """Return the pairs (N, 2) whose vectors are nearest.

        Parameters
        ----------
        nearest : number of pairs of each account
        """
        vectors = [
            as_rows(gallery.encoder.joined_rows(gallery.rows, gallery.hours))
            for gallery in self.galleries.values()
        ]
        return best_candidates(score_blocks(*vectors), *self.sizes, nearest).pairs

    def pair_scores(self, pairs: np.ndarray) -> np.ndarray:
        """Score listed pairs (N, 2) in both directions, and return the means (N,)."""
        first, second = self.galleries.values()
        scores = second.model.pair_scores(first.targets, second.targets, pairs, MAX_TOKENS)
        reverse = pairs[:, ::-1]
        reverse_scores = first.model.pair_scores(second.targets, first.targets, reverse, MAX_TOKENS)
        return (scores.astype(np.float64) + reverse_scores) / 2

    def evidence(self, account_a: str, account_b: str) -> pd.DataFrame:
        """Split the score of a pair, see :func:`helpers.accounts.contributions.contributions`.

        Parameters
        ----------
        account_a, account_b : names of an account of list A and of one of list B

        Returns
        -------
        Columns ``member``, ``feature``, ``contribution``, the mean of both directions
        """
        a = self.galleries["a"]
        b = self.galleries["b"]
        parts = [
            contributions(b, a.accounts([account_a]), account_b),
            contributions(a, b.accounts([account_b]), account_a),
        ]
        sums = pd.concat(parts).groupby(["member", "feature"], as_index=False).sum()
        sums["contribution"] /= 2
        return sums.sort_values("contribution", key=abs, ascending=False, ignore_index=True)


def _share_rows(queries, gallery):
    """Tell a gallery the vectors of the accounts that will be asked in it: they are made once."""
    for member in gallery.model.members:
        if member.name in queries.rows:
            rows = queries.rows[member.name]
            member.embeddings.put(member.encoder, queries.targets, MAX_TOKENS, rows)


@dataclass(frozen=True, eq=False)
class MatchedLists:
    """Who of two lists is who.

    Attributes
    ----------
    pairs : COLUMNS of all pairs with at least LEAST_PROBABILITY, linked ones first, then by
        probability and score; known pairs have no llr
    nobody : letter of a list -> the probability of each account, by its name, that it has no
        partner; accounts of known pairs, and those that cannot be judged, are left out
    overlap : share of the shorter list that has a partner, as it was given or estimated; known
        pairs do not count
    highest : the highest probability that a pair can have here
    """

    pairs: pd.DataFrame
    nobody: dict[str, pd.Series]
    overlap: float
    highest: float


def match_lists(
    lists: TwoLists,
    decided: DecidedPairs | None = None,
    overlap: float | None = None,
    costs: DetectionCosts = LINK_COSTS,
) -> MatchedLists:
    """Match two lists, heeding what was decided about them.

    Accounts of known pairs are nobody else's partners, and accounts that cannot be judged nobody's
    (:attr:`helpers.accounts.gallery.AccountGallery.problems`). A pair is linked if linking costs
    less than not linking, and it is the likeliest one of both accounts.

    Parameters
    ----------
    lists : both lists
    decided : pairs that are known, and pairs that cannot be partners; by default none
    overlap : share of the shorter list that has a partner; estimated by default
    costs : costs of errors; the prior is not read

    Raises
    ------
    ValueError
        All accounts of a list have known partners or cannot be judged.
    """
    if decided is None:
        decided = DecidedPairs(np.empty((0, 2), int), np.empty((0, 2), int), 0)
    known = lists.pairs_of(decided.same)
    candidates = lists.candidates().without(lists.pairs_of(decided.different))
    gone = []
    for gallery, known_accounts in zip(lists.galleries.values(), known.T, strict=True):
        gone.append(np.union1d(known_accounts, np.flatnonzero(gallery.problems != "")))
    candidates, rows = without_accounts(candidates, gone)
    if not min(map(len, rows)):
        raise ValueError(
            "all accounts of a list have known partners or cannot be judged: nobody is left to "
            "match"
        )

    config = lists.config
    matching, linked = decide(candidates, config, overlap, costs)
    likely_pairs = _likely_pairs(lists, rows, matching, linked, config)
    known_pairs = _frame(lists, known, probability=1.0, llr=np.nan, linked=True, known=True)
    pairs = pd.concat([likely_pairs, known_pairs])
    # pairs of the highest possible probability are told apart by their scores
    pairs = pairs.sort_values(
        ["linked", "probability", "score", *COLUMNS[:2]],
        ascending=[False, False, False, True, True],
    )
    chances = (matching.nobody_of_queries, matching.nobody_of_targets)
    nobody = {
        letter: pd.Series(chance, gallery.names[of_list])
        for (letter, gallery), of_list, chance in zip(lists.galleries.items(), rows, chances)
    }
    pairs = pairs.reset_index(drop=True)[COLUMNS]
    highest = config.highest_probability(matching.overlap, max(map(len, rows)))
    return MatchedLists(pairs, nobody, matching.overlap, highest)


def _likely_pairs(lists, rows, matching, linked, config):
    """Return the pairs with LEAST_PROBABILITY or more; ``rows`` are the accounts of each list."""
    reported = matching.probability >= LEAST_PROBABILITY
    sides = zip(rows, matching.candidates.pairs[reported].T, strict=True)
    return _frame(
        lists,
        np.stack([of_list[side] for of_list, side in sides], 1),
        score=matching.candidates.scores[reported],
        probability=matching.probability[reported],
        llr=matching.llr(config.llr_scale, config.llr_shift)[reported],
        linked=linked[reported],
        known=False,
    )


def _frame(lists, pairs, **columns):
    """Return names and numbers of posts of pairs (N, 2), and more columns."""
    frame = pd.DataFrame(index=range(len(pairs)))
    for (letter, gallery), row in zip(lists.galleries.items(), pairs.T, strict=True):
        frame[f"account_{letter}"] = gallery.names[row]
        frame[f"posts_{letter}"] = gallery.targets.count[row]
    return frame.assign(**columns)


def decide(
    candidates: Candidates,
    config: MatchConfig,
    overlap: float | None = None,
    costs: DetectionCosts = LINK_COSTS,
) -> tuple[Matching, np.ndarray]:
    """Match candidates and tell which of them are linked.

    Parameters
    ----------
    candidates : N pairs of both lists
    config : line of the log-weights
    overlap : share of the shorter list that has a partner; estimated by default
    costs : costs of errors; the prior is not read

    Returns
    -------
    The matching, with no probability above the highest one that the fit of the line supports; and
    (N,) bool, whether a pair is linked; of each account at most one pair is
    """
    if overlap is None:
        overlap = estimate_overlap(candidates, config)
    matching = sinkhorn(candidates, config, overlap)
    is_best = mutual_best(candidates.with_scores(matching.probability))
    accounts = max(candidates.queries, candidates.targets)
    highest = config.highest_probability(overlap, accounts)
    matching = replace(matching, probability=np.minimum(matching.probability, highest))
    return matching, is_best & (matching.probability >= costs.min_probability)


def without_accounts(
    candidates: Candidates, gone: Sequence[np.ndarray]
) -> tuple[Candidates, list[np.ndarray]]:
    """Take some accounts out of both lists.

    Parameters
    ----------
    candidates : pairs of both lists
    gone : for each list the numbers of the accounts that go

    Returns
    -------
    The candidates among the accounts that stay, and, for each list, the numbers that these had
    """
    sizes = (candidates.queries, candidates.targets)
    staying = [
        np.setdiff1d(np.arange(size), numbers) for size, numbers in zip(sizes, gone, strict=True)
    ]
    sides = list(zip(staying, candidates.pairs.T, strict=True))
    stays = np.all([np.isin(side, rows) for rows, side in sides], axis=0)
    pairs_left = np.stack([np.searchsorted(rows, side[stays]) for rows, side in sides], 1)
    scores = candidates.scores[stays]
    return Candidates(pairs_left, scores, len(staying[0]), len(staying[1])), staying
