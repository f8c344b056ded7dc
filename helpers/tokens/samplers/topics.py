"""Batches within topics: other authors on the same topic, and the same author on other topics.

For stores whose posts are documents with a topic each. What separates authors in such a batch is
not the topic, and what joins an author's documents is not either: hard negatives and hard positives
of topic regularisation.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler
from helpers.tokens.store import TokenStore, concat_ranges

if TYPE_CHECKING:
    from helpers.tokens.samplers import SamplerConfig


class TopicSampler(Sampler):
    """Draw P different authors who share topics, and K documents of each.

    B = P * K rows of one post, an author's rows side by side. Topics are drawn without replacement,
    weighted by their authors with K documents or more, and give an equal number of authors each;
    more than ``topics_per_batch`` are drawn where these have too few. Nobody is drawn alone on a
    topic, so that P can be smaller at the end of the topics, or by one. An author's first document
    is on that topic, the others are on other topics, or where there are not enough, any but those
    already drawn. The released code of sawatphol2022 draws 32 x 2. ValueError where no two authors
    share a topic.

    It takes about 90 bytes a post while it is made, 8 a post and 24 a cell after. A cell is the
    documents of one author on one topic; cells are sorted by topic. "Other", the last row of the
    topic list, is no topic that two authors share.
    """

    reads = ("samples_per_author", "topics_per_batch")

    def __init__(self, config: "SamplerConfig", store: TokenStore, seed: int):
        super().__init__(config, store, seed)
        samples = config.samples_per_author
        posts_of_author = store.posts_per_author()
        author = np.repeat(np.arange(store.authors), posts_of_author)
        has_topic = store.topic != len(store.meta["topics"])
        posts = np.flatnonzero((posts_of_author[author] >= samples) & has_topic)

        cell = store.topic[posts].astype(np.int64) * store.authors + author[posts]
        order = np.argsort(cell, kind="stable")
        self.posts = posts[order]  # by cell
        cells, self.cell_begin, self.cell_count = np.unique(
            cell[order], return_index=True, return_counts=True
        )
        topic, self.cell_author = np.divmod(cells, store.authors)

        _, begin, authors_of_topic = np.unique(topic, return_index=True, return_counts=True)
        is_shared = authors_of_topic > 1
        # (topics,) where the cells of each shared topic begin, and how many they are
        self.topic_begin = begin[is_shared]
        self.topic_count = authors_of_topic[is_shared]
        if not len(self.topic_begin):
            raise ValueError(
                f"{store.folder}: no two authors of {samples} posts or more share a topic"
            )

    def draw_cells(self, authors: int, topics: int, rng: np.random.Generator) -> np.ndarray:
        """Draw cells of different authors, two at least of each topic drawn.

        Parameters
        ----------
        authors : cells to draw
        topics : that they come from, where these have enough authors
        rng : of the draw
        """
        # the order of drawing one after the other without replacement with these weights
        order = np.argsort(-np.log(self.topic_count) - rng.gumbel(size=len(self.topic_count)))
        topics = min(topics, len(order))
        cells = np.empty(0, np.int64)
        missing = authors
        # a second time through the topics for all that is missing
        for number, topic in enumerate(np.tile(order, 2)):
            free = self.topic_begin[topic] + np.arange(self.topic_count[topic])
            free = free[~np.isin(self.cell_author[free], self.cell_author[cells])]
            share = max(math.ceil(missing / max(topics - number, 1)), 2)
            if missing - share == 1:
                share = missing  # or the last would be alone
            if len(free) > 1:
                new_cells = rng.choice(free, min(share, len(free)), replace=False)
                cells = np.concatenate([cells, new_cells])
            missing = authors - len(cells)
            if missing < 2:
                break
        return cells

    def draw(self, rng: np.random.Generator) -> Batch:
        """Draw one batch."""
        samples = self.config.samples_per_author
        cells = self.draw_cells(self.config.authors_per_batch, self.config.topics_per_batch, rng)
        first = self.posts[self.cell_begin[cells] + rng.integers(self.cell_count[cells])]
        authors = self.cell_author[cells]
        more = self._more_documents(authors, first, samples - 1, rng)
        posts = np.column_stack([first, more]).ravel()
        return self.gather(np.repeat(authors, samples), posts, np.ones_like(posts), rng)

    def _more_documents(self, authors, first, count, rng):
        """Draw (P, count) posts of P authors: not the first, and if possible on another topic."""
        store = self.store
        begin = store.author_offsets[authors]
        posts, offsets = concat_ranges(begin, store.author_offsets[authors + 1] - begin)
        row = np.repeat(np.arange(len(authors)), np.diff(offsets))
        is_first = posts == first[row]
        same_topic = store.topic[posts] == store.topic[first][row]
        rank = np.select([is_first, same_topic], [2, 1], 0)
        # lexsort reads its keys from the last: by row, then rank, then at random
        order = np.lexsort([rng.random(len(posts)), rank, row])
        return posts[order][offsets[:-1, None] + np.arange(count)]
