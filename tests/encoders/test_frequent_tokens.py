"""The masked view against tokens that a loop has masked."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.encoders.base import embed
from helpers.encoders.baselines import FREQUENT, fit_baseline
from helpers.encoders.lsa import FrequentTokens, LSAEncoder
from helpers.tokens.batch import PAD, training_windows
from helpers.tokens.tokenizer import Bytes
from tests.factories import styled_store


@pytest.fixture
def windows(tmp_path):
    return training_windows(styled_store(tmp_path), 8, 5)


def test_rare_tokens_are_one_and_frequent_ones_stay(windows):
    masked = FrequentTokens(LSAEncoder(11, 12, 500), 256).fit(windows, 20)
    tokens = windows.batch(np.arange(len(windows)), 20).tokens
    count = Counter(windows.store.tokens.tolist())
    ten = sorted(range(256), key=lambda token: (-count[token], token))[:10]
    number = {PAD: PAD} | {token: number for number, token in enumerate(ten)}
    shown = [
        [[number.get(token, 10) for token in post] for post in posts] for posts in tokens.tolist()
    ]
    batch = windows.batch(np.arange(len(windows)), 20)
    assert masked.view(batch).tokens.tolist() == shown

    tokens = np.array([number.get(token, 10) for token in windows.store.tokens.tolist()], "u2")
    shown_store = replace(windows.store, tokens=tokens)
    plain = LSAEncoder(11, 12, 500).fit(replace(windows, store=shown_store), 20)
    np.testing.assert_allclose(
        masked(batch), plain(replace(batch, tokens=torch.tensor(shown))), atol=1e-6
    )


def test_a_vocabulary_of_few_tokens_is_shown_whole(windows):
    encoder = fit_baseline("lsa_masked", windows.store, Bytes(), 20)
    assert FREQUENT > 256 and encoder.encoder.shown.unique().tolist() == [*range(256)]
    first, second = (
        embed(encoder, training_windows(windows.store, 8, 2)[np.arange(half, 80, 2)], 20)
        for half in (0, 1)
    )
    assert ((first @ second.T).argmax(1) == np.arange(40)).mean() > 0.08
