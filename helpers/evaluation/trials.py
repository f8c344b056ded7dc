"""Trials: which queries are compared with which targets. Protocols make them, models score them."""

from dataclasses import dataclass

import numpy as np

from ..tokens.batch import Samples
from ..tokens.store import TokenStore


@dataclass(frozen=True)
class Trials:
    """Q queries and T targets, every query against every target or the listed pairs only.

    Attributes
    ----------
    queries, targets : the samples; where they are the same ones, give one object for both, so that
        they are embedded once
    pairs : (N, 2), row of the query and row of the target; None for all Q x T pairs
    name : name of the protocol, or of its part, such as a topic
    """

    queries: Samples
    targets: Samples
    pairs: np.ndarray | None = None
    name: str = ""

    @property
    def same(self) -> np.ndarray:
        """Whether query and target are by one author: (Q, T) bool, (N,) for listed pairs."""
        if self.pairs is None:
            return self.queries.authors[:, None] == self.targets.authors
        query_rows, target_rows = self.pairs.T
        return self.queries.authors[query_rows] == self.targets.authors[target_rows]


def as_trials(scores: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of trials, and whether each is of one account, as arrays (N,).

    Parameters
    ----------
    scores : (N,)
    same : (N,), bool, or 1 and 0 of any type

    Raises
    ------
    ValueError
        If a shape or a label is another one.
    """
    scores = np.asarray(scores)
    if scores.ndim != 1:
        raise ValueError(f"scores need the shape (N,), one for each trial, not {scores.shape}")
    return scores, as_bool(same, scores.shape)


def as_bool(labels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return labels of scores as bool.

    Parameters
    ----------
    labels : bool, or 1 and 0 of any type
    shape : shape of the scores

    Raises
    ------
    ValueError
        If the labels have another shape, or one of them another value.
    """
    labels = np.asarray(labels)
    is_label = (labels == 0) | (labels == 1)
    if labels.shape != shape or not is_label.all():
        raise ValueError(
            f"labels need the shape {shape} of the scores, and to be True, False, 1 or 0: their "
            f"shape is {labels.shape}, {(~is_label).sum()} are others"
        )
    return labels.astype(bool, copy=False)


def check_ranking(trials: Trials) -> None:
    """Check that every query can have a rank.

    Parameters
    ----------
    trials : every query against every target

    Raises
    ------
    ValueError
        If the trials are listed pairs, have no query, have targets of fewer than two authors, or
        have a query without a target of its author.
    """
    if trials.pairs is not None:
        raise ValueError("ranks need every query against every target, not listed pairs")
    queries = len(trials.queries)
    authors = np.unique(trials.targets.authors)
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


def communities(store: TokenStore) -> np.ndarray:
    """Return for each author the community, (authors,), of most of its posts in listed topics.

    A community is the part of a topic's name before the first "/". It is "" if an author has no
    post in a listed topic.
    """
    topics = [topic.split("/")[0] for topic in store.meta["topics"]]
    names, community_of_topic = np.unique(topics, return_inverse=True)
    author = np.repeat(np.arange(store.authors), store.posts_per_author())
    is_listed = store.topic < len(topics)

    count = np.zeros((store.authors, len(names) + 1))
    np.add.at(count, (author[is_listed], community_of_topic[store.topic[is_listed]]), 1)
    count[:, -1] = 0.5  # for "": less than one post, so it wins only where there is none
    return np.append(names, "")[count.argmax(1)]
