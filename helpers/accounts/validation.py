"""Check the answers about own accounts: on halves of accounts, and after habits are removed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import beta

from ..cleaning.text import WORD
from ..core.names import label
from ..evaluation import ranking
from ..evaluation.calibration import calibration_metrics, reliability_bins
from ..evaluation.detection import DetectionCosts
from ..evaluation.trials import Trials
from ..tokens.batch import Samples
from .encoder import COUNTED, ENOUGH, MAX_TOKENS, AuthorEncoder
from .gallery import LINK_COSTS, NOT_COMPARED, AccountGallery, posterior
from .reading import OwnPosts
from .samples import (
    NoPosts,
    last_posts,
    spread_posts,
    texts_of,
)
from .unjudged import is_read

MAX_ACCOUNTS = 1000  # of more accounts, so many are sampled at random and cut in halves
MIN_POSTS_OF_HALF = 8  # accounts with fewer posts than two such halves are not checked
MAX_POSTS_OF_HALF = 128  # with 512, 87 of 102 planted accounts were linked, with 128 it was 86
CONFIDENCE = 0.95  # of the bound of the share of wrong links
PROVING_ACCOUNTS = 100  # with fewer accounts, a message says that they prove little
MAX_CALIBRATION_LOSS = 0.2  # a larger loss, in bits, gives a warning
CHANGED_QUERY = "\0"  # no account has this name, so none is left out of the ranking as the query
NORMALISERS = {"s_norm": "s-norm", "as_norm": "AS-norm"}  # as the names of systems end
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)  # numbers of posts of a query

# typographic quotes, as word processors set them, to those of keyboards
QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
# a shorthand, contraction or British spelling -> the usual American spelling, as "b4" -> "before"
SPELLINGS = dict(pd.read_csv(Path(__file__).parent / "spellings.csv").to_numpy())


def one_spelling(text: str) -> str:
    """Replace shorthands, contractions and British spellings by SPELLINGS, and quotes by QUOTES."""
    return WORD.sub(_common_spelling, text.translate(QUOTES))


# Return the usual spelling of a matched word, with a capital if the word has one.
def _common_spelling(match):
    written = match[0]
    word = SPELLINGS.get(written.lower(), written)
    return word[0].upper() + word[1:] if written[0].isupper() else word


# removes all but letters, digits, "_", white space, "@" and "'": "Hi, it's @me!" -> "Hi it's @me"
without_punctuation = partial(re.sub, r"[^\w\s@']", "")


def _lower_without_punctuation(text):
    return without_punctuation(text.lower())


# name of a change -> function that removes one habit from a text; the first one changes nothing
HABITS: dict[str, Callable[[str], str]] = {
    "as written": str,
    "lower case": str.lower,
    "no punctuation": without_punctuation,
    # "sooo" -> "so"; double letters stay
    "no drawn-out letters": partial(re.sub, r"([^\W\d_])\1{2,}", r"\1"),
    # "what?!!..." -> "what?!."
    "single marks": partial(re.sub, r"([^\w\s])\1+", r"\1"),
    "one spelling": one_spelling,
    "lower case, no punctuation": _lower_without_punctuation,
}


def split_half_trials(
    posts: OwnPosts, encoder: AuthorEncoder, seed: int = 0
) -> tuple[AccountGallery, Samples]:
    """Return a gallery of the newer halves of accounts, and their older halves as queries.

    Both are in the same order. Accounts with fewer than 2 * MIN_POSTS_OF_HALF posts are left out:
    one must have so many. Of more than 2 * MAX_POSTS_OF_HALF posts, so many are taken, evenly
    spread over their time.

    Parameters
    ----------
    posts : OwnPosts
        all accounts.
    encoder : AuthorEncoder
        embeds the halves.
    seed : int
        seed of the random sample of MAX_ACCOUNTS accounts, which is taken where there are more.
    """
    able = np.flatnonzero(posts.store.posts_per_author() >= 2 * MIN_POSTS_OF_HALF)
    accounts = np.sort(np.random.default_rng(seed).permutation(able)[:MAX_ACCOUNTS])
    whole = spread_posts(posts.store, accounts, 2 * MAX_POSTS_OF_HALF)
    older_count = whole.count // 2
    older = replace(whole, count=older_count)
    newer = replace(whole, first=whole.first + older_count, count=whole.count - older_count)
    return posts.gallery(encoder, newer), older


@dataclass(frozen=True, eq=False)
class CalibrationChoice:
    """The calibration that is used for own accounts, and how well it does on their halves.

    Attributes
    ----------
    encoder : the encoder with the calibration that is used
    able : number of accounts that can be cut in halves
    messages : sentences for the user about what was found
    gallery : the newer halves of the accounts that judged; None where nothing was judged
    older : their older halves, in the same order; None where nothing was judged
    log_ratios : name of a calibration that was judged, "shipped" and perhaps "own", the one that is
        used last -> (N, N), log-likelihood ratios, without bounds, of the older with the newer
        halves of N accounts; of the own calibration each row is that of a fit in which this account
        took no part
    metrics : one column for each of these; its rows are the metrics of
        :func:`helpers.evaluation.calibration.calibration_metrics` and the number of accounts
    reliability : name of a calibration -> its reliability bins
    """

    encoder: AuthorEncoder
    able: int
    messages: list[str]
    gallery: AccountGallery | None = None
    older: Samples | None = None
    log_ratios: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    reliability: dict[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def fitted(self) -> int:
        """Number of accounts that the own calibration is fitted on, 0 where there is none."""
        return len(self.older) if "own" in self.log_ratios else 0


def choose_calibration(
    posts: OwnPosts, encoder: AuthorEncoder, costs: DetectionCosts = DetectionCosts(), seed: int = 0
) -> CalibrationChoice:
    """Fit the calibration on own accounts where there are enough, and judge it and the shipped one.

    Only accounts with at least 2 * MIN_POSTS_OF_HALF posts that the encoder can read are used, at
    most MAX_ACCOUNTS sampled at random. They are cut in halves. From ENOUGH such accounts on, the
    own calibration is fitted, which starts from the shipped one and leaves it as far as the
    accounts say so: few accounts change little. It is judged twice, each time on a random half of
    the accounts after a fit on the others; the one that is used is fitted on all. Of fewer accounts
    the shipped calibration is used; where there are fewer than two, nothing is judged.

    Parameters
    ----------
    posts : OwnPosts
        all accounts.
    encoder : AuthorEncoder
        the encoder with the shipped calibration.
    costs : DetectionCosts
        costs of errors, with which the metrics are computed.
    seed : int
        seed of the random sample of accounts and of its parts.
    """
    able = int((posts.store.posts_per_author() >= 2 * MIN_POSTS_OF_HALF).sum())
    if able < 2:
        message = f"No two accounts have {2 * MIN_POSTS_OF_HALF} posts: nothing could be checked."
        return CalibrationChoice(encoder, able, [message])
    gallery, older = split_half_trials(posts, encoder, seed)
    can_be_read = np.flatnonzero([is_read(problem) for problem in gallery.problems])
    if 2 <= len(can_be_read) < len(gallery):
        older = older[can_be_read]
        gallery = posts.gallery(encoder, gallery.targets[can_be_read])
    scores = gallery.model.score_matrix(older, gallery.targets, MAX_TOKENS)
    log_ratios = {"shipped": _log_ratio(gallery, older, scores)}
    messages = []
    if len(older) >= ENOUGH:
        log_ratios["own"] = _left_out_log_ratio(gallery, older, scores, seed)
        rows = np.arange(len(older))
        encoder = encoder.calibrated_by(scores, older, gallery.targets, rows, posts.hours)
        gallery = replace(gallery, encoder=encoder)
    else:
        messages.append(
            f"{len(older)} accounts can be cut in halves, too few to fit a calibration on."
        )
    metrics = {}
    reliability = {}
    for name, log_ratio in log_ratios.items():
        llr = log_ratio.clip(*gallery.use.bounds(gallery.reference_count))
        metrics[name], reliability[name] = _judge(llr, costs)
    table = pd.DataFrame(metrics)
    messages += _messages(table.iloc[:, -1], len(older))
    return CalibrationChoice(
        encoder, able, messages, gallery, older, log_ratios, table, reliability
    )


def _log_ratio(gallery, older, scores):
    """Return the log-likelihood ratios, without bounds, of older halves with a gallery's."""
    counts = (older.count[:, None], gallery.targets.count)
    return gallery.use.log_ratio(scores, *counts, gallery.reference_count)


def _left_out_log_ratio(gallery, older, scores, seed):
    """Return the log-likelihood ratios of own calibrations, each row of one fitted on others."""
    shuffled = np.random.default_rng(seed).permutation(len(older))
    parts = np.array_split(shuffled, 2)
    log_ratio = np.empty(scores.shape)
    for judging, fitting in (parts, reversed(parts)):
        own = gallery.encoder.calibrated_by(
            scores, older, gallery.targets, np.sort(fitting), gallery.hours
        )
        judged = replace(gallery, encoder=own)
        log_ratio[judging] = _log_ratio(judged, older[judging], scores[judging])
    return log_ratio


def _messages(judged, accounts):
    """Return sentences that say which calibration is used, and what speaks against it.

    ``judged`` are its metrics, with its name.
    """
    few = " So few accounts cannot show that the probabilities are right."
    messages = [
        f"The {judged.name} calibration is used: Cllr {judged.Cllr:.2f} on {accounts} accounts "
        f"that it was not fitted on.{few if accounts < PROVING_ACCOUNTS else ''}"
    ]
    loss = judged.Cllr - judged.minCllr
    if loss > MAX_CALIBRATION_LOSS:
        messages.append(
            f"Calibration loses {loss:.2f} bits (Cllr minus minCllr): these texts are unlike those "
            "that it was fitted on, so read ranks and not probabilities."
        )
    return messages


def _judge(llr, costs):
    """Return metrics and reliability bins of the ratios (N, N) of older with newer halves."""
    same = np.eye(len(llr), dtype=bool)
    table = calibration_metrics(llr.ravel(), same.ravel(), costs)
    table.loc["accounts"] = len(llr)
    return table.value, reliability_bins(llr.ravel(), same.ravel())


def compare_with_tfidf(gallery: AccountGallery, older: Samples, seed: int = 0) -> pd.DataFrame:
    """Compare the MRR of all members together with that of the best single TF-IDF of the gallery.

    Its scores are normalised by s-norm or by AS-norm, whichever ranks better on these accounts.

    Parameters
    ----------
    gallery : AccountGallery
        the newer halves, see :func:`split_half_trials`.
    older : Samples
        the older halves, in the same order.
    seed : int
        seed of the bootstrap for the intervals.

    Returns
    -------
    Columns ``value``, ``low``, ``high`` and three rows: "encoder", the name of the best TF-IDF,
    and "Difference". The table is empty for a gallery too small to normalise, which fits no TF-IDF.
    """
    tfidfs = {}
    for member in gallery.model.members:
        if member.name in COUNTED:
            suffix = NORMALISERS[member.normaliser]
            tfidfs[f"{label(member.name)}, {suffix}"] = member
    if not tfidfs:
        return pd.DataFrame(columns=["value", "low", "high"])
    trials = Trials(older, gallery.targets)
    ranks = {
        kind: ranking.positive_ranks(tfidf, trials, MAX_TOKENS) for kind, tfidf in tfidfs.items()
    }
    mrr = {kind: (1 / ranks[kind]).mean() for kind in tfidfs}
    best = max(mrr, key=mrr.get)
    our_ranks = ranking.positive_ranks(gallery.model, trials, MAX_TOKENS)
    differences = ranking.ranking_differences(our_ranks, ranks[best], seed)
    rows = {
        "encoder": ranking.ranking_metrics(our_ranks, seed).loc["MRR"],
        best: ranking.ranking_metrics(ranks[best], seed).loc["MRR"],
        "Difference": differences.loc["MRR_difference"],
    }
    return pd.DataFrame(rows).T


def rank_by_sample_size(
    gallery: AccountGallery, older: Samples, account: str, costs: DetectionCosts = LINK_COSTS
) -> pd.DataFrame:
    """Report the rank of an account's newer half by how many posts of its older half are read.

    The posts next to the cut are read first: the newest of the older half.

    Parameters
    ----------
    gallery : AccountGallery
        the newer halves, see :func:`split_half_trials`.
    older : Samples
        the older halves, in the same order.
    account : str
        name of the account.
    costs : DetectionCosts
        costs and prior, as in :meth:`~helpers.accounts.gallery.AccountGallery.rank`.

    Returns
    -------
    One row for each of SIZES that is smaller than the older half, and one for the whole half;
    columns ``posts``, ``rank`` (1 is best), ``probability``, ``llr``.

    Raises
    ------
    ValueError
        Where the account is not in the gallery.
    """
    sample = _older_half(gallery, older, account)
    all_posts = int(sample.count[0])
    rows = []
    for size in [*(size for size in SIZES if size < all_posts), all_posts]:
        queries = last_posts(sample, size)
        rows.append((size, *_rank_of_account(gallery, queries, account, costs)))
    return pd.DataFrame(rows, columns=["posts", "rank", "probability", "llr"])


def rank_after_obfuscation(
    gallery: AccountGallery,
    older: Samples,
    account: str,
    costs: DetectionCosts = LINK_COSTS,
    seed: int = 0,
) -> pd.DataFrame:
    """Report, for each habit removed from an account's older half, the rank of its newer half.

    The habits are those of HABITS, the first of which changes nothing. If the gallery knows times,
    one more row, "posted at random hours", delays each post by a random time below 24 hours.

    Parameters
    ----------
    gallery : AccountGallery
        the newer halves, see :func:`split_half_trials`.
    older : Samples
        the older halves, in the same order.
    account : str
        name of the account.
    costs : DetectionCosts
        costs and prior, as in :meth:`~helpers.accounts.gallery.AccountGallery.rank`.
    seed : int
        seed of the random delays.

    Returns
    -------
    Columns ``rule``, ``rank`` (1 is best), ``probability``, ``llr``. A rule has its name alone
    where no post is left after passages that the gallery holds too are removed. A post that would
    become empty keeps its text.

    Raises
    ------
    ValueError
        Where the account is not in the gallery.
    """
    sample = _older_half(gallery, older, account)
    posts = sample.first[0] + np.arange(sample.count[0])
    texts = texts_of(sample.store, posts, gallery.encoder.tokenizer)
    times = sample.store.time[posts]
    variants = {
        habit: ([change(text) or text for text in texts], times) for habit, change in HABITS.items()
    }
    if gallery.hours:
        waiting = np.random.default_rng(seed).integers(0, 86400, len(posts))
        variants["posted at random hours"] = (texts, times + waiting)
    rows = []
    for habit, (changed_texts, changed_times) in variants.items():
        query_times = [changed_times.tolist()] if gallery.hours else None
        try:
            queries = gallery.queries([changed_texts], query_times)
        except NoPosts:
            rows.append((habit, None, None, None))
            continue
        rows.append((habit, *_rank_of_account(gallery, queries, account, costs)))
    return pd.DataFrame(rows, columns=["rule", "rank", "probability", "llr"])


# Return the older half of one account, as one sample.
def _older_half(gallery, older, account):
    row = int(gallery.columns([account])[0])
    if row < 0:
        raise ValueError(f"account {account!r} has too few posts to be cut in halves")
    return older[np.array([row])]


def _rank_of_account(gallery, queries, account, costs):
    """Return rank (1 is best), probability and log-likelihood ratio of an account for one query."""
    ranking = gallery.rank(queries, [CHANGED_QUERY], len(gallery), costs)
    row = ranking.set_index("target").loc[account]
    return int(row["rank"]), float(row.probability), float(row.llr)


@dataclass(frozen=True)
class LinkErrors:
    """Links among N older and N newer halves of accounts.

    Each older half is asked twice: with its own newer half in the list, and without it.

    Attributes
    ----------
    accounts : N
    right : number of older halves that are linked with their own newer half
    wrong : number of older halves that are linked with another one, though their own is there
    wrong_alone : number of older halves that are linked with another one while their own is not
        there
    """

    accounts: int
    right: int
    wrong: int
    wrong_alone: float

    def wrong_share(self, prior: float) -> float | None:
        """Return the share of links that are wrong, None where there would be no link.

        Parameters
        ----------
        prior : share of the accounts asked about that have a second account in the list
        """
        if not self.right:
            return None
        wrong_links = prior * self.wrong + (1 - prior) * self.wrong_alone
        return wrong_links / (prior * self.right + wrong_links)

    def most_wrong_share(self, prior: float) -> float | None:
        """Return the upper 95% bound of :meth:`wrong_share`, as far as N accounts can tell.

        It puts the upper Clopper-Pearson bound in the place of the share of accounts that are
        linked wrongly while their own half is not there, which matters most.

        Parameters
        ----------
        prior : share of the accounts asked about that have a second account in the list
        """
        highest = 1.0
        if self.wrong_alone < self.accounts:
            highest = beta.ppf(CONFIDENCE, self.wrong_alone + 1, self.accounts - self.wrong_alone)
        return replace(self, wrong_alone=float(highest * self.accounts)).wrong_share(prior)


def count_link_errors(llr: np.ndarray, costs: DetectionCosts) -> LinkErrors:
    """Link halves of accounts as accounts of one list are linked.

    Parameters
    ----------
    llr : (N, N), log-likelihood ratios of N older halves with the newer ones, in the same order
    costs : costs of errors and the prior, from which probabilities and the threshold follow
    """
    is_linked = _linked(llr, costs)
    own_is_linked = is_linked.diagonal()
    others_alone = llr.copy()
    np.fill_diagonal(others_alone, NOT_COMPARED)
    return LinkErrors(
        len(llr),
        int(own_is_linked.sum()),
        int((is_linked.any(1) & ~own_is_linked).sum()),
        int(_linked(others_alone, costs).any(1).sum()),
    )


def _linked(llr, costs):
    """Return which pairs (N, N) are linked, by the lower probability of both directions."""
    forward, _ = posterior(llr, costs.prior)
    back, _ = posterior(llr.T, costs.prior)
    return np.minimum(forward, back.T) >= costs.min_probability
