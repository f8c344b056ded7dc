"""What a forward pass keeps, beside the tensors of a layer whose sizes are known."""

import numpy as np
import torch
from torch import nn

from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.tokens.batch import Samples
from helpers.training.memory import activation_bytes


class TwoLayers(nn.Module):
    """The backward pass needs the input of each layer and, for tanh, its output."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64, bias=False)
        self.second = nn.Linear(64, 16, bias=False)

    def forward(self, batch):
        hours = batch.hours.float().sum(1, keepdim=True).expand(-1, 32).contiguous()
        return self.second(self.first(hours).tanh())


def batch_of(make_store):
    store = make_store([6] * 40, vocabulary=50, lengths=[8] * 240)
    first = np.arange(40) * 6
    return Samples(store, first, np.full(40, 6), np.arange(40)).batch(np.arange(40), 8)


def test_bytes_are_those_of_the_tensors_that_are_needed(make_store):
    batch = batch_of(make_store)
    floats = 40 * 32 + 40 * 64  # the input of the first layer, the output of tanh
    assert activation_bytes(TwoLayers(), batch) == 4 * floats


def test_mixed_precision_keeps_less(make_store):
    batch = batch_of(make_store)
    config = stream_config("khan2021", filters=32, token_dim=32, attention=32, dim=64)
    net = build_stream_encoder(config, 50, 4, 0)
    whole = activation_bytes(net, batch)
    assert 0.4 * whole < activation_bytes(net, batch, mixed=True) < whole
    assert activation_bytes(net, batch) == whole, "autocast has ended"
    assert next(net.parameters()).dtype == torch.float32
