"""Checks of the answers on own accounts: on halves of one account, whose truth is known, and on one's own habits."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
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

ACCOUNTS = 1000  # at most, drawn at random, are cut in halves
LEAST = 8  # posts of a half
QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # as word processors set them
OFF = 0.2  # bits that calibration may cost before it is a warning

SPELLINGS = dict(
    pd.read_csv(Path(__file__).parent / "spellings.csv").to_numpy()
)  # as written: the common one


def one_spelling(text: str) -> str:
    """Spell shorthands, contractions without their mark and British words as most do; set quotes as keyboards do."""
    return WORD.sub(_common, text.translate(QUOTES))


def _common(match):
    word = SPELLINGS.get(match[0].lower(), match[0])
    return word[0].upper() + word[1:] if match[0][0].isupper() else word


HABITS: dict[str, Callable[[str], str]] = {  # one habit taken out of a text each
    "as written": lambda text: text,
    "lower case": str.lower,
    "no punctuation": lambda text: re.sub(r"[^\w\s@']", "", text),
    "no drawn-out letters": lambda text: re.sub(r"([^\W\d_])\1{2,}", r"\1", text),
    "single marks": lambda text: re.sub(r"([^\w\s])\1+", r"\1", text),
    "one spelling": one_spelling,
    "lower case, no punctuation": lambda text: re.sub(r"[^\w\s@']", "", text.lower()),
}


def split_half_trials(
    posts: OwnPosts, encoder: AuthorEncoder, seed: int = 0
) -> tuple[AccountGallery, Samples]:
    """Return a gallery of the newer halves of accounts, and their older halves as queries, in the same order.

    Raises ValueError where fewer than two accounts have 2 * LEAST posts.
    """
    older, newer = halves(posts.store, LEAST)
    if len(older) < 2:
        raise ValueError(
            f"{len(older)} accounts have {2 * LEAST} posts: none can be cut in halves to check with"
        )
    chosen = np.sort(np.random.default_rng(seed).permutation(len(older))[:ACCOUNTS])
    return posts.gallery(encoder, newer[chosen]), older[chosen]


def choose_calibration(
    posts: OwnPosts, encoder: AuthorEncoder, costs: DetectionCosts = DetectionCosts(), seed: int = 0
) -> tuple[AuthorEncoder, pd.DataFrame, dict[str, pd.DataFrame], list[str], dict]:
    """Check whether probabilities are right on these accounts, and whether a calibration fitted on them is better.

    Half of the accounts that can be cut in halves fit an "own" calibration; the other half judge it and the "shipped"
    one. With fewer than ENOUGH on a side all judge the shipped one. The lower Cllr decides: the own one is then fitted
    on all. Returns the encoder to use, :func:`helpers.evaluation.calibration.calibration_metrics` with a column a calibration, and
    by calibration the points of reliability; then messages, and the encoders that were judged, by calibration.
    """
    accounts, said = halves(posts.store, LEAST)[0].authors, []
    if len(accounts) < 2:
        return (
            encoder,
            pd.DataFrame(),
            {},
            [f"No two accounts have {2 * LEAST} posts: nothing could be checked."],
            {},
        )
    if enough := len(accounts) >= 2 * ENOUGH:
        drawn = np.random.default_rng(seed).permutation(accounts)[:ACCOUNTS]
        judged, fitted = (
            subset_of_accounts(posts, np.sort(part)) for part in np.array_split(drawn, 2)
        )
        maps = {"shipped": encoder, "own": encoder.calibrated_on(fitted.store, posts.hours)}
    else:
        judged, maps = posts, {"shipped": encoder}
        said.append(
            f"{len(accounts)} accounts can be cut in halves, too few to fit a calibration on."
        )
    gallery, older = split_half_trials(
        judged, encoder, seed
    )  # for both: of equal weights scores are equal
    use = encoder.use(gallery.s_normed, posts.hours)
    tested = {name: _judge(gallery, older, one.uses[use], costs) for name, one in maps.items()}
    table = pd.DataFrame({name: one.value for name, (one, _) in tested.items()})
    better = table.loc["Cllr"].idxmin()
    used, least = table[better], table.loc["DCF"].min()
    few = ", too few to prove probabilities right" * (len(older) < 100)
    said.append(
        f"The {better} calibration is used: Cllr {used.Cllr:.2f} on {len(older)} accounts new to it{few}."
    )
    if least < used.DCF:
        said.append(
            f"At these costs the other calibration would be better: DCF {least:.2f} instead of {used.DCF:.2f}."
        )
    if used.Cllr - used.minCllr > OFF:
        said.append(f"Calibration loses {used.Cllr - used.minCllr:.2f} bits (Cllr minus minCllr): these texts are "
                    "unlike those that it was fitted on, so read ranks and not probabilities.")  # fmt: skip
    if enough and better == "own":
        encoder = encoder.calibrated_on(
            subset_of_accounts(posts, np.sort(drawn)).store, posts.hours
        )
    return encoder, table, {name: curve for name, (_, curve) in tested.items()}, said, maps


def _judge(gallery, older, use, costs):
    llr = np.concatenate([use.llr(block, older.count[rows][:, None], gallery.targets.count)
                          for rows, block in gallery.model.scores(older, gallery.targets, MAX_TOKENS)])  # fmt: skip
    same = np.eye(len(llr), dtype=bool)
    table = calibration_metrics(llr.ravel(), same.ravel(), costs)
    table.loc["accounts"] = len(llr)
    return table, reliability_bins(llr.ravel(), same.ravel())


def subset_of_accounts(posts: OwnPosts, accounts: np.ndarray) -> OwnPosts:
    """Return the same of some accounts of the store."""
    count = posts.store.posts_per_author()[accounts]
    samples = in_memory(Samples(posts.store, posts.store.author_offsets[accounts], count, accounts))
    return replace(posts, store=samples.store, names=posts.names[accounts])


def compare_with_tfidf(
    gallery: AccountGallery, older: Samples, seed: int = 0, name: str = "encoder"
) -> pd.DataFrame:
    """Compare the MRR of all members with that of the best TF-IDF fitted on the same gallery, with intervals.

    Rows ``name``, the name of the TF-IDF and "Difference"; columns value, low, high. In a gallery too small for s-norm
    there is no TF-IDF, and the table is empty.
    """
    counted = {member.name: member for member in gallery.model.members if member.name in COUNTED}
    if not counted:
        return pd.DataFrame(columns=["value", "low", "high"])
    trials = Trials(older, gallery.targets)
    ranks = {
        kind: ranking.positive_ranks(member, trials, MAX_TOKENS) for kind, member in counted.items()
    }
    best = max(counted, key=lambda kind: (1 / ranks[kind]).mean())
    ours = ranking.positive_ranks(gallery.model, trials, MAX_TOKENS)
    rows = {name: ranking.ranking_metrics(ours, seed).loc["MRR"]}
    rows[f"{label(best)}, s-norm"] = ranking.ranking_metrics(ranks[best], seed).loc["MRR"]
    rows["Difference"] = ranking.ranking_differences(ours, ranks[best], seed).loc["MRR_difference"]
    return pd.DataFrame(rows).T


def rank_by_sample_size(
    gallery: AccountGallery, older: Samples, account: str, costs: DetectionCosts = LINK_COSTS
) -> pd.DataFrame:
    """Rank one account's newer half by more and more posts of its older one: ``posts, rank, probability, llr``."""
    sample = _half(gallery, older, account)
    sizes = [size for size in (2, 4, 8, 16, 32, 64) if size < sample.count[0]] + [
        int(sample.count[0])
    ]
    found = [(size, *_own(gallery, last_posts(sample, size), account, costs)) for size in sizes]
    return pd.DataFrame(found, columns=["posts", "rank", "probability", "llr"])


def rank_after_obfuscation(
    gallery: AccountGallery,
    older: Samples,
    account: str,
    costs: DetectionCosts = LINK_COSTS,
    seed: int = 0,
) -> pd.DataFrame:
    """Rank one account's newer half by its older one, a habit taken out: ``habit, rank, probability, llr``.

    The posts are those that the encoder read. Where times are known there is one row more, as if posts had waited for
    some hours. Raises ValueError as :func:`rank_by_sample_size`.
    """
    sample = _half(gallery, older, account)
    posts = sample.first[0] + np.arange(sample.count[0])
    written, times = (
        texts_of(sample.store, posts, gallery.encoder.tokenizer),
        sample.store.time[posts],
    )
    tried = {
        name: ([change(text) or text for text in written], times) for name, change in HABITS.items()
    }
    if gallery.hours:
        tried["posted at random hours"] = (
            written,
            times + np.random.default_rng(seed).integers(0, 86400, len(posts)),
        )
    found = []
    for name, (changed, when) in tried.items():
        with suppress(ValueError):  # nothing that is the account's own is left of so few posts
            queries = gallery.queries([changed], [when.tolist()] if gallery.hours else None)
            found.append((name, *_own(gallery, queries, account, costs)))
    return pd.DataFrame(found, columns=["habit", "rank", "probability", "llr"])


def _half(gallery, older, account):
    row = int(gallery.columns([account])[0])
    if row < 0:
        raise ValueError(f"account {account!r} has too few posts to be cut in halves")
    return older[np.array([row])]


def _own(gallery, queries, account, costs) -> tuple[int, float, float]:
    row = gallery.rank(queries, ["it"], len(gallery), costs).set_index("target").loc[account]
    return int(row["rank"]), float(row.probability), float(row.llr)
