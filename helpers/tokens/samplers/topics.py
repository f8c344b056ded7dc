"""Batches within topics: other authors on the same topic, and the same author on other topics.

For stores whose posts are documents with a topic each. What separates authors in such a batch is not the topic, and
what joins an author's documents is not either: hard negatives and hard positives of topic regularisation.
"""

import numpy as np

from helpers.tokens.batch import Batch
from helpers.tokens.samplers.base import Sampler
from helpers.tokens.store import TokenStore, concat_ranges


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
        """Takes about 90 bytes a post while it is made, 8 a post and 24 a cell after.

        A cell is the documents of one author on one topic; cells are sorted by topic. "Other", the last row of the
        topic list, is no topic that two authors share.
        """
        super().__init__(config, store, seed)
        count, samples = store.posts_per_author(), config.samples_per_author
        author = np.repeat(np.arange(store.authors), count)
        posts = np.flatnonzero(
            (count[author] >= samples) & (store.topic != len(store.meta["topics"]))
        )
        key = store.topic[posts].astype(np.int64) * store.authors + author[posts]
        order = np.argsort(key, kind="stable")
        self.posts = posts[order]  # documents by cell
        cells, self.cell_begin, self.cell_count = np.unique(
            key[order], return_index=True, return_counts=True
        )
        topic, self.cell_author = np.divmod(cells, store.authors)
        _, begin, size = np.unique(topic, return_index=True, return_counts=True)
        # (topics,) the cells of each topic that two authors or more share
        self.topic_begin, self.topic_count = begin[size > 1], size[size > 1]
        if not len(self.topic_begin):
            raise ValueError(
                f"{store.folder}: no two authors of {samples} posts or more share a topic"
            )

    def draw_cells(self, authors: int, topics: int, rng: np.random.Generator) -> np.ndarray:
        """Cells of different authors, two at least of each topic drawn."""
        # the order of drawing one after the other without replacement with these weights
        order = np.argsort(-np.log(self.topic_count) - rng.gumbel(size=len(self.topic_count)))
        cells, missing, topics = np.empty(0, np.int64), authors, min(topics, len(order))
        for number, topic in enumerate(
            np.tile(order, 2)
        ):  # the second time for all that is missing
            free = self.topic_begin[topic] + np.arange(self.topic_count[topic])
            free = free[~np.isin(self.cell_author[free], self.cell_author[cells])]
            share = max(-(-missing // max(topics - number, 1)), 2)
            if missing - share == 1:
                share = missing  # or the last would be alone
            if len(free) > 1:
                cells = np.concatenate(
                    [cells, rng.choice(free, min(share, len(free)), replace=False)]
                )
            missing = authors - len(cells)
            if missing < 2:
                break
        return cells

    def draw(self, rng: np.random.Generator) -> Batch:
        samples = self.config.samples_per_author
        cells = self.draw_cells(self.config.authors_per_batch, self.config.topics_per_batch, rng)
        first = self.posts[self.cell_begin[cells] + rng.integers(self.cell_count[cells])]
        authors = self.cell_author[cells]
        posts = np.column_stack(
            [first, self._other_documents(authors, first, samples - 1, rng)]
        ).ravel()
        return self.gather(np.repeat(authors, samples), posts, np.ones_like(posts), rng)

    def _other_documents(self, authors, first, count, rng):
        """(P, count) posts of the authors (P,): not the first, on another topic before on the same."""
        store, begin = self.store, self.store.author_offsets[authors]
        posts, offsets = concat_ranges(begin, store.author_offsets[authors + 1] - begin)
        row = np.repeat(np.arange(len(authors)), np.diff(offsets))
        late = (store.topic[posts] == store.topic[first][row]) + 2 * (posts == first[row])
        order = np.lexsort(
            [rng.random(len(posts)), late, row]
        )  # by row, then the least welcome last
        return posts[order][offsets[:-1, None] + np.arange(count)]
