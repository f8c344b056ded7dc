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

Only candidates have weights, so time and memory grow with their number and not with the product of
both lists. Of 20,000 x 20,000 accounts with 3 million candidates, the estimate of the overlap took
7 seconds and the probabilities less than one, on one core (``benchmarks/matching.py``, one run).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from .candidates import Candidates

ROUNDS = 50  # of scaling rows and columns, at least
MOST_ROUNDS = 1000  # where the probabilities of a target still add up to more than MOST_TOTAL
MOST_TOTAL = 1.05
SMALLEST = 1e-12  # probability, where its logarithm is taken
LEAST_LOG_WEIGHT = -300.0  # bounds of the log-weight of a pair, and of nobody
MOST_LOG_WEIGHT = 300.0
MIN_OVERLAP = 0.002  # bounds of an estimated overlap
MAX_OVERLAP = 0.95
OVERLAP_STEPS = 30  # of estimating it


@dataclass(frozen=True)
class MatchConfig:
    """The line that gives the log-weight of a pair: slope * score + intercept.

    Attributes
    ----------
    slope : above 0; 0 where the scores say nothing
    intercept : added to slope * score
    llr_scale, llr_shift : factor of the log-likelihood ratios and what is added to the product, see
        :meth:`Matching.llr`
    accounts : number of accounts that it was fitted on, which bounds what it can prove, see
        :meth:`highest_probability`; None if it was not fitted
    """

    slope: float
    intercept: float
    llr_scale: float = 1.0
    llr_shift: float = 0.0
    accounts: int | None = None

    def highest_probability(self, overlap: float, accounts: int) -> float:
        """Return the highest probability of a pair that the fit supports.

        A likelihood ratio cannot be larger than the number of comparisons that it rests on: of N
        accounts in the fit, plus 1, times the other accounts of the longer list (as in forensic
        practice, Vergeer et al. 2016).

        Parameters
        ----------
        overlap : share of the shorter list that has a partner
        accounts : number of accounts of the longer list
        """
        if self.accounts is None:
            return 1.0
        highest_llr = np.log1p(self.accounts) + np.log(max(accounts - 1, 1))
        return float(expit(logit(overlap / accounts) + highest_llr))


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

    def llr(self, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
        """Return the log-likelihood ratio (N,) of each pair, against its prior at this overlap.

        Parameters
        ----------
        scale, shift : ``llr_scale`` and ``llr_shift`` of the config: factor of the ratios and what
            is added. The probabilities of likely pairs are right without them, but pairs of one
            author that seem unlikely would get ratios that are far too low
        """
        size = (self.candidates.queries, self.candidates.targets)
        prior = self.overlap / max(size)  # of min(size) * overlap pairs among all
        chance = np.clip(self.probability, SMALLEST, 1 - SMALLEST)
        return scale * (logit(chance) - logit(prior)) + shift


def sinkhorn(
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
    query, target = candidates.pairs.T
    size = np.array([candidates.queries, candidates.targets])
    share = overlap * size.min() / size
    nobody = np.maximum(1 - share, np.exp(LEAST_LOG_WEIGHT)) / np.sqrt(share)
    log_weight = config.slope * candidates.scores + config.intercept
    log_weight = np.clip(log_weight, LEAST_LOG_WEIGHT, MOST_LOG_WEIGHT)
    # each query's weights are divided by its largest one, so that no number is too large
    largest = np.full(size[0], np.log(nobody[0]))
    np.maximum.at(largest, query, log_weight)
    weight = np.exp(log_weight - largest[query])
    nobody_of_query = nobody[0] * np.exp(-largest)
    weights = sparse.csr_matrix((weight, (query, target)), size)
    by_target = weights.T.tocsr()

    of_targets = np.ones(size[1])
    most_rounds = MOST_ROUNDS if rounds is None else rounds
    for number in range(1, 1 + most_rounds):
        of_queries = 1 / (weights @ of_targets + nobody_of_query)
        before = of_targets
        of_targets = 1 / (by_target @ of_queries + nobody[1])
        highest_sum = (before / of_targets).max()  # of a target's probabilities, with nobody's
        if rounds is None and number >= ROUNDS and highest_sum <= MOST_TOTAL:
            break
    of_queries = 1 / (weights @ of_targets + nobody_of_query)
    probability = of_queries[query] * weight * of_targets[target]
    nobody_of_targets = np.maximum(1 - of_targets * (by_target @ of_queries), 0)
    nobody_of_queries = of_queries * nobody_of_query
    return Matching(candidates, probability, nobody_of_queries, nobody_of_targets, overlap)


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
        probability = sinkhorn(candidates, config, overlap, rounds=10).probability
        overlap = float(np.clip(probability.sum() / shorter, MIN_OVERLAP, MAX_OVERLAP))
    return overlap


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
