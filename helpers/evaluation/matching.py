r"""Matching: who of one list of accounts is who in another, decided for all of them together.

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
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import logit

from helpers.evaluation.calibration import cllr
from helpers.evaluation.candidates import Candidates, all_candidates

ROUNDS = 50  # of scaling rows and columns, at least
MOST_ROUNDS = 1000  # where the probabilities of a target still add up to more than MOST_TOTAL
MOST_TOTAL = 1.05
SMALLEST = 1e-12  # probability, where its logarithm is taken
LEAST_LOG_WEIGHT = -300.0  # bounds of the log-weight of a pair, and of nobody
MOST_LOG_WEIGHT = 300.0
MIN_OVERLAP = 0.002  # bounds of an estimated overlap
MAX_OVERLAP = 0.95
OVERLAP_STEPS = 30  # of estimating it
FIT_LISTS = {1.0: 1, 0.5: 4, 0.1: 8, 0.01: 8}  # overlap: number of lists on which a line is fitted
FIT_ACCOUNTS = 300  # accounts on which a line is fitted, at most


@dataclass(frozen=True)
class MatchConfig:
    """The line that gives the log-weight of a pair: slope * score + intercept.

    Attributes
    ----------
    slope : above 0; 0 where the scores say nothing
    intercept : added to slope * score
    llr_scale : factor of the log-likelihood ratios, see :meth:`Matching.llr`
    """

    slope: float
    intercept: float
    llr_scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Matching:
    """How likely each candidate is, given that each account has one partner or none.

    Attributes
    ----------
    candidates : the N pairs
    probability : (N,) of each pair; with ``nobody_of_queries`` those of a query sum to 1
    nobody_of_queries : (Q,) probability that a query has no partner
    nobody_of_targets : (T,) the same of a target
    overlap : share of the shorter list that has a partner, as it was assumed or estimated
    """

    candidates: Candidates
    probability: np.ndarray
    nobody_of_queries: np.ndarray
    nobody_of_targets: np.ndarray
    overlap: float

    def llr(self, scale: float = 1.0) -> np.ndarray:
        """Return the log-likelihood ratio (N,) of each pair, against its prior at this overlap.

        Parameters
        ----------
        scale : factor of the ratios, ``llr_scale`` of the config. The probabilities of likely pairs
            are right without it, but pairs of one author that seem unlikely would get ratios that
            are far too low
        """
        size = (self.candidates.queries, self.candidates.targets)
        prior = self.overlap / max(size)  # of min(size) * overlap pairs among all
        chance = np.clip(self.probability, SMALLEST, 1 - SMALLEST)
        return scale * (logit(chance) - logit(prior))


def match(
    candidates: Candidates, config: MatchConfig, overlap: float, rounds: int | None = None
) -> Matching:
    """Compute the probability of each pair by Sinkhorn's algorithm with slack.

    Parameters
    ----------
    candidates : the pairs of Q queries and T targets; of a list that is compared with itself both
        directions of each pair, with equal scores
    config : line of the log-weights
    overlap : share of the shorter list that has a partner, above 0 and at most 1
    rounds : number of times that rows and columns are scaled; by default as many as needed, see
        ROUNDS, so that no two queries are both sure of one target

    Raises
    ------
    ValueError
        If the overlap is not above 0 and at most 1.
    """
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap {overlap}: a share above 0, at most 1")
    shape = (candidates.queries, candidates.targets)
    row, column = candidates.pairs.T
    log_weight = config.slope * candidates.scores + config.intercept
    log_weight = np.clip(log_weight, LEAST_LOG_WEIGHT, MOST_LOG_WEIGHT)
    slack_of_queries, slack_of_targets = [_log_slack(overlap, size, shape) for size in shape]

    # each row is divided by its largest weight, so that no weight is too large a number
    largest = np.full(shape[0], slack_of_queries)
    np.maximum.at(largest, row, log_weight)
    weight = np.exp(log_weight - largest[row])
    weights = sparse.csr_matrix((weight, (row, column)), shape)
    by_target = weights.T.tocsr()
    nobody_of_query = np.exp(slack_of_queries - largest)
    nobody_of_target = np.exp(slack_of_targets)

    of_targets = np.ones(shape[1])
    most_rounds = MOST_ROUNDS if rounds is None else rounds
    for number in range(1, 1 + most_rounds):
        of_queries = 1 / (weights @ of_targets + nobody_of_query)
        before = of_targets
        of_targets = 1 / (by_target @ of_queries + nobody_of_target)
        total = (before / of_targets).max()  # of the probabilities of a target, nobody's included
        if rounds is None and number >= ROUNDS and total <= MOST_TOTAL:
            break
    of_queries = 1 / (weights @ of_targets + nobody_of_query)

    probability = of_queries[row] * weight * of_targets[column]
    sums = [np.bincount(side, probability, size) for side, size in zip((row, column), shape)]
    nobody_of_queries, nobody_of_targets = [np.clip(1 - total, 0, 1) for total in sums]
    return Matching(candidates, probability, nobody_of_queries, nobody_of_targets, overlap)


def _log_slack(overlap, size, shape):
    """Return the log-weight of nobody in a list of this size: n of the module's docstring."""
    share = overlap * min(shape) / size
    if share == 1:
        return LEAST_LOG_WEIGHT
    return np.log1p(-share) - np.log(share) / 2


def estimate_overlap(candidates: Candidates, config: MatchConfig) -> float:
    """Estimate which share of the shorter list has a partner: the one that agrees with itself.

    Expectation maximisation: the share is the mean probability of a partner that it gives itself,
    within MIN_OVERLAP and MAX_OVERLAP.

    Parameters
    ----------
    candidates : the pairs of both lists
    config : line of the log-weights
    """
    shorter = min(candidates.queries, candidates.targets)
    overlap = 0.5
    for _ in range(OVERLAP_STEPS):
        probability = match(candidates, config, overlap, rounds=10).probability
        overlap = float(np.clip(probability.sum() / shorter, MIN_OVERLAP, MAX_OVERLAP))
    return overlap


def optimal_assignment(candidates: Candidates) -> np.ndarray:
    """Return the candidates (N,) bool that are pairs of the assignment with the largest sum.

    As many accounts as possible get a partner; scores below 0 are pairs, too.

    Parameters
    ----------
    candidates : the pairs of both lists

    References
    ----------
    Jonker and Volgenant 1987, by SciPy.
    """
    from scipy import optimize  # imported here: who only embeds need not wait for it

    shape = (candidates.queries, candidates.targets)
    row, column = candidates.pairs.T
    none = candidates.scores.min(initial=0) - np.ptp(candidates.scores) * min(shape) - 1
    scores = np.full(shape, none)
    scores[row, column] = candidates.scores
    chosen = np.full(shape[0], -1)
    query, target = optimize.linear_sum_assignment(scores, maximize=True)
    chosen[query] = target
    return chosen[row] == column


def mutual_best(candidates: Candidates) -> np.ndarray:
    """Return the candidates (N,) bool of which each account is the other's only best.

    Parameters
    ----------
    candidates : the pairs of both lists
    """
    is_mutual = np.ones(len(candidates), bool)
    for side, size in zip(candidates.pairs.T, (candidates.queries, candidates.targets)):
        best = np.full(size, -np.inf)
        np.maximum.at(best, side, candidates.scores)
        is_best = candidates.scores == best[side]
        is_mutual &= is_best & (np.bincount(side[is_best], minlength=size) == 1)[side]
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


def fit_match(scores: np.ndarray, seed: int = 0) -> MatchConfig:
    """Fit the line of the log-weights on accounts whose queries and targets are known.

    Lists are drawn at each overlap of FIT_LISTS. The line is the one that makes the true partners,
    or nobody, most likely; each overlap counts alike. The scale of the log-likelihood ratios then
    has the least Cllr of the lists in which not all have a partner.

    Parameters
    ----------
    scores : (N, N), scores of N queries with N targets, in the same order of accounts
    seed : seed of the lists

    Raises
    ------
    ValueError
        If there are fewer than ten accounts.
    """
    from scipy import optimize

    if len(scores) < 10:
        raise ValueError(f"matching is fitted on 10 accounts or more, not on {len(scores)}")
    scores = np.asarray(scores, np.float64)
    rng = np.random.default_rng(seed)
    drawn = []
    for overlap, lists in FIT_LISTS.items():
        for _ in range(lists):
            queries, targets = draw_lists(min(len(scores), FIT_ACCOUNTS), overlap, rng)
            drawn.append((overlap, queries, targets, all_candidates(scores[queries][:, targets])))
    spread = scores.std()
    begin = [0.0, -scores.diagonal().mean() / spread]  # of log(slope * spread), and of intercept
    optimum = optimize.minimize(_loss, begin, (drawn, spread), method="Nelder-Mead", tol=1e-3)
    config = _config(optimum.x, spread)
    llrs = []
    trues = []
    for overlap, queries, targets, candidates in drawn:
        if overlap < 1:
            llrs.append(match(candidates, config, overlap).llr())
            trues.append((queries[:, None] == targets)[tuple(candidates.pairs.T)])
    llr = np.concatenate(llrs)
    is_true = np.concatenate(trues)
    scale = optimize.minimize_scalar(_cllr_of_scale, bounds=(0.05, 2.0), args=(llr, is_true))
    return replace(config, llr_scale=float(scale.x))


def _cllr_of_scale(scale, llr, is_true):
    return cllr(scale * llr, is_true)


def _config(values, spread):
    return MatchConfig(float(np.exp(values[0]) / spread), float(values[1]))


def _loss(values, drawn, spread):
    """Return minus the mean log-probability of the truth, the mean over overlaps."""
    config = _config(values, spread)
    losses = {overlap: [] for overlap in FIT_LISTS}
    for overlap, queries, targets, candidates in drawn:
        matching = match(candidates, config, overlap, rounds=20)
        of_truth = truth_probability(matching, queries[:, None] == targets)
        losses[overlap].append(-np.log(np.maximum(of_truth, SMALLEST)).mean())
    return np.mean([np.mean(loss) for loss in losses.values()])


def truth_probability(matching: Matching, same: np.ndarray) -> np.ndarray:
    """Return the probability of what is true of each account: its partner, or nobody.

    Parameters
    ----------
    matching : result of :func:`match`
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
