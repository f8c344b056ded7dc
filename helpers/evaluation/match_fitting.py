"""Fit how scores become the weights of a matching, on lists that are drawn from known accounts."""

from dataclasses import replace

import numpy as np

from .calibration import cllr
from .candidates import all_candidates
from .matching import SMALLEST, MatchConfig, sinkhorn

# Overlap: number of lists that are drawn. Where all have a partner, the likeliest line is a steeper
# one, which makes probabilities of all other lists too certain.
FIT_LISTS = {0.5: 4, 0.1: 8, 0.01: 8}
FIT_ACCOUNTS = 300  # accounts from which they are drawn, at most
MIN_FIT_ACCOUNTS = 10
FIT_ROUNDS = 20  # of scaling rows and columns, while a line is looked for
SCALES = (0.05, 2.0)  # bounds of the factor of log-likelihood ratios
SHIFTS = (-3.0, 3.0)  # bounds of what is added to them
# Prior standard deviation of the logarithm of the slope. Where few accounts are all told apart, the
# likeliest slope is infinite, and strangers who are a little alike would be linked.
SLOPE_SPREAD = 0.5


def draw_lists(
    accounts: int, overlap: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two lists of which a share is in both: the rows of queries and of targets.

    Parameters
    ----------
    accounts : number of accounts, each of which has a query and a target
    overlap : share of each list that has a partner in the other
    rng : gives the order of the accounts

    Returns
    -------
    Rows (Q,) of queries and (T,) of targets, as many; the first ones are the same in both
    """
    order = rng.permutation(accounts)
    shared = max(round(accounts * overlap / (2 - overlap)), 1)
    alone = (accounts - shared) // 2
    queries = order[: shared + alone]
    targets = np.concatenate([order[:shared], order[shared + alone : shared + 2 * alone]])
    return queries, targets


def fit_match(
    scores: np.ndarray, seed: int = 0, expected_slope: float | None = None
) -> MatchConfig:
    """Fit the line of the log-weights on accounts whose queries and targets are known.

    Lists are drawn at each overlap of FIT_LISTS. The line is the one that makes the true partners,
    or nobody, most likely; each overlap counts alike. The scale and the shift of the log-likelihood
    ratios then have the least Cllr.

    Parameters
    ----------
    scores : (N, N), scores of N queries with N targets, in the same order of accounts
    seed : seed of the lists
    expected_slope : the slope around which the prior of SLOPE_SPREAD lies, 1 for scores that are
        log-odds; by default there is no prior

    Raises
    ------
    ValueError
        If there are fewer than MIN_FIT_ACCOUNTS accounts.
    """
    from scipy import optimize  # imported here: who only embeds need not wait for it

    if len(scores) < MIN_FIT_ACCOUNTS:
        raise ValueError(
            f"matching is fitted on {MIN_FIT_ACCOUNTS} accounts or more, not on {len(scores)}"
        )
    scores = np.asarray(scores, np.float64)
    accounts = min(len(scores), FIT_ACCOUNTS)
    lists = _known_lists(scores[:accounts, :accounts], np.random.default_rng(seed))
    spread = scores.std()

    def line(values):
        return MatchConfig(float(np.exp(values[0]) / spread), float(values[1]), accounts=accounts)

    def loss(values):
        prior = 0.0
        if expected_slope is not None:
            apart = np.log(line(values).slope / expected_slope)
            prior = apart**2 / (2 * SLOPE_SPREAD**2 * accounts)
        return _loss(line(values), lists) + prior

    def calibrated_cllr(values):
        return cllr(values[0] * llr + values[1], same)

    begin = [0.0, -scores.diagonal().mean() / spread]  # of log(slope * spread), and of intercept
    fitted = line(optimize.minimize(loss, begin, method="Nelder-Mead", tol=1e-3).x)
    llr = np.concatenate([sinkhorn(pairs, fitted, overlap).llr() for overlap, pairs, _ in lists])
    same = np.concatenate([same.ravel() for _, _, same in lists])
    optimum = optimize.minimize(calibrated_cllr, [1.0, 0.0], bounds=[SCALES, SHIFTS])
    scale, shift = optimum.x.tolist()
    return replace(fitted, llr_scale=scale, llr_shift=shift)


def _known_lists(scores, rng):
    """Draw the lists of FIT_LISTS: the overlap of each, all its pairs, and (Q, T) the true ones."""
    lists = []
    for overlap, count in FIT_LISTS.items():
        for _ in range(count):
            queries, targets = draw_lists(len(scores), overlap, rng)
            pairs = all_candidates(scores[np.ix_(queries, targets)])
            lists.append((overlap, pairs, queries[:, None] == targets))
    return lists


def _loss(line, lists):
    """Return minus the mean log-probability of each account's partner or nobody, over overlaps."""
    total = 0.0
    for overlap, pairs, same in lists:
        matching = sinkhorn(pairs, line, overlap, FIT_ROUNDS)
        of_truth = [
            matching.probability.reshape(same.shape)[same],
            matching.nobody_of_queries[~same.any(1)],
            matching.nobody_of_targets[~same.any(0)],
        ]
        log_probability = np.log(np.maximum(np.concatenate(of_truth), SMALLEST))
        total -= log_probability.mean() / FIT_LISTS[overlap]
    return total / len(FIT_LISTS)
