"""Sample sizes, in posts: the distributions that khan2021 compares (section 2.3, Table 4)."""

import numpy as np
from scipy import stats

SIZES = {"uniform": stats.uniform(), "beta21": stats.beta(2, 1), "beta31": stats.beta(3, 1), "beta41": stats.beta(4, 1),
         "poisson16": None, "fixed": None}  # fmt: skip


def draw_sizes(
    sizes: str,
    count: int,
    rng: np.random.Generator,
    min_posts: int = 1,
    max_posts: int = 16,
    reach_smallest: bool = False,
) -> np.ndarray:
    """``count`` sample sizes ``R + ceil(x (S - R))``, R = min_posts, S = max_posts, x from the distribution ``sizes``.

    sizes : one of SIZES. "poisson16" is Poisson(16) restricted to R..S; "fixed" is always S.
    reach_smallest : ``R + floor(x (S - R + 1))``; as printed the formula never gives R itself, as x > 0.
    Returns (count,) int64. Raises ValueError for an unknown distribution or bounds that make no sense.
    """
    if sizes not in SIZES:
        raise ValueError(f"sizes {sizes!r}: one of {', '.join(SIZES)}")
    if not 1 <= min_posts <= max_posts:
        raise ValueError(f"sample sizes {min_posts}..{max_posts}: need 1 <= min_posts <= max_posts")
    if sizes == "fixed":
        return np.full(count, max_posts)
    if sizes == "poisson16":
        support, weight = _poisson16(min_posts, max_posts)
        return rng.choice(support, count, p=weight)
    x = SIZES[sizes].ppf(rng.random(count))
    if reach_smallest:
        return min_posts + np.minimum(
            np.floor(x * (max_posts - min_posts + 1)), max_posts - min_posts
        ).astype(np.int64)
    return min_posts + np.ceil(x * (max_posts - min_posts)).astype(np.int64)


def _poisson16(min_posts, max_posts):
    support = np.arange(min_posts, max_posts + 1)
    weight = stats.poisson(16).pmf(support)
    return support, weight / weight.sum()


def skewness(sizes: str) -> float:
    """Skew of a size distribution (khan2021 Table 4): of x, or of Poisson(16) restricted to 1..16."""
    if sizes == "poisson16":
        return float(stats.rv_discrete(values=_poisson16(1, 16)).stats(moments="s"))
    return 0.0 if sizes == "fixed" else float(SIZES[sizes].stats(moments="s"))
