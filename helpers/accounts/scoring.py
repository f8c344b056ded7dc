"""Weights of an author encoder's members, and the map from their score to a likelihood ratio."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit

from ..core.progress import progress_bar
from ..evaluation import calibration
from ..evaluation.calibration import Calibration, score_pieces
from ..evaluation.matching import LEAST_LOG_WEIGHT, MatchConfig, fit_match
from ..evaluation.models import Model
from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .samples import MAX_TOKENS, halves, last_posts
from .unjudged import ENGLISH

SIZES = (4, 8, 16, 32)  # numbers of posts per sample on which the use without a gallery is fitted
# numbers of posts of an account, at most, in the lists on which the use of a gallery is fitted
SIDE_POSTS = (4, 8, 16, 32, 64, 128, 256, 512)
LIST_SIZES = (30, 60, 180)  # numbers of accounts in these lists, at most
CUT_SHARE = 0.25  # of these accounts that are cut in two
OWN_POSTS = (8, 512)  # posts of each half on which own accounts are calibrated: from, to
# prior standard deviations of the line from shipped to own log-likelihood ratios
SLOPE_SPREAD = 0.3
SHIFT_SPREAD = 1.0
LIST_POSTS = 16  # posts of each half on which the matching of lists is fitted,
HALF_POSTS = (8, 32)  # from, to, where too few accounts have twice as many
# Quantile of the scores of same-account pairs at which the calibration of a gallery bends. Below it
# a score says less than a line would have it: on halves of the dev accounts, the loss of the other
# half falls from 1.90 to 1.87, and no further with more bends.
KNOT = 0.25
# length of a pair of LIST_POSTS on both sides, see _pairs_of_list
LIST_LENGTH = 2 * float(np.log(LIST_POSTS / SIDE_POSTS[0]))
LOG_ODDS_SLOPE = 1.0  # the scores of a fitted model are log-odds among neighbours
NEAREST_OTHERS = 100  # other accounts that each half is compared with, those nearest to it
CHANCE_ERRORS = 3  # standard errors above chance at which own halves are told from others


@dataclass(frozen=True)
class ScoringConfig:
    """One use of the members: their weights, the calibration, and its bounds.

    Attributes
    ----------
    members : names, normalisers and weights, as :meth:`helpers.evaluation.models.Model.to_json`
        returns them
    calibration : turns scores into log-likelihood ratios
    accounts : number of accounts that calibration was fitted on. Likelihood ratios are clipped to
        what so many can support, as in forensic practice (Vergeer et al. 2016): that of a pair lies
        between 1 / (accounts + 1) and accounts + 1; in a gallery of T targets the upper bound is
        T - 1 times as high, because each account was compared with many others
    match : the log-weights with which two lists are matched, if they were fitted, see
        :func:`fit_list_scoring`
    languages : of which the calibration has seen accounts enough; it holds for no other
    posts : lowest and highest number of posts of a sample that calibration has seen
    size_weight : weight of the logarithm of the number of other targets in the log-likelihood
        ratio, for as many as calibration has seen; 1 for each further target
    """

    members: list[dict]
    calibration: Calibration
    accounts: int
    match: MatchConfig | None = None
    languages: tuple[str, ...] = (ENGLISH,)
    posts: tuple[int, int] = (SIZES[0], SIZES[-1])
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

    @classmethod
    def of(cls, plain: dict) -> "ScoringConfig":
        """Return the object from which ``asdict`` has made a dict."""
        parts = {"calibration": Calibration(**plain["calibration"])}
        if plain["match"] is not None:
            parts["match"] = MatchConfig(**plain["match"])
        if "languages" in plain:
            parts["languages"] = tuple(plain["languages"])
        parts["posts"] = tuple(plain["posts"])
        return cls(**plain | parts)


def fit_pair_scoring(model: Model, dev: TokenStore, accounts: int) -> ScoringConfig:
    """Fit the calibration of a model for pairs without a gallery, on halves of dev accounts.

    The older halves are queries, the newer ones targets, cut to each combination of two SIZES for
    which two accounts have enough posts. All combinations are fitted together.

    Parameters
    ----------
    model : gives the scores that are calibrated
    dev : posts of the dev accounts
    accounts : gives the bounds, see :class:`ScoringConfig`

    Raises
    ------
    ValueError
        Fewer than two accounts have enough posts for the smallest sizes.
    """
    trials = []
    sizes = list(product(SIZES, SIZES))
    for query_posts, target_posts in progress_bar(sizes, desc="calibrating", unit="size", delay=2):
        least = max(query_posts, target_posts)
        older, newer = halves(dev, least, least)
        if len(older) < 2:
            continue
        queries = last_posts(older, query_posts)
        targets = replace(newer, count=np.minimum(newer.count, target_posts))
        scores = model.score_matrix(queries, targets, MAX_TOKENS)
        same = np.eye(len(queries), dtype=bool)
        columns = np.broadcast_arrays(scores, same, query_posts, target_posts)
        trials.append([values.ravel() for values in columns])
    if not trials:
        raise ValueError(f"calibration needs 2 accounts with {2 * SIZES[0]} posts")
    fitted = calibration.fit_calibration(*map(np.concatenate, zip(*trials)))
    return ScoringConfig(model.to_json(), fitted, accounts)


def fit_gallery_scoring(model: Model, dev: TokenStore, neighbours: int) -> ScoringConfig:
    """Fit how s-norm and AS-norm are joined, and the calibration of this score, on drawn lists.

    In each list some accounts are cut in two, first posts and last posts, which stand for two
    accounts of one person; all others stand in it once. Every pair of a list is compared as in use.
    The lists differ in their length and in how many posts an account has at most. Logistic
    regression gives the likelihood ratio from the score, the posts of both accounts and the size of
    the list. Its slope may be another one above KNOT, and a higher score never means less.

    Parameters
    ----------
    model : members and their weights; how they are normalised does not matter
    dev : posts of the dev accounts
    neighbours : number of nearest accounts for AS-norm

    Raises
    ------
    ValueError
        Fewer than LIST_SIZES[0] accounts have twice SIDE_POSTS[0] posts.
    """
    accounts = np.flatnonzero(dev.posts_per_author() >= 2 * SIDE_POSTS[0])
    if len(accounts) < LIST_SIZES[0]:
        needed = f"{LIST_SIZES[0]} accounts with {2 * SIDE_POSTS[0]} posts"
        raise ValueError(f"calibration needs {needed}, and {len(accounts)} have so many")
    near = model.normalised("as_norm", neighbours)
    whole = model.normalised("s_norm", neighbours)
    rng = np.random.default_rng(0)
    sizes = list(product(LIST_SIZES, (None, *SIDE_POSTS)))
    lists = []
    for count, most in progress_bar(sizes, desc="calibrating", unit="list", delay=2):
        samples = _drawn_list(dev, rng.permutation(accounts)[:count], most, rng)
        lists.append(_pairs_of_list(samples, near, whole))
    pairs = pd.concat(lists)
    *_, of_near, of_length, of_whole = _fit_ratio(pairs[["near"]], pairs, [pairs.whole])
    ratio = of_whole / (of_near + of_length * LIST_LENGTH)
    scores = pairs.near + ratio * pairs.whole
    *_, of_score, of_length = _fit_ratio(scores.to_frame(), pairs)
    slope = of_score + of_length * LIST_LENGTH  # makes scores log-odds
    members = []
    for joined, share in ((near, slope), (whole, slope * ratio)):
        for member in joined.to_json():
            members.append(member | {"weight": float(share * member["weight"])})
    fitted, of_size = _fit_calibration(slope * scores, pairs)
    limits = (SIDE_POSTS[0], SIDE_POSTS[-1])
    return ScoringConfig(members, fitted, len(accounts), posts=limits, size_weight=of_size)


def fit_own_scoring(
    config: ScoringConfig, scores: np.ndarray, first: Samples, last: Samples, rows: np.ndarray
) -> ScoringConfig:
    """Fit a line from the log-likelihood ratios of a calibration to those of own accounts.

    The matching of lists is left to :func:`fit_list_scoring`.

    Every first half of ``rows`` is compared with its own account's last half and with the
    NEAREST_OTHERS last halves of others. Two accounts that are each other's nearest are not
    compared: they may be one person's.

    Parameters
    ----------
    config : result of :func:`fit_gallery_scoring`
    scores : (N, N), those of ``first`` with ``last`` by the model of this config
    first, last : first and last posts of N accounts, in the same order
    rows : (R,) int, numbers of the accounts that the line is fitted on
    """
    from scipy import optimize

    if not _tell_apart(scores):
        # the scores of these accounts say nothing: every likelihood ratio is 1
        nobody = MatchConfig(0.0, LEAST_LOG_WEIGHT)
        return replace(config.scaled(0.0, 0.0, len(first)), match=nobody)
    candidates = _candidates(scores)[rows]
    log_ratio = config.log_ratio(scores, first.count[:, None], last.count, len(first))
    is_candidate = candidates >= 0
    same = np.zeros(is_candidate.shape, bool)
    same[:, 0] = True
    compared = log_ratio[rows[:, None], candidates][is_candidate]
    pairs = (compared, same[is_candidate], -np.log(len(first) - 1))
    fitted = optimize.minimize(_line_loss, [1.0, 0.0], pairs, bounds=[(0, None), (None, None)])
    return replace(config.scaled(*fitted.x.tolist(), len(first)), match=None)


def _line_loss(line, log_ratio, same, prior_log_odds):
    """Return the loss of a line, slope and shift, with normal priors around 1 and 0."""
    slope, shift = line
    log_odds = slope * log_ratio + shift + prior_log_odds
    loss = np.logaddexp(0, np.where(same, -log_odds, log_odds)).sum()
    return loss + ((slope - 1) / SLOPE_SPREAD) ** 2 / 2 + (shift / SHIFT_SPREAD) ** 2 / 2


def _drawn_list(dev, accounts, most, rng):
    """Return a list in which CUT_SHARE of the accounts are cut in two; ``authors`` tells whose.

    Each sample has ``most`` posts at most; where it is None, so many of SIDE_POSTS at random.
    """
    total = dev.posts_per_author()
    cut, whole = np.split(accounts, [max(round(CUT_SHARE * len(accounts)), 2)])
    authors = np.concatenate([cut, cut, whole])
    limits = np.full(len(authors), most)
    if most is None:
        limits = rng.choice(SIDE_POSTS, len(authors))
    available = np.concatenate([total[cut] // 2, total[cut] // 2, total[whole]])
    count = np.minimum(available, limits.astype(int))
    first = dev.author_offsets[authors]
    last = dev.author_offsets[authors + 1] - count
    is_last = np.arange(len(authors)) >= len(cut)
    return Samples(dev, np.where(is_last, last, first), count, authors)


def _pairs_of_list(samples, near, whole):
    """Return the pairs of a list: scores, logarithms of posts and of size, truth and prior odds."""
    own_column = np.arange(len(samples))
    pair = np.triu_indices(len(samples), 1)
    frame = {}
    for name, model in (("near", near), ("whole", whole)):
        blocks = model.scores(samples, samples, MAX_TOKENS, own_column)
        frame[name] = np.concatenate([scores.copy() for _, scores in blocks])[pair]
    length = np.log(samples.count / SIDE_POSTS[0])
    same = samples.authors[pair[0]] == samples.authors[pair[1]]
    frame["length"] = length[pair[0]] + length[pair[1]]
    frame["size"] = np.log(len(samples) - 1)
    frame["same"] = same
    frame["log_odds"] = np.log(same.sum() / (~same).sum())
    return pd.DataFrame(frame)


def _fit_calibration(scores, pairs):
    """Fit a calibration that bends at KNOT, and the weight of the logarithm of the list's size."""
    knots = [float(scores[pairs.same].quantile(KNOT))]
    pieces = score_pieces(scores.to_numpy(), knots)
    intercept, of_length, of_size, *of_pieces = _fit_ratio(pieces, pairs).tolist()
    of_score, of_both = np.split(np.array(of_pieces), 2)
    begin = 2 * float(np.log(SIDE_POSTS[0]))  # from which the length of both sides is counted
    weights = np.concatenate([of_score - begin * of_both, [of_length] * 2, of_both, of_both])
    return Calibration(weights.tolist(), intercept - of_length * begin, knots), of_size


def _fit_ratio(pieces, pairs, more=()):
    """Fit log-likelihood ratios: weights of 1, length, size, pieces, pieces times length, and more.

    Those of ``pieces`` (N, P) and their products are 0 or more, so that a higher score never means
    less.
    """
    from scipy import optimize  # imported here: who only embeds need not wait for it

    pieces = np.asarray(pieces)
    length = pairs.length.to_numpy()[:, None]
    columns = [np.ones(len(pairs)), pairs.length, pairs["size"], pieces, pieces * length]
    features = np.column_stack([*columns, *more])
    scale = np.append(1.0, features[:, 1:].std(0))
    free = (None, None)
    bounds = [free] * 3 + [(0, None)] * 2 * pieces.shape[1] + [free] * len(more)
    arguments = (features / scale, pairs.same.to_numpy(), pairs.log_odds.to_numpy())
    begin = np.zeros(len(scale))
    fitted = optimize.minimize(_log_loss, begin, arguments, jac=True, bounds=bounds)
    return fitted.x / scale


def _log_loss(weights, features, same, prior_log_odds):
    """Return the loss of logistic regression with a normal prior of the weights, and its slope."""
    log_odds = features @ weights + prior_log_odds
    shrunk = np.append(0.0, weights[1:])
    loss = np.logaddexp(0, np.where(same, -log_odds, log_odds)).sum() + shrunk @ shrunk / 4
    return loss, features.T @ (expit(log_odds) - same) + shrunk / 2


def fit_list_scoring(
    config: ScoringConfig, model: Model, store: TokenStore, min_accounts: int
) -> ScoringConfig:
    """Fit the log-weights with which two lists are matched, on first and last posts of accounts.

    They are LIST_POSTS posts each; if too few accounts have twice as many, HALF_POSTS.

    Parameters
    ----------
    config : result of :func:`fit_gallery_scoring`
    model : the model of this config
    store : posts of the accounts
    min_accounts : number of accounts that must have enough posts for LIST_POSTS
    """
    if config.match is not None:  # scores that say nothing, see fit_gallery_scoring
        return config
    first, last = halves(store, LIST_POSTS, LIST_POSTS, distant=True)
    if len(first) < min_accounts:
        first, last = halves(store, *HALF_POSTS, distant=True)
    scores = model.score_matrix(first, last, MAX_TOKENS)
    return replace(config, match=fit_match(scores, expected_slope=LOG_ODDS_SLOPE))


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
