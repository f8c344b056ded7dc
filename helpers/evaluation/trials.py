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
