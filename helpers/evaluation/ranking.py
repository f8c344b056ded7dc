"""Ranks: which target of a gallery is of the query's author.

In account ranking (khan2021 section 4.2) the first posts of each account are the query and its last
posts the target. In retrieval among texts (sawatphol2022 section 3) half of each author's texts are
queries, and the other halves of all authors together are the targets: an author has several, and
the best of them counts, so that the paper's R@8 is success@8. Ranks begin at 1 and depend on the
sizes of the gallery and of the samples.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .bootstrap import bootstrap_means, metric_table
from .models import Scorer, as_model
from .scores import best_ranks, refuse_nan
from .trials import Trials, check_ranking, communities

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


def retrieval_trials(store: TokenStore, seed: int = 0) -> Trials:
    """Make queries of half of each author's texts, chosen at random, and targets of the others.

    Of an author's n texts floor(n/2) are queries.

    Parameters
    ----------
    store : texts, each of which is a post
    seed : seed of the random choice of queries

    Raises
    ------
    ValueError
        If no author has two texts.
    """
    samples = Samples.of_posts(store)
    texts = store.posts_per_author()
    shuffled = np.random.default_rng(seed).permutation(len(samples))
    author = samples.authors[shuffled]
    number_within_author = pd.Series(author).groupby(author).cumcount()
    is_query = np.empty(len(samples), bool)
    is_query[shuffled] = number_within_author < texts[author] // 2
    if not is_query.any():
        raise ValueError(
            f"retrieval needs an author with two texts, found {len(texts)} authors of "
            f"{len(samples)} texts"
        )
    return Trials(samples[is_query], samples[~is_query], name="retrieval")


def _score_blocks(
    model: Scorer, trials: Trials, max_tokens: int
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield some queries, their scores (Q, T), and which of the targets are of their authors."""
    check_ranking(trials)
    for part, scores in as_model(model).scores(trials.queries, trials.targets, max_tokens):
        is_own = trials.queries.authors[part, None] == trials.targets.authors
        yield part, scores, is_own


def positive_ranks(
    model: Scorer, trials: Trials | Sequence[Trials], max_tokens: int = 32
) -> pd.Series:
    """Return the rank of each query's best target of its author, 1 = best, by this author.

    Parameters
    ----------
    model : the model that scores the trials
    trials : every query against every target, or several such trials one after the other
    max_tokens : tokens read of each post
    """
    parts = [trials] if isinstance(trials, Trials) else trials
    ranks = []
    for part in parts:
        for rows, scores, is_own in _score_blocks(model, part, max_tokens):
            ranks.append(pd.Series(best_ranks(scores, is_own), part.queries.authors[rows], float))
    return pd.concat(ranks).rename("rank").rename_axis("author")


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
    model: Scorer,
    trials: Trials | Sequence[Trials],
    max_tokens: int = 32,
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[pd.DataFrame, pd.Series]:
    """Rank the positive target of every query, and summarise the ranks.

    Parameters
    ----------
    model : the model that scores the trials
    trials : trials of :func:`ranking_trials`, or those of :func:`trials_by_community`, which rank
        every account within its own community; if several calls get the same ones, members embed
        their samples only once
    max_tokens : tokens read of each post
    seed, resamples : bootstrap settings, see :func:`ranking_metrics`

    Returns
    -------
    The table of :func:`ranking_metrics`, and the ranks of :func:`positive_ranks`.
    """
    rank = positive_ranks(model, trials, max_tokens)
    return ranking_metrics(rank, seed, resamples), rank


def trials_by_community(trials: Trials) -> list[Trials]:
    """Divide the trials by community, because accounts of other archives are too easy to exclude.

    The name of each part is its community. A community with targets of fewer than two authors is
    left out. If no topic names a community ("community/topic"), all trials stay together.
    """
    store = trials.queries.store
    if not any("/" in name for name in store.meta["topics"]):
        return [trials]
    home = communities(store)
    home_of_query = home[trials.queries.authors]
    home_of_target = home[trials.targets.authors]
    parts = []
    for name in np.unique(home_of_query):
        targets = trials.targets[home_of_target == name]
        if len(np.unique(targets.authors)) > 1:
            parts.append(Trials(trials.queries[home_of_query == name], targets, name=name))
    return parts


def evaluate_retrieval(
    model: Scorer,
    trials: Trials,
    max_tokens: int = 32,
    seed: int = 0,
    resamples: int = 1000,
    topics: np.ndarray | None = None,
) -> tuple[pd.DataFrame, pd.Series]:
    """Rank the best target of each query's author, and classify the errors by topic.

    Parameters
    ----------
    model : the model that scores the trials
    trials : trials of :func:`retrieval_trials`
    max_tokens : tokens read of each post
    seed, resamples : seed and number of bootstrap resamples
    topics : (posts,) topic of each text of the store; needed where the store's own topic list does
        not hold all topics

    Returns
    -------
    A table (columns value, low, high; intervals over authors with all their queries), and the ranks
    as of :func:`positive_ranks`. The rows are MRR; MRR@10, where ranks
    beyond 10 count 0, as released; R@1 and R@8, which are success@k; and three shares of queries
    that add up to 1. The nearest target of a ``right`` query is of its author, that of a
    ``same_topic_error`` is of another author but on the query's topic, that of an
    ``other_topic_error`` is neither. If targets of the author and of others tie, the query is an
    error; if targets of others tie, one on the query's topic makes it a ``same_topic_error``.

    Raises
    ------
    ValueError
        If there are not as many topics as texts.

    References
    ----------
    sawatphol2022 section 3, Table 2
    """
    store = trials.queries.store
    topic = store.topic if topics is None else pd.factorize(np.asarray(topics))[0]
    if len(topic) != store.posts:
        raise ValueError(f"{len(topic)} topics of {store.posts} texts")
    query_topic = topic[trials.queries.first]
    target_topic = topic[trials.targets.first]

    ranks = []
    topics_found = []
    for part, scores, is_own in _score_blocks(model, trials, max_tokens):
        ranks.append(best_ranks(scores, is_own))
        scores[is_own] = -np.inf
        is_nearest = scores == scores.max(1, keepdims=True)
        is_same_topic = query_topic[part, None] == target_topic
        topics_found.append((is_nearest & is_same_topic).any(1))
    rank = np.concatenate(ranks).astype(float)
    is_topic_found = np.concatenate(topics_found)

    columns = {
        "MRR": 1 / rank,
        "MRR@10": np.where(rank <= 10, 1 / rank, 0),
        "R@1": rank <= 1,
        "R@8": rank <= 8,
        "right": rank <= 1,
        "same_topic_error": (rank > 1) & is_topic_found,
        "other_topic_error": (rank > 1) & ~is_topic_found,
    }
    authors = trials.queries.authors
    table = bootstrap_means(columns, authors, resamples, seed)
    return table, pd.Series(rank, pd.Index(authors, name="author"), name="rank")


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
    if isinstance(ranks, pd.Series):
        return ranking_differences([ranks], [base], seed, resamples)
    authors = ranks[0].index
    if not all(rank.index.equals(authors) for rank in [*ranks, *base]):
        raise ValueError("ranks to compare are not of the same queries")
    refuse_nan(np.stack([*ranks, *base]), "ranks")
    ranks = np.stack(ranks)
    base = np.stack(base)
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
