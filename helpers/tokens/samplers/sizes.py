"""Random numbers of posts per sample: the distributions of khan2021 section 2.3 and Table 4."""

import numpy as np
from scipy import stats

# name -> distribution of x in 0..1; None where draw_sizes needs no x
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
    """Choose random sample sizes ``R + ceil(x (S - R))``, with R min_posts and S max_posts.

    Parameters
    ----------
    sizes : name of the distribution of x, a key of SIZES. Two have no x: "poisson16" is Poisson(16)
        restricted to R..S, "fixed" always S
    count : wanted number of sizes
    rng : source of the random numbers
    min_posts : R, the lower bound; as x > 0, the printed formula never gives R itself unless R = S
    max_posts : S, the largest size
    reach_smallest : use ``R + floor(x (S - R + 1))`` instead, which can give R; ignored for
        "poisson16" and "fixed"

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
    """Return the sizes from min_posts to max_posts, and the probability of each in Poisson(16)."""
    support = np.arange(min_posts, max_posts + 1)
    weight = stats.poisson(16).pmf(support)
    return support, weight / weight.sum()


def skewness(sizes: str) -> float:
    """Return the skewness of a distribution of sizes, to compare with the published ones.

    It is that of x (see :func:`draw_sizes`), of Poisson(16) restricted to 1..16, or 0 for "fixed".

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
