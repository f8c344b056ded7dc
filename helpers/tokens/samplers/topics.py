"""Batches within topics: other authors on the same topic, and the same author on other topics.

For stores whose posts are documents with a topic each. What separates authors in such a batch is not the topic, and
what joins an author's documents is not either: hard negatives and hard positives of topic regularisation.
"""

from dataclasses import dataclass

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler
from helpers.tokens.store import TokenStore, ranges


@dataclass(frozen=True)
class TopicIndex:
    """Who wrote what on which topic. A cell is the documents of one author on one topic; cells are sorted by topic."""

    posts: np.ndarray  # documents by cell
    cell_author: np.ndarray  # (cells,)
    cell_begin: np.ndarray
    cell_count: np.ndarray
    topic_begin: np.ndarray  # (topics,) the cells of each topic that two authors or more share
    topic_count: np.ndarray

    @classmethod
    def of(cls, store: TokenStore, min_posts: int) -> "TopicIndex":
        """The index of a store's authors with at least ``min_posts`` documents.

        Takes about 90 bytes a post while it is built, 8 a post and 24 a cell after.
        "Other", the last row of the topic list, is no topic that two authors share.
        """
        count = store.posts_per_author()
        author = np.repeat(np.arange(store.authors), count)
        posts = np.flatnonzero((count[author] >= min_posts) & (store.topic != len(store.meta["topics"])))
        key = store.topic[posts].astype(np.int64) * store.authors + author[posts]
        order = np.argsort(key, kind="stable")
        cells, begin, size = np.unique(key[order], return_index=True, return_counts=True)
        topic, cell_author = np.divmod(cells, store.authors)
        _, topic_begin, topic_count = np.unique(topic, return_index=True, return_counts=True)
        shared = topic_count > 1
        return cls(posts[order], cell_author, begin, size, topic_begin[shared], topic_count[shared])

    def draw_cells(self, authors: int, topics: int, rng: np.random.Generator) -> np.ndarray:
        """Cells of different authors, two at least of each topic drawn."""
        # the order of drawing one after the other without replacement with these weights
        order = np.argsort(-np.log(self.topic_count) - rng.gumbel(size=len(self.topic_count)))
        cells, missing, topics = np.empty(0, np.int64), authors, min(topics, len(order))
        for number, topic in enumerate(np.tile(order, 2)):  # the second time for all that is missing
            free = self.topic_begin[topic] + np.arange(self.topic_count[topic])
            free = free[~np.isin(self.cell_author[free], self.cell_author[cells])]
            share = max(-(-missing // max(topics - number, 1)), 2)
            if missing - share == 1:
                share = missing  # or the last would be alone
            if len(free) > 1:
                cells = np.concatenate([cells, rng.choice(free, min(share, len(free)), replace=False)])
            missing = authors - len(cells)
            if missing < 2:
                break
        return cells


class TopicSampler(Sampler):
    """P different authors x K documents of each: B = P * K rows of one post, an author's rows side by side.

    Topics are drawn without replacement, weighted by their authors with K documents or more, and give an equal number
    of authors each; more than ``topics_per_batch`` are drawn where these have too few. Nobody is drawn alone on a
    topic, so that P can be smaller at the end of the topics, or by one. An author's first document is on that topic,
    the others are on other topics, or where there are not enough, any but those already drawn.
    The released code of sawatphol2022 draws 32 x 2. ValueError where no two authors share a topic.
    """

    reads = ("samples_per_author", "topics_per_batch")

    def __init__(self, config, store: TokenStore, seed: int):
        super().__init__(config, store, seed)
        self.index, samples = TopicIndex.of(store, config.samples_per_author), config.samples_per_author
        if not len(self.index.topic_begin):
            raise ValueError(f"{store.folder}: no two authors of {samples} posts or more share a topic")

    def draw(self, rng: np.random.Generator) -> Batch:
        index, samples = self.index, self.config.samples_per_author
        cells = index.draw_cells(self.config.authors_per_batch, self.config.topics_per_batch, rng)
        first = index.posts[index.cell_begin[cells] + rng.integers(index.cell_count[cells])]
        authors = index.cell_author[cells]
        posts = np.column_stack([first, self._other_documents(authors, first, samples - 1, rng)]).ravel()
        return self.gather(np.repeat(authors, samples), posts, np.ones_like(posts), rng)

    def _other_documents(self, authors, first, count, rng):
        """(P, count) posts of the authors (P,): not the first, on another topic before on the same."""
        store, begin = self.store, self.store.author_offsets[authors]
        posts, offsets = ranges(begin, store.author_offsets[authors + 1] - begin)
        row = np.repeat(np.arange(len(authors)), np.diff(offsets))
        late = (store.topic[posts] == store.topic[first][row]) + 2 * (posts == first[row])
        order = np.lexsort([rng.random(len(posts)), late, row])  # by row, then the least welcome last
        return posts[order][offsets[:-1, None] + np.arange(count)]
