"""From scores to likelihood ratios by the weights of members, and from these to probabilities."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from ..evaluation.calibration import Calibration
from ..evaluation.matching import MatchConfig, estimate_overlap, sinkhorn
from ..evaluation.models import Member
from ..evaluation.scores import Rows, cosine, pair_scores, score_blocks
from ..tokens.batch import Samples
from .samples import (
    MAX_TOKENS,
    PHRASE_SHARE,
    cut_in_half,
    in_memory,
    thinned,
    without_phrases,
    without_tokens,
)
from .unjudged import ENGLISH

OWN_POSTS = (8, 512)  # posts of each half on which own accounts are calibrated: from, to
# prior standard deviations of the line from shipped to own log-likelihood ratios
SLOPE_SPREAD = 0.3
SHIFT_SPREAD = 1.0
NEAREST_OTHERS = 100  # other accounts that each half is compared with, those nearest to it
LOG_ODDS = MatchConfig(1.0, 0.0)  # the log-weight of a pair is its log-odds
# What few others here do (a frame of greetings, words of another kind of text) makes any two people
# who do it alike. But a person is about as much like an own second account as each of both is with
# itself, and two people are not: of 98 pairs of addresses of one person, on which nothing was
# fitted, nine of ten are above -.07. LIKENESS_WEIGHT times the logarithm of that ratio is added to
# the log-likelihood ratio, and where it is below UNLIKE, DOUBT times the difference is taken. The
# numbers were chosen on 82 planted accounts in nine files of three communities
LIKENESS_WEIGHT = 4.0
MAX_LIKENESS = 0.3  # more adds no more: an account whose own halves differ is like many others
DOUBT = 40.0
UNLIKE = -0.03
DOUBT_MEMBERS = ("tfidf_subword", "lsa")
RARE_HABIT_SHARE = 0.05  # of the targets at most that use a word in PHRASE_SHARE of their posts
DOUBT_POSTS = 256  # of each account, evenly spread, are compared so, and in plain words
# Two people from another place, or with another kind of text, are alike beside all others, whoever
# they are. Both are far less like the others than these are like each other: so many standard
# deviations (of a normal distribution with their median and median deviation) below the median
# account. Of 153 pairs of accounts of one person in five communities none has both so low
OUTSIDER = -3.0
DOUBT_OF_OUTSIDERS = 10.0
COMPARED = 1000  # targets at most that say how like the others an account is
LEAST_SIMILARITY = 1e-6  # a smaller similarity of two accounts counts as this
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


def log_likeness(
    queries: tuple[Rows, Rows], targets: tuple[Rows, Rows], pairs: np.ndarray | None = None
) -> np.ndarray:
    """Compare how alike two accounts are with how alike each is with itself.

    The older posts of one account are compared with the newer ones of the other, both ways, and the
    higher similarity counts. Of the similarities of each account's own older and newer posts, the
    lower one does.

    Parameters
    ----------
    queries, targets : unit rows of the older posts (Q, D) and of the newer ones, and so of (T, D)
    pairs : (N, 2), rows of queries and of targets; by default all

    Returns
    -------
    (Q, T), or (N,) of listed pairs: the logarithm of the ratio of both similarities, below 0 where
    two accounts are less alike than each is with itself
    """
    own_of_query, own_of_target = (
        pair_scores(*halves, np.arange(halves[0].shape[0])[:, None].repeat(2, 1))
        for halves in (queries, targets)
    )
    if pairs is None:
        both_ways = [cosine(queries[0], targets[1]), cosine(queries[1], targets[0])]
        own = np.minimum(own_of_query[:, None], own_of_target)
    else:
        both_ways = [pair_scores(queries[way], targets[1 - way], pairs) for way in (0, 1)]
        own = np.minimum(own_of_query[pairs[:, 0]], own_of_target[pairs[:, 1]])
    likeness = np.maximum(*both_ways).clip(LEAST_SIMILARITY)
    return np.log(likeness / own.clip(LEAST_SIMILARITY))


def likeness_term(gallery, queries: Samples, pairs: np.ndarray | None = None) -> np.ndarray | float:
    """Return what likeness adds to log-likelihood ratios, see DOUBT and DOUBT_OF_OUTSIDERS.

    Parameters
    ----------
    gallery : AccountGallery
        of T targets; nothing is added if it does not normalise
    queries : Samples
        Q samples
    pairs : (N, 2)
        rows of queries and of targets; by default all

    Returns
    -------
    (Q, T), or (N,) of listed pairs
    """
    if not gallery.normalised:
        return 0.0
    likeness = [
        log_likeness(
            _rows_of_halves(gallery, queries, name),
            _rows_of_halves(gallery, gallery.targets, name),
            pairs,
        )
        for name in DOUBT_MEMBERS
    ]
    mean_likeness = np.mean(likeness, 0)
    term = LIKENESS_WEIGHT * np.minimum(mean_likeness, MAX_LIKENESS)
    term += DOUBT * np.minimum(mean_likeness - UNLIKE, 0)
    queries_outside, targets_outside = _are_outsiders(gallery, queries)
    if pairs is None:
        are_both = queries_outside[:, None] & targets_outside
    else:
        are_both = queries_outside[pairs[:, 0]] & targets_outside[pairs[:, 1]]
    return term - DOUBT_OF_OUTSIDERS * are_both


def _are_outsiders(gallery, queries):
    """Tell which queries (Q,) and which targets (T,) are far less like the targets than these."""
    from scipy.stats import median_abs_deviation  # takes long to import

    targets = gallery.encoder.vectors(gallery.targets, embeddings=gallery.embeddings)
    compared = targets[:: -(-len(targets) // COMPARED)]
    rows = gallery.encoder.vectors(queries, embeddings=gallery.embeddings)
    # the median does not depend on the account itself, nor on a few others who write like it
    of_targets = np.median(targets @ compared.T, 1)
    of_queries = np.median(rows @ compared.T, 1)
    lowest = np.median(of_targets) + OUTSIDER * median_abs_deviation(of_targets, scale="normal")
    return of_queries < lowest, of_targets < lowest


def _rows_of_halves(gallery, samples, name):
    """Return the rows of older and of newer posts by a member, phrases left out."""
    member = Member(name, gallery.encoder.encoders[name], embeddings=gallery.embeddings)
    encoder = member.gallery(gallery.targets, MAX_TOKENS).encoder
    make = partial(_halves_without_phrases, samples, gallery.encoder.kinds)
    halves = gallery.embeddings.once(("halves", samples), make)
    return tuple(gallery.embeddings.of(encoder, half, MAX_TOKENS) for half in halves)


def _halves_without_phrases(samples, kinds):
    return cut_in_half(without_phrases(thinned(samples, DOUBT_POSTS), kinds))


def in_plain_words(gallery, samples: Samples) -> Samples:
    """Return samples in plain words, without rare habits, made once for a gallery.

    A rare habit is a token that at most RARE_HABIT_SHARE of the targets use in PHRASE_SHARE of
    their posts: "u" for "you" where nobody else writes so.

    Parameters
    ----------
    gallery : AccountGallery
        of T targets
    samples : Samples
        N samples
    """
    plain = _plain(gallery, samples)
    is_rare = gallery.embeddings.once(
        ("rare habits", gallery.targets), partial(_rare_habits, gallery)
    )
    make = partial(without_habits, plain, is_rare)
    return gallery.embeddings.once(("in plain words", gallery.targets, samples), make)


def _plain(gallery, samples):
    """Return samples in plain words with all habits, made once."""
    make = partial(gallery.encoder.in_plain_words, samples)
    return gallery.embeddings.once(("plain", samples), make)


def _rare_habits(gallery):
    """Tell which tokens are rare habits, see :func:`in_plain_words`, (vocabulary,) bool."""
    habits = habits_of(_plain(gallery, gallery.targets), gallery.encoder.tokenizer.vocabulary)
    return habits.sum(0) <= max(RARE_HABIT_SHARE * len(gallery), 2)


def habits_of(samples: Samples, vocabulary: int) -> sparse.csr_array:
    """Tell which tokens stand in PHRASE_SHARE of the posts of a sample, (N, vocabulary) bool.

    Parameters
    ----------
    samples : Samples
        N samples
    vocabulary : int
        number of tokens
    """
    own = in_memory(samples)
    lengths = np.diff(own.store.post_offsets)
    post = np.repeat(np.arange(own.store.posts), lengths)
    of_posts = np.unique(post * vocabulary + own.store.tokens)
    post, token = np.divmod(of_posts, vocabulary)
    sample = np.repeat(np.arange(len(own)), own.count)[post]
    of_samples, posts = np.unique(sample * vocabulary + token, return_counts=True)
    sample, token = np.divmod(of_samples, vocabulary)
    is_habit = posts >= np.maximum(PHRASE_SHARE * own.count[sample], 2)
    cells = (sample[is_habit], token[is_habit])
    shape = (len(own), vocabulary)
    return sparse.csr_array((np.ones(len(cells[0]), bool), cells), shape)


def without_habits(samples: Samples, is_rare: np.ndarray) -> Samples:
    """Return samples without the tokens that are rare habits and habits of theirs.

    A post of nothing else stays as it is.

    Parameters
    ----------
    samples : Samples
        N samples
    is_rare : (vocabulary,) bool
        which tokens are habits of few
    """
    own = in_memory(samples)
    habits = habits_of(own, len(is_rare))
    lengths = np.diff(own.store.post_offsets)
    sample = np.repeat(np.repeat(np.arange(len(own)), own.count), lengths)
    is_habit = np.asarray(habits[sample, own.store.tokens]).ravel()
    is_own = ~(is_habit & is_rare[own.store.tokens])
    return replace(own, store=without_tokens(own.store, is_own))


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
