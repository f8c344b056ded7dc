"""IUR: its published shape, groups of 16, and what it must ignore."""

import numpy as np
import pytest
import torch

from helpers.encoders.stream import build_stream_encoder, parameter_counts, stream_config
from tests.factories import random_batch as samples
from tests.factories import without_padding
from tests.oracles import array, layer_norm, normed_projection

VOCABULARY, TOPICS = 40, 5


@pytest.fixture
def encoder():
    sizes = {"filters": 4, "token_dim": 6, "attention": 8, "dim": 7}
    encoder = (
        build_stream_encoder(stream_config("iur", **sizes), VOCABULARY, TOPICS).double().eval()
    )
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return encoder


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


def loops(encoder, sample):
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


def test_it_is_the_model_written_as_loops(encoder):
    """Samples of 16 posts, of fewer (filled up), and of more (groups of 16, averaged)."""
    batch = samples(16, 5, 40)
    embeddings = encoder(batch)
    for row in range(3):
        np.testing.assert_allclose(
            array(embeddings[row]), loops(encoder, without_padding(batch, row)), atol=1e-6
        )


def test_its_parts_at_the_released_sizes():
    with torch.device("meta"):
        encoder = build_stream_encoder(stream_config("iur"), 2**16, 2049).encoder
    counts, pooling = parameter_counts(encoder), parameter_counts(encoder.pooling)
    attention = 4 * (256 * 256 + 256)
    assert pooling["first"] == pooling["second"] == attention
    assert pooling["post"] == (4 * 256 + 24 + 512) * 256 + 256
    assert counts["post"] == 2**16 * 512 + sum(256 * (512 * width + 1) for width in (2, 3, 4, 5))
    assert counts["projection"] == 2 * 512 + 2 * 512 * 512 + 2 * 512
