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

    def __len__(self) -> int:
        if self.pairs is None:
            return len(self.queries) * len(self.targets)
        return len(self.pairs)

    @property
    def same(self) -> np.ndarray:
        """Whether query and target are by one author: (Q, T) bool, (N,) for listed pairs."""
        if self.pairs is None:
            return self.queries.authors[:, None] == self.targets.authors
        query_rows, target_rows = self.pairs.T
        return self.queries.authors[query_rows] == self.targets.authors[target_rows]


def communities(store: TokenStore) -> np.ndarray:
    """Return for each author the community, (authors,), of most of its posts in listed topics.

    A community is the part of a topic's name before the first "/". It is "" if an author has no
    post in a listed topic.
    """
    names = [topic.split("/")[0] for topic in store.meta["topics"]]
    names, community_of_topic = np.unique(names, return_inverse=True)
    author = np.repeat(np.arange(store.authors), store.posts_per_author())
    listed = np.flatnonzero(np.asarray(store.topic) < len(community_of_topic))

    count = np.zeros((store.authors, len(names) + 1))
    np.add.at(count, (author[listed], community_of_topic[store.topic[listed]]), 1)
    count[:, -1] = 0.5  # for "": less than one post, so it wins only where there is none
    return np.append(names, "")[count.argmax(1)]
