"""Batches within topics against the posts that they hold, and shares that are exact."""

import numpy as np
import pytest
from scipy import stats

from helpers.tokens.samplers import TopicSampler, make_sampler

COUNTS = (6, 1, 9, 4, 2, 12, 3, 1, 5, 8)


def store_on(make_store, topics, counts, listed=None, **settings):
    """A store whose posts have the given topics; token = post. listed: rows of the topic list,
    without "other".
    """
    store = make_store(counts, lengths=np.ones(sum(counts), int), **settings)
    object.__setattr__(store, "topic", np.asarray(topics).astype("u2"))
    listed = max(topics) + 1 if listed is None else listed
    object.__setattr__(store, "meta", {"topics": [f"topic {row}" for row in range(listed)]})
    return store


@pytest.fixture
def store(make_store):
    return store_on(make_store, np.random.default_rng(0).integers(0, 6, sum(COUNTS)), COUNTS)


def posts(batch, samples):
    """(P, K) numbers of the posts, read back from the tokens."""
    assert batch.mask.all() and batch.mask.shape[1] == 1
    return batch.tokens[:, 0, 0].numpy().reshape(-1, samples)


def sampler(store, authors=32, samples=2, seed=0):
    """The topic sampler, by default with the sizes that sawatphol2022 released."""
    settings = {"authors_per_batch": authors, "samples_per_author": samples}
    return make_sampler(TopicSampler(**settings), store, seed)


def author_of(store):
    return np.repeat(np.arange(store.authors), store.posts_per_author())


class TestBatch:
    @pytest.mark.parametrize("samples", [1, 2, 4])
    def test_who_is_in_it(self, store, samples):
        author, count = author_of(store), store.posts_per_author()
        draw = sampler(store, 4, samples, seed=1)
        for step in range(60):
            batch = draw(step)
            documents = posts(batch, samples)
            rows = batch.authors.numpy().reshape(-1, samples)
            assert (author[documents] == rows).all() and (rows == rows[:, :1]).all(), (
                "an author's rows side by side"
            )
            chosen = rows[:, 0]
            assert len(set(chosen)) == len(chosen) and (count[chosen] >= samples).all()
            assert 3 <= len(chosen) <= 4
            assert all(len(set(row)) == samples for row in documents), "no document twice"
            shared = store.topic[documents[:, 0]]
            names, authors = np.unique(shared, return_counts=True)
            assert (authors > 1).all(), "nobody is alone on a topic"
            for row, topic in zip(documents, shared):
                elsewhere = (store.topic[author == author[row[0]]] != topic).sum()
                assert (store.topic[row[1:]] != topic).sum() == min(elsewhere, samples - 1), (
                    "as far as there are any"
                )

    def test_topics_by_their_authors_authors_and_documents_uniformly(self, make_store):
        """Topics 0, 1, 2 of 2, 4 and 6 authors, who have two topics of their own; author 2 wrote
        thrice on topic 1.
        """
        counts, topics = [], []
        for topic, authors in ((0, 2), (1, 4), (2, 6)):
            for author in range(authors):
                own = [topic] * (3 if (topic, author) == (1, 0) else 1)
                topics += [*own, 4 + len(counts), 4 + len(counts)]
                counts.append(len(own) + 2)
        store, steps = store_on(make_store, topics, counts), 800
        draw = sampler(store, 2, 2)
        documents = np.array([posts(draw(step), 2) for step in range(steps)])
        shared = store.topic[documents[:, 0, 0]]
        expected = steps * np.array([2, 4, 6]) / 12
        assert stats.chisquare(np.bincount(shared), expected).pvalue > 1e-3
        author = author_of(store)
        for topic, rows in enumerate((range(2), range(2, 6), range(6, 12))):
            authors = author[documents[shared == topic, :, 0]].ravel()
            seen = np.bincount(authors, minlength=12)[list(rows)]
            assert stats.chisquare(seen).pvalue > 1e-3, f"topic {topic}"
        begin = store.author_offsets[2]
        for column, places in ((0, [0, 1, 2]), (1, [3, 4])):
            seen = np.bincount(
                documents[author[documents[:, :, 0]] == 2][:, column] - begin, minlength=5
            )
            assert not np.delete(seen, places).any() and stats.chisquare(seen[places]).pvalue > 1e-3

    def test_one_topic_where_it_has_enough_authors_and_more_where_not(self, make_store):
        topics = np.tile(np.arange(5), 40)  # 40 authors with a document on each of five topics
        store = store_on(make_store, topics, [5] * 40)
        assert len(np.unique(store.topic[posts(sampler(store)(1), 2)[:, 0]])) == 1
        # ten topics of three authors each
        small = store_on(make_store, np.repeat(np.arange(10), 6), [2] * 30)
        for authors, most in ((2, 2), (5, 5), (13, 13), (64, 30)):
            draw = sampler(small, authors)
            for step in range(10):
                topics = small.topic[posts(draw(step), 2)[:, 0]]
                _, authors_of = np.unique(topics, return_counts=True)
                assert most - 1 <= authors_of.sum() <= most and (authors_of > 1).all()

    def test_other_is_no_topic_to_share(self, make_store):
        topics = [2, 0, 2, 2, 2, 0, 2, 1]
        # 2 = other; topic 0: authors 0 and 2
        store = store_on(make_store, topics, [2] * 4, listed=2)
        draw = sampler(store)
        assert all(set(draw(step).authors.tolist()) == {0, 2} for step in range(20))

    def test_nobody_shares_a_topic(self, make_store):
        alone = store_on(make_store, [0, 1, 2, 3, 0, 4], [2, 2, 1, 1])
        with pytest.raises(ValueError, match="no two authors of 2 posts or more share a topic"):
            sampler(alone)
        assert set(sampler(alone, samples=1)(0).authors.tolist()) == {0, 2}
