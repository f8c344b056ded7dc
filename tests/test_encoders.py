"""The stream encoder against the same arithmetic written as loops, its published sizes, and what it must ignore."""

import numpy as np
import pytest
import torch

from helpers.encoders.embed import average_embedder, embedder
from helpers.encoders.stream import FEATURES, StreamEncoder, parameter_counts
from helpers.tokens.batch import Batch
from helpers.tokens.batch import PAD

VOCABULARY, TOPICS = 40, 5


def make(features="TPS", dtype=torch.float64, seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"filters": 4, "token_dim": 6, "attention": 8, "embedding": 7, "layers": 3, **settings}
    encoder = StreamEncoder(VOCABULARY, TOPICS, features, **sizes).to(dtype)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return encoder


def samples(*posts, length=6, seed=1):
    """A batch of samples of so many posts each, padded to the longest."""
    torch.manual_seed(seed)
    shape = (len(posts), max(posts))
    mask = torch.arange(shape[1]) < torch.tensor(posts)[:, None]
    tokens = torch.randint(VOCABULARY, (*shape, length))
    tokens[torch.arange(length) >= torch.randint(0, length + 1, shape)[..., None]] = PAD
    tokens[~mask] = PAD
    hours, topics = torch.randint(24, shape) * mask, torch.randint(TOPICS, shape) * mask
    times = (torch.randint(10**5, shape).cumsum(1) * 3600 * 24 + hours * 3600) * mask
    return Batch(tokens, hours, topics, mask, torch.arange(len(posts)), times)


def without_padding(batch, row):
    real = int(batch.mask[row].sum())
    return Batch(*(value[row : row + 1, :real] for value in (batch.tokens, batch.hours, batch.topics, batch.mask)),
                 batch.authors[row : row + 1], batch.times[row : row + 1, :real])  # fmt: skip


def close(embeddings, wanted):
    torch.testing.assert_close(embeddings.detach(), wanted.detach(), rtol=0, atol=2e-6)


def array(parameter):
    return parameter.detach().numpy()


def layer_norm(norm, values):
    centred = values - values.mean()
    return array(norm.weight) * centred / np.sqrt((centred**2).mean() + norm.eps) + array(norm.bias)


def loops(encoder, sample):
    """Embedding of one sample without padding, a post and an attention layer at a time."""
    width = encoder.post.out_features
    posts = []
    for tokens, hour, topic in zip(sample.tokens[0], sample.hours[0].tolist(), sample.topics[0].tolist()):
        vector = [array(encoder.text(tokens[None]))[0]]
        if "P" in encoder.features:
            vector.append(np.eye(24)[hour])
        if "S" in encoder.features:
            vector.append(array(encoder.topic.weight)[topic])
        posts.append(array(encoder.post.weight) @ np.concatenate(vector) + array(encoder.post.bias))
    highest, mean = [], []
    for layer in range(encoder.layers):
        mine = slice(layer * width, (layer + 1) * width)
        query, key = (
            [array(linear.weight)[mine] @ post + array(linear.bias)[mine] for post in posts]
            for linear in (encoder.query, encoder.key)
        )
        attended = []
        for asking in query:
            scores = np.array([asking @ answering for answering in key])
            weights = np.exp(scores - scores.max())
            attended.append(sum(w * k for w, k in zip(weights / weights.sum(), key)))
        highest.append(np.max(attended, 0))
        mean.append(np.mean(attended, 0))
    # every layer's maximum beside its mean
    vector = np.concatenate([value for pair in zip(highest, mean) for value in pair])
    first, linear1, _, linear2, last = encoder.project
    hidden = np.maximum(array(linear1.weight) @ layer_norm(first, vector), 0)
    result = layer_norm(last, array(linear2.weight) @ hidden)
    return result / np.linalg.norm(result)


@pytest.mark.parametrize("features", FEATURES)
def test_it_is_the_paper_written_as_loops(features):
    encoder, batch = make(features), samples(5, 1, 3)
    embeddings = encoder(batch)
    for row in range(3):
        np.testing.assert_allclose(array(embeddings[row]), loops(encoder, without_padding(batch, row)), atol=1e-6)


def test_gradients_reach_every_parameter_and_padding_makes_none_of_them_nan():
    encoder = make()
    (encoder(samples(5, 1, 3)) * torch.randn(3, 7)).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert torch.isfinite(parameter.grad).all() and parameter.grad.any(), name


class TestAnEmbeddingDependsOnItsOwnPostsOnly:
    def test_not_on_neighbours_nor_on_their_order(self):
        encoder, batch = make(), samples(5, 1, 3, 16, 2)
        embeddings = encoder(batch)
        order = torch.tensor([3, 0, 4, 2, 1])
        close(encoder(batch[order]), embeddings[order])
        close(encoder(batch[torch.tensor([1])]), embeddings[1:2])
        for row in range(5):
            close(encoder(without_padding(batch, row)), embeddings[row : row + 1])

    def test_not_on_what_padded_posts_hold(self):
        encoder, batch = make(), samples(5, 1, 3)
        embeddings = encoder(batch)
        batch.tokens[~batch.mask] = 7
        batch.hours[~batch.mask], batch.topics[~batch.mask] = 11, 3
        close(encoder(batch), embeddings)

    def test_not_on_the_width_of_the_token_table(self):
        encoder, batch = make(), samples(4, 2)
        embeddings = encoder(batch)
        batch.tokens = torch.nn.functional.pad(batch.tokens, (0, 9), value=PAD)
        close(encoder(batch), embeddings)

    def test_not_on_the_order_of_the_posts(self):
        encoder, batch = make(), samples(6, 6)
        order = torch.randperm(6)
        each = (batch.tokens, batch.hours, batch.topics, batch.mask)
        mixed = Batch(*(value[:, order] for value in each), batch.authors, batch.times[:, order])
        close(encoder(mixed), encoder(batch))

    def test_but_on_each_of_them(self):
        encoder, batch = make(), samples(4, 4)
        embeddings = encoder(batch).detach()
        for post in range(4):
            changed = samples(4, 4)
            changed.tokens[:, post] = torch.randint(VOCABULARY, (2, 6))
            assert (encoder(changed) - embeddings).abs().max() > 1e-4


@pytest.mark.parametrize("features", FEATURES)
def test_features_that_are_left_out_have_no_influence(features):
    encoder, batch = make(features), samples(4, 2)
    embeddings = encoder(batch)
    for name, letter, values in (("hours", "P", 24), ("topics", "S", TOPICS)):
        other = samples(4, 2)
        setattr(other, name, (getattr(other, name) + 1) % values)
        difference = (encoder(other) - embeddings).abs().max()
        assert (difference > 1e-4) == (letter in features), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_embeddings_are_float32_of_unit_length(dtype):
    embeddings = make(dtype=dtype)(samples(5, 1, 3))
    assert embeddings.shape == (3, 7) and embeddings.dtype == torch.float32
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(3))


def test_both_text_paths_give_the_same_embedding():
    batch = samples(5, 1, 3)
    close(make(text_path="dense")(batch), make(text_path="projected")(batch))


def test_dropout_is_for_training_only():
    encoder, batch = make(dropout=0.5), samples(5, 3)
    assert (encoder(batch) - encoder(batch)).abs().max() > 1e-3
    encoder.eval()
    close(encoder(batch), encoder(batch))


@pytest.mark.parametrize("features, total, post", [
    ("T", 44_056_576, 786_944), ("TP", 44_068_864, 799_232), ("TPS", 45_380_096, 1_061_376)])  # fmt: skip
def test_the_sizes_of_the_paper(features, total, post):
    with torch.device("meta"):
        counts = parameter_counts(StreamEncoder(2**16, 2049, features))
    assert counts["total"] == total == sum(count for name, count in counts.items() if name != "total")
    assert counts["post"] == post
    assert counts["query"] + counts["key"] == 2_101_248
    assert counts["project"] == 5_253_120
    assert counts.get("topic", 0) == (2049 * 512 if features == "TPS" else 0)


@pytest.mark.parametrize("features, learned, single", [
    ("T", 44_056_576, 39_064_064), ("TP", 44_193_792, 39_088_640), ("TPS", 45_505_024, 40_662_016)])  # fmt: skip
def test_other_readings_of_the_sizes(features, learned, single):
    """A learned hour gives Table 6 to its decimal (with 2,048 topics 45,504,512); the text taken literally does not."""
    def total(**reading):
        with torch.device("meta"):
            return parameter_counts(StreamEncoder(2**16, 2049, features, **reading))["total"]

    assert total(clock="learned") == learned
    assert total(attention_reading="single", projection="paper") == single


def test_a_single_attention_is_a_loop_over_the_posts():
    encoder, batch = make(attention_reading="single", projection="paper"), samples(4, 2)
    for row in range(2):
        sample = without_padding(batch, row)
        posts = array(encoder.posts(sample))
        query, key = (posts @ array(part.weight).T + array(part.bias) for part in (encoder.query, encoder.key))
        weights = np.exp(query @ key.T)
        highest = (weights / weights.sum(1, keepdims=True) @ key).max(0)
        first, _, second = encoder.project
        hidden = np.maximum(array(first.weight) @ highest + array(first.bias), 0)
        wanted = array(second.weight) @ hidden + array(second.bias)
        np.testing.assert_allclose(array(encoder(batch)[row]), wanted / np.linalg.norm(wanted), atol=1e-6)


@pytest.mark.parametrize("settings, message", [
    ({"features": "PST"}, "features 'PST': one of T, TP, TPS"),
    ({"attention_reading": "both"}, "attention_reading 'both': one of parallel, single"),
    ({"projection": "none"}, "projection 'none': one of released, paper"),
    ({"clock": "sun"}, "clock 'sun': one of hour, learned, continuous"),
])  # fmt: skip
def test_unknown_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_averages_are_those_of_a_loop_over_single_posts(make_store):
    store = make_store([9, 4], vocabulary=VOCABULARY, lengths=[3] * 13)
    encoder = make(dtype=torch.float32).eval()
    first, count = np.array([1, 9, 0]), np.array([3, 4, 1])
    found = average_embedder(encoder, 6)(store, first, count)
    one = embedder(encoder, 6)
    for row, (begin, size) in enumerate(zip(first, count)):
        total = sum(one(store, np.array([post]), np.array([1]))[0] for post in range(begin, begin + size))
        np.testing.assert_allclose(found[row], total / np.linalg.norm(total), atol=1e-5)
