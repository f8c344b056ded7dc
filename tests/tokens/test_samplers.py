"""What every sampler promises, and what each kind draws, against slow oracles and exact shares."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from helpers.tokens.batch import PAD
from helpers.tokens.samplers import (
    SAMPLERS,
    SIZES,
    AuthorSampler,
    PairSampler,
    RandomSampler,
    TopicSampler,
    draw_sizes,
    draw_windows,
    make_sampler,
    skewness,
)
from tests.oracles import equal_batches

COUNTS = (6, 3, 9, 4, 2, 12, 3, 5, 8)
SMALL = {"authors_per_batch": 4, "max_tokens": 6}
PAIRS = PairSampler(authors_per_batch=6, max_tokens=4)


@pytest.fixture
def store(make_store):
    """Token = post."""
    store = make_store(COUNTS, lengths=np.random.default_rng(0).integers(1, 9, sum(COUNTS)))
    object.__setattr__(store, "meta", {"topics": ["topic"] * 5})  # "other" does not occur
    return store


@pytest.fixture
def documents(make_store):
    return make_store([5, 2, 1, 9, 3, 4], lengths=np.ones(24, int))  # token = post


def sampler(store, **settings):
    return make_sampler(AuthorSampler(**settings), store, 0)


def posts(batch):
    return batch.tokens[:, 0, 0].numpy()


@pytest.mark.parametrize("kind", SAMPLERS)
class TestEverySampler:
    def test_a_batch_is_a_function_of_store_seed_and_step(self, store, kind):
        config = SAMPLERS[kind](window="random", **SMALL)
        batches = [make_sampler(config, store, 5)(step) for step in range(4)]
        second = make_sampler(config, store, 5)
        np.random.seed(3), torch.manual_seed(3)
        for step in (3, 0, 2, 1, 0):
            assert equal_batches(second(step), batches[step])
        assert not equal_batches(batches[0], batches[1])
        assert not equal_batches(make_sampler(config, store, 6)(0), batches[0])

    @pytest.mark.parametrize("window", ["prefix", "random"])
    def test_posts_are_those_of_their_author_with_all_they_have(self, store, kind, window):
        draw = make_sampler(SAMPLERS[kind](window=window, **SMALL), store, 0)
        for step in range(10):
            batch = draw(step)
            assert batch.tokens.shape == (*batch.mask.shape, 6)
            assert batch.mask.shape[1] == 1 or kind == "authors"
            for row, place in batch.mask.nonzero().tolist():
                tokens = [token for token in batch.tokens[row, place].tolist() if token != PAD]
                post = tokens[0]
                assert tokens == [post] * min(6, np.diff(store.post_offsets)[post])
                author = np.searchsorted(store.author_offsets, post, "right") - 1
                assert author == batch.authors[row]
                assert batch.hours[row, place] == store.hour[post]
                assert batch.topics[row, place] == store.topic[post]
                assert batch.times[row, place] == store.time[post]


def test_authors_are_drawn_uniformly_among_those_with_enough_posts(make_store):
    store = make_store([3, 9] * 25)
    settings = {"authors_per_batch": 5, "samples_per_author": 4, "overlap": False}
    draw = sampler(store, **settings)
    authors = np.array([draw(step).authors.numpy()[::4] for step in range(500)])
    assert all(len(set(row)) == 5 for row in authors.tolist())
    counts = np.bincount(authors.ravel(), minlength=50)
    assert not counts[::2].any(), "authors with too few posts"
    assert stats.chisquare(counts[1::2]).pvalue > 0.001
    every = sampler(store, **settings | {"authors_per_batch": 99})(0).authors[::4]
    assert sorted(every.tolist()) == list(range(1, 50, 2)), "all there are"


class TestWindows:
    @pytest.mark.parametrize("overlap", [True, False])
    def test_they_lie_within_the_history_and_apart_where_asked(self, overlap):
        """Random histories, some with fewer posts than asked for or just one post a sample."""
        rng = np.random.default_rng(0)
        for _ in range(100):
            samples = int(rng.integers(1, 9))
            max_posts = int(rng.choice([samples, samples + 3, 30, 200]))
            available = rng.integers(1 if overlap else samples, max_posts + 1, 25)
            wanted_sizes = rng.integers(1, 17, (25, samples))
            first, size = draw_windows(available, wanted_sizes.copy(), rng, overlap)
            assert first.shape == size.shape == wanted_sizes.shape
            assert (size >= 1).all() and (size <= wanted_sizes).all()
            assert (first >= 0).all() and (first + size <= available[:, None]).all()
            if overlap:
                assert (size == np.minimum(wanted_sizes, available[:, None])).all()
                continue
            assert (size == np.minimum(wanted_sizes, available[:, None] // samples)).all()
            for begin, count in zip(first, size):
                used = np.concatenate([np.arange(b, b + c) for b, c in zip(begin, count)])
                assert len(used) == len(set(used)), "two samples share a post"

    @pytest.mark.parametrize("samples, overlap", [(3, True), (1, False)])
    def test_starts_are_uniform(self, samples, overlap):
        available = np.full(20_000, 13)
        first, _ = draw_windows(
            available, np.full((20_000, samples), 4), np.random.default_rng(3), overlap
        )
        for column in first.T:
            assert stats.chisquare(np.bincount(column, minlength=10)).pvalue > 1e-3


def test_apart_needs_a_post_for_every_sample(make_store):
    settings = {"authors_per_batch": 2, "samples_per_author": 4, "overlap": False}
    draw = sampler(make_store([3, 8, 2, 9, 1, 50]), **settings)
    assert {author for step in range(50) for author in draw(step).authors.tolist()} == {1, 3, 5}
    with pytest.raises(ValueError, match="1 authors with 4 posts or more in nowhere"):
        sampler(make_store([20, 3]), **settings)(0)


def test_half_of_the_pairs_are_of_one_author_and_never_the_same_document(documents):
    draw = make_sampler(PAIRS, documents, 0)
    for step in range(50):
        batch = draw(step)
        author, post = batch.authors.numpy().reshape(-1, 2), posts(batch).reshape(-1, 2)
        assert (author[:3, 0] == author[:3, 1]).all() and (author[3:, 0] != author[3:, 1]).all()
        assert (post[:, 0] != post[:, 1]).all() and len(author) == 6


def test_all_documents_and_all_authors_are_reached(documents):
    draw = make_sampler(PAIRS, documents, 1)
    batches = [draw(step) for step in range(300)]
    assert {post for batch in batches for post in posts(batch)} == set(range(24))
    count = np.bincount(
        np.concatenate([batch.authors[:6:2].numpy() for batch in batches]), minlength=6
    )
    assert count[2] == 0, "one document makes no pair"
    assert count[[0, 1, 3, 4, 5]].min() > 100, "authors alike, not in proportion to documents"


def test_documents_are_drawn_uniformly_without_replacement(documents):
    def draw(count):
        return make_sampler(RandomSampler(authors_per_batch=count, max_tokens=4), documents, 0)

    for count, size in ((5, 5), (24, 24), (100, 24)):
        posts = draw(count)(3).tokens[:, 0, 0].tolist()
        assert len(posts) == len(set(posts)) == size
    five = draw(5)
    numbers = np.concatenate([five(step).tokens[:, 0, 0].numpy() for step in range(500)])
    seen = np.bincount(numbers, minlength=24)
    assert stats.chisquare(seen).pvalue > 1e-3


def test_published_skews():
    """khan2021 Table 4."""
    published = {"uniform": 0, "beta21": -0.5657, "poisson16": -0.7860, "beta31": -0.8607}
    published |= {"beta41": -1.0498, "fixed": 0}
    assert {name: skewness(name) for name in SIZES} == pytest.approx(published, abs=5e-5)
    assert set(draw_sizes("fixed", 9, np.random.default_rng(0), 3, 5)) == {5}


def probabilities(name, min_posts, max_posts):
    """Exact: x <= t has probability t^a for Beta(a, 1)."""
    sizes = np.arange(min_posts, max_posts + 1)
    if name == "poisson16":
        weight = np.array([math.exp(-16) * 16.0**size / math.factorial(size) for size in sizes])
        return sizes, weight / weight.sum()
    power = {"uniform": 1, "beta31": 3}[name]
    upto = ((sizes - min_posts) / (max_posts - min_posts)) ** power
    return sizes, np.diff(upto, prepend=0)


@pytest.mark.parametrize("min_posts, max_posts", [(1, 16), (3, 9)])
@pytest.mark.parametrize("name", ["uniform", "beta31", "poisson16"])
def test_draws_follow_the_exact_probabilities(name, min_posts, max_posts):
    draws = draw_sizes(name, 40_000, np.random.default_rng(2), min_posts, max_posts)
    assert draws.dtype == np.int64 and draws.min() >= min_posts and draws.max() <= max_posts
    sizes, weight = probabilities(name, min_posts, max_posts)
    seen = np.array([(draws == size).sum() for size in sizes])
    assert not seen[weight == 0].any()
    rare = weight * len(draws) < 5
    seen, weight = (np.append(values[~rare], values[rare].sum()) for values in (seen, weight))
    seen, weight = seen[weight > 0], weight[weight > 0]
    assert stats.chisquare(seen, weight * seen.sum()).pvalue > 1e-3


TOPIC_COUNTS = (6, 1, 9, 4, 2, 12, 3, 1, 5, 8)


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
def on_topics(make_store):
    topics = np.random.default_rng(0).integers(0, 6, sum(TOPIC_COUNTS))
    return store_on(make_store, topics, TOPIC_COUNTS)


def documents_of(batch, samples):
    """(P, K) numbers of the posts, read back from the tokens."""
    assert batch.mask.all() and batch.mask.shape[1] == 1
    return batch.tokens[:, 0, 0].numpy().reshape(-1, samples)


def topic_sampler(store, authors=32, samples=2, seed=0):
    """The topic sampler, by default with the sizes that sawatphol2022 released."""
    settings = {"authors_per_batch": authors, "samples_per_author": samples}
    return make_sampler(TopicSampler(**settings), store, seed)


def author_of(store):
    return np.repeat(np.arange(store.authors), store.posts_per_author())


class TestBatch:
    @pytest.mark.parametrize("samples", [1, 2, 4])
    def test_who_is_in_it(self, on_topics, samples):
        author, count = author_of(on_topics), on_topics.posts_per_author()
        draw = topic_sampler(on_topics, 4, samples, seed=1)
        for step in range(60):
            batch = draw(step)
            documents = documents_of(batch, samples)
            rows = batch.authors.numpy().reshape(-1, samples)
            assert (author[documents] == rows).all() and (rows == rows[:, :1]).all(), (
                "an author's rows side by side"
            )
            chosen = rows[:, 0]
            assert len(set(chosen)) == len(chosen) and (count[chosen] >= samples).all()
            assert 3 <= len(chosen) <= 4
            assert all(len(set(row)) == samples for row in documents), "no document twice"
            shared = on_topics.topic[documents[:, 0]]
            names, authors = np.unique(shared, return_counts=True)
            assert (authors > 1).all(), "nobody is alone on a topic"
            for row, topic in zip(documents, shared):
                elsewhere = (on_topics.topic[author == author[row[0]]] != topic).sum()
                assert (on_topics.topic[row[1:]] != topic).sum() == min(elsewhere, samples - 1), (
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
        draw = topic_sampler(store, 2, 2)
        documents = np.array([documents_of(draw(step), 2) for step in range(steps)])
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
        assert len(np.unique(store.topic[documents_of(topic_sampler(store)(1), 2)[:, 0]])) == 1
        # ten topics of three authors each
        small = store_on(make_store, np.repeat(np.arange(10), 6), [2] * 30)
        for authors, most in ((2, 2), (5, 5), (13, 13), (64, 30)):
            draw = topic_sampler(small, authors)
            for step in range(10):
                topics = small.topic[documents_of(draw(step), 2)[:, 0]]
                _, authors_of = np.unique(topics, return_counts=True)
                assert most - 1 <= authors_of.sum() <= most and (authors_of > 1).all()

    def test_other_is_no_topic_to_share(self, make_store):
        topics = [2, 0, 2, 2, 2, 0, 2, 1]
        # 2 = other; topic 0: authors 0 and 2
        store = store_on(make_store, topics, [2] * 4, listed=2)
        draw = topic_sampler(store)
        assert all(set(draw(step).authors.tolist()) == {0, 2} for step in range(20))

    def test_nobody_shares_a_topic(self, make_store):
        alone = store_on(make_store, [0, 1, 2, 3, 0, 4], [2, 2, 1, 1])
        with pytest.raises(ValueError, match="no two authors of 2 posts or more share a topic"):
            topic_sampler(alone)
        assert set(topic_sampler(alone, samples=1)(0).authors.tolist()) == {0, 2}
