"""Checks of the answers on own accounts: on halves of accounts, and on one's own habits."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from helpers.accounts.encoder import COUNTED, ENOUGH, MAX_TOKENS, AuthorEncoder
from helpers.accounts.gallery import LINK_COSTS, AccountGallery
from helpers.accounts.reading import OwnPosts
from helpers.accounts.samples import halves, in_memory, last_posts, texts_of
from helpers.cleaning.text import WORD
from helpers.core.names import label
from helpers.evaluation import ranking
from helpers.evaluation.calibration import calibration_metrics, reliability_bins
from helpers.evaluation.detection import DetectionCosts
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples

MAX_ACCOUNTS = 1000  # drawn at random, which are cut in halves
MIN_POSTS_OF_HALF = 8
PROVING_ACCOUNTS = 100  # fewer cannot prove probabilities right
MAX_CALIBRATION_LOSS = 0.2  # bits, above which a warning is given
SIZES = (2, 4, 8, 16, 32, 64)  # posts of a query

QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # as word processors set them
# as written: the common one
SPELLINGS = dict(pd.read_csv(Path(__file__).parent / "spellings.csv").to_numpy())


def one_spelling(text: str) -> str:
    """Spell shorthands, contractions and British words as most do, with the quotes of keyboards."""
    return WORD.sub(_common_spelling, text.translate(QUOTES))


def _common_spelling(match):
    written = match[0]
    word = SPELLINGS.get(written.lower(), written)
    return word[0].upper() + word[1:] if written[0].isupper() else word


without_punctuation = partial(re.sub, r"[^\w\s@']", "")


def _lower_without_punctuation(text):
    return without_punctuation(text.lower())


HABITS: dict[str, Callable[[str], str]] = {  # one habit taken out of a text each
    "as written": str,
    "lower case": str.lower,
    "no punctuation": without_punctuation,
    "no drawn-out letters": partial(re.sub, r"([^\W\d_])\1{2,}", r"\1"),
    "single marks": partial(re.sub, r"([^\w\s])\1+", r"\1"),
    "one spelling": one_spelling,
    "lower case, no punctuation": _lower_without_punctuation,
}


def split_half_trials(
    posts: OwnPosts, encoder: AuthorEncoder, seed: int = 0
) -> tuple[AccountGallery, Samples]:
    """Return a gallery of the newer halves of accounts, and their older halves as queries.

    Both are in the same order.

    Parameters
    ----------
    posts : OwnPosts
        of all accounts.
    encoder : AuthorEncoder
        of the gallery.
    seed : int
        of the draw of MAX_ACCOUNTS accounts.

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


def choose_calibration(
    posts: OwnPosts, encoder: AuthorEncoder, costs: DetectionCosts = DetectionCosts(), seed: int = 0
) -> tuple[AuthorEncoder, pd.DataFrame, dict[str, pd.DataFrame], list[str], dict]:
    """Check whether probabilities are right, and whether a calibration fitted here is better.

    Half of the accounts that can be cut in halves fit an "own" calibration; the other half judge it
    and the "shipped" one. With fewer than ENOUGH on a side all judge the shipped one. The lower
    Cllr decides: the own one is then fitted on all.

    Parameters
    ----------
    posts : OwnPosts
        of all accounts.
    encoder : AuthorEncoder
        with the shipped calibration.
    costs : DetectionCosts
        of errors.
    seed : int
        of the draw of accounts.

    Returns
    -------
    The encoder to use; :func:`helpers.evaluation.calibration.calibration_metrics` with a column a
    calibration; by calibration the bins of reliability; messages; and the encoders that were
    judged, by calibration.
    """
    accounts = halves(posts.store, MIN_POSTS_OF_HALF)[0].authors
    if len(accounts) < 2:
        message = f"No two accounts have {2 * MIN_POSTS_OF_HALF} posts: nothing could be checked."
        return encoder, pd.DataFrame(), {}, [message], {}

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
    # one gallery for both: of equal weights scores are equal
    gallery, older = split_half_trials(judging_posts, encoder, seed)
    use = encoder.use(gallery.s_normed, posts.hours)
    metrics = {}
    reliability = {}
    for name, judged_encoder in encoders.items():
        judgement, bins = _judge(gallery, older, judged_encoder.uses[use], costs)
        metrics[name] = judgement.value
        reliability[name] = bins
    table = pd.DataFrame(metrics)
    better = table.loc["Cllr"].idxmin()
    if better == "own":
        fitting_posts = subset_of_accounts(posts, drawn_accounts)
        encoder = encoder.calibrated_on(fitting_posts.store, posts.hours)
    messages += _messages(table, better, len(older))
    return encoder, table, reliability, messages, encoders


def _messages(table, better, accounts):
    """Say which calibration is used, and what speaks against it."""
    used = table[better]
    few = ", too few to prove probabilities right" if accounts < PROVING_ACCOUNTS else ""
    messages = [
        f"The {better} calibration is used: Cllr {used.Cllr:.2f} on {accounts} accounts new to it"
        f"{few}."
    ]
    least = table.loc["DCF"].min()
    if least < used.DCF:
        messages.append(
            f"At these costs the other calibration would be better: DCF {least:.2f} instead of "
            f"{used.DCF:.2f}."
        )
    loss = used.Cllr - used.minCllr
    if loss > MAX_CALIBRATION_LOSS:
        messages.append(
            f"Calibration loses {loss:.2f} bits (Cllr minus minCllr): these texts are unlike those "
            "that it was fitted on, so read ranks and not probabilities."
        )
    return messages


def _judge(gallery, older, use, costs):
    """Return the metrics and the bins of reliability of a calibration, on all pairs of halves."""
    target_posts = gallery.targets.count
    ratios = []
    for rows, scores in gallery.model.scores(older, gallery.targets, MAX_TOKENS):
        ratios.append(use.llr(scores, older.count[rows][:, None], target_posts))
    llr = np.concatenate(ratios)
    same = np.eye(len(llr), dtype=bool)
    table = calibration_metrics(llr.ravel(), same.ravel(), costs)
    table.loc["accounts"] = len(llr)
    return table, reliability_bins(llr.ravel(), same.ravel())


def subset_of_accounts(posts: OwnPosts, accounts: np.ndarray) -> OwnPosts:
    """Keep some accounts only, by their numbers (N,) in the store, in the store's order."""
    accounts = np.sort(accounts)
    count = posts.store.posts_per_author()[accounts]
    samples = Samples(posts.store, posts.store.author_offsets[accounts], count, accounts)
    return replace(posts, store=in_memory(samples).store, names=posts.names[accounts])


def compare_with_tfidf(
    gallery: AccountGallery, older: Samples, seed: int = 0, name: str = "encoder"
) -> pd.DataFrame:
    """Compare the MRR of all members with that of the best TF-IDF fitted on the same gallery.

    Parameters
    ----------
    gallery : AccountGallery
        of the newer halves, see :func:`split_half_trials`.
    older : Samples
        the older halves.
    seed : int
        of the bootstrap.
    name : str
        of the encoder's row.

    Returns
    -------
    Rows ``name``, the name of the TF-IDF and "Difference"; columns value, low, high. In a gallery
    too small for s-norm there is no TF-IDF, and the table is empty.
    """
    tfidfs = {member.name: member for member in gallery.model.members if member.name in COUNTED}
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
        f"{label(best)}, s-norm": ranking.ranking_metrics(ranks[best], seed).loc["MRR"],
        "Difference": differences.loc["MRR_difference"],
    }
    return pd.DataFrame(rows).T


def rank_by_sample_size(
    gallery: AccountGallery, older: Samples, account: str, costs: DetectionCosts = LINK_COSTS
) -> pd.DataFrame:
    """Rank one account's newer half by more and more posts of its older one.

    Parameters
    ----------
    gallery : AccountGallery
        of the newer halves, see :func:`split_half_trials`.
    older : Samples
        the older halves.
    account : str
        name of the account.
    costs : DetectionCosts
        the costs of a link.

    Returns
    -------
    Columns ``posts``, ``rank``, ``probability``, ``llr``.

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
    """Rank one account's newer half by its older one, from which a habit is taken out.

    The posts are those that the encoder read. Where times are known there is one row more, as if
    posts had waited for some hours.

    Parameters
    ----------
    gallery : AccountGallery
        of the newer halves, see :func:`split_half_trials`.
    older : Samples
        the older halves.
    account : str
        name of the account.
    costs : DetectionCosts
        the costs of a link.
    seed : int
        of the hours that posts wait.

    Returns
    -------
    Columns ``habit``, ``rank``, ``probability``, ``llr``.

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
        with suppress(ValueError):  # nothing that is the account's own is left of so few posts
            queries = gallery.queries([changed_texts], query_times)
            rows.append((habit, *_rank_of_account(gallery, queries, account, costs)))
    return pd.DataFrame(rows, columns=["habit", "rank", "probability", "llr"])


def _older_half(gallery, older, account):
    row = int(gallery.columns([account])[0])
    if row < 0:
        raise ValueError(f"account {account!r} has too few posts to be cut in halves")
    return older[np.array([row])]


def _rank_of_account(gallery, queries, account, costs):
    """Return rank, probability and log-likelihood ratio of an account."""
    ranking = gallery.rank(queries, ["it"], len(gallery), costs)
    row = ranking.set_index("target").loc[account]
    return int(row["rank"]), float(row.probability), float(row.llr)
