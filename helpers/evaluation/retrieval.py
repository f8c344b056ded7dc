"""Retrieval among texts: at which rank another text of the query's author is found.

The protocol is that of sawatphol2022 section 3.

Half of each author's texts are queries. The other halves of all authors together are the targets.
Unlike in account ranking, an author has several targets, and the best of them counts. The paper's
R@8 is therefore success@8, the share of queries with any target of their author among the 8
nearest. The metrics depend on the number of targets.
"""

import numpy as np
import pandas as pd

from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .bootstrap import bootstrap_means
from .models import System, as_model
from .ranking import best_ranks, positive_targets
from .trials import Trials

# what a query's nearest target is; the codes in evaluate_retrieval are positions in this tuple
ERRORS = ("right", "same_topic_error", "other_topic_error")


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
    shuffled = np.random.default_rng(seed).permutation(len(samples))
    shuffled = shuffled[np.argsort(samples.authors[shuffled], kind="stable")]

    texts = store.posts_per_author()
    rank_within_author = np.arange(len(samples)) - np.repeat(store.author_offsets[:-1], texts)
    is_query = np.empty(len(samples), bool)
    is_query[shuffled] = rank_within_author < np.repeat(texts // 2, texts)
    if not is_query.any():
        raise ValueError(
            f"retrieval needs an author with two texts, found {len(texts)} authors of "
            f"{len(samples)} texts"
        )
    return Trials(samples[is_query], samples[~is_query], name="retrieval")


def evaluate_retrieval(
    model: System,
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
    as of :func:`helpers.evaluation.ranking.positive_ranks`. The rows are MRR; MRR@10, where ranks
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

    positives = positive_targets(trials)
    rank = np.empty(len(query_topic))
    error = np.empty(len(query_topic), int)
    for part, scores in as_model(model).scores(trials.queries, trials.targets, max_tokens):
        rank[part] = best_ranks(scores, positives[part])
        scores[positives[part].nonzero()] = -np.inf
        is_nearest = scores == scores.max(1, keepdims=True)
        is_same_topic = query_topic[part, None] == target_topic
        same_topic_error = (is_nearest & is_same_topic).any(1)
        error[part] = np.where(rank[part] == 1, 0, np.where(same_topic_error, 1, 2))

    columns = {
        "MRR": 1 / rank,
        "MRR@10": np.where(rank <= 10, 1 / rank, 0),
        "R@1": rank <= 1,
        "R@8": rank <= 8,
    }
    columns |= {name: error == number for number, name in enumerate(ERRORS)}
    authors = trials.queries.authors
    table = bootstrap_means(columns, authors, resamples, seed)
    return table, pd.Series(rank, pd.Index(authors, name="author"), name="rank")
