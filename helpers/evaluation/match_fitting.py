"""Fit how scores become the weights of a matching, on lists that are drawn from known accounts."""

from dataclasses import dataclass, replace

import numpy as np

from .calibration import cllr
from .candidates import Candidates, all_candidates
from .matching import SMALLEST, MatchConfig, Matching, sinkhorn

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


@dataclass(frozen=True, eq=False)
class _KnownLists:
    """Two drawn lists whose true pairs are known."""

    overlap: float
    candidates: Candidates
    same: np.ndarray


@dataclass(frozen=True)
class _SlopePrior:
    """A normal prior of the logarithm of the slope; none where no slope is expected."""

    expected: float | None
    accounts: int

    def loss(self, slope):
        """Return minus the log-density of a slope, as a share of one account in the mean."""
        if self.expected is None:
            return 0.0
        return np.log(slope / self.expected) ** 2 / (2 * SLOPE_SPREAD**2 * self.accounts)


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
    known_lists = _known_lists(scores, np.random.default_rng(seed))
    spread = scores.std()
    begin = [0.0, -scores.diagonal().mean() / spread]  # of log(slope * spread), and of intercept
    accounts = min(len(scores), FIT_ACCOUNTS)
    prior = _SlopePrior(expected_slope, accounts)
    arguments = (known_lists, spread, prior)
    optimum = optimize.minimize(_loss, begin, arguments, method="Nelder-Mead", tol=1e-3)
    line = replace(_line(optimum.x, spread), accounts=accounts)

    llrs = [sinkhorn(lists.candidates, line, lists.overlap).llr() for lists in known_lists]
    same = [lists.same[tuple(lists.candidates.pairs.T)] for lists in known_lists]
    pairs = (np.concatenate(llrs), np.concatenate(same))
    optimum = optimize.minimize(_calibrated_cllr, [1.0, 0.0], pairs, bounds=[SCALES, SHIFTS])
    scale, shift = optimum.x.tolist()
    return replace(line, llr_scale=scale, llr_shift=shift)


def _known_lists(scores, rng):
    """Draw the lists of FIT_LISTS from the first FIT_ACCOUNTS accounts."""
    known_lists = []
    for overlap, count in FIT_LISTS.items():
        for _ in range(count):
            queries, targets = draw_lists(min(len(scores), FIT_ACCOUNTS), overlap, rng)
            candidates = all_candidates(scores[np.ix_(queries, targets)])
            known_lists.append(_KnownLists(overlap, candidates, queries[:, None] == targets))
    return known_lists


def _line(values, spread):
    return MatchConfig(float(np.exp(values[0]) / spread), float(values[1]))


def _loss(values, known_lists, spread, prior):
    """Return minus the mean log-probability of the truth, the mean over overlaps, with the prior's.

    ``values`` are the logarithm of slope * spread, and the intercept.
    """
    line = _line(values, spread)
    losses = {overlap: [] for overlap in FIT_LISTS}
    for lists in known_lists:
        matching = sinkhorn(lists.candidates, line, lists.overlap, FIT_ROUNDS)
        of_truth = truth_probability(matching, lists.same)
        losses[lists.overlap].append(-np.log(np.maximum(of_truth, SMALLEST)).mean())
    return np.mean([np.mean(loss) for loss in losses.values()]) + prior.loss(line.slope)


def _calibrated_cllr(values, llr, same):
    scale, shift = values
    return cllr(scale * llr + shift, same)


def truth_probability(matching: Matching, same: np.ndarray) -> np.ndarray:
    """Return the probability of what is true of each account: its partner, or nobody.

    Parameters
    ----------
    matching : result of :func:`~helpers.evaluation.matching.sinkhorn`
    same : (Q, T) bool, the true pairs, at most one of each account

    Returns
    -------
    (N,) of all true pairs, of the queries without a partner and of the targets without one
    """
    is_true = same[tuple(matching.candidates.pairs.T)]
    missed = int(same.sum()) - int(is_true.sum())  # true pairs that are no candidates
    return np.concatenate(
        [
            matching.probability[is_true],
            np.zeros(missed),
            matching.nobody_of_queries[~same.any(1)],
            matching.nobody_of_targets[~same.any(0)],
        ]
    )
