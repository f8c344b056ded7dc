"""The count branch against scikit-learn and plain loops; models that carry it."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfTransformer

from helpers.losses import registry as losses
from helpers.training import experiment as models
from helpers.training import loop as training
from helpers.encoders.lsa import CountBranch, sample_windows, within_author_whitening
from helpers.encoders.embed import embed
from helpers.encoders.stream import join
from helpers.evaluation.ranking import query_target_windows, ranks
from helpers.tokens.batch import gather
from helpers.tokens.store import build_store
from helpers.tokens.tokenizer import Bytes


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
    branch = CountBranch(256, 6, 4, buckets=1000)
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
    branch = CountBranch(256, 6, 12, buckets=500).fit(store, posts=8, windows=5, length=20)
    _, first, count = sample_windows(store, 8, 5)
    weigh = TfidfTransformer(sublinear_tf=True).fit(branch.count_matrix(store, first, count, 20))
    sample, feature, number = branch.counts(batch.tokens)
    dense = np.zeros((len(batch), 756), np.float32)
    dense[sample, feature] = number
    latent = weigh.transform(dense).toarray() @ branch.axes.numpy()
    latent /= np.linalg.norm(latent, axis=1, keepdims=True)
    np.testing.assert_allclose(branch._views(batch)["text"].numpy(), latent, atol=1e-5)
    (vectors,) = branch(batch)
    wanted = (latent - branch.text_mean.numpy()) @ branch.text_whiten.numpy()
    np.testing.assert_allclose(vectors, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-4)


def test_hours_are_mean_waves_and_topics_shares_of_the_real_posts(batch):
    branch = CountBranch(256, 4, 4, "TPS")  # topics 3 and 4 are beyond the list
    views = branch._views(batch)
    for row, hours, topics, mask in zip(range(len(batch)), batch.hours, batch.topics, batch.mask):
        hours, topics = hours[mask].tolist(), [topic for topic in topics[mask].tolist() if topic < 3]
        turns = [np.exp(2j * np.pi * turn * np.array(hours) / 24).mean() for turn in (1, 2)]
        wanted = [turn.real for turn in turns] + [turn.imag for turn in turns]
        np.testing.assert_allclose(views["hours"][row], wanted, atol=1e-6)
        shares = [topics.count(topic) / max(len(topics), 1) for topic in range(3)]
        np.testing.assert_allclose(views["topics"][row] ** 2, shares, atol=1e-6)


def test_a_sample_of_unknown_topics_says_nothing_by_them(store, batch):
    """Its topic view is zero, so that the others decide; and it pulls no mean and no whitening."""
    branch = CountBranch(256, 6, 16, "TPS", buckets=500).fit(store, posts=8, length=20)
    *_, known = branch(batch)
    assert torch.allclose(known.norm(dim=1), torch.ones(len(batch)))
    batch.topics[:3] = 5  # the last row: other
    *others, topics = branch(batch)
    assert not topics[:3].any() and torch.equal(topics[3:], known[3:])
    joined = join([*others, topics], torch.tensor([0.2, 0.1, 0.7]))
    np.testing.assert_allclose(joined.norm(dim=1), 1, atol=1e-5)
    np.testing.assert_allclose(joined[:3], join([*others, topics * 0], torch.tensor([0.2, 0.1, 0.0]))[:3], atol=1e-6)


def test_joined_cosines_are_the_weighted_mean_of_the_cosines():
    rng = torch.Generator().manual_seed(0)
    parts = [torch.nn.functional.normalize(torch.randn(9, width, generator=rng), dim=1) for width in (5, 2, 3)]
    weights = torch.tensor([0.5, 0.1, 0.4])
    joined = join(parts, weights)
    wanted = sum(weight * part @ part.T for weight, part in zip(weights, parts))
    np.testing.assert_allclose(joined @ joined.T, wanted, atol=1e-6)


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
    branch = CountBranch(256, 6, 16, "TPS", buckets=500).fit(store, posts=8, length=20)
    sides = [branch(gather(store, author, first, count, 20)) for first in (query, target)]
    scores = [(1 / ranks(*(join(side[:views], torch.ones(views)) for side in sides))).mean() for views in (1, 2, 3)]
    assert 0.2 < scores[0] < scores[1] < scores[2], scores


def test_it_needs_more_samples_than_dimensions_and_authors_with_two(store):
    with pytest.raises(ValueError, match="cannot fit a count branch of 500 dimensions: lower counts"):
        CountBranch(256, 6, 500).fit(store, posts=8, windows=2)
    with pytest.raises(ValueError, match="cannot fit"):
        CountBranch(256, 6, 4).fit(store, posts=100)


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
    again, about = models.load(tmp_path / "m", store)
    windows = (store, np.arange(5), store.author_offsets[:5], np.full(5, 8), 20)
    np.testing.assert_array_equal(embed(encoder, *windows), embed(again, *windows))
    assert about["shape"]["counts"] == 16 and history.MRR.max() > 0.2


def test_the_best_step_has_the_best_dev_score_with_its_weights(store, tmp_path):
    encoder, history = fit(store, tmp_path / "m")
    author, query, target = query_target_windows(store, 8)
    windows = [(store, author, first, np.full(len(author), 8), 20) for first in (query, target)]
    best = history.loc[history.MRR.idxmax()]
    rank = ranks(*(embed(encoder, *side) for side in windows))
    assert (1 / rank).mean() == pytest.approx(best.joined, abs=1e-6)
    sides = [models.embed_parts(encoder, *side) for side in windows]
    spread = [float((query @ target.T).std()) for query, target in zip(*sides)]
    scores = []
    for shares in itertools.product(range(11), repeat=4):
        if sum(shares) == 10:  # scores divided by their spread, no vectors joined
            score = sum(share / one * (query @ target.T) for share, one, query, target in zip(shares, spread, *sides))
            own = score.diagonal()[:, None]
            scores.append((1 / (score >= own - 1e-6).sum(1)).mean().item())
    assert len(scores) == 286 and max(scores) == pytest.approx(best.joined, abs=0.01)
    assert (1 / ranks(*(side[0] for side in sides))).mean() == pytest.approx(best.MRR, abs=1e-6), "chosen by the stream"
    assert best.joined > best.MRR
    np.testing.assert_allclose(join(sides[0], encoder.weights), embed(encoder, *windows[0]), atol=1e-6)
    assert set(models.weightings(encoder)) == {"", "stream", "counts"}


def test_a_complete_training_is_kept_and_not_replaced_unasked(store, tmp_path):
    fit(store, tmp_path / "m", other=0)
    before = (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns
    fit(store, tmp_path / "m", other=0)
    with pytest.raises(ValueError, match="m is already trained with other settings .other 0, now 1.: give this one"):
        fit(store, tmp_path / "m", other=1)
    models.load(tmp_path / "m", store)
    assert (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns == before


def test_other_data_or_another_version_train_anew(store, tmp_path, monkeypatch):
    fit(store, tmp_path / "m", other=1)
    before = (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(models, "VERSION", -1)
    monkeypatch.setattr(models, "DEAR", -1)
    with pytest.raises(ValueError, match="m was trained for 0 minutes, on other data or by earlier code: delete"):
        fit(store, tmp_path / "m")
    monkeypatch.setattr(models, "DEAR", 600)
    fit(store, tmp_path / "m")
    assert (tmp_path / "m" / "best.safetensors").stat().st_mtime_ns > before


def test_a_model_of_other_tokens_is_refused(store, tmp_path, write_posts):
    fit(store, tmp_path / "m")
    other = build_store(write_posts(styled_posts()), tmp_path / "other", Bytes().encode, ["t0"], "v1", 256)
    with pytest.raises(ValueError, match="trained on other tokens"):
        models.load(tmp_path / "m", other)


def test_killed_before_the_first_checkpoint_nothing_old_is_taken_for_new(store, tmp_path, monkeypatch):
    fit(store, tmp_path / "m", other=1)
    monkeypatch.setattr(models, "VERSION", -1)
    monkeypatch.setattr(training, "train", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit(store, tmp_path / "m")
    with pytest.raises(ValueError, match="training.json is missing"):
        models.load(tmp_path / "m", store)


def test_hidden_topics_train_the_row_of_other(store, batch):
    shape = {"features": "TPS", "filters": 8, "token_dim": 8, "attention": 8, "embedding": 16}
    for share, trained in ((0.0, False), (0.5, True)):
        encoder = models.build(shape | {"topic_dropout": share}, store)
        encoder(batch).sum().backward()
        assert encoder.topic.weight.grad[-1].any() == trained
    hidden = encoder.train()._hide(torch.zeros(10_000, dtype=torch.long)) == 5
    assert 0.47 < hidden.float().mean() < 0.53
    assert torch.equal(encoder.eval()._hide(batch.topics), batch.topics)


def test_training_sees_the_stream_alone(store, batch):
    shape = {"features": "T", "filters": 8, "token_dim": 8, "attention": 8, "embedding": 16, "counts": 16}
    encoder = models.build(shape, store)
    assert encoder.train()(batch).shape[1] == 16
    with torch.no_grad():
        assert encoder.eval()(batch).shape[1] == 32
