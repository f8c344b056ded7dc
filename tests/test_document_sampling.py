"""Pairs and random documents: what is drawn, how often, and that a step is always the same."""

import numpy as np
import pytest
import torch
from tests.factories import store_in_memory

from helpers.tokens.pair_samplers import DRAWS, draw_pairs, draw_random
from helpers.losses.registry import contrastive


@pytest.fixture
def store():
    return store_in_memory([5, 2, 1, 9, 3, 4], lengths=np.ones(24, int))  # token = post


def posts(batch):
    return batch.tokens[:, 0, 0].numpy()


def test_half_of_the_pairs_are_of_one_author_and_never_the_same_document(store):
    for step in range(50):
        batch = draw_pairs(store, 0, step, authors=6, length=4)
        author, post = batch.authors.numpy().reshape(-1, 2), posts(batch).reshape(-1, 2)
        assert (author[:3, 0] == author[:3, 1]).all() and (author[3:, 0] != author[3:, 1]).all()
        assert (post[:, 0] != post[:, 1]).all() and len(author) == 6
        own = np.searchsorted(store.author_offsets, post, side="right") - 1
        assert np.array_equal(own, author)


def test_all_documents_and_all_authors_are_reached(store):
    drawn = [draw_pairs(store, 1, step, authors=6, length=4) for step in range(300)]
    assert {post for batch in drawn for post in posts(batch)} == set(range(24))
    with_two = np.concatenate([batch.authors[:6:2].numpy() for batch in drawn])
    count = np.bincount(with_two, minlength=6)
    assert count[2] == 0 and count[[0, 1, 3, 4, 5]].min() > 100  # authors alike, not in proportion to documents


def test_random_documents_are_drawn_without_replacement(store):
    batch = draw_random(store, 0, 3, authors=24, length=4)
    assert sorted(posts(batch)) == list(range(24))
    assert len(draw_random(store, 0, 3, authors=100, length=4)) == 24
    assert len(draw_random(store, 0, 3, authors=5, length=4)) == 5


@pytest.mark.parametrize("name", DRAWS)
def test_a_step_is_a_function_of_seed_and_step(store, name):
    settings = {"authors": 4, "length": 4} | ({"samples": 2, "largest": 1} if name == "authors" else {})
    settings["authors"] = 3 if name == "authors" else 4
    one, same, other = (DRAWS[name](store, 5, step, **settings) for step in (7, 7, 8))
    assert torch.equal(one.tokens, same.tokens) and not torch.equal(one.tokens, other.tokens)


def test_too_few_authors_with_two_documents():
    with pytest.raises(ValueError, match="need at least 2"):
        draw_pairs(store_in_memory([1, 1, 4]), 0, 0)


@pytest.mark.parametrize("settings", [{}, {"same_margin": 0.1, "distance": "euclidean"}, {"margin": 3.0, "distance": "raw"}])
def test_a_loss_of_neighbours_sees_the_drawn_pairs_only(settings):
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(8, 5, generator=rng, dtype=torch.float64)
    labels = torch.tensor([1, 1, 2, 2, 1, 2, 3, 1])
    by_pair = [contrastive(vectors[i : i + 2], labels[i : i + 2], **settings) * 2 for i in range(0, 8, 2)]
    wanted = (sum(by_pair[:2]) / 2 + sum(by_pair[2:]) / 2) / 2
    assert torch.isclose(contrastive(vectors, labels, neighbours=True, **settings), wanted)
