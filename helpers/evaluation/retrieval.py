"""Retrieval among texts, sawatphol2022 section 3: does another text of the same author come first?

Half of each author's texts are queries, the other half targets beside everybody else's. Unlike in account ranking an
author has several targets, and the best of them counts: the paper's R@8 is success@8, the share of queries with any
own target among the 8 nearest. Numbers depend on the number of targets.
"""

import numpy as np
import pandas as pd

from helpers.evaluation.bootstrap import bootstrap_means
from helpers.evaluation.gallery import open_gallery
from helpers.evaluation.ranking import PositiveTargets
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore

ERRORS = ("right", "same_topic_error", "other_topic_error")


def retrieval_trials(store: TokenStore, seed: int = 0) -> Trials:
    """Every post is a text: floor(n/2) of an author's n texts, drawn at random, are queries, all others targets."""
    samples, size = Samples.of_posts(store), store.posts_per_author()
    rows = np.random.default_rng(seed).permutation(len(samples))
    rows = rows[np.argsort(samples.authors[rows], kind="stable")]
    is_query = np.empty(len(rows), bool)
    is_query[rows] = np.arange(len(rows)) - np.repeat(store.author_offsets[:-1], size) < np.repeat(
        size // 2, size
    )
    if not is_query.any():
        raise ValueError(
            f"retrieval needs an author with two texts, found {len(size)} authors of {len(rows)} texts"
        )
    return Trials(samples[is_query], samples[~is_query], name="retrieval")


def evaluate_retrieval(model, trials: Trials, max_tokens: int = 32, seed: int = 0, resamples: int = 1000,
             topics: np.ndarray | None = None) -> tuple[pd.DataFrame, pd.Series]:  # fmt: skip
    """Rank the best own target of every query, and say what came before it.

    model : an encoder or a fusion.
    topics : (posts,) topic of each text of the store, where its own topic list does not tell them all apart.
    Returns a table (value, low, high; intervals over authors with all their queries) and ranks, as
    :func:`helpers.evaluation.ranking.positive_ranks`. MRR; MRR@10, where ranks beyond 10 count 0, as released; R@1 and R@8,
    which are success@k; shares of queries that add up to 1: ``right``, whose nearest target is of their author, and
    those whose nearest is of another author, ``same_topic_error`` where that text is on the query's topic (what a model
    that reads topics confuses), else ``other_topic_error``. A tie is an error, between topics of the same one.
    References: sawatphol2022 section 3, Table 2.
    """
    topics = trials.queries.store.topic if topics is None else pd.factorize(np.asarray(topics))[0]
    if len(topics) != trials.queries.store.posts:
        raise ValueError(f"{len(topics)} topics of {trials.queries.store.posts} texts")
    asked, answered = (topics[side.first] for side in (trials.queries, trials.targets))
    own, rank, error = PositiveTargets(trials), np.empty(len(asked)), np.empty(len(asked), int)
    for rows, scores in open_gallery(model, trials.targets, max_tokens).scores(trials.queries):
        rank[rows] = own.ranks(rows, scores)
        scores[own.of(rows)] = -np.inf
        nearest = scores == scores.max(1, keepdims=True)
        same_topic = (nearest & (asked[rows, None] == answered)).any(1)
        error[rows] = np.where(rank[rows] == 1, 0, np.where(same_topic, 1, 2))
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
