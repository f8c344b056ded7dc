"""Batches and lists of samples against a loop over the posts of the store."""

import numpy as np
import pytest
import torch
from scipy import stats

from helpers.tokens.batch import PAD, Samples, chunk_documents, make_batch

COUNTS = (7, 1, 4, 9)


@pytest.fixture
def store(make_store):
    """Posts of 0..12 tokens; a token tells its place in the store."""
    store = make_store(COUNTS)
    object.__setattr__(store, "tokens", np.arange(len(store.tokens)).astype("u2"))
    return store


def post_tokens(store, post):
    return store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]].tolist()


def about_post(store, post):
    return [store.hour[post], store.topic[post], store.time[post]]


def about_place(batch, row, place):
    return [batch.hours[row, place], batch.topics[row, place], batch.times[row, place]]


def check(store, batch, lists, max_tokens):
    """Every sample of a batch holds the listed posts of the store, padded."""
    longest = max(map(len, lists))
    assert batch.tokens.shape == (len(lists), longest, max_tokens)
    assert batch.tokens.dtype == torch.int64
    for row, posts in enumerate(lists):
        assert batch.mask[row].tolist() == [True] * len(posts) + [False] * (longest - len(posts))
        for place in range(longest):
            tokens = post_tokens(store, posts[place])[:max_tokens] if place < len(posts) else []
            assert batch.tokens[row, place].tolist() == tokens + [PAD] * (max_tokens - len(tokens))
            about = about_post(store, posts[place]) if place < len(posts) else [0, 0, 0]
            assert about_place(batch, row, place) == about


class TestGather:
    def test_everything_of_the_posts_is_there(self, store):
        first, count = np.array([3, 0, 12, 7]), np.array([4, 9, 1, 2])
        batch = make_batch(store, np.array([2, 0, 3, 1]), first, count, 8)
        check(store, batch, [list(range(*begin_end)) for begin_end in zip(first, first + count)], 8)
        assert batch.authors.tolist() == [2, 0, 3, 1] and len(batch) == 4

    def test_random_windows_are_consecutive_tokens_of_the_post_with_uniform_starts(
        self, make_store
    ):
        store = make_store([4, 4], lengths=[20, 8, 3, 0] * 2)
        # token = place in the post
        places = np.concatenate([np.arange(n) for n in [20, 8, 3, 0] * 2]).astype("u2")
        object.__setattr__(store, "tokens", places)
        many = np.zeros(3000, np.int64)
        batch = make_batch(store, many, many, many + 4, 8, np.random.default_rng(0))
        starts = batch.tokens[:, 0, 0]
        assert torch.equal(batch.tokens[:, 0], starts[:, None] + torch.arange(8))
        assert stats.chisquare(np.bincount(starts, minlength=13)).pvalue > 1e-3
        assert starts.max() == 12
        for post, tokens in ((1, 8), (2, 3), (3, 0)):  # nothing to choose: the whole post
            assert (
                batch.tokens[:, post] == torch.tensor([*range(tokens), *[PAD] * (8 - tokens)])
            ).all()


class TestBatch:
    @pytest.fixture
    def batch(self, store):
        return Samples(store, np.array([0, 7, 8, 12]), np.array([7, 1, 4, 5]), np.arange(4)).batch(
            slice(None), 8
        )

    def test_joined_posts_are_one_post(self, store, batch):
        joined = batch.concatenate_posts()
        for row, (first, count) in enumerate([(0, 7), (7, 1), (8, 4), (12, 5)]):
            tokens = sum((post_tokens(store, first + place)[:8] for place in range(count)), [])
            padding = [PAD] * (joined.tokens.shape[2] - len(tokens))
            assert joined.tokens[row, 0].tolist() == tokens + padding
            assert (joined.hours[row], joined.times[row]) == (store.hour[first], store.time[first])
        assert joined.mask.tolist() == [[True]] * 4 and torch.equal(joined.authors, batch.authors)
        assert (joined.tokens[:, 0] != PAD).any(0).all(), "no wider than the longest"

    @pytest.mark.parametrize("posts", [1, 3, 10])
    def test_groups_are_contiguous_posts(self, store, batch, posts):
        groups, sample = batch.split_posts(posts)
        lists, rows = [], []
        for row, (first, count) in enumerate([(0, 7), (7, 1), (8, 4), (12, 5)]):
            for begin in range(first, first + count, posts):
                lists.append(list(range(begin, min(begin + posts, first + count))))
                rows.append(row)
        assert sample.tolist() == rows == groups.authors.tolist()
        width = max(map(len, lists))
        assert not groups.mask[:, width:].any()
        for name in ("tokens", "hours", "topics", "mask", "times"):
            setattr(groups, name, getattr(groups, name)[:, :width])
        check(store, groups, lists, 8)


class TestSamples:
    def test_lists_of_posts_in_any_order(self, store):
        lists = [[5, 2, 20], [7], [3, 3, 4]]
        samples = Samples.of_lists(
            store, np.concatenate(lists), np.array([0, 3, 4, 7]), np.array([8, 6, 8])
        )
        check(store, samples.batch(np.arange(3), 12), lists, 12)
        check(store, samples[[2, 0]].batch(np.arange(2), 5), [lists[2], lists[0]], 5)
        assert samples[[2, 1]].authors.tolist() == [8, 6] == samples.batch([2, 1]).authors.tolist()

    def test_long_documents_in_pieces(self, make_store):
        lengths = [0, 1, 10, 11, 20, 39, 5]
        store = make_store([3, 4], lengths=lengths)
        object.__setattr__(store, "tokens", np.arange(sum(lengths)).astype("u2"))
        rows = np.array([5, 0, 2, 3, 6, 3])
        samples = chunk_documents(store, 10)[rows]
        batch = samples.batch(np.arange(6), 10)
        assert batch.authors.tolist() == [1, 0, 0, 1, 1, 1] == samples.authors.tolist()
        assert batch.mask.sum(1).tolist() == [4, 1, 1, 2, 1, 2], (
            "a document without tokens is one empty piece"
        )
        for row, document in enumerate(rows):
            tokens = batch.tokens[row][batch.mask[row]]
            assert tokens[tokens != PAD].tolist() == post_tokens(store, document)
            assert ((tokens != PAD).sum(1)[:-1] == 10).all(), "only the last piece is shorter"
            for place in range(len(tokens)):
                assert about_place(batch, row, place) == about_post(store, document)
