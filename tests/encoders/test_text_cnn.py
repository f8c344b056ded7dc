"""The projected convolution against Conv1d and maximum, and these against plain loops."""

import pytest
import torch
from torch import nn

from helpers.encoders import text_cnn as textconv
from helpers.encoders.text_cnn import TextCNN
from helpers.tokens.batch import PAD

VOCABULARY = 30


def make(method="projected", dtype=torch.float32, widths=(2, 3, 4)):
    torch.manual_seed(0)
    text = TextCNN(VOCABULARY, 6, 5, widths, method).to(dtype)
    for parameter in text.parameters():  # larger than at the start, so that biases matter
        nn.init.normal_(parameter)
    return text


def posts(*lengths, width=None, vocabulary=VOCABULARY):
    torch.manual_seed(1)
    tokens = torch.full((len(lengths), width or max(lengths)), PAD)
    for row, length in zip(tokens, lengths):
        row[:length] = torch.randint(vocabulary, (length,))
    return tokens


CASES = {
    "ragged": posts(12, 1, 7, 3, 2, 11, 4, 12, 1),
    "shorter than the widths": posts(1, 2, 3, 1, width=3),
    "a single column": posts(1, 1, 0, width=1),
    "empty posts": posts(0, 5, 0, 2, width=8),
    "nothing but empty posts": posts(0, 0, width=4),
    "one token again and again": torch.full((4, 7), 3),
    "two tokens": posts(9, 4, 9, 1, vocabulary=2),
    "no post": torch.empty((0, 6), dtype=torch.long),
}


def loops(text, tokens):
    """One window at a time; it starts at every token, and reads zeros past the end of the post."""
    table = text.embedding.weight.detach()
    result = torch.zeros(len(tokens), text.dim, dtype=table.dtype)
    for number, post in enumerate(tokens.tolist()):
        real = [token for token in post if token != PAD]
        column = 0
        for convolution in text.convolutions:
            width = convolution.kernel_size[0]
            for weight, bias in zip(convolution.weight.detach(), convolution.bias.detach()):
                values = []
                for start in range(max(len(real), 1)):
                    window = enumerate(real[start : start + width])
                    values.append(
                        bias + sum(weight[:, tap] @ table[token] for tap, token in window)
                    )
                result[number, column] = max(0, max(values))
                column += 1
    return result


def outcome(text, tokens, upstream):
    """Features, and the gradients of every parameter, of a weighted sum of them."""
    text.zero_grad()
    features = text(tokens)
    (features * upstream).sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in text.named_parameters()}
    return features.detach(), gradients


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_convolution_written_as_loops(case):
    text = make("dense", torch.float64)
    slow = loops(text, CASES[case])
    torch.testing.assert_close(text(CASES[case]).detach(), slow, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("chunk", "widths"), [(40, (2, 3, 4)), (2**20, (2, 3, 4)), (2**20, (1,)), (2**20, (5, 2))]
)
@pytest.mark.parametrize("case", CASES)
def test_projected_equals_dense_with_all_gradients(case, chunk, widths, monkeypatch):
    dtype = torch.float64
    monkeypatch.setattr(textconv, "CHUNK_FLOATS", chunk)
    tokens = CASES[case]
    generator = torch.Generator().manual_seed(2)
    upstream = torch.randn(len(tokens), 5 * len(widths), dtype=dtype, generator=generator)
    features, gradients = outcome(make("projected", dtype, widths), tokens, upstream)
    expected, expected_gradients = outcome(make("dense", dtype, widths), tokens, upstream)
    assert features.dtype == dtype
    torch.testing.assert_close(features, expected, rtol=1e-6, atol=1e-12)
    for name, gradient in gradients.items():
        scale = expected_gradients[name].abs().max().clamp(min=1e-3)
        error = (gradient - expected_gradients[name]).abs().max() / scale
        assert error < 1e-12, name


def test_half_precision_is_close_and_sums_gradients_in_full():
    """A token that wins often: in bf16 a sum of 300 equal parts stops growing at 256."""
    tokens = CASES["one token again and again"].repeat(75, 1)
    upstream = torch.ones(len(tokens), 15)
    full, gradients = outcome(make(), tokens, upstream)
    with torch.autocast("cpu", torch.bfloat16):
        half, halved = outcome(make(), tokens, upstream)
    assert half.dtype == torch.float32
    assert not torch.equal(half, full), "the products are those of half precision"
    torch.testing.assert_close(half, full, rtol=2**-6, atol=2**-5)
    for name, gradient in gradients.items():
        allowed = 2**-7 * gradient.abs().max().item()
        torch.testing.assert_close(halved[name], gradient, rtol=2**-6, atol=allowed)


def test_the_sizes_of_the_paper():
    with torch.device("meta"):
        text = TextCNN(2**16)
    assert isinstance(text.embedding, nn.Embedding) and text.dim == 1536
    assert sum(p.numel() for p in text.convolutions.parameters()) == 2_360_832
    assert text.embedding.weight.numel() == 33_554_432
