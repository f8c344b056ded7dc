"""Which pairs a loss acts on, against derivatives by the cosines; and what a step costs."""

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from helpers.losses import LOSSES, make_loss
from helpers.losses.inspection import activation_bytes, pair_gradients, step_cost
from tests.factories import labelled_vectors, random_batch

NAMES = [name for name in LOSSES if name not in ("mll", "arcface")]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_derivative_by_the_cosines(name):
    """The matrix of cosines is the variable: its Cholesky factor has rows with these cosines."""
    loss, acts = make_loss(name), 0
    for seed in range(5):
        points, labels = labelled_vectors(seed, authors=3, samples=2, dim=8)
        points = normalize(points, dim=1)
        matrix = (points @ points.T).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(torch.linalg.cholesky(matrix), labels), matrix)
        # the cosine of a pair stands twice in the matrix
        slow = (gradient + gradient.T).fill_diagonal_(0)
        pairs = pair_gradients(lambda lifted: loss(lifted, labels), points)
        torch.testing.assert_close(pairs, slow, rtol=1e-3, atol=1e-4)
        acts += bool(slow.any())
    assert acts > 2


def test_cost():
    of_classes = step_cost(make_loss("arcface", 1000, 8), 32, 8, 1000, 1)
    assert of_classes["parameter_bytes"] == 4 * 4 * 1000 * 8
    assert of_classes["kept_bytes"] > 32 * 1000 * 4
    few, many = (step_cost(make_loss("supcon"), size, 8, 10**6, 1) for size in (64, 128))
    assert few["parameter_bytes"] == many["parameter_bytes"] == 0
    assert 3 < many["kept_bytes"] / few["kept_bytes"] < 4.5 and many["kept_bytes"] >= 128**2 * 4


class TwoLayers(nn.Module):
    """The backward pass needs the input of each layer and, for tanh, its output."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64, bias=False)
        self.second = nn.Linear(64, 16, bias=False)

    def forward(self, batch):
        hours = batch.hours.float().sum(1, keepdim=True).expand(-1, 32).contiguous()
        return self.second(self.first(hours).tanh())


def test_bytes_are_those_of_the_tensors_that_are_needed():
    floats = 40 * 32 + 40 * 64  # the input of the first layer, the output of tanh
    assert activation_bytes(TwoLayers(), random_batch(*[6] * 40)) == 4 * floats
