"""Second accounts: which accounts of one list belong to one person.

All other protocols compare halves of one account. Here a person really has several accounts, among
those of colleagues who write about the same things. Every account of the list is asked about and
may be the answer. What an account says of its neighbours in the list may be known, see
:func:`helpers.evaluation.scores.neighbour_norm`; who is whose second account may not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from ..core import results
from ..core.paths import Run
from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .bootstrap import resampled_metrics
from .matching import MatchConfig, fit_match, mutual_best, sinkhorn
from .models import System, as_model
from .scores import fuse, neighbour_norm

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

    @cached_property
    def same(self) -> np.ndarray:
        """Whether two accounts are one person's, (N, N) bool; False on the diagonal."""
        same = self.person[:, None] == self.person
        np.fill_diagonal(same, False)
        return same

    @cached_property
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
        If ``people`` lacks a column or names an account twice, or no person has two accounts with
        so many posts.
    """
    missing = {"author", "person", "surname"} - set(people.columns)
    if missing or people["author"].duplicated().any():
        raise ValueError(
            "second accounts need one row per account with author, person and surname; "
            f"missing columns: {', '.join(sorted(missing)) or 'none'}, "
            f"accounts named twice: {people.get('author', pd.Series()).duplicated().sum()}"
        )
    people = people.set_index("author")
    names = pd.Index(store.author_names())
    count = store.posts_per_author()
    author = np.flatnonzero((count >= min_posts) & names.isin(people.index))
    of_author = people.loc[names[author]]
    person = pd.factorize(of_author["person"])[0]
    if not len(person) or np.bincount(person).max() < 2:
        raise ValueError(
            f"no person has two accounts with {min_posts} posts: {len(author)} accounts have so "
            "many"
        )
    size = np.minimum(count[author], posts)
    first = Samples(store, store.author_offsets[author], size, author)
    last = Samples(store, store.author_offsets[author + 1] - size, size, author)
    surname = of_author["surname"].fillna("").to_numpy(object)
    return AccountList(first, last, person, surname)


def score_list(
    model: System, accounts: AccountList, max_tokens: int = 32, neighbours: int | None = None
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
    scores_of_members = []
    for member in members:
        gallery, queries = member.opened(accounts.first, accounts.last, max_tokens)
        blocks = gallery.scores(queries, np.arange(len(accounts)))
        scores = np.concatenate([steps[-1].copy() for _, steps in blocks])
        scores = (scores + scores.T) / 2
        if neighbours is not None:
            scores = neighbour_norm(scores, neighbours)
        scores_of_members.append(scores)
    return fuse(scores_of_members, [member.weight for member in members])


def fit_list_match(
    model: System, accounts: AccountList, max_tokens: int = 32, neighbours: int | None = None
) -> MatchConfig:
    """Fit the log-weights of matching a list with itself, on halves of its accounts.

    The first and the last posts of every account that has enough of both stand in one list, as if
    they were two accounts. No true pair is known to the fit.

    Parameters
    ----------
    model, max_tokens, neighbours : arguments of :func:`score_list`
    accounts : the accounts of the list
    """
    first = accounts.first
    last = accounts.last
    apart = np.flatnonzero(first.first + first.count <= last.first)
    halves = Samples(
        first.store,
        np.concatenate([first.first[apart], last.first[apart]]),
        np.concatenate([first.count[apart], last.count[apart]]),
        np.concatenate([first.authors[apart], last.authors[apart]]),
    )
    nobody = np.full(len(halves), "", object)
    listed = AccountList(halves, halves, np.arange(len(halves)), nobody)
    scores = score_list(model, listed, max_tokens, neighbours)
    return fit_match(scores[: len(apart), len(apart) :])


def match_list(scores: np.ndarray, config: MatchConfig, overlap: float) -> np.ndarray:
    """Match a list with itself: no account belongs to two of the others.

    Parameters
    ----------
    scores : (N, N), scores of :func:`score_list`
    config : result of :func:`fit_list_match`, with the same model
    overlap : share of the accounts that have a second one

    Returns
    -------
    (N, N) float64, the logarithm of each pair's probability; -inf on the diagonal
    """
    scores = scores.astype(np.float64)
    np.fill_diagonal(scores, -np.inf)
    probability = sinkhorn(scores, config, overlap)
    with np.errstate(divide="ignore"):
        return np.log((probability + probability.T) / 2)  # equal but for the last rounds


def _metrics_of(scores, accounts):
    """Return a function that gives METRICS, each person counted ``weights`` (P,) times."""
    scores = np.where(accounts.compared, scores, -np.inf)
    has_second = accounts.same.any(1)
    best = np.where(accounts.same, scores, -np.inf).max(1, keepdims=True)
    rank = 1 + ((scores >= best) & ~accounts.same).sum(1)[has_second]
    of_queries = np.stack([1 / rank, *(rank <= k for k in RECALL_AT)], 1)
    left, right = accounts.person[_mutual_pairs(scores)[0]].T
    is_true = left == right
    accounts_of_person = np.bincount(accounts.person)
    pairs_of_person = accounts_of_person * (accounts_of_person - 1) // 2

    def measure(weights):
        by_query = np.average(of_queries, 0, weights[accounts.person[has_second]])
        weight = np.where(is_true, weights[left], weights[left] * weights[right])
        pairs = np.cumsum(weight)
        true_pairs = np.cumsum(weight * is_true)
        best = min(np.searchsorted(pairs, BEST_PAIRS), len(pairs) - 1)
        precise = np.flatnonzero(true_pairs >= PRECISION * pairs)
        pairs_found = true_pairs[precise[-1]] if len(precise) else 0
        of_best = true_pairs[best] / max(pairs[best], 1)
        return np.array([*by_query, of_best, pairs_found / (weights @ pairs_of_person)])

    return measure


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
    of_systems = [scores] if base is None else [scores, base]
    measures = [_metrics_of(values, accounts) for values in of_systems]
    return resampled_metrics(measures, METRICS, accounts.person, seed, resamples)


def record_metrics(
    files: Run | Path,
    scores: dict[str, np.ndarray],
    accounts: AccountList,
    labels: dict[str, str],
    compared: Iterable[tuple[str, str]] = (),
    seed: int = 0,
    **measured: object,
) -> None:
    """Record the metrics of several systems on one list, and paired differences of two of them.

    Parameters
    ----------
    files : the run, or the path of a table of results
    scores : identifier of each system -> (N, N), its scores
    accounts : the N accounts
    labels : identifier of each system -> its readable name
    compared : pairs of identifiers: the base that is subtracted, and the system
    seed : seed of the bootstrap
    **measured : fields of :class:`helpers.core.results.Measured`, such as protocol and split
    """
    measured["targets"] = len(accounts)
    measured["queries"] = int(accounts.same.any(1).sum())
    for model, values in scores.items():
        table = second_account_metrics(values, accounts, seed=seed)
        results.record(files, table, model=model, label=labels[model], **measured)
    for base, model in compared:
        table = second_account_metrics(scores[model], accounts, scores[base], seed)
        results.record(files, table, model=model, base=base, label=labels[model], **measured)


def answers_by_probability(
    accounts: AccountList,
    query: np.ndarray,
    target: np.ndarray,
    probability: np.ndarray,
    edges: Sequence[float] = (0, 0.1, 0.2, 0.5, 0.9, 1),
) -> pd.DataFrame:
    """Count answers and right ones by the probability that they got; undecided pairs are left out.

    Parameters
    ----------
    accounts : the N accounts
    query, target : (K,) int, rows of the list: the account asked about and the best answer
    probability : (K,) of the answers
    edges : ends of the ranges of probability; each range holds its upper end

    Returns
    -------
    Columns ``answers`` and ``right`` (the share of true pairs), a row for each range with answers
    """
    is_decided = accounts.compared[query, target]
    answers = pd.DataFrame({"right": accounts.same[query, target]})[is_decided]
    ranges = pd.cut(np.asarray(probability)[is_decided], edges)
    table = answers.groupby(ranges, observed=True)["right"].agg(["size", "mean"])
    return table.set_axis(["answers", "right"], axis=1).rename_axis("probability")


def mutual_pairs(scores: np.ndarray, accounts: AccountList) -> pd.DataFrame:
    """List the pairs of accounts of which each is the other's only best, the highest score first.

    Parameters
    ----------
    scores : (N, N), scores of :func:`score_list`
    accounts : the N accounts

    Returns
    -------
    Columns ``left`` and ``right`` (rows of the list), ``score``, ``same`` (whether they are one
    person's) and ``colleagues`` (whether both write most in one topic)
    """
    pairs, pair_scores = _mutual_pairs(np.where(accounts.compared, scores, -np.inf))
    left, right = pairs.T
    topic = main_topics(accounts)
    return pd.DataFrame(
        {
            "left": left,
            "right": right,
            "score": pair_scores,
            "same": accounts.same[left, right],
            "colleagues": topic[left] == topic[right],
        }
    )


def _mutual_pairs(scores):
    """Return the rows (K, 2) of the mutual pairs, the highest score first, and their scores."""
    pairs = np.argwhere(np.triu(mutual_best(scores)))  # each stands in both directions
    pair_scores = scores[tuple(pairs.T)]
    order = np.argsort(-pair_scores, kind="stable")
    return pairs[order], pair_scores[order]


def main_topics(accounts: AccountList) -> np.ndarray:
    """Return the topic of most posts of each account, (N,) int; of several the first."""
    store = accounts.first.store
    topics = []
    for author in accounts.first.authors:
        posts = store.topic[store.author_offsets[author] : store.author_offsets[author + 1]]
        topics.append(np.bincount(posts).argmax())
    return np.array(topics)
