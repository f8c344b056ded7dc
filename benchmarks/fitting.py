"""Fit an encoder of accounts, and write it to a folder, as the one that ships was made.

LSA-WCCN and the hour profile are fitted on training accounts; the weights of all members and the
calibration of each use on dev accounts.
"""

from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pandas as pd
from scipy import optimize
from scipy.special import expit

from helpers.accounts.encoder import COUNTED, ENOUGH, MAX_TOKENS, AuthorEncoder
from helpers.accounts.samples import halves, last_posts, without_passages
from helpers.accounts.scoring import ScoringConfig
from helpers.core.progress import progress_bar
from helpers.encoders.base import Encoder
from helpers.encoders.baselines import fit_baseline, fit_lsa
from helpers.evaluation import calibration
from helpers.evaluation.calibration import Calibration, score_pieces
from helpers.evaluation.matching import MatchConfig, fit_match
from helpers.evaluation.models import Member, Model, fit_weights
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore

# with or without normalisation by a gallery, with or without the hours of posts
USES = ("gallery", "gallery_hours", "alone", "alone_hours")
# member: (number of frequent tokens left unmasked, 0 for all; dimensions; buckets of token pairs).
# The sizes are small, so that the weights can ship.
LSA = {"lsa": (0, 256, 2**15), "lsa_masked": (300, 256, 2**14)}
TRAINING_POSTS = 16  # posts in each sample that LSA-WCCN and the fusion weights are fitted on
NEIGHBOURS = 20  # nearest accounts that give the statistics of AS-norm, in galleries of any size
# Without a gallery, likelihood ratios stay between 1/10 and 10, as if nine trials had been seen:
# texts unlike those it was fitted on all look alike to the encoder.
ALONE = 9
SIZES = (4, 8, 16, 32)  # numbers of posts per sample on which the use without a gallery is fitted
# numbers of posts of an account, at most, in the lists on which the use of a gallery is fitted
SIDE_POSTS = (4, 8, 16, 32, 64, 128, 256, 512)
LIST_SIZES = (30, 60, 180)  # numbers of accounts in these lists, at most
CUT_SHARE = 0.25  # of these accounts that are cut in two
# Quantile of the scores of same-account pairs at which the calibration of a gallery bends. Below it
# a score says less than a line would have it: on halves of the dev accounts, the loss of the other
# half falls from 1.90 to 1.87, and no further with more bends.
KNOT = 0.25
# length of a pair of 16 posts on both sides, see _pairs_of_list
LIST_LENGTH = 2 * float(np.log(16 / SIDE_POSTS[0]))
# posts of each half on which the line is fitted, from, to; and where too few accounts have so many
LINE_POSTS = ((16, 16), (8, 32))


def fit_encoder(
    stream: Encoder, train: TokenStore, dev: TokenStore, tokenizer, seed: int = 0
) -> AuthorEncoder:
    """Fit LSA-WCCN and hour profile on training accounts, then all uses on dev accounts.

    Parameters
    ----------
    stream : a trained Stream that reads text only
    train, dev : posts of the training accounts and of the dev accounts
    tokenizer : has made the tokens of both stores
    seed : seed of the random projection of LSA

    Raises
    ------
    ValueError
        A store has too few accounts or posts.
    """
    members = {"stream": stream, "hours": fit_baseline("hours", train, tokenizer)}
    for name, sizes in LSA.items():
        members[name] = fit_lsa(train, tokenizer, MAX_TOKENS, seed, TRAINING_POSTS, *sizes)
    encoder = AuthorEncoder(tokenizer, members, {}, {})
    for use in USES:
        encoder.uses[use] = fit_use(encoder, use, dev)
    encoder.card["lines"] = {use: asdict(fit_line(encoder, use, dev)) for use in USES[:2]}
    return encoder


def fit_use(encoder: AuthorEncoder, use: str, dev: TokenStore) -> ScoringConfig:
    """Fit weights and calibration of one use.

    Each account is cut in two halves, which are compared as if they were two accounts.

    Parameters
    ----------
    encoder : its members are fitted
    use : one of USES
    dev : posts of the dev accounts; passages shared by several posts are removed first
    """
    dev, _ = without_passages(dev, encoder.kinds)
    trials = Trials(*adjacent_halves(dev, TRAINING_POSTS, TRAINING_POSTS))
    model = fit_weights(_systems(encoder, use), trials, MAX_TOKENS)
    if use.startswith("gallery"):
        return fit_gallery_scoring(model, dev, NEIGHBOURS)
    return fit_pair_scoring(model, dev, ALONE)


def fit_line(encoder: AuthorEncoder, use: str, dev: TokenStore) -> MatchConfig:
    """Fit the log-weights of notebook 17 on the first and the last posts of dev accounts.

    Parameters
    ----------
    encoder : its use of a gallery is fitted
    use : one of USES, with a gallery
    dev : posts of the dev accounts
    """
    first, last = halves(dev, *LINE_POSTS[0])
    if len(first) < ENOUGH:
        first, last = halves(dev, *LINE_POSTS[1])
    model = Model.from_json(encoder.uses[use].members, encoder.encoders)
    return fit_match(model.score_matrix(first, last, MAX_TOKENS), expected_slope=1.0)


def adjacent_halves(store: TokenStore, min_posts: int, max_posts: int) -> tuple[Samples, Samples]:
    """Return the posts of each account before and after its middle, ``max_posts`` at most.

    Parameters
    ----------
    store : posts of the accounts; those with fewer than twice ``min_posts`` are left out
    min_posts, max_posts : of each half
    """
    total = store.posts_per_author()
    accounts = np.flatnonzero(total >= 2 * min_posts)
    total = total[accounts]
    older = np.minimum(total // 2, max_posts)
    newer = np.minimum(total - total // 2, max_posts)
    middle = store.author_offsets[accounts] + total // 2
    older_half = Samples(store, middle - older, older, accounts)
    return older_half, Samples(store, middle, newer, accounts)


def _systems(encoder: AuthorEncoder, use: str) -> dict[str, Encoder | Member]:
    """Return the systems that a use fuses, by name.

    Uses of a gallery normalise every system and include the TF-IDFs; uses without a gallery do
    neither. The hour profile is left out where times are not known.
    """
    names = [name for name in encoder.members if name != "hours" or use.endswith("_hours")]
    if use.startswith("alone"):
        return {name: encoder.members[name] for name in names}
    return {name: Member(name, encoder.encoders[name], "s_norm") for name in (*COUNTED, *names)}


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
        older, newer = adjacent_halves(dev, least, least)
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
    return ScoringConfig(plain_members(model), fitted, accounts)


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
        for member in plain_members(joined):
            members.append(member | {"weight": float(share * member["weight"])})
    fitted, of_size = _fit_calibration(slope * scores, pairs)
    limits = (SIDE_POSTS[0], SIDE_POSTS[-1])
    return ScoringConfig(members, fitted, len(accounts), posts=limits, size_weight=of_size)


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


def plain_members(model: Model) -> list[dict]:
    """Return names, normalisers, weights and neighbours, as :meth:`Model.from_json` takes them."""
    names = ("name", "normaliser", "weight", "neighbours")
    return [{name: getattr(member, name) for name in names} for member in model.members]
