"""Trials: which queries are compared with which targets. Protocols make them, galleries score them."""

from dataclasses import dataclass

import numpy as np

from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore


@dataclass(frozen=True)
class Trials:
    """Q queries and T targets, every query against every target or the listed pairs only.

    queries, targets : the samples; one object for both where they are the same samples, so they are embedded once.
    pairs : (N, 2) row of the query and row of the target; None for all Q x T.
    name : which part of a protocol this is, such as the topic.
    """

    queries: Samples
    targets: Samples
    pairs: np.ndarray | None = None
    name: str = ""

    def __post_init__(self):
        if self.pairs is not None and len(self.pairs):
            room = len(self.queries), len(self.targets)
            if np.min(self.pairs) < 0 or (np.max(self.pairs, 0) >= room).any():
                raise ValueError(
                    f"trials {self.name!r}: a pair lies outside of {room[0]} queries x {room[1]} targets"
                )

    def __len__(self) -> int:
        return len(self.queries) * len(self.targets) if self.pairs is None else len(self.pairs)

    @property
    def same(self) -> np.ndarray:
        """Is query and target by one author? (Q, T) bool, (N,) for listed pairs."""
        if self.pairs is None:
            return self.queries.authors[:, None] == self.targets.authors
        return self.queries.authors[self.pairs[:, 0]] == self.targets.authors[self.pairs[:, 1]]


def communities(store: TokenStore) -> np.ndarray:
    """(authors,): the community in which each author has most of its posts in listed topics, "" where in none.

    A community is what precedes the first "/" of a topic.
    """
    kinds, kind = np.unique(
        [name.split("/")[0] for name in store.meta["topics"]], return_inverse=True
    )
    listed = np.flatnonzero(np.asarray(store.topic) < len(kind))
    author = np.repeat(np.arange(store.authors), store.posts_per_author())
    count = np.zeros((store.authors, len(kinds) + 1))
    np.add.at(count, (author[listed], kind[store.topic[listed]]), 1)
    count[:, -1] = 0.5
    return np.append(kinds, "")[count.argmax(1)]
