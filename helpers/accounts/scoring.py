"""From scores to likelihood ratios by the weights of members, and from these to probabilities."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from ..evaluation.calibration import Calibration
from ..evaluation.matching import MatchConfig, estimate_overlap, sinkhorn
from ..evaluation.scores import Rows, score_blocks
from ..tokens.batch import Samples
from .unjudged import ENGLISH

OWN_POSTS = (8, 512)  # posts of each half on which own accounts are calibrated: from, to
# prior standard deviations of the line from shipped to own log-likelihood ratios
SLOPE_SPREAD = 0.3
SHIFT_SPREAD = 1.0
NEAREST_OTHERS = 100  # other accounts that each half is compared with, those nearest to it
LOG_ODDS = MatchConfig(1.0, 0.0)  # the log-weight of a pair is its log-odds
EQUAL_LLR = 1e-3  # ratios that no table can tell apart
LIKELIEST = 50  # targets of an account among which some must be told apart from others
CHANCE_ERRORS = 3  # standard errors above chance at which own halves are told from others


@dataclass(frozen=True)
class ScoringConfig:
    """One use of the members: their weights, the calibration, and its bounds.

    Attributes
    ----------
    members : names, normalisers and weights, as :meth:`helpers.evaluation.models.Model.from_json`
        takes them
    calibration : turns scores into log-likelihood ratios
    accounts : number of accounts that calibration was fitted on. Likelihood ratios are clipped to
        what so many can support, as in forensic practice (Vergeer et al. 2016): that of a pair lies
        between 1 / (accounts + 1) and accounts + 1; in a gallery of T targets the upper bound is
        T - 1 times as high, because each account was compared with many others
    languages : of which the calibration has seen accounts enough; it holds for no other
    posts : lowest and highest number of posts of a sample that calibration has seen
    size_weight : weight of the logarithm of the number of other targets in the log-likelihood
        ratio, for as many as calibration has seen; 1 for each further target
    """

    members: list[dict]
    calibration: Calibration
    accounts: int
    languages: tuple[str, ...] = (ENGLISH,)
    posts: tuple[int, int] = (4, 32)
    size_weight: float = 1.0

    @property
    def weights(self) -> dict[str, float]:
        """Name of a member -> its weight."""
        return {member["name"]: member["weight"] for member in self.members}

    def llr(self, scores: np.ndarray, query_posts, target_posts, targets: int = 2) -> np.ndarray:
        """Return the log-likelihood ratio of each score, within the bounds.

        Parameters
        ----------
        scores : scores of pairs, in an array of any shape
        query_posts, target_posts : numbers of posts of the query and of the target of each pair,
            broadcast to the shape of ``scores``; clipped to the range of ``posts``
        targets : T, number of targets that have normalised the scores; 2 for scores that no gallery
            has normalised
        """
        lowest, highest = self.bounds(targets)
        return self.log_ratio(scores, query_posts, target_posts, targets).clip(lowest, highest)

    def log_ratio(
        self, scores: np.ndarray, query_posts, target_posts, targets: int = 2
    ) -> np.ndarray:
        """Return the log-likelihood ratio of each score without bounds.

        Parameters
        ----------
        scores, query_posts, target_posts, targets : as in :meth:`llr`
        """
        features = [scores]
        if len(self.calibration.weights) > 1:
            features += [np.clip(posts, *self.posts) for posts in (query_posts, target_posts)]
        flat = [values.ravel() for values in np.broadcast_arrays(*features)]
        log_ratio = self.calibration.llr(*flat).reshape(np.shape(scores))
        return log_ratio + self._of_size(targets)

    def _of_size(self, targets):
        """Return what the number of targets adds; fitted lists are not longer than ``accounts``."""
        seen = min(targets, max(self.accounts, 2))
        return np.log(targets - 1) + (self.size_weight - 1) * np.log(seen - 1)

    def scaled(self, slope: float, shift: float, targets: int) -> "ScoringConfig":
        """Return a use whose log-likelihood ratios lie on a line over those of this one.

        Parameters
        ----------
        slope, shift : of the line
        targets : number of targets for which it was fitted
        """
        weights = [slope * weight for weight in self.calibration.weights]
        of_size = float(self._of_size(targets))
        intercept = slope * (self.calibration.intercept + of_size) + shift - of_size
        return replace(self, calibration=Calibration(weights, intercept, self.calibration.knots))

    def bounds(self, targets: int = 2) -> tuple[float, float]:
        """Return the lowest and the highest log-likelihood ratio, see :meth:`llr`."""
        bound = float(np.log1p(self.accounts))
        return -bound, bound + float(np.log(targets - 1))


def fit_own_scoring(
    config: ScoringConfig, scores: np.ndarray, first: Samples, last: Samples, rows: np.ndarray
) -> ScoringConfig:
    """Fit a line from the log-likelihood ratios of a calibration to those of own accounts.

    Every first half of ``rows`` is compared with its own account's last half and with the
    NEAREST_OTHERS last halves of others. Two accounts that are each other's nearest are not
    compared: they may be one person's.

    Parameters
    ----------
    config : the calibration of a gallery that ships
    scores : (N, N), those of ``first`` with ``last`` by the model of this config
    first, last : first and last posts of N accounts, in the same order
    rows : (R,) int, numbers of the accounts that the line is fitted on
    """
    from scipy import optimize

    if not _tell_apart(scores):
        # the scores of these accounts say nothing: every likelihood ratio is 1
        return config.scaled(0.0, 0.0, len(first))
    candidates = _candidates(scores)[rows]
    log_ratio = config.log_ratio(scores, first.count[:, None], last.count, len(first))
    is_candidate = candidates >= 0
    same = np.zeros(is_candidate.shape, bool)
    same[:, 0] = True
    compared = log_ratio[rows[:, None], candidates][is_candidate]
    pairs = (compared, same[is_candidate], -np.log(len(first) - 1))
    fitted = optimize.minimize(_line_loss, [1.0, 0.0], pairs, bounds=[(0, None), (None, None)])
    return config.scaled(*fitted.x.tolist(), len(first))


def _line_loss(line, log_ratio, same, prior_log_odds):
    """Return the loss of a line, slope and shift, with normal priors around 1 and 0."""
    slope, shift = line
    log_odds = slope * log_ratio + shift + prior_log_odds
    loss = np.logaddexp(0, np.where(same, -log_odds, log_odds)).sum()
    return loss + ((slope - 1) / SLOPE_SPREAD) ** 2 / 2 + (shift / SHIFT_SPREAD) ** 2 / 2


def _tell_apart(scores):
    """Tell whether own last halves have higher scores than those of others, beyond chance.

    The candidates of the fit cannot tell: they are chosen by high scores, so that any weights below
    0 separate them where the scores say nothing. All pairs of ``scores`` (N, N) can.
    """
    compared = len(scores) - 1
    own_scores = scores.diagonal()[:, None]
    share_below = (scores < own_scores).sum(1) / compared
    standard_error = 1 / np.sqrt(12 * len(scores))  # of a mean of numbers between 0 and 1
    return share_below.mean() > 0.5 + CHANCE_ERRORS * standard_error


def _candidates(scores):
    """Return the accounts (N, K) that each of N is compared with, its own first; -1 is no account.

    ``scores`` (N, N) are those of first halves with last halves in the same order of accounts.
    """
    row = np.arange(len(scores))
    of_others = scores.copy()
    np.fill_diagonal(of_others, -np.inf)
    partner = (of_others + of_others.T).argmax(1)
    nearest = np.argsort(-of_others, axis=1, kind="stable")[:, : min(NEAREST_OTHERS, len(row) - 1)]
    is_mutual = partner[partner] == row
    may_be_one_person = (nearest == partner[:, None]) & is_mutual[:, None]
    return np.hstack([row[:, None], np.where(may_be_one_person, -1, nearest)])


def likeliest(scores: np.ndarray, llr: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers (Q, k) of the likeliest targets, the best first; fewer than k if T is.

    Parameters
    ----------
    scores, llr : (Q, T); targets of equal ratios are told apart by their scores
    k : number of targets
    """
    return np.lexsort((scores, llr))[:, ::-1][:, :k]


def are_equal(llr: np.ndarray, lowest: float) -> np.ndarray:
    """Tell of which queries the likeliest targets cannot be told apart, (Q,) bool.

    Parameters
    ----------
    llr : (Q, T), NaN for queries that cannot be judged
    lowest : ratio of targets that are all unlikely, which is an answer
    """
    best = np.sort(np.where(np.isnan(llr), -np.inf, llr))[:, -LIKELIEST:]
    is_likely = best >= lowest + EQUAL_LLR
    least_likely = np.where(is_likely, best, np.inf).min(1)
    return (best[:, -1] - least_likely < EQUAL_LLR) & (is_likely.sum(1) > 1)


def log_mean_ratio(llr: np.ndarray, beyond: int = 0) -> np.ndarray:
    """Return the logarithm (Q,) of the mean likelihood ratio of the targets that are compared.

    Parameters
    ----------
    llr : (Q, T), -inf for targets that are not compared
    beyond : number of more targets whose ratio is 0
    """
    compared = np.isfinite(llr).sum(1) + beyond
    return logsumexp(llr, 1) - np.log(np.maximum(compared, 1))


def posterior(llr: np.ndarray, prior: float, beyond: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability that a target is the query's account, and that none is.

    One target belongs to the writer of the query, or none. With prior p, T targets (``beyond``
    included), the likelihood ratio L_t of target t and the sum S of all ratios, the probability of
    t is ``(p / T) L_t / (1 - p + (p / T) S)``.

    Parameters
    ----------
    llr : (Q, T), -inf for targets that are not compared
    prior : probability that the writer of a query has a target
    beyond : number of more targets whose ratio is 0

    Returns
    -------
    (Q, T) and (Q,)
    """
    compared = np.isfinite(llr).sum(1, keepdims=True) + beyond
    log_odds = np.log(prior / np.maximum(compared, 1)) + llr
    log_nobody = np.log1p(-prior)
    log_total = np.logaddexp(logsumexp(log_odds, 1, keepdims=True), log_nobody)
    return np.exp(log_odds - log_total), np.exp(log_nobody - log_total[:, 0])


def near_pairs(first: Rows, second: Rows, nearest: int) -> np.ndarray:
    """Return the pairs (N, 2) of which one vector is among the nearest of the other.

    All pairs with the score of the last of the nearest are kept, so that the order of accounts
    never decides.

    Parameters
    ----------
    first, second : (Q, D) and (T, D)
        vectors of the accounts of both lists
    nearest : int
        number of pairs of each account
    """
    pairs = [_nearest(first, second, nearest), _nearest(second, first, nearest)[:, ::-1]]
    return np.unique(np.concatenate(pairs), axis=0)


def _nearest(queries, targets, nearest):
    """Return the pairs (N, 2) of each query and its nearest targets."""
    last = max(targets.shape[0] - nearest, 0)
    pairs = []
    for part, scores in score_blocks(queries, targets):
        lowest = np.partition(scores, last, axis=1)[:, [last]]
        pairs.append(np.argwhere(scores >= lowest) + [part.start, 0])
    return np.concatenate(pairs)


def match_pairs(log_odds: sparse.coo_array, overlap: float = 0.0) -> tuple[sparse.coo_array, float]:
    """Match two lists; which of them is named first does not matter.

    Parameters
    ----------
    log_odds : (Q, T)
        of the pairs of both lists that may be partners
    overlap : float
        share of the shorter list that has a partner; 0 to estimate it

    Returns
    -------
    The probabilities, (Q, T) sparse, of which each account has at most one that is far above one
    half; and the overlap
    """
    sides = (log_odds, log_odds.T.tocoo())
    if not overlap:
        overlap = float(np.mean([estimate_overlap(side, LOG_ODDS) for side in sides]))
    forward, back = [sinkhorn(side, LOG_ODDS, overlap) for side in sides]
    chance = (forward.data + back.data) / 2
    return sparse.coo_array((chance, log_odds.coords), log_odds.shape), overlap
