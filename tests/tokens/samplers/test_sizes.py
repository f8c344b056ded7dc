"""Sample sizes against the probabilities that the printed formula gives them."""

import math

import numpy as np
import pytest
from scipy import stats

from helpers.tokens.samplers.sizes import SIZES, draw_sizes, skewness


def test_published_skews():
    """khan2021 Table 4."""
    published = {
        "uniform": 0,
        "beta21": -0.5657,
        "poisson16": -0.7860,
        "beta31": -0.8607,
        "beta41": -1.0498,
    }
    assert {name: skewness(name) for name in SIZES} == pytest.approx(
        {**published, "fixed": 0}, abs=5e-5
    )


def probabilities(name, min_posts, max_posts, reach):
    """Exact: x <= t has probability t^a for Beta(a, 1)."""
    sizes = np.arange(min_posts, max_posts + 1)
    if name == "poisson16":
        weight = np.array([math.exp(-16) * 16.0**size / math.factorial(size) for size in sizes])
        return sizes, weight / weight.sum()
    power = {"uniform": 1, "beta21": 2, "beta31": 3, "beta41": 4}[name]
    if reach:
        upto = ((sizes - min_posts + 1) / (max_posts - min_posts + 1)) ** power
    else:
        upto = ((sizes - min_posts) / (max_posts - min_posts)) ** power
    return sizes, np.diff(upto, prepend=0)


@pytest.mark.parametrize("min_posts, max_posts", [(1, 16), (3, 9)])
@pytest.mark.parametrize("reach", [False, True], ids=["as printed", "reaching the smallest"])
@pytest.mark.parametrize("name", ["uniform", "beta21", "beta31", "beta41", "poisson16"])
def test_draws_follow_the_exact_probabilities(name, reach, min_posts, max_posts):
    draws = draw_sizes(name, 40_000, np.random.default_rng(2), min_posts, max_posts, reach)
    assert draws.dtype == np.int64 and draws.min() >= min_posts and draws.max() <= max_posts
    sizes, weight = probabilities(name, min_posts, max_posts, reach)
    seen = np.array([(draws == size).sum() for size in sizes])
    assert not seen[weight == 0].any()
    rare = weight * len(draws) < 5
    seen, weight = (np.append(values[~rare], values[rare].sum()) for values in (seen, weight))
    seen, weight = seen[weight > 0], weight[weight > 0]
    assert stats.chisquare(seen, weight * seen.sum()).pvalue > 1e-3


def test_the_printed_formula_gives_2_to_16():
    draws = draw_sizes("beta31", 200_000, np.random.default_rng(1))
    assert (draws.min(), draws.max()) == (2, 16)
    assert draws.mean() == pytest.approx(12.73, abs=0.03)
    assert (draws == 16).mean() == pytest.approx(0.187, abs=0.004)
    assert draw_sizes("beta31", 200_000, np.random.default_rng(1), reach_smallest=True).min() == 1


def test_fixed_and_a_single_size():
    rng = np.random.default_rng(0)
    assert set(draw_sizes("fixed", 9, rng, 1, 7)) == {7}
    for name in SIZES:
        for reach in (False, True):
            assert set(draw_sizes(name, 9, rng, 5, 5, reach)) == {5}
