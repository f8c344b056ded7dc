"""Naive versions of definitions, one element at a time, that more than one test or a notebook compares with."""

import numpy as np
import pytest
import torch


def slow_distance(one, other, distance):
    """Of two vectors, as tyo2021 equations 4 and 5 define it on unit vectors, or as they are ("raw")."""
    if distance == "raw":
        return (one - other).norm().item()
    one, other = one / one.norm(), other / other.norm()
    return ((one - other).norm() if distance == "euclidean" else 1 - one @ other).item()


def same_value_and_gradient(one, other, points):
    """Assert that two functions of points have one value, above 0, and one gradient."""
    inputs = [points.clone().requires_grad_() for _ in range(2)]
    values = [function(at) for function, at in zip((one, other), inputs)]
    assert values[0].item() == pytest.approx(values[1].item(), rel=1e-6) and values[0] > 0
    gradients = [torch.autograd.grad(value, at)[0] for value, at in zip(values, inputs)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-8)


def equal_batches(one, other):
    """Whether two batches of posts hold the same."""
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def array(parameter):
    """A parameter as a NumPy array."""
    return parameter.detach().numpy()


def layer_norm(norm, values):
    """LayerNorm of one vector."""
    centred = values - values.mean()
    return array(norm.weight) * centred / np.sqrt((centred**2).mean() + norm.eps) + array(norm.bias)


def normed_projection(projection, vector):
    """LayerNorm, linear, ReLU, linear, LayerNorm, unit length."""
    before, linear1, _, linear2, after = projection
    hidden = np.maximum(array(linear1.weight) @ layer_norm(before, vector), 0)
    result = layer_norm(after, array(linear2.weight) @ hidden)
    return result / np.linalg.norm(result)
