"""Second accounts: which accounts of one list belong to one person.

All other protocols compare halves of one account. Here a person really has several accounts, among
those of colleagues who write about the same things. Every account of the list is asked about and
may be the answer. What an account says of its neighbours in the list may be known, see
:func:`helpers.evaluation.scores.neighbour_norm`; who is whose second account may not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import comb

from ..core.paths import Run
from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .bootstrap import resampled_metrics
from .matching import mutual_best
from .models import Model, Scorer, as_model
from .scores import best_ranks, fuse, neighbour_norm
from .systems import System

RECALL_AT = (1, 8)  # R@k is the share of queries with a rank of at most k
BEST_PAIRS = 50  # P@50 is the share of true pairs among so many mutual pairs
PRECISION = 0.5  # M@P50 is the share of true pairs found at a threshold of this precision
METRICS = ("MRR", *(f"R@{k}" for k in RECALL_AT), "P@50", "M@P50")


@dataclass(frozen=True, eq=False)
class AccountList:
    """N accounts of one list, and whose they are.

    Attributes
    ----------
    first, last : N samples each, the first and the last posts of every account; of an account with
        few posts both hold the same ones
    person : (N,) int, whose account it is
    surname : (N,) text, "" where it is not known. Who shares it and nothing else is undecided: such
        a pair is neither right nor wrong, and left out
    """

    first: Samples
    last: Samples
    person: np.ndarray
    surname: np.ndarray

    def __len__(self) -> int:
        return len(self.person)

    def __getitem__(self, rows: np.ndarray) -> "AccountList":
        person = pd.factorize(self.person[rows])[0]
        return AccountList(self.first[rows], self.last[rows], person, self.surname[rows])

    @property
    def same(self) -> np.ndarray:
        """Whether two accounts are one person's, (N, N) bool; False on the diagonal."""
        same = self.person[:, None] == self.person
        np.fill_diagonal(same, False)
        return same

    @property
    def compared(self) -> np.ndarray:
        """Whether a pair is right or wrong, (N, N) bool; False on the diagonal."""
        shares_surname = (self.surname[:, None] == self.surname) & (self.surname != "")
        compared = ~shares_surname | self.same
        np.fill_diagonal(compared, False)
        return compared


def account_list(
    store: TokenStore, people: pd.DataFrame, posts: int = 16, min_posts: int = 8
) -> AccountList:
    """List the accounts that have enough posts.

    Parameters
    ----------
    store : posts of the accounts
    people : one row per account with the columns ``author``, ``person`` and ``surname``; accounts
        without a row are left out
    posts : number of first and of last posts, fewer where the account has fewer
    min_posts : number of posts that an account must have

    Raises
    ------
    ValueError
        If ``people`` names an account twice, or no person has two accounts with so many posts.
    """
    if people["author"].duplicated().any():
        raise ValueError(f"{people['author'].duplicated().sum()} accounts of people named twice")
    people = people.set_index("author")
    names = pd.Index(store.author_names())
    count = store.posts_per_author()
    author = np.flatnonzero((count >= min_posts) & names.isin(people.index))
    of_author = people.loc[names[author]]
    if not of_author["person"].duplicated().any():
        raise ValueError(
            f"no person has two accounts with {min_posts} posts, of {len(author)} that have so many"
        )
    size = np.minimum(count[author], posts)
    first = Samples(store, store.author_offsets[author], size, author)
    last = Samples(store, store.author_offsets[author + 1] - size, size, author)
    surname = of_author["surname"].fillna("").to_numpy(object)
    return AccountList(first, last, pd.factorize(of_author["person"])[0], surname)


def as_two_accounts(accounts: AccountList) -> AccountList:
    """List the first and then the last posts of each account that has enough of both.

    They stand there as if they were two accounts, so that what is fitted on them knows no true
    pair. Such a list is for :func:`score_list` alone.

    Parameters
    ----------
    accounts : the accounts of a list
    """
    first = accounts.first
    last = accounts.last
    apart = np.flatnonzero(first.first + first.count <= last.first)
    columns = [
        np.append(getattr(first, name)[apart], getattr(last, name)[apart])
        for name in ("first", "count", "authors")
    ]
    samples = Samples(first.store, *columns)
    return replace(accounts, first=samples, last=samples)


def score_list(
    model: Scorer, accounts: AccountList, max_tokens: int = 32, neighbours: int | None = None
) -> np.ndarray:
    """Score every account of a list with every other.

    A pair's score is the mean of two: the first posts of one with the last posts of the other, both
    ways. So it is symmetric.

    Parameters
    ----------
    model : the model that scores the accounts
    accounts : N accounts
    max_tokens : tokens read of each post
    neighbours : normalise the scores of each member by so many nearest accounts of the list, see
        :func:`helpers.evaluation.scores.neighbour_norm`; by default they are not

    Returns
    -------
    (N, N) float32; what stands on the diagonal means nothing
    """
    members = as_model(model).used_members
    sides = (accounts.first, accounts.last, max_tokens, np.arange(len(accounts.first)))
    scores = []
    for member in members:
        alone = Model((replace(member, weight=1.0),))
        key = ("list", member.shared, member.steps, accounts, max_tokens)
        one_way = member.embeddings.once(key, partial(alone.score_matrix, *sides))
        of_member = (one_way + one_way.T) / 2
        if neighbours is not None:
            of_member = neighbour_norm(of_member, neighbours)
        scores.append(of_member)
    return fuse(scores, [member.weight for member in members])


def _metrics(accounts, scores, weights):
    """Return METRICS (R, 5), each of P persons counted ``weights`` (R, P) times."""
    person = accounts.person
    same = accounts.same
    has_second = same.any(1)
    left, right = person[mutual_pairs(scores, accounts)].T
    rank = best_ranks(np.where(accounts.compared, scores, -np.inf), same)[has_second]
    of_queries = np.stack([1 / rank, *(rank <= k for k in RECALL_AT)], 1)
    weight_of_query = weights[:, person[has_second]]
    by_query = weight_of_query @ of_queries / weight_of_query.sum(1, keepdims=True)

    is_true = left == right
    weight = np.where(is_true, weights[:, left], weights[:, left] * weights[:, right])
    pairs = np.cumsum(weight, 1)
    true_pairs = np.cumsum(weight * is_true, 1)
    last = np.minimum((pairs < BEST_PAIRS).sum(1, keepdims=True), pairs.shape[1] - 1)
    of_best = np.take_along_axis(true_pairs / np.maximum(pairs, 1), last, 1)
    found = np.where(true_pairs >= PRECISION * pairs, true_pairs, 0).max(1, keepdims=True)
    pairs_of_person = comb(np.bincount(person), 2)
    return np.hstack([by_query, of_best, found / (weights @ pairs_of_person)[:, None]])


def second_account_metrics(
    scores: np.ndarray,
    accounts: AccountList,
    base: np.ndarray | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Measure how well the scores of a list find second accounts, with intervals over persons.

    An account that has a second one is a query: MRR, R@1 and R@8 are of the rank of its best second
    account among all others. Two accounts are a mutual pair if each is the other's only best. P@50
    is the share of true pairs among the BEST_PAIRS mutual pairs of the highest scores. M@P50 is the
    share of all true pairs that mutual pairs find, at the lowest threshold at which at least half
    of the mutual pairs above it are true.

    Parameters
    ----------
    scores : (N, N), scores of :func:`score_list`
    accounts : the N accounts
    base : (N, N), scores of another model; if given, what is returned is the difference to it, the
        persons resampled alike
    seed, resamples : seed and number of bootstrap resamples of persons

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each of METRICS, or for "MRR_difference" and
    so on
    """
    bases = [] if base is None else [base]
    measure = partial(_metrics, accounts)
    return resampled_metrics(METRICS, accounts.person, measure, [scores], bases, seed, resamples)


def record_second_accounts(
    files: Run,
    systems: Sequence[System],
    gains: Sequence[tuple[System, System]],
    scores: dict[str, np.ndarray],
    accounts: AccountList,
    seed: int = 0,
    **measured: Any,
) -> None:
    """Record how well systems find second accounts, and what some gain over others.

    Parameters
    ----------
    files : the run
    systems : the systems
    gains : pairs of systems, of which the second one is subtracted
    scores : (N, N) of each system by its ``model``, see :func:`score_list`
    accounts : the N accounts
    seed : seed of the bootstrap
    **measured : fields of the results: ``protocol``, ``split``, ``sample_size`` ...
    """
    measured |= {"targets": len(accounts), "queries": accounts.same.any(1).sum()}
    for system in systems:
        table = second_account_metrics(scores[system.model], accounts, seed=seed)
        system.record(files, table, **measured)
    for system, base in gains:
        sides = scores[system.model], accounts, scores[base.model]
        table = second_account_metrics(*sides, seed)
        system.record(files, table, base=base.model, **measured)


def mutual_pairs(scores: np.ndarray, accounts: AccountList) -> np.ndarray:
    """List the pairs of accounts of which each is the other's only best, the highest score first.

    Parameters
    ----------
    scores : (N, N), scores of :func:`score_list`
    accounts : the N accounts

    Returns
    -------
    (K, 2) int, rows of the list
    """
    scores = np.where(accounts.compared, scores, -np.inf)
    pairs = np.argwhere(np.triu(mutual_best(scores)))  # each stands in both directions
    return pairs[np.argsort(-scores[tuple(pairs.T)], kind="stable")]
