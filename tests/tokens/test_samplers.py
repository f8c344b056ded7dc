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
