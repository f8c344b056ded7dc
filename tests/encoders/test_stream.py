"""Stream encoders, IUR among them, against loops; their sizes; times against the calendar."""

from datetime import UTC, datetime

import numpy as np
import pytest
import torch

from helpers.encoders.base import ChunkMean, embed
from helpers.encoders.parts import FEATURES, POOLINGS, ContinuousTime, TopicEmbedding
from helpers.encoders.stream import build_stream_encoder, parameter_counts, stream_config
from helpers.tokens.batch import Batch, Samples
from tests.factories import random_batch as samples
from tests.factories import without_padding
from tests.oracles import array, layer_norm, normed_projection

VOCABULARY, TOPICS = 40, 5


def make(features="TPS", dtype=torch.float64, preset="khan2021", **settings):
    sizes = {"filters": 4, "token_dim": 6, "attention": 8, "dim": 7, "layers": 3, **settings}
    config = stream_config(preset, features=features, **sizes)
    encoder = build_stream_encoder(config, VOCABULARY, TOPICS).to(dtype)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return encoder


def close(embeddings, expected):
    torch.testing.assert_close(embeddings.detach(), expected.detach(), rtol=0, atol=2e-6)


def loops(encoder, sample):
    """Embedding of one sample without padding, a post and an attention layer at a time."""
    pooling, width = encoder.pooling, encoder.pooling.post.out_features
    posts = []
    for tokens, hour, topic in zip(
        sample.tokens[0], sample.hours[0].tolist(), sample.topics[0].tolist()
    ):
        vector = [array(encoder.post(tokens[None]))[0]]
        if len(encoder.side) > 0:
            vector.append(np.eye(24)[hour])
        if len(encoder.side) > 1:
            vector.append(array(encoder.side[1].embedding.weight)[topic])
        posts.append(array(pooling.post.weight) @ np.concatenate(vector) + array(pooling.post.bias))
    highest, mean = [], []
    for layer in range(pooling.layers):
        mine = slice(layer * width, (layer + 1) * width)
        query, key = (
            [array(linear.weight)[mine] @ post + array(linear.bias)[mine] for post in posts]
            for linear in (pooling.query, pooling.key)
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
    return normed_projection(encoder.projection, vector)


@pytest.mark.parametrize("features", FEATURES)
def test_it_is_the_paper_written_as_loops(features):
    encoder, batch = make(features), samples(5, 1, 3)
    embeddings = encoder(batch)
    for row in range(3):
        np.testing.assert_allclose(
            array(embeddings[row]), loops(encoder, without_padding(batch, row)), atol=1e-6
        )


def published_size(features, preset="khan2021", **settings):
    with torch.device("meta"):
        return parameter_counts(
            build_stream_encoder(stream_config(preset, features=features, **settings), 2**16, 2049)
        )


@pytest.mark.parametrize(
    "features, total, learned, literal",
    [
        ("T", 44_056_576, 44_056_576, 39_064_064),
        ("TP", 44_068_864, 44_193_792, 39_088_640),
        ("TPS", 45_380_096, 45_505_024, 40_662_016),
    ],
)
def test_the_sizes_of_the_paper(features, total, learned, literal):
    """A learned hour gives Table 6 to its decimal (45,504,512 with 2,048 topics), the text not."""
    counts = published_size(features)
    assert counts["total"] == total
    assert counts["projection"] == 5_253_120
    assert counts.get("side", 0) == (2049 * 512 if features == "TPS" else 0)
    assert published_size(features, time="learned")["total"] == learned
    assert published_size(features, "khan2021_text")["total"] == literal


def test_a_single_attention_is_a_loop_over_the_posts():
    encoder, batch = make(preset="khan2021_text"), samples(4, 2)
    for row in range(2):
        sample = without_padding(batch, row)
        side = [array(feature(sample)) for feature in encoder.side]
        posts = np.concatenate([array(encoder.post(sample.tokens[0])), *side], 1)
        parts = (encoder.pooling.query, encoder.pooling.key)
        query, key = (posts @ array(part.weight).T + array(part.bias) for part in parts)
        weights = np.exp(query @ key.T)
        highest = (weights / weights.sum(1, keepdims=True) @ key).max(0)
        first, _, second = encoder.projection
        hidden = np.maximum(array(first.weight) @ highest + array(first.bias), 0)
        expected = array(second.weight) @ hidden + array(second.bias)
        np.testing.assert_allclose(
            array(encoder(batch)[row]), expected / np.linalg.norm(expected), atol=1e-6
        )


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_vector_depends_on_its_own_posts_only(pooling):
    encoder, batch = make(pooling=pooling).eval(), samples(5, 1, 3)
    for row in range(3):
        close(encoder(without_padding(batch, row)), encoder(batch)[row : row + 1])


def test_averages_are_those_of_a_loop_over_groups(make_store):
    store = make_store([9, 4], vocabulary=VOCABULARY, lengths=[3] * 13)
    encoder = make(dtype=torch.float32).eval()
    windows = Samples(store, np.array([1, 9, 0]), np.array([3, 4, 1]), np.array([0, 1, 0]))
    for size in (1, 3):
        vectors = embed(ChunkMean(encoder, size), windows, 6)
        for row, (begin, count) in enumerate(zip(windows.first, windows.count)):
            total = 0
            for post in range(begin, begin + count, size):
                group = np.array([post]), np.array([min(size, begin + count - post)]), np.array([0])
                total = total + embed(encoder, Samples(store, *group), 6)[0]
            np.testing.assert_allclose(vectors[row], total / np.linalg.norm(total), atol=1e-5)


def test_embedding_keeps_the_order(make_store):
    store = make_store([5, 9, 2, 7], vocabulary=VOCABULARY)
    encoder = make(dtype=torch.float32, dropout=0.5).train()
    everything = Samples.of_posts(store)
    vectors = embed(encoder, everything, 6, batch_size=4)  # in eval mode
    assert vectors.shape == (23, 7)
    for row in (0, 11, 22):
        np.testing.assert_allclose(vectors[row], embed(encoder, everything[[row]], 6)[0], atol=2e-6)


def attend(attention, posts):
    """Multi-head attention, one head and one post at a time."""
    width = posts.shape[1] // attention.num_heads
    query, key, value = np.split(
        posts @ array(attention.in_proj_weight).T + array(attention.in_proj_bias), 3, 1
    )
    heads = []
    for head in range(attention.num_heads):
        mine = slice(head * width, (head + 1) * width)
        scores = np.exp(query[:, mine] @ key[:, mine].T / np.sqrt(width))
        heads.append(scores / scores.sum(1, keepdims=True) @ value[:, mine])
    return np.concatenate(heads, 1) @ array(attention.out_proj.weight).T + array(
        attention.out_proj.bias
    )


def loops_of_iur(encoder, sample):
    stream = encoder.encoder
    vectors = [array(stream.post(sample.tokens[0])), *(array(side(sample)) for side in stream.side)]
    pooling = stream.pooling
    given = np.concatenate(vectors, 1) @ array(pooling.post.weight).T + array(pooling.post.bias)
    total = 0
    for begin in range(0, len(given), 16):
        posts = np.zeros((16, given.shape[1]))
        posts[: len(given[begin : begin + 16])] = given[begin : begin + 16]
        posts *= np.sqrt(posts.shape[1])
        first = attend(pooling.first, posts)
        posts = np.stack([layer_norm(pooling.norms[0], post) for post in posts + first])
        lower, _, upper = pooling.between
        hidden = np.maximum(posts @ array(lower.weight).T + array(lower.bias), 0)
        forward = hidden @ array(upper.weight).T + array(upper.bias)
        posts = np.stack([layer_norm(pooling.norms[1], post) for post in posts + forward])
        pooled = np.concatenate([first.mean(0), attend(pooling.second, posts).mean(0)])
        total = total + normed_projection(stream.projection, pooled)
    return total / np.linalg.norm(total)


def test_iur_is_the_model_written_as_loops():
    """Samples of 16 posts, of fewer (filled up), and of more (groups of 16, averaged)."""
    encoder, batch = make(preset="iur").eval(), samples(16, 5, 40)
    embeddings = encoder(batch)
    for row in range(3):
        np.testing.assert_allclose(
            array(embeddings[row]), loops_of_iur(encoder, without_padding(batch, row)), atol=1e-6
        )


def test_the_parts_of_iur_at_the_released_sizes():
    with torch.device("meta"):
        encoder = build_stream_encoder(stream_config("iur"), 2**16, 2049).encoder
    counts, pooling = parameter_counts(encoder), parameter_counts(encoder.pooling)
    attention = 4 * (256 * 256 + 256)
    assert pooling["first"] == pooling["second"] == attention
    assert pooling["post"] == (4 * 256 + 24 + 512) * 256 + 256
    assert counts["post"] == 2**16 * 512 + sum(256 * (512 * width + 1) for width in (2, 3, 4, 5))
    assert counts["projection"] == 2 * 512 + 2 * 512 * 512 + 2 * 512


def batch_at(*rows):
    times = torch.tensor(rows)
    hours = times // 3600 % 24
    tokens = torch.zeros(*times.shape, 1, dtype=torch.long)
    return Batch(tokens, hours, hours * 0, hours >= 0, torch.arange(len(rows)), times)


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def test_day_and_week_turn_with_the_calendar():
    """Monday, 00:00 UTC is where both begin; a day is a seventh of the week."""
    moments = [
        "2021-03-01T00:00:00",
        "2021-03-01T06:00:00",
        "2021-03-04T12:00:00",
        "1969-12-29T00:00:00",
    ]
    cosines, sines = ContinuousTime()(batch_at([at(moment) for moment in moments]))[:, :8].split(
        4, 1
    )
    for row, moment in enumerate(moments):
        when = datetime.fromisoformat(moment)
        day = (when.hour + when.minute / 60) / 24
        week = (when.weekday() + day) / 7
        turns = 2 * np.pi * np.array([day, 2 * day, week, 2 * week])
        np.testing.assert_allclose(cosines[row], np.cos(turns), atol=1e-5)
        np.testing.assert_allclose(sines[row], np.sin(turns), atol=1e-5)


def test_a_gap_is_to_the_post_before_and_the_first_post_has_none():
    clock, start = ContinuousTime(), at("2021-03-01T00:00:00")
    gaps = clock(batch_at([start, start + 60, start + 60, start + 10**9]))[:, 8:]
    assert not gaps[0].any()
    share = np.log1p(60) / np.log1p(365 * 86_400)
    waves = np.pi * share * np.arange(1, 5)
    np.testing.assert_allclose(gaps[1], np.concatenate([np.cos(waves), np.sin(waves)]), atol=1e-6)
    np.testing.assert_allclose(gaps[2, :4], 1, atol=1e-6)
    np.testing.assert_allclose(
        gaps[3, :4], np.cos(np.pi * np.arange(1, 5)), atol=1e-6
    )  # no longer than a year
    later = clock(batch_at([start + 7 * 86_400 * n for n in range(4)]))
    np.testing.assert_allclose(later[0, :8], later[3, :8], atol=1e-5)


def test_hidden_topics_train_the_row_of_other():
    batch = batch_at([0] * 1000, [1] * 1000)
    for share, trained in ((0.0, False), (0.5, True)):
        feature = TopicEmbedding(6, 3, share)
        feature(batch).sum().backward()
        assert feature.embedding.weight.grad[-1].any() == trained
    hidden = (feature(batch) == feature.embedding.weight[-1]).all(1).float().mean()
    assert 0.45 < hidden < 0.55
    assert torch.equal(feature.eval()(batch), feature.embedding.weight[:1].expand(2000, 3))


def test_a_topic_beyond_the_list_is_other():
    feature, batch = TopicEmbedding(6, 3), batch_at([0] * 3, [1] * 3)
    batch.topics[:, 0], batch.topics[:, 1], batch.topics[:, 2] = 4, 5, 9
    rows = feature(batch).view(2, 3, 3)
    assert torch.equal(rows[:, 1], rows[:, 2]) and not torch.equal(rows[:, 0], rows[:, 1])
    assert torch.equal(rows[0, 1], feature.embedding.weight[-1])
