"""Account ranking: which account of a gallery wrote the posts of a query.

The protocol is that of khan2021 section 4.2.

The first posts of each account are the query and its last posts the target. The targets of all
accounts are the gallery. The result is the rank of the query's own target, from 1 on. Ranks depend
on the sizes of the gallery and of the samples.
"""

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from ..core import results
from ..core.paths import Run
from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .bootstrap import bootstrap_means, metric_table
from .models import System, as_model
from .scores import TILE, refuse_nan
from .trials import Trials, communities

RECALL_AT = (1, 4, 8)  # R@k is the share of queries with a rank of at most k


def ranking_trials(store: TokenStore, posts: int = 16, min_posts: int | None = None) -> Trials:
    """List the trials: the first posts of each account against the last posts of every account.

    Parameters
    ----------
    store : posts of the accounts
    posts : number of posts of each query and of each target
    min_posts : number of posts that an account must have, 2 * ``posts`` by default and at least;
        accounts with fewer are left out; a larger number keeps the accounts the same for samples of
        several sizes

    Raises
    ------
    ValueError
        If samples are larger than half of ``min_posts``, or if fewer than two accounts have so many
        posts.
    """
    if min_posts is None:
        min_posts = 2 * posts
    author = np.flatnonzero(store.posts_per_author() >= min_posts)
    if not 1 <= posts <= min_posts / 2:
        raise ValueError(
            f"ranking: query and target of {posts} posts each, of accounts with {min_posts}"
        )
    if len(author) < 2:
        raise ValueError(f"ranking needs two authors with {min_posts} posts, found {len(author)}")
    count = np.full(len(author), posts)
    queries = Samples(store, store.author_offsets[author], count, author)
    targets = Samples(store, store.author_offsets[author + 1] - posts, count, author)
    return Trials(queries, targets, name="ranking")


def positive_targets(trials: Trials) -> sparse.csr_matrix:
    """Find the targets of each query's author.

    Parameters
    ----------
    trials : every query against every target

    Returns
    -------
    (Q, T) bool for Q queries and T targets, with an entry for each target of a query's author.

    Raises
    ------
    ValueError
        If the trials are listed pairs, have no query, have targets of fewer than two authors, or
        have a query without a target of its author.
    """
    if trials.pairs is not None:
        raise ValueError("ranks need every query against every target, not listed pairs")
    queries = len(trials.queries)
    targets = len(trials.targets)
    authors, place = np.unique(trials.targets.authors, return_inverse=True)
    if not queries or len(authors) < 2:
        raise ValueError(
            f"ranks need a query and targets of two authors, not {queries} queries and targets of "
            f"{len(authors)}"
        )
    has_target = np.isin(trials.queries.authors, authors)
    if not has_target.all():
        raise ValueError(
            f"{(~has_target).sum()} of {queries} queries have no target of their author"
        )
    entries = (np.ones(targets, bool), (place, np.arange(targets)))
    of_author = sparse.csr_matrix(entries, (len(authors), targets))
    return of_author[np.searchsorted(authors, trials.queries.authors)]


def best_ranks(scores: np.ndarray, positives: sparse.csr_matrix) -> np.ndarray:
    """Return the rank of each query's best positive target.

    It is 1 + the number of other authors' targets with the same score or a higher one.

    Parameters
    ----------
    scores : (Q, T) float32, Q queries and T targets
    positives : (Q, T), the rows of :func:`positive_targets` for these queries

    Returns
    -------
    (Q,) float64, from 1 on

    Raises
    ------
    ValueError
        If a score is NaN.
    """
    refuse_nan(scores)
    query = np.repeat(np.arange(len(scores)), np.diff(positives.indptr))
    own = scores[query, positives.indices]
    first = positives.indptr[:-1]
    best = np.maximum.reduceat(own, first)

    threshold = torch.from_numpy(best)[:, None]
    as_high = np.zeros(len(best))
    for tile in torch.from_numpy(scores).split(TILE, 1):
        # a comparison that writes floats is several times faster than counting booleans
        is_as_high = torch.ge(tile, threshold, out=torch.empty(tile.shape))
        as_high += is_as_high.sum(1).numpy()
    return 1 + as_high - np.add.reduceat(own >= best[query], first, dtype=float)


def positive_ranks(model: System, trials: Trials, max_tokens: int = 32) -> pd.Series:
    """Return the rank of each query's best positive target, 1 = best, by the query's author.

    Parameters
    ----------
    model : the model that scores the trials
    trials : every query against every target
    max_tokens : tokens read of each post
    """
    positives = positive_targets(trials)
    rank = np.empty(len(trials.queries))
    for part, scores in as_model(model).scores(trials.queries, trials.targets, max_tokens):
        rank[part] = best_ranks(scores, positives[part])
    return pd.Series(rank, pd.Index(trials.queries.authors, name="author"), name="rank")


def ranking_metrics(rank: pd.Series, seed: int = 0, resamples: int = 1000) -> pd.DataFrame:
    """Summarise ranks by author as MRR, R@1, R@4, R@8 and mean rank, with intervals over authors.

    Parameters
    ----------
    rank : ranks of :func:`positive_ranks`
    seed : seed of the bootstrap
    resamples : number of bootstrap resamples; 0 for no interval, as during training

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each metric (khan2021 section 4.2).

    Raises
    ------
    ValueError
        If a rank is NaN.
    """
    refuse_nan(rank, "ranks")
    recalls = {f"R@{k}": rank <= k for k in RECALL_AT}
    return bootstrap_means(
        {"MRR": 1 / rank, **recalls, "mean_rank": rank}, rank.index, resamples, seed
    )


def evaluate_ranking(
    model: System,
    trials: Trials,
    max_tokens: int = 32,
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[pd.DataFrame, pd.Series]:
    """Rank the positive target of every query, and summarise the ranks.

    Parameters
    ----------
    model : the model that scores the trials
    trials : trials of :func:`ranking_trials`
    max_tokens : tokens read of each post
    seed, resamples : bootstrap settings, see :func:`ranking_metrics`

    Returns
    -------
    The table of :func:`ranking_metrics`, and the ranks of :func:`positive_ranks`.
    """
    rank = positive_ranks(model, trials, max_tokens)
    return ranking_metrics(rank, seed, resamples), rank


def trials_by_community(trials: Trials) -> dict[str, Trials]:
    """Divide the trials by community, because accounts of other archives are too easy to exclude.

    A community with targets of fewer than two authors is left out. If no topic names a community
    ("community/topic"), all trials stay together under the name "".
    """
    store = trials.queries.store
    if not any("/" in name for name in store.meta["topics"]):
        return {"": trials}
    home = communities(store)
    parts = {}
    for name in np.unique(home[trials.queries.authors]):
        queries = trials.queries[np.flatnonzero(home[trials.queries.authors] == name)]
        targets = trials.targets[np.flatnonzero(home[trials.targets.authors] == name)]
        if len(np.unique(targets.authors)) > 1:
            parts[name] = Trials(queries, targets, name=name)
    return parts


def evaluate_by_community(
    model: System,
    parts: dict[str, Trials],
    max_tokens: int = 32,
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[pd.DataFrame, pd.Series]:
    """Evaluate as :func:`evaluate_ranking`, every account within its own community.

    Parameters
    ----------
    model : the model that scores the trials
    parts : the result of :func:`trials_by_community`; if several calls get the same one, members
        embed its samples only once
    max_tokens : tokens read of each post
    seed, resamples : bootstrap settings, see :func:`ranking_metrics`

    Returns
    -------
    The table of :func:`ranking_metrics` over all communities, and the ranks of
    :func:`positive_ranks`.
    """
    rank = pd.concat([positive_ranks(model, part, max_tokens) for part in parts.values()])
    return ranking_metrics(rank, seed, resamples), rank


def ranking_differences(
    ranks: pd.Series | list[pd.Series],
    base: pd.Series | list[pd.Series],
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return MRR_difference and R@8_difference of two models on the same queries.

    Intervals are over authors and paired: an author who is hard for both models does not widen
    them. The index of the table is the metric, as in :func:`ranking_metrics`.

    Parameters
    ----------
    ranks, base : ranks of :func:`positive_ranks` of the model and of the one that it is compared
        with; or lists with one series for each seed, over which the metrics are averaged
    seed, resamples : seed and number of bootstrap resamples

    Raises
    ------
    ValueError
        If the queries differ, or a rank is NaN.
    """
    ranks = ranks if isinstance(ranks, Sequence) else [ranks]
    base = base if isinstance(base, Sequence) else [base]
    authors = ranks[0].index
    if not all(rank.index.equals(authors) for rank in [*ranks, *base]):
        raise ValueError("ranks to compare are not of the same queries")
    ranks = np.stack(ranks)
    base = np.stack(base)
    refuse_nan(np.stack([*ranks, *base]), "ranks")
    columns = {
        "MRR_difference": (1 / ranks).mean(0) - (1 / base).mean(0),
        "R@8_difference": (ranks <= 8).mean(0) - (base <= 8).mean(0),
    }
    return bootstrap_means(columns, authors, resamples, seed)


def compare_rankings(
    ranks: pd.Series, base: pd.Series, seed: int = 0, resamples: int = 2000
) -> pd.DataFrame:
    """Compare two models on the same queries.

    Parameters
    ----------
    ranks, base : ranks of :func:`positive_ranks` of the model and of the one that it is compared
        with
    seed, resamples : seed and number of bootstrap resamples

    Returns
    -------
    The rows of :func:`ranking_differences`; ``better`` and ``worse``, the numbers of queries whose
    rank is better and worse than in ``base``; and ``sign_p``, the p-value of the two-sided sign
    test of these counts (khan2021 footnote 2). Equal ranks are left out; if all are equal, it is 1.
    """
    from scipy.stats import binomtest

    result = ranking_differences(ranks, base, seed, resamples)
    better = int((ranks < base).sum())
    worse = int((ranks > base).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    return pd.concat([result, metric_table({"better": better, "worse": worse, "sign_p": p})])


def compare_pairs(
    files: Run | Path,
    ranks: dict[Hashable, pd.Series],
    about: dict[Hashable, dict[str, Any]],
    pairs: Iterable[tuple[Hashable, Hashable]],
    seed: int = 0,
) -> dict[tuple[Hashable, Hashable], pd.DataFrame]:
    """Compare models in pairs, and record their paired differences.

    Parameters
    ----------
    files : the run whose results table gets the differences, or the path of a table
    ranks : key of a model -> its ranks, see :func:`positive_ranks`
    about : key of a model -> the fields of :func:`helpers.core.results.record` of its own metrics
    pairs : key of a model, and key of the one that is subtracted
    seed : seed of the bootstrap resamples

    Returns
    -------
    pair -> table of :func:`compare_rankings`
    """
    differences = {}
    for model, base in pairs:
        table = compare_rankings(ranks[model], ranks[base], seed)
        results.record(files, table, **about[model] | {"base": about[base]["model"]})
        differences[model, base] = table
    return differences
