"""The transformer encoder against transformers called by hand, and what every encoder promises."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from helpers.encoders import transformer
from helpers.encoders.base import embed
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.tokens.batch import Samples, make_batch
from tests.factories import store_in_memory

DENSE = {"preset": "tyo2021", "dim": 6}


@pytest.fixture
def store():
    return store_in_memory([3, 2, 4, 2], longest=40, vocabulary=50)


def make(vocabulary=50, model="tiny", preset="sawatphol2022", **settings):
    return build_stream_encoder(
        stream_config(preset, model=model, **settings), vocabulary, 5
    ).eval()


def every_post(store, **settings):
    return embed(make(**settings), Samples.of_posts(store), 40)


@torch.no_grad()
def by_hand(body, tokens):
    """Mean of the last layer over one text, alone, no padding."""
    return body(input_ids=torch.tensor([tokens])).last_hidden_state[0].mean(0)


def test_it_is_the_mean_of_the_last_layer_through_the_dense_layer(store):
    encoder = make(preset="tyo2021", dim=8, max_tokens=20)
    vectors = embed(encoder, Samples.of_posts(store), 40)
    for post in np.flatnonzero(np.diff(store.post_offsets)):
        tokens = store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]][:20].tolist()
        mean = by_hand(encoder.post.body, tokens)
        expected = normalize(encoder.projection(mean).clamp(min=0), dim=0)
        assert np.allclose(vectors[post], expected.detach(), atol=1e-5)


def test_an_embedding_depends_on_nothing_but_its_own_text(store, monkeypatch):
    together = every_post(store, **DENSE)
    posts = np.arange(store.posts)
    # a bucket of its own for nearly each text
    monkeypatch.setitem(transformer.BUCKET_TOKENS, "cpu", 30)
    assert np.allclose(together, every_post(store, **DENSE), atol=1e-5)
    encoder = make(**DENSE)
    for post in posts:
        alone = embed(encoder, Samples.of_posts(store)[[post]], 40)
        assert np.allclose(together[post], alone[0], atol=1e-5)
    # padded far beyond its end
    batch = make_batch(store, np.array([0]), np.array([0]), np.array([1]), 200)
    with torch.no_grad():
        assert np.allclose(encoder(batch).numpy(), together[:1], atol=1e-5)


def test_a_text_without_tokens_is_a_number_and_alike_for_all():
    empty = store_in_memory([2, 2], lengths=[0, 3, 0, 5], vocabulary=50)
    vectors = every_post(empty)
    assert np.isfinite(vectors).all() and np.allclose(vectors[0], vectors[2])
    with torch.no_grad():
        nothing = make(unit=False)(make_batch(empty, *np.array([[0], [0], [1]]), 4))
    assert np.isfinite(nothing.numpy()).all() and not nothing.any()
