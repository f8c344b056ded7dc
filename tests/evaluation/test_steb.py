"""STEB calls a model with lists of episodes: what it is answered, by the encoder that ships and by a composed one."""

import inspect

import numpy as np
import pytest
import torch

from helpers import AuthorEncoder
from helpers.accounts.samples import samples_of
from helpers.encoders.base import embed
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.evaluation.steb import STEBModel
from helpers.tokens.tokenizer import Bytes

EPISODES = [
    ["One post.", "Another one!"],
    ["a text alone"],
    ["", " ", "with blank ones"],
    ["x y z"] * 5,
    ["last"],
]


@pytest.fixture(scope="module")
def shipped():
    return AuthorEncoder.load("open-small")


def test_its_rows_are_those_of_the_encoder_whatever_the_batch(shipped):
    wanted = shipped.encode(EPISODES)
    for size in (1, 2, 32):
        found = STEBModel("open-small", shipped.encode).embed_multiple(
            EPISODES, size, show_progress=False
        )
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert found.dtype == np.float32 and len(found) == len(EPISODES)


def test_every_episode_has_a_row(shipped):
    model = STEBModel("open-small", shipped.encode)
    found = model.embed_multiple([["some words"], ["", "> a quote"], ["."]], batch_size=2)
    np.testing.assert_allclose(found[1], found[2], atol=1e-6)
    assert np.isfinite(found).all() and not np.allclose(found[0], found[1])


def test_it_takes_what_steb_gives():
    """``embed_multiple(episodes, batch_size, show_progress=...)``, and the name under which it files results."""
    arguments = inspect.signature(STEBModel.embed_multiple).parameters
    assert list(arguments) == ["self", "episodes", "batch_size", "show_progress"]
    model = STEBModel("ours/open-small", lambda some: np.ones((len(some), 3), np.float32))
    assert model.model_name_or_path == "ours/open-small"
    assert model.embed_multiple(EPISODES, 2, show_progress=True).shape == (5, 3)


def test_a_composed_encoder_and_its_tokenizer():
    encoder = build_stream_encoder(
        stream_config(features="T", filters=8, token_dim=8, attention=8, dim=16), 256, 1
    ).eval()
    model = STEBModel("small", lambda some: embed(encoder, samples_of(some, Bytes()), 128))
    found = model.embed_multiple(EPISODES, 2)
    with torch.no_grad():
        wanted = [embed(encoder, samples_of([each], Bytes()), 128)[0] for each in EPISODES]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
