"""Batches within topics: other authors on the same topic, and the same author on other topics.

They are for stores whose posts are documents with a topic each. In such a batch the topic neither
separates the authors nor joins an author's documents, so it gives the hard negatives and the hard
positives of topic regularisation.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from ..batch import Batch
from ..store import TokenStore, concat_ranges
from .base import Sampler

if TYPE_CHECKING:
    from . import SamplerConfig


class TopicSampler(Sampler):
    """Sample P different authors who share topics, and K documents of each.

    A batch has P * K samples of one post each, those of an author side by side. Topics are sampled
    without replacement, weighted by their number of authors with K or more documents, and each
    gives an equal number of authors; more than ``topics_per_batch`` are used where these have too
    few authors. At least two authors come from each topic, so a batch may lack one of P authors; it
    lacks more where all topics together have too few. The first document of an author is on the
    topic that gave the author. The others are on other topics; where the author has too few of
    those, the rest are on the same topic. No document is repeated. The released code of
    sawatphol2022 samples 32 x 2.

    A cell is the documents of one author on one topic; cells are sorted by topic. "Other", the last
    row of the topic list, does not count as a topic that authors share. Making the sampler takes
    about 90 bytes of memory per post, and keeping it 8 per post and 24 per cell.

    Raises
    ------
    ValueError
        no two authors with K or more documents share a topic
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
        self.posts = posts[order]  # sorted by cell
        cells, self.cell_begin, self.cell_count = np.unique(
            cell[order], return_index=True, return_counts=True
        )
        topic, self.cell_author = np.divmod(cells, store.authors)

        _, begin, authors_of_topic = np.unique(topic, return_index=True, return_counts=True)
        is_shared = authors_of_topic > 1
        # one value per shared topic: where its cells begin, and how many cells it has
        self.topic_begin = begin[is_shared]
        self.topic_count = authors_of_topic[is_shared]
        if not len(self.topic_begin):
            raise ValueError(
                f"{store.folder}: no two authors of {samples} posts or more share a topic"
            )

    def draw_cells(self, authors: int, topics: int, rng: np.random.Generator) -> np.ndarray:
        """Sample cells of different authors, at least two cells of each topic that is used.

        Parameters
        ----------
        authors : wanted number of cells, one per author
        topics : wanted number of topics; more are used where these have too few authors
        rng : source of the random choice

        Returns
        -------
        numbers of the cells, at most ``authors``
        """
        # sorting by log(weight) + Gumbel noise gives the order in which topics come out if they are
        # sampled one after the other, without replacement, with these weights
        order = np.argsort(-np.log(self.topic_count) - rng.gumbel(size=len(self.topic_count)))
        topics = min(topics, len(order))
        cells = np.empty(0, np.int64)
        missing = authors
        # go through the topics a second time, for authors who are still missing
        for number, topic in enumerate(np.tile(order, 2)):
            free = self.topic_begin[topic] + np.arange(self.topic_count[topic])
            free = free[~np.isin(self.cell_author[free], self.cell_author[cells])]
            share = max(math.ceil(missing / max(topics - number, 1)), 2)
            if missing - share == 1:
                share = missing  # else the last author would be alone on the next topic
            if len(free) > 1:
                new_cells = rng.choice(free, min(share, len(free)), replace=False)
                cells = np.concatenate([cells, new_cells])
            missing = authors - len(cells)
            if missing < 2:
                break
        return cells

    def draw(self, rng: np.random.Generator) -> Batch:
        """Sample one batch."""
        samples = self.config.samples_per_author
        cells = self.draw_cells(self.config.authors_per_batch, self.config.topics_per_batch, rng)
        first = self.posts[self.cell_begin[cells] + rng.integers(self.cell_count[cells])]
        authors = self.cell_author[cells]
        more = self._more_documents(authors, first, samples - 1, rng)
        posts = np.column_stack([first, more]).ravel()
        return self.gather(np.repeat(authors, samples), posts, np.ones_like(posts), rng)

    def _more_documents(self, authors, first, count, rng):
        """Sample (P, count) more posts of P authors, if possible on other topics than the first.

        ``first`` (P,) are the posts that the authors already have, which are not sampled again.
        """
        store = self.store
        begin = store.author_offsets[authors]
        posts, offsets = concat_ranges(begin, store.author_offsets[authors + 1] - begin)
        row = np.repeat(np.arange(len(authors)), np.diff(offsets))
        is_first = posts == first[row]
        same_topic = store.topic[posts] == store.topic[first][row]
        # 0 for other topics, which are wanted most, 1 for the same topic, 2 for the first post
        rank = np.select([is_first, same_topic], [2, 1], 0)
        # lexsort sorts by its last key first: by row, then by rank, then at random
        order = np.lexsort([rng.random(len(posts)), rank, row])
        return posts[order][offsets[:-1, None] + np.arange(count)]
