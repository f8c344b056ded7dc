"""Sample sizes, in posts: the distributions that khan2021 compares (section 2.3, Table 4)."""

import numpy as np
from scipy import stats

SIZES = {
    "uniform": stats.uniform(),
    "beta21": stats.beta(2, 1),
    "beta31": stats.beta(3, 1),
    "beta41": stats.beta(4, 1),
    "poisson16": None,
    "fixed": None,
}


def draw_sizes(
    sizes: str,
    count: int,
    rng: np.random.Generator,
    min_posts: int = 1,
    max_posts: int = 16,
    reach_smallest: bool = False,
) -> np.ndarray:
    """Draw sample sizes ``R + ceil(x (S - R))``, where R is min_posts and S is max_posts.

    Parameters
    ----------
    sizes : one of SIZES, the distribution of x. "poisson16" is Poisson(16) restricted to R..S;
        "fixed" is always S
    count : of sizes
    rng : of the draw
    min_posts : R
    max_posts : S
    reach_smallest : draw ``R + floor(x (S - R + 1))``; as printed the formula never gives R itself,
        as x > 0

    Returns
    -------
    (count,) int64
    """
    if sizes == "fixed":
        return np.full(count, max_posts)
    if sizes == "poisson16":
        support, weight = _poisson16(min_posts, max_posts)
        return rng.choice(support, count, p=weight)

    x = SIZES[sizes].ppf(rng.random(count))
    more = max_posts - min_posts
    if reach_smallest:
        return min_posts + np.minimum(np.floor(x * (more + 1)), more).astype(np.int64)
    return min_posts + np.ceil(x * more).astype(np.int64)


def _poisson16(min_posts, max_posts):
    """Return the sizes and the probability of each."""
    support = np.arange(min_posts, max_posts + 1)
    weight = stats.poisson(16).pmf(support)
    return support, weight / weight.sum()


def skewness(sizes: str) -> float:
    """Return the skew of a size distribution: of x, or of Poisson(16) restricted to 1..16.

    References
    ----------
    khan2021 Table 4.
    """
    if sizes == "fixed":
        return 0.0
    if sizes == "poisson16":
        poisson = stats.rv_discrete(values=_poisson16(1, 16))
        return float(poisson.stats(moments="s"))
    return float(SIZES[sizes].stats(moments="s"))
