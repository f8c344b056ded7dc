"""Weights of an author encoder's members, and the map from their score to a likelihood ratio."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import log_softmax

from ..core.progress import progress_bar
from ..evaluation import calibration
from ..evaluation.calibration import Calibration
from ..evaluation.match_fitting import fit_match
from ..evaluation.matching import LEAST_LOG_WEIGHT, MatchConfig
from ..evaluation.models import Model, as_model
from ..tokens.store import TokenStore
from .languages import ENGLISH
from .samples import MAX_TOKENS, distant_halves, halves, last_posts

SIZES = (4, 8, 16, 32)  # numbers of posts per sample on which calibration is fitted
# posts of each half on which the calibration for galleries is fitted: from, to
HALF_POSTS = (8, 32)
LIST_POSTS = 16  # posts of each half on which the matching of lists is fitted
LOG_ODDS_SLOPE = 1.0  # the scores of a fitted model are log-odds among neighbours
NEAREST_OTHERS = 100  # other accounts that each half is compared with, those nearest to it
# Prior standard deviations of own weights times that of their scores. At the least of them members
# keep their weights.
WEIGHT_SPREADS = (1e-6, 0.017, 0.032, 0.055, 0.1)
CHANCE_ERRORS = 3  # standard errors above chance at which own halves are told from others
GAIN_ERRORS = 3  # standard errors by which own weights must rank higher than the members' weights
FOLDS = 5  # parts of the accounts, each left out once to choose among these


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
    """

    members: list[dict]
    calibration: Calibration
    accounts: int
    match: MatchConfig | None = None
    languages: tuple[str, ...] = (ENGLISH,)

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
            broadcast to the shape of ``scores``; clipped to the range of SIZES
        targets : T, number of targets that have normalised the scores; 2 for scores that no gallery
            has normalised

        Notes
        -----
        A calibration for galleries gives the odds that the target is the right one of all, if one
        of them is. The likelihood ratio is T - 1 times these odds. The odds depend little on T,
        because AS-norm compares each score with the nearest ones of the gallery.
        """
        features = [scores]
        if len(self.calibration.weights) > 1:
            features += [
                np.clip(posts, SIZES[0], SIZES[-1]) for posts in (query_posts, target_posts)
            ]
        flat = [values.ravel() for values in np.broadcast_arrays(*features)]
        log_ratio = self.calibration.llr(*flat).reshape(np.shape(scores))
        lowest, highest = self.bounds(targets)
        return (log_ratio + np.log(targets - 1)).clip(lowest, highest)

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


def fit_gallery_scoring(
    model: Model, store: TokenStore, min_accounts: int, own_weights: bool = False
) -> ScoringConfig:
    """Fit how s-norm and AS-norm are joined, and the calibration of this score among neighbours.

    Each account is cut in two halves as far apart as its posts allow. Every first half is compared
    with its own account's last half and with the NEAREST_OTHERS last halves of others. Two accounts
    that are each other's nearest are not compared: they may be one person's. Logistic regression
    gives the odds that a target is the right one, from both scores of the model and, with
    ``own_weights``, from those of each member. Own weights have a normal prior around the model's
    weights, whose spread, one of WEIGHT_SPREADS, is the smallest one with which accounts that took
    no part in the fit are as likely as with any, within one standard error. They are used only if
    they rank these accounts higher, by more than GAIN_ERRORS standard errors of the mean
    reciprocal rank.

    Parameters
    ----------
    model : members and their weights; how they are normalised does not matter
    store : posts of the accounts
    min_accounts : number of accounts that must have enough posts
    own_weights : whether members may get other weights than the model's

    Raises
    ------
    ValueError
        Fewer than ``min_accounts`` accounts have twice HALF_POSTS[0] posts.
    """
    first, last = distant_halves(store, *HALF_POSTS)
    if len(first) < min_accounts:
        needed = f"{min_accounts} accounts with {2 * HALF_POSTS[0]} posts"
        raise ValueError(f"calibration needs {needed}, and {len(first)} have so many")
    near = model.normalised("as_norm")
    whole = model.normalised("s_norm")
    near_scores = near.score_matrix(first, last, MAX_TOKENS)
    candidates = _candidates(near_scores)
    scores = [near_scores, whole.score_matrix(first, last, MAX_TOKENS)]
    if own_weights:
        members = [as_model(member) for member in near.members]
        scores += [member.score_matrix(first, last, MAX_TOKENS) for member in members]
    row = np.arange(len(first))[:, None]
    features = np.stack([matrix[row, candidates] for matrix in scores], -1)

    spread = np.ones(features.shape[-1])
    if own_weights:
        spread[2:] = _best_spread(features, candidates >= 0)
    weights, intercept = _fit(features, candidates >= 0, spread)
    fitted = sum(weight * matrix for weight, matrix in zip(weights, scores))
    if not _tell_apart(fitted):
        # the scores of these accounts say nothing: every likelihood ratio is 1
        no_evidence = Calibration([0.0], -float(np.log(len(first) - 1)))
        nobody = MatchConfig(0.0, LEAST_LOG_WEIGHT)
        return ScoringConfig(near.to_json(), no_evidence, len(first), nobody)
    return _scoring_config(near, whole, weights, intercept, len(first))


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
    first, last = distant_halves(store, LIST_POSTS, LIST_POSTS)
    if len(first) < min_accounts:
        first, last = distant_halves(store, *HALF_POSTS)
    scores = model.score_matrix(first, last, MAX_TOKENS)
    return replace(config, match=fit_match(scores, expected_slope=LOG_ODDS_SLOPE))


def _scoring_config(near, whole, weights, intercept, accounts):
    """Turn the weights of both scores, and of members where there are more, into one use."""
    members = []
    for number, member in enumerate(near.to_json()):
        weight = weights[0] * member["weight"]
        if len(weights) > 2:
            weight += weights[2 + number]
        members.append(member | {"weight": float(weight)})
    for member in whole.to_json():
        members.append(member | {"weight": float(weights[1] * member["weight"])})
    return ScoringConfig(members, Calibration([1.0], intercept), accounts)


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


def _fit(features, is_candidate, spread):
    """Fit log-odds on the candidates of each account; ``features`` (N, K, F), ``spread`` (F,)."""
    same = np.zeros(is_candidate.shape, bool)
    same[:, 0] = True
    return calibration.fit_log_odds(features[is_candidate], same[is_candidate], spread)


def _best_spread(features, is_candidate):
    """Choose the spread of own weights by left-out accounts: the least one keeps the members'."""
    log_odds = {
        own_spread: _left_out_log_odds(features, is_candidate, own_spread)
        for own_spread in WEIGHT_SPREADS
    }
    likelihoods = {
        own_spread: log_softmax(values, 1)[:, 0] for own_spread, values in log_odds.items()
    }
    best = max(likelihoods.values(), key=np.mean)
    as_likely = [
        own_spread
        for own_spread, likelihood in likelihoods.items()
        if not _is_higher(best, likelihood, standard_errors=1)
    ]
    # Two halves of one account are often near in time and share words of one subject. They cannot
    # show what own weights do to accounts whose posts lie far apart, where small gains were losses.
    # So the gain in ranks must be large beside its error.
    own_spread = as_likely[0]
    members_spread = WEIGHT_SPREADS[0]
    own_ranks = _reciprocal_ranks(log_odds[own_spread])
    members_ranks = _reciprocal_ranks(log_odds[members_spread])
    if _is_higher(own_ranks, members_ranks, standard_errors=GAIN_ERRORS):
        return own_spread
    return members_spread


def _left_out_log_odds(features, is_candidate, own_spread):
    """Return log-odds (N, K) by weights that were fitted without the account of the row."""
    spread = np.full(features.shape[-1], own_spread)
    spread[:2] = 1
    accounts = np.random.default_rng(0).permutation(len(features))
    log_odds = np.full(is_candidate.shape, -np.inf)
    for left_out in np.array_split(accounts, FOLDS):
        fitted = np.setdiff1d(accounts, left_out)
        weights, _ = _fit(features[fitted], is_candidate[fitted], spread)
        values = features[left_out] @ weights
        log_odds[left_out] = np.where(is_candidate[left_out], values, -np.inf)
    return log_odds


def _reciprocal_ranks(log_odds):
    """Return 1 / rank of the own account, the first column, behind those with equal log-odds."""
    return 1 / (log_odds >= log_odds[:, :1]).sum(1)


def _is_higher(values, baseline, standard_errors):
    """Tell whether the mean of the paired gains is more than so many of its errors above 0."""
    gain = values - baseline
    return gain.mean() > standard_errors * gain.std() / len(gain) ** 0.5
