"""Pairs of documents and random ones: what is drawn, and how often."""

import numpy as np
import pytest
from scipy import stats

from helpers.tokens.samplers import SamplerConfig, make_sampler

SETTINGS = SamplerConfig(kind="pairs", authors_per_batch=6, max_tokens=4)


@pytest.fixture
def store(make_store):
    return make_store([5, 2, 1, 9, 3, 4], lengths=np.ones(24, int))  # token = post


def posts(batch):
    return batch.tokens[:, 0, 0].numpy()


def test_half_of_the_pairs_are_of_one_author_and_never_the_same_document(store):
    draw = make_sampler(SETTINGS, store, 0)
    for step in range(50):
        batch = draw(step)
        author, post = batch.authors.numpy().reshape(-1, 2), posts(batch).reshape(-1, 2)
        assert (author[:3, 0] == author[:3, 1]).all() and (author[3:, 0] != author[3:, 1]).all()
        assert (post[:, 0] != post[:, 1]).all() and len(author) == 6


def test_an_uneven_pair_is_of_one_author(store):
    author = make_sampler(SETTINGS.model_copy(update={"authors_per_batch": 5}), store, 0)(
        0
    ).authors.view(-1, 2)
    assert (author[:, 0] == author[:, 1]).tolist() == [True] * 3 + [False] * 2


def test_all_documents_and_all_authors_are_reached(store):
    draw = make_sampler(SETTINGS, store, 1)
    batches = [draw(step) for step in range(300)]
    assert {post for batch in batches for post in posts(batch)} == set(range(24))
    count = np.bincount(
        np.concatenate([batch.authors[:6:2].numpy() for batch in batches]), minlength=6
    )
    assert count[2] == 0, "one document makes no pair"
    assert count[[0, 1, 3, 4, 5]].min() > 100, "authors alike, not in proportion to documents"


def test_too_few_authors_with_two_documents(make_store):
    with pytest.raises(
        ValueError, match="1 authors with 2 posts or more in nowhere: need at least 2"
    ):
        make_sampler(SETTINGS, make_store([1, 1, 4]), 0)(0)


def test_documents_are_drawn_uniformly_without_replacement(store):
    def draw(count):
        return make_sampler(
            SamplerConfig(kind="random", authors_per_batch=count, max_tokens=4), store, 0
        )

    for count, size in ((5, 5), (24, 24), (100, 24)):
        posts = draw(count)(3).tokens[:, 0, 0].tolist()
        assert len(posts) == len(set(posts)) == size
    five = draw(5)
    seen = np.bincount(
        np.concatenate([five(step).tokens[:, 0, 0].numpy() for step in range(1000)]), minlength=24
    )
    assert stats.chisquare(seen).pvalue > 1e-3
