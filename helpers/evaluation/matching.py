r"""Matching: which accounts of two lists belong together, decided for all of them at once.

Each account has at most one partner. So a pair counts for less where one of its two accounts fits
another account better. The log-weight of a pair is a line of its score, and every account may
have no partner,

.. math:: w_{ij} = e^{a s_{ij} + b}, \quad n(\pi) = (1 - \pi) / \sqrt \pi

where :math:`n(\pi)` is the weight of *nobody* in a list of which a share :math:`\pi` has a
partner. It follows from the odds of a pair against two accounts without partners,
:math:`\pi w / (1 - \pi)^2`. Sinkhorn's algorithm scales rows and columns of these weights in turn,
with a row and a column for nobody that are not scaled (the dustbin of Sarlin et al. 2020), until
the probabilities of every account sum to 1. What a query knows here are all other queries; so
results stand in tables of their own.

Scores are a matrix (Q, T), -inf of pairs that are none. Of long lists it is sparse, and only its
candidates have weights, so time and memory grow with their number and not with the product of both
lists. Of 20,000 x 20,000 accounts with 3 million candidates, the estimate of the overlap took 7
seconds and the probabilities less than one, on one core (one run).

How scores become weights is fitted on lists that are drawn from known accounts.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import logit

from .calibration import cllr
from .scores import refuse_nan

ROUNDS = 50  # of scaling rows and columns, at least
MOST_ROUNDS = 1000  # where the probabilities of a target still add up to more than MOST_TOTAL
MOST_TOTAL = 1.05
SMALLEST = 1e-12  # probability, where its logarithm is taken
LEAST_LOG_WEIGHT = -300.0  # bounds of the log-weight of a pair, and of nobody
MOST_LOG_WEIGHT = 300.0
MIN_OVERLAP = 0.002  # bounds of an estimated overlap
MAX_OVERLAP = 0.95
OVERLAP_STEPS = 30  # of estimating it
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


@dataclass(frozen=True)
class MatchConfig:
    """The line that gives the log-weight of a pair: slope * score + intercept.

    Attributes
    ----------
    slope : above 0; 0 where the scores say nothing
    intercept : added to slope * score
    llr_scale, llr_shift : factor of the log-likelihood ratios and what is added to the product, see
        :meth:`llr`
    accounts : number of accounts that it was fitted on; None if it was not fitted
    """

    slope: float
    intercept: float
    llr_scale: float = 1.0
    llr_shift: float = 0.0
    accounts: int | None = None

    def llr(self, probability: np.ndarray, overlap: float, accounts: int) -> np.ndarray:
        """Return the log-likelihood ratios of pairs, against the prior of a pair at an overlap.

        Probabilities of likely pairs are right without ``llr_scale`` and ``llr_shift``, but pairs
        of one author that seem unlikely would get ratios that are far too low.

        Parameters
        ----------
        probability : of pairs, in an array of any shape, as :func:`sinkhorn` returns them
        overlap : share of the shorter list that has a partner
        accounts : number of accounts of the longer list
        """
        chance = np.clip(probability, SMALLEST, 1 - SMALLEST)
        return self.llr_scale * (logit(chance) - logit(overlap / accounts)) + self.llr_shift


def as_pairs(scores: np.ndarray | sparse.coo_array) -> sparse.coo_array:
    """Return a matrix (Q, T) of scores as a sparse one of float64, without those of -inf.

    Raises
    ------
    ValueError
        If a score is NaN.
    """
    if sparse.issparse(scores):
        refuse_nan(scores.data)
        return scores
    refuse_nan(scores)
    pairs = np.nonzero(scores > -np.inf)
    return sparse.coo_array((scores[pairs].astype(np.float64), pairs), scores.shape)


def sinkhorn(
    scores: np.ndarray | sparse.coo_array,
    config: MatchConfig,
    overlap: float,
    rounds: int | None = None,
) -> np.ndarray | sparse.coo_array:
    """Compute the probability of each pair by Sinkhorn's algorithm with slack.

    What the probabilities of an account leave of 1 is that of nobody.

    Parameters
    ----------
    scores : (Q, T), of Q queries and T targets, see :func:`as_pairs`; those of a list that is
        compared with itself are symmetric
    config : line of the log-weights
    overlap : share of the shorter list that has a partner, above 0 and at most 1
    rounds : number of times that rows and columns are scaled; by default as many as needed, see
        ROUNDS, so that no two queries are both sure of one target

    Returns
    -------
    (Q, T), sparse where the scores are; those of a query sum to 1 at most

    Raises
    ------
    ValueError
        If a score is NaN.
    """
    pairs = as_pairs(scores)
    query, target = pairs.coords
    size = np.array(pairs.shape)
    share = overlap * size.min() / size
    nobody = np.maximum(1 - share, np.exp(LEAST_LOG_WEIGHT)) / np.sqrt(share)
    log_weight = config.slope * pairs.data + config.intercept
    log_weight = np.clip(log_weight, LEAST_LOG_WEIGHT, MOST_LOG_WEIGHT)
    # each query's weights are divided by its largest one, so that no number is too large
    largest = np.full(size[0], np.log(nobody[0]))
    np.maximum.at(largest, query, log_weight)
    weight = np.exp(log_weight - largest[query])
    nobody_of_query = nobody[0] * np.exp(-largest)
    weights = sparse.csr_array((weight, (query, target)), pairs.shape)
    transposed = weights.T  # once: it takes longer than a product of short lists

    of_targets = np.ones(size[1])
    most_rounds = MOST_ROUNDS if rounds is None else rounds
    for number in range(1, 1 + most_rounds):
        of_queries = 1 / (weights @ of_targets + nobody_of_query)
        before = of_targets
        of_targets = 1 / (transposed @ of_queries + nobody[1])
        highest_sum = (before / of_targets).max()  # of a target's probabilities, with nobody's
        if rounds is None and number >= ROUNDS and highest_sum <= MOST_TOTAL:
            break
    of_queries = 1 / (weights @ of_targets + nobody_of_query)
    chance = of_queries[query] * weight * of_targets[target]
    probability = sparse.coo_array((chance, (query, target)), pairs.shape)
    if sparse.issparse(scores):
        return probability
    return probability.toarray()


def estimate_overlap(scores: np.ndarray | sparse.coo_array, config: MatchConfig) -> float:
    """Estimate which share of the shorter list has a partner: the one that agrees with itself.

    Expectation maximisation: the share is the mean probability of a partner that it gives itself,
    within MIN_OVERLAP and MAX_OVERLAP.

    Parameters
    ----------
    scores : (Q, T), see :func:`as_pairs`
    config : line of the log-weights
    """
    pairs = as_pairs(scores)
    overlap = 0.5
    for _ in range(OVERLAP_STEPS):
        partners = sinkhorn(pairs, config, overlap, rounds=10).sum()
        overlap = float(np.clip(partners / min(pairs.shape), MIN_OVERLAP, MAX_OVERLAP))
    return overlap


def mutual_best(scores: np.ndarray) -> np.ndarray:
    """Return of a matrix (Q, T) which pairs are each other's only best, (Q, T) bool."""
    is_mutual = scores > -np.inf
    for axis in (0, 1):
        is_best = scores == scores.max(axis, keepdims=True)
        is_mutual &= is_best & (is_best.sum(axis, keepdims=True) == 1)
    return is_mutual


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
    if expected_slope is not None:  # far from the likeliest line there is one that links nobody
        begin = [np.log(expected_slope * spread), -expected_slope * scores.diagonal().mean()]
    fitted = line(optimize.minimize(loss, begin, method="Nelder-Mead", tol=1e-3).x)
    ratios = []
    for overlap, of_list, _ in lists:
        probability = sinkhorn(of_list, fitted, overlap)
        ratios.append(fitted.llr(probability, overlap, len(of_list)).ravel())
    llr = np.concatenate(ratios)
    same = np.concatenate([same.ravel() for _, _, same in lists])
    optimum = optimize.minimize(calibrated_cllr, [1.0, 0.0], bounds=[SCALES, SHIFTS])
    scale, shift = optimum.x.tolist()
    return replace(fitted, llr_scale=scale, llr_shift=shift)


def _known_lists(scores, rng):
    """Draw the lists of FIT_LISTS: the overlap of each, its scores (Q, T), and the true pairs."""
    lists = []
    for overlap, count in FIT_LISTS.items():
        for _ in range(count):
            queries, targets = draw_lists(len(scores), overlap, rng)
            of_list = scores[np.ix_(queries, targets)]
            lists.append((overlap, of_list, queries[:, None] == targets))
    return lists


def _loss(line, lists):
    """Return minus the mean log-probability of each account's partner or nobody, over overlaps."""
    total = 0.0
    for overlap, scores, same in lists:
        probability = sinkhorn(scores, line, overlap, FIT_ROUNDS)
        nobody = [1 - probability.sum(axis)[~same.any(axis)] for axis in (0, 1)]
        of_truth = [probability[same], *nobody]
        log_probability = np.log(np.maximum(np.concatenate(of_truth), SMALLEST))
        total -= log_probability.mean() / FIT_LISTS[overlap]
    return total / len(FIT_LISTS)
