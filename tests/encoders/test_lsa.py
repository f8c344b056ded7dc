"""LSA, profiles and WCCN against scikit-learn and plain loops; masked tokens against a loop."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfTransformer

from helpers.encoders import lsa
from helpers.encoders.lsa import FrequentTokens, HourProfile, LSAEncoder, wccn_matrix
from helpers.encoders.tfidf import count_matrix, ngram_counts
from helpers.tokens.batch import PAD, training_windows
from tests.factories import styled_store

BUCKETS = 500


@pytest.fixture
def store(tmp_path):
    return styled_store(tmp_path)


@pytest.fixture
def windows(store):
    return training_windows(store, 8, 5)


@pytest.fixture
def batch(store):
    windows = training_windows(store, 8, 2)
    return windows.batch(np.arange(len(windows)), 20)


def test_counts_are_those_of_a_loop(batch):
    counts = {(int(s), int(f)): int(c) for s, f, c in zip(*ngram_counts(batch.tokens, 256, 1000))}
    expected = {}
    for sample, posts in enumerate(batch.tokens.tolist()):
        for post in posts:
            real = [token for token in post if token >= 0]
            pairs = [(a * 1_000_003 + b * 7_919) % 1000 + 256 for a, b in zip(real, real[1:])]
            for feature in real + pairs:
                expected[sample, feature] = expected.get((sample, feature), 0) + 1
    assert counts == expected


def test_lsa_is_the_svd_of_scikit_learns_tfidf(windows, batch):
    lsa = LSAEncoder(256, 12, BUCKETS).fit(windows, 20)
    rows = count_matrix(windows.batch(np.arange(len(windows)), 20).tokens, 256, BUCKETS)
    weighting = TfidfTransformer(sublinear_tf=True).fit(rows)
    tfidf = weighting.transform(rows)
    left, sizes, axes = np.linalg.svd(tfidf.toarray(), full_matrices=False)
    share = np.linalg.norm(tfidf @ lsa.axes.numpy()) ** 2 / (sizes[:12] ** 2).sum()
    assert 0.98 < share < 1 + 1e-6, "the randomised axes hold what the best twelve hold"
    latent = weighting.transform(count_matrix(batch.tokens, 256, BUCKETS)) @ lsa.axes.numpy()
    unit = latent / np.linalg.norm(latent, axis=1, keepdims=True)
    np.testing.assert_allclose(lsa(batch), unit, atol=1e-5)


def test_hours_are_mean_waves_of_the_real_posts(batch):
    hours = HourProfile()(batch)
    for row, mask in enumerate(batch.mask):
        angle = 2j * np.pi * batch.hours[row][mask].numpy() / 24
        turns = np.array([np.exp(angle).mean(), np.exp(2 * angle).mean()])
        waves = np.concatenate([turns.real, turns.imag])
        np.testing.assert_allclose(hours[row], waves, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, lsa.IDENTITY_SHARE])
def test_whitening_makes_the_blended_covariance_the_identity(monkeypatch, share):
    """(1 - share) of the covariance within authors, and share of its mean variance everywhere."""
    monkeypatch.setattr(lsa, "IDENTITY_SHARE", share)
    rng = np.random.default_rng(0)
    author = np.repeat(np.arange(200), 6)
    vectors = rng.normal(size=(200, 5))[author] * 3
    vectors += rng.normal(size=(1200, 5)) @ rng.normal(size=(5, 5))
    means = np.stack([vectors[author == number].mean(0) for number in range(200)])
    deviation = vectors - means[author]
    covariance = deviation.T @ deviation / len(deviation)
    blend = (1 - share) * covariance + share * np.eye(5) * np.trace(covariance) / 5
    whiten = wccn_matrix(vectors, author)
    np.testing.assert_allclose(whiten.T @ blend @ whiten, np.eye(5), atol=1e-8)


def test_rare_tokens_are_one_and_frequent_ones_stay(windows):
    masked = FrequentTokens(LSAEncoder(11, 12, 500), 256).fit(windows, 20)
    tokens = windows.batch(np.arange(len(windows)), 20).tokens
    count = Counter(windows.store.tokens.tolist())
    ten = sorted(range(256), key=lambda token: (-count[token], token))[:10]
    number = {PAD: PAD} | {token: number for number, token in enumerate(ten)}
    shown = tokens.clone().apply_(lambda token: number.get(token, 10))
    batch = windows.batch(np.arange(len(windows)), 20)
    assert torch.equal(masked.view(batch).tokens, shown)

    tokens = np.array([number.get(token, 10) for token in windows.store.tokens.tolist()], "u2")
    shown_store = replace(windows.store, tokens=tokens)
    plain = LSAEncoder(11, 12, 500).fit(replace(windows, store=shown_store), 20)
    np.testing.assert_allclose(masked(batch), plain(replace(batch, tokens=shown)), atol=1e-6)
