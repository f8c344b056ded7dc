"""The count branch against scikit-learn and plain loops; models that carry it."""

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfTransformer

from helpers import losses, models, training
from helpers.counts import TOPICS, CountBranch, sample_windows, within_author_whitening
from helpers.embedding import embed
from helpers.evaluation.ranking import query_target_windows, ranks
from helpers.sampling import gather
from helpers.store import build_store
from helpers.tokenizer import Bytes


def styled_posts(authors=40, posts=40, seed=0):
    """Authors with favourite words, hours and topics."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{n:02d}" for n in range(60)])
    rows = []
    for author in range(authors):
        share, hour, topic = rng.dirichlet(np.full(60, 2.0)), rng.integers(24), rng.integers(5)
        for post in range(posts):
            time = (post * 24 + (hour + rng.integers(3)) % 24) * 3600
            rows.append((f"a{author:02d}", int(time), f"t{topic}", " ".join(rng.choice(words, 8, p=share))))
    return sorted(rows)


@pytest.fixture
def store(write_posts, tmp_path):
    topics = [f"t{n}" for n in range(5)]
    return build_store(write_posts(styled_posts()), tmp_path / "store", Bytes().encode, topics, "v1", 256)


@pytest.fixture
def batch(store):
    author, first, count = sample_windows(store, 8, 2)
    return gather(store, author, first, count, 20)


def test_counts_are_those_of_a_loop(batch):
    branch = CountBranch(256, 4, buckets=1000)
    found = {(int(s), int(f)): int(c) for s, f, c in zip(*branch.counts(batch.tokens))}
    wanted = {}
    for sample, posts in enumerate(batch.tokens.tolist()):
        for post in posts:
            real = [token for token in post if token >= 0]
            pairs = [(a * 1_000_003 + b * 7_919) % 1000 + 256 for a, b in zip(real, real[1:])]
            for feature in real + pairs:
                wanted[sample, feature] = wanted.get((sample, feature), 0) + 1
    assert found == wanted


def test_text_is_the_svd_of_scikit_learns_tfidf(store, batch):
    branch = CountBranch(256, 12, buckets=500).fit(store, posts=8, windows=5, length=20)
    _, first, count = sample_windows(store, 8, 5)
    weigh = TfidfTransformer(sublinear_tf=True).fit(branch.count_matrix(store, first, count, 20))
    sample, feature, number = branch.counts(batch.tokens)
    dense = np.zeros((len(batch), 756), np.float32)
    dense[sample, feature] = number
    latent = weigh.transform(dense).toarray() @ branch.axes.numpy()
    latent /= np.linalg.norm(latent, axis=1, keepdims=True)
    np.testing.assert_allclose(branch._views(batch).numpy(), latent, atol=1e-5)
    vectors = branch(batch)
    wanted = (latent - branch.mean.numpy()) @ branch.whiten.numpy()
    np.testing.assert_allclose(vectors, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-4)


def test_hours_and_topics_are_shares_of_the_real_posts(batch):
    branch = CountBranch(256, 4, "TPS")
    views = branch._views(batch).numpy()[:, 4:]
    for row, hours, topics, mask in zip(views, batch.hours, batch.topics, batch.mask):
        hours, topics = hours[mask].tolist(), topics[mask].tolist()
        np.testing.assert_allclose(row[:24], [hours.count(hour) / len(hours) for hour in range(24)], atol=1e-6)
        shares = [topics.count(topic) / len(topics) for topic in range(TOPICS)]
        np.testing.assert_allclose(row[24:] ** 2, shares, atol=1e-6)


def test_whitening_makes_the_within_author_covariance_the_identity():
    rng = np.random.default_rng(0)
    author = np.repeat(np.arange(200), 6)
    vectors = rng.normal(size=(200, 5))[author] * 3 + rng.normal(size=(1200, 5)) @ rng.normal(size=(5, 5))
    whitened = vectors @ within_author_whitening(vectors, author, 0.0)
    means = np.stack([whitened[author == one].mean(0) for one in range(200)])
    deviation = whitened - means[author]
    np.testing.assert_allclose(deviation.T @ deviation / len(deviation), np.eye(5), atol=1e-8)


def test_it_finds_authors_better_with_every_view(store):
    author, query, target = query_target_windows(store, 8)
    count = np.full(len(author), 8)
    scores = []
    for features in ("T", "TP", "TPS"):
        branch = CountBranch(256, 16, features, buckets=500).fit(store, posts=8, length=20)
        sides = (branch(gather(store, author, first, count, 20)) for first in (query, target))
        scores.append((1 / ranks(*sides)).mean())
    assert 0.2 < scores[0] < scores[1] < scores[2], scores


def test_it_needs_more_samples_than_dimensions_and_authors_with_two(store):
    with pytest.raises(ValueError, match="cannot fit 500 dimensions"):
        CountBranch(256, 500).fit(store, posts=8, windows=2)
    with pytest.raises(ValueError, match="cannot fit"):
        CountBranch(256, 4).fit(store, posts=100)


def fit(store, folder, **settings):
    shape = {"features": "TPS", "filters": 8, "token_dim": 8, "attention": 8, "embedding": 16, "counts": 16}
    drawing = {"authors": 8, "samples": 4, "largest": 8, "length": 20}
    encoder = models.build(shape, store)
    recipe = training.Recipe(steps=6, lr=1e-3, eval_every=3)
    loss = losses.make_loss("triplet")
    history = models.fit(encoder, folder, shape, store, store, drawing, loss, recipe, {"length": 20, **settings})
    return encoder, history


def test_a_model_comes_back_as_it_was(store, tmp_path):
    encoder, history = fit(store, tmp_path / "m")
    again, about = models.load(tmp_path / "m")
    windows = (store, np.arange(5), store.author_offsets[:5], np.full(5, 8), 20)
    np.testing.assert_array_equal(embed(encoder, *windows), embed(again, *windows))
    assert about["shape"]["counts"] == 16 and history.MRR.max() > 0.2


def test_the_best_weights_have_the_best_dev_score_with_their_angle(store, tmp_path):
    encoder, history = fit(store, tmp_path / "m")
    author, query, target = query_target_windows(store, 8)
    sides = [embed(encoder, store, author, first, np.full(len(author), 8), 20) for first in (query, target)]
    assert (1 / ranks(*sides)).mean() == pytest.approx(history.MRR.max(), abs=1e-6)
    parts = [models.embed_parts(encoder, store, author, first, np.full(len(author), 8), 20) for first in (query, target)]
    for angle in models.ANGLES:
        assert (1 / ranks(*(models.join(*part, angle) for part in parts))).mean() <= history.MRR.max() + 1e-6
    joined = models.join(*parts[0], encoder.angle.item())
    np.testing.assert_allclose(joined, sides[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(joined, axis=1), 1, atol=1e-5)


def test_other_settings_train_anew_and_the_same_do_not(store, tmp_path):
    fit(store, tmp_path / "m")
    before = (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns
    fit(store, tmp_path / "m")
    assert (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns == before
    fit(store, tmp_path / "m", other=1)
    assert (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns > before


def test_training_sees_the_stream_alone(store, batch):
    encoder = models.build({"features": "T", "filters": 8, "token_dim": 8, "attention": 8, "embedding": 16, "counts": 16}, store)
    assert encoder.train()(batch).shape[1] == 16
    with torch.no_grad():
        assert encoder.eval()(batch).shape[1] == 32
