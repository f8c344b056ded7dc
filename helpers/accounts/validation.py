"""Check the answers about own accounts: on halves of accounts, and after habits are removed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..cleaning.text import WORD
from ..core.names import label
from ..evaluation import ranking
from ..evaluation.calibration import calibration_metrics, reliability_bins
from ..evaluation.detection import DetectionCosts
from ..evaluation.trials import Trials
from ..tokens.batch import Samples
from .encoder import COUNTED, ENOUGH, MAX_TOKENS, AuthorEncoder
from .gallery import LINK_COSTS, AccountGallery
from .reading import OwnPosts
from .samples import (
    NoPosts,
    halves,
    in_memory,
    last_posts,
    samples_of,
    texts_of,
)

MAX_ACCOUNTS = 1000  # of more accounts, so many are sampled at random and cut in halves
MIN_POSTS_OF_HALF = 8  # accounts with fewer posts than two such halves are not checked
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

    Both are in the same order. Accounts with fewer than 2 * MIN_POSTS_OF_HALF posts are left out.

    Parameters
    ----------
    posts : OwnPosts
        all accounts.
    encoder : AuthorEncoder
        embeds the halves.
    seed : int
        seed of the random sample of MAX_ACCOUNTS accounts, which is taken where there are more.

    Raises
    ------
    ValueError
        Where fewer than two accounts have 2 * MIN_POSTS_OF_HALF posts.
    """
    older, newer = halves(posts.store, MIN_POSTS_OF_HALF)
    if len(older) < 2:
        raise ValueError(
            f"{len(older)} accounts have {2 * MIN_POSTS_OF_HALF} posts: none can be cut in halves "
            "to check with"
        )
    rows = np.sort(np.random.default_rng(seed).permutation(len(older))[:MAX_ACCOUNTS])
    return posts.gallery(encoder, newer[rows]), older[rows]


def with_signatures(samples: Samples, signatures: list[str], tokenizer) -> Samples:
    """Return the samples, with a signature under every post of the first accounts.

    Parameters
    ----------
    samples : Samples
        of any number of accounts.
    signatures : list of str
        the signature of the first account, of the second, and so on; other accounts get none.
    tokenizer : Tokenizer
        has made the tokens of the store.
    """
    texts = []
    for first, count in zip(samples.first, samples.count):
        texts.append(texts_of(samples.store, np.arange(first, first + count), tokenizer))
    for account, signature in enumerate(signatures):
        texts[account] = [f"{text} {signature}" for text in texts[account]]
    return samples_of(texts, tokenizer)


@dataclass(frozen=True, eq=False)
class CalibrationChoice:
    """The calibration that is used for own accounts, and how it and the other one were judged.

    Attributes
    ----------
    encoder : the encoder with the better calibration
    name : "shipped" or "own"
    metrics : one column per calibration that was judged, "shipped" and perhaps "own"; its rows are
        the metrics of :func:`helpers.evaluation.calibration.calibration_metrics` and the number of
        accounts. Empty where nothing was judged
    reliability : name of a calibration -> its reliability bins
    messages : sentences for the user about what was found
    judged : name of a calibration -> the encoder that was judged; its own calibration was not
        fitted on the accounts that judged it
    gallery : the newer halves of these accounts; None where nothing was judged
    older : their older halves, in the same order; None where nothing was judged
    able : number of accounts that can be cut in halves
    fitted : numbers in the store, (N,), of the accounts that the own calibration is fitted on
    """

    encoder: AuthorEncoder
    name: str
    metrics: pd.DataFrame
    reliability: dict[str, pd.DataFrame]
    messages: list[str]
    judged: dict[str, AuthorEncoder]
    gallery: AccountGallery | None
    older: Samples | None
    able: int
    fitted: np.ndarray


def choose_calibration(
    posts: OwnPosts, encoder: AuthorEncoder, costs: DetectionCosts = DetectionCosts(), seed: int = 0
) -> CalibrationChoice:
    """Choose between the shipped calibration and one fitted on own accounts, by the lower Cllr.

    Only accounts with at least 2 * MIN_POSTS_OF_HALF posts are used, at most MAX_ACCOUNTS sampled
    at random. On one part of them the "own" calibration is fitted; on the other part it and the
    "shipped" one are judged. If the own one is better, it is fitted again on both parts. Where
    there are fewer than 2 * ENOUGH such accounts, no own calibration is fitted and all of them
    judge the shipped one; where there are fewer than two, nothing is judged.

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
    accounts = halves(posts.store, MIN_POSTS_OF_HALF)[0].authors
    nobody = np.empty(0, int)
    if len(accounts) < 2:
        message = f"No two accounts have {2 * MIN_POSTS_OF_HALF} posts: nothing could be checked."
        return CalibrationChoice(
            encoder, "shipped", pd.DataFrame(), {}, [message], {}, None, None, len(accounts), nobody
        )

    messages = []
    encoders = {"shipped": encoder}
    judging_posts = posts
    drawn_accounts = np.random.default_rng(seed).permutation(accounts)[:MAX_ACCOUNTS]
    if len(accounts) >= 2 * ENOUGH:
        judging, fitting = np.array_split(drawn_accounts, 2)
        judging_posts = subset_of_accounts(posts, judging)
        fitting_posts = subset_of_accounts(posts, fitting)
        encoders["own"] = encoder.calibrated_on(fitting_posts.store, posts.hours)
    else:
        messages.append(
            f"{len(accounts)} accounts can be cut in halves, too few to fit a calibration on."
        )
    gallery, older = split_half_trials(judging_posts, encoder, seed)
    metrics = {}
    reliability = {}
    for name, judged_encoder in encoders.items():
        judged_gallery = replace(gallery, encoder=judged_encoder)
        judgement, bins = _judge(judged_gallery, older, costs)
        metrics[name] = judgement.value
        reliability[name] = bins
    table = pd.DataFrame(metrics)
    better = table.loc["Cllr"].idxmin()
    fitted = nobody
    if better == "own":
        fitted = np.sort(drawn_accounts)
        fitting_posts = subset_of_accounts(posts, fitted)
        encoder = encoder.calibrated_on(fitting_posts.store, posts.hours)
    messages += _messages(table, better, len(older))
    return CalibrationChoice(
        encoder,
        better,
        table,
        reliability,
        messages,
        encoders,
        replace(gallery, encoder=encoders[better]),
        older,
        len(accounts),
        fitted,
    )


def _messages(table, better, accounts):
    """Return sentences that say which calibration is used, and what speaks against it."""
    used = table[better]
    few = " So few accounts cannot show that the probabilities are right."
    messages = [
        f"The {better} calibration is used: Cllr {used.Cllr:.2f} on {accounts} accounts that it "
        f"was not fitted on.{few if accounts < PROVING_ACCOUNTS else ''}"
    ]
    cheapest = table.loc["DCF"].idxmin()
    if table[cheapest].DCF < used.DCF:
        messages.append(
            f"The {cheapest} calibration is not used: its Cllr is {table[cheapest].Cllr:.2f}. But "
            f"its detection cost (DCF) is lower: {table[cheapest].DCF:.3f}, against {used.DCF:.3f}."
        )
    loss = used.Cllr - used.minCllr
    if loss > MAX_CALIBRATION_LOSS:
        messages.append(
            f"Calibration loses {loss:.2f} bits (Cllr minus minCllr): these texts are unlike those "
            "that it was fitted on, so read ranks and not probabilities."
        )
    return messages


def _judge(gallery, older, costs):
    """Return metrics and reliability bins of a calibration, on all older with all newer halves."""
    ratios = []
    for rows, scores in gallery.model.scores(older, gallery.targets, MAX_TOKENS):
        ratios.append(gallery.llr(scores, older.count[rows][:, None]))
    llr = np.concatenate(ratios)
    same = np.eye(len(llr), dtype=bool)
    table = calibration_metrics(llr.ravel(), same.ravel(), costs)
    table.loc["accounts"] = len(llr)
    return table, reliability_bins(llr.ravel(), same.ravel())


def subset_of_accounts(posts: OwnPosts, accounts: np.ndarray) -> OwnPosts:
    """Keep only the accounts with the given numbers (N,) in the store, in the store's order.

    Parameters
    ----------
    posts : OwnPosts
        of all accounts
    accounts : (N,) int
        numbers of accounts in the store, in any order
    """
    accounts = np.sort(accounts)
    count = posts.store.posts_per_author()[accounts]
    samples = Samples(posts.store, posts.store.author_offsets[accounts], count, accounts)
    return replace(posts, store=in_memory(samples).store, names=posts.names[accounts])


def compare_with_tfidf(
    gallery: AccountGallery, older: Samples, seed: int = 0, name: str = "encoder"
) -> pd.DataFrame:
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
    name : str
        name of the row for all members together.

    Returns
    -------
    Columns ``value``, ``low``, ``high`` and three rows: ``name``, the name of the best TF-IDF, and
    "Difference". The table is empty for a gallery too small to normalise, which fits no TF-IDF.
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
        name: ranking.ranking_metrics(our_ranks, seed).loc["MRR"],
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
