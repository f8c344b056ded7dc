"""Batches within topics: other authors on the same topic, and the same author on other topics.

For stores whose posts are documents with a topic each. What separates authors in such a batch is not the topic, and
what joins an author's documents is not either: hard negatives and hard positives of topic regularisation. Like
:func:`helpers.tokens.samplers.draw_batch` a batch is a function of (store, seed, step) alone.
"""

import weakref
from dataclasses import dataclass

import numpy as np

from helpers.tokens.batch import Batch, gather
from helpers.tokens.store import TokenStore, ranges


@dataclass(frozen=True)
class TopicIndex:
    """Who wrote what on which topic. A cell is the documents of one author on one topic; cells are sorted by topic.

    posts: documents by cell. cell_author, cell_begin, cell_count: (cells,). topic_begin, topic_count: (topics,), the
    cells of each topic that two authors or more share.
    """

    posts: np.ndarray
    cell_author: np.ndarray
    cell_begin: np.ndarray
    cell_count: np.ndarray
    topic_begin: np.ndarray
    topic_count: np.ndarray


def build_index(store: TokenStore, samples: int) -> TopicIndex:
    """The index of a store's authors with at least ``samples`` documents.

    Takes about 90 bytes a post while it is built, 8 a post and 24 a cell after.
    "Other", the last row of the topic list, is no topic that two authors share.
    """
    count = store.posts_per_author()
    author = np.repeat(np.arange(store.authors), count)
    posts = np.flatnonzero((count[author] >= samples) & (store.topic != len(store.meta["topics"])))
    key = store.topic[posts].astype(np.int64) * store.authors + author[posts]
    order = np.argsort(key, kind="stable")
    cells, begin, size = np.unique(key[order], return_index=True, return_counts=True)
    topic, cell_author = np.divmod(cells, store.authors)
    _, topic_begin, topic_count = np.unique(topic, return_index=True, return_counts=True)
    shared = topic_count > 1
    return TopicIndex(posts[order], cell_author, begin, size, topic_begin[shared], topic_count[shared])


_KEPT: dict[tuple[int, int], TopicIndex] = {}


def _index(store, samples):
    key = id(store), samples
    if key not in _KEPT:
        _KEPT[key] = build_index(store, samples)
        weakref.finalize(store, _KEPT.pop, key, None)  # the number may become that of another store
    return _KEPT[key]


def draw_topic_batch(
    store: TokenStore,
    seed: int,
    step: int,
    authors: int = 32,
    samples: int = 2,
    length: int = 32,
    window: str = "prefix",
    topics: int = 1,
) -> Batch:
    """P different authors x K documents of each: B = P * K rows of one post, an author's rows side by side.

    Topics are drawn without replacement, weighted by their authors with K documents or more, and give an equal number
    of authors each; more than ``topics`` are drawn where these have too few. Nobody is drawn alone on a topic, so
    that P can be smaller at the end of the topics, or by one. An author's first document is on that topic, the others
    are on other topics, or where there are not enough, any but those already drawn.
    The defaults are the 32 x 2 of the code that sawatphol2022 released. length, window: as of
    :func:`helpers.tokens.samplers.draw_batch`. Raises ValueError for fewer than two authors who share a topic.
    """
    if authors < 2 or samples < 1 or topics < 1:
        raise ValueError(f"authors {authors}, samples {samples}, topics {topics}: need at least 2, 1 and 1")
    index, rng = _index(store, samples), np.random.default_rng([seed, step])
    if not len(index.topic_begin):
        raise ValueError(f"no two authors with {samples} posts or more share a topic")
    cells = _draw_cells(index, authors, topics, rng)
    first = index.posts[index.cell_begin[cells] + rng.integers(index.cell_count[cells])]
    chosen = index.cell_author[cells]
    rest = _draw_rest(store, chosen, first, samples - 1, rng)
    posts = np.column_stack([first, rest]).ravel()
    return gather(store, np.repeat(chosen, samples), posts, np.ones_like(posts), length, window, rng)


def _draw_cells(index, authors, topics, rng):
    """Cells of different authors, two at least of each topic drawn."""
    # the order of drawing one after the other without replacement with these weights
    order = np.argsort(-np.log(index.topic_count) - rng.gumbel(size=len(index.topic_count)))
    cells, missing, topics = np.empty(0, np.int64), authors, min(topics, len(order))
    for number, topic in enumerate(np.tile(order, 2)):  # the second time for all that is missing
        free = index.topic_begin[topic] + np.arange(index.topic_count[topic])
        free = free[~np.isin(index.cell_author[free], index.cell_author[cells])]
        wanted = max(-(-missing // max(topics - number, 1)), 2)
        if missing - wanted == 1:
            wanted = missing  # or the last would be alone
        if len(free) > 1:
            cells = np.concatenate([cells, rng.choice(free, min(wanted, len(free)), replace=False)])
        missing = authors - len(cells)
        if missing < 2:
            break
    return cells


def _draw_rest(store, chosen, first, count, rng):
    """(P, count) posts of the chosen authors (P,): not the first, on another topic before on the same."""
    begin = store.author_offsets[chosen]
    posts, offsets = ranges(begin, store.author_offsets[chosen + 1] - begin)
    row = np.repeat(np.arange(len(chosen)), np.diff(offsets))
    late = (store.topic[posts] == store.topic[first][row]) + 2 * (posts == first[row])
    order = np.lexsort([rng.random(len(posts)), late, row])  # by row, then what is wanted least last
    return posts[order][offsets[:-1, None] + np.arange(count)]
