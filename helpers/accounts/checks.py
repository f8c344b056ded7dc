"""What own accounts can tell about the answers: halves of one account, whose truth is known, and one's own habits."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from helpers.accounts.encoder import COUNTED, ENOUGH, MAX_TOKENS, AuthorEncoder
from helpers.accounts.gallery import AccountGallery, Decision
from helpers.accounts.own import OwnPosts
from helpers.accounts.posts import halves, in_memory, last_posts, texts
from helpers.evaluation import ranking
from helpers.evaluation.calibration import assess, reliability
from helpers.evaluation.detection import Costs
from helpers.evaluation.trials import Trials
from helpers.tokens.batch import Samples
from helpers.topic.masking import WORD

ACCOUNTS = 1000  # drawn at random, that are cut in halves at most
LEAST = 8  # posts of a half
QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # as word processors set them
OFF = 0.2  # bits that calibration may cost before it is a warning

SPELLINGS = dict(pd.read_csv(Path(__file__).parent / "spellings.csv").to_numpy())  # as written: the common one


def one_spelling(text: str) -> str:
    """Shorthands, contractions without their mark and British spellings as most write them, quotes as keyboards do."""
    return WORD.sub(_common, text.translate(QUOTES))


def _common(match):
    word = SPELLINGS.get(match[0].lower(), match[0])
    return word[0].upper() + word[1:] if match[0][0].isupper() else word


HABITS: dict[str, Callable[[str], str]] = {  # what an author could do about it, text for text
    "as written": lambda text: text,
    "lower case": str.lower,
    "no punctuation": lambda text: re.sub(r"[^\w\s@']", "", text),
    "no drawn-out letters": lambda text: re.sub(r"([^\W\d_])\1{2,}", r"\1", text),
    "single marks": lambda text: re.sub(r"([^\w\s])\1+", r"\1", text),
    "one spelling": one_spelling,
    "lower case, no punctuation": lambda text: re.sub(r"[^\w\s@']", "", text.lower()),
}


def halves_known(posts: OwnPosts, encoder: AuthorEncoder, seed: int = 0) -> tuple[AccountGallery, Samples]:
    """A gallery of the newer halves of accounts, and their older halves to ask it with, in the same order.

    Raises ValueError where fewer than two accounts have 2 * LEAST posts.
    """
    older, newer = halves(posts.store, LEAST)
    if len(older) < 2:
        raise ValueError(f"{len(older)} accounts have {2 * LEAST} posts: none can be cut in halves to check with")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(older))[:ACCOUNTS])
    return posts.gallery(encoder, newer[chosen]), older[chosen]


def calibrated(posts: OwnPosts, encoder: AuthorEncoder, costs: Costs = Costs(),
               seed: int = 0) -> tuple[AuthorEncoder, pd.DataFrame, dict[str, pd.DataFrame], list[str]]:
    """Are the probabilities right on these accounts, and are they better when the map is fitted on them?

    Half of the accounts that can be cut in halves, of ACCOUNTS at most, fit a map of their own, the other half judge it
    and that of the encoder; with fewer than ENOUGH on a side all judge the encoder's. Returns the encoder to use (the
    better one, fitted on all then), a table of :func:`helpers.evaluation.calibration.assess` with a column a map,
    points of reliability by map, and warnings.
    """
    accounts, said = halves(posts.store, LEAST)[0].authors, []
    if len(accounts) < 2:
        return encoder, pd.DataFrame(), {}, [
            f"no two accounts have {2 * LEAST} posts: what follows could not be checked on these accounts"]  # fmt: skip
    if enough := len(accounts) >= 2 * ENOUGH:
        drawn = np.random.default_rng(seed).permutation(accounts)[:ACCOUNTS]
        judged, fitted = (subset(posts, np.sort(part)) for part in np.array_split(drawn, 2))
        maps = {"shipped": encoder, "own": encoder.calibrated_on(fitted.store, posts.hours)}
    else:
        judged, maps = posts, {"shipped": encoder}
        said.append(f"{len(accounts)} accounts can be cut in halves, too few to fit probabilities on")
    gallery, older = halves_known(judged, encoder, seed)  # for both maps: of equal weights scores are equal
    use = encoder.use(gallery.adapted, posts.hours)
    tested = {name: _judge(gallery, older, one.uses[use], costs) for name, one in maps.items()}
    table = pd.DataFrame({name: one.value for name, (one, _) in tested.items()})
    better = table.loc["Cllr"].idxmin()
    count, lost = int(table[better]["accounts"]), table[better]["Cllr"] - table[better]["minCllr"]
    few = ", too few to prove probabilities right" * (count < 100)
    said.append(f"the {better} map is used: Cllr {table[better]['Cllr']:.2f} on {count} accounts it has not seen{few}")
    if lost > OFF:
        said.append(f"probabilities are off by {lost:.2f} bits a pair (Cllr minus minCllr): these texts are unlike "
                    "those that calibration was made on, so read ranks and not probabilities")  # fmt: skip
    if enough and better == "own":
        encoder = encoder.calibrated_on(subset(posts, np.sort(drawn)).store, posts.hours)
    return encoder, table, {name: curve for name, (_, curve) in tested.items()}, said


def _judge(gallery, older, use, costs):
    llr = np.concatenate([use.llr(block, older.count[rows][:, None], gallery.targets.count)
                          for rows, block in gallery.scored.scores(older)])  # fmt: skip
    same = np.eye(len(llr), dtype=bool)
    table = assess(llr.ravel(), same.ravel(), costs)
    table.loc["accounts"] = len(llr)
    return table, reliability(llr.ravel(), same.ravel())


def subset(posts: OwnPosts, accounts: np.ndarray) -> OwnPosts:
    """The same of some accounts of the store."""
    count = posts.store.posts_per_author()[accounts]
    samples = in_memory(Samples(posts.store, posts.store.author_offsets[accounts], count, accounts))
    return replace(posts, store=samples.store, names=posts.names[accounts])


def against_counting(gallery: AccountGallery, older: Samples, seed: int = 0) -> pd.DataFrame:
    """MRR of all members and of the best TF-IDF fitted on the same gallery, and their difference, with intervals.

    Rows ``everything``, the TF-IDF's name and ``difference``; columns value, low, high. Of a gallery too small to be
    adapted to there is no TF-IDF, and the table is empty.
    """
    counted = [name for name in gallery.model.members if name in COUNTED]
    if not counted:
        return pd.DataFrame(columns=["value", "low", "high"])
    trials = Trials(replace(older, authors=np.arange(len(older))),
                    replace(gallery.targets, authors=np.arange(len(older))))  # fmt: skip
    ranks = {name: ranking.ranks(gallery.model.members[name], trials, MAX_TOKENS) for name in counted}
    best = max(counted, key=lambda name: (1 / ranks[name]).mean())
    ours = ranking.ranks(gallery.model, trials, MAX_TOKENS)
    both = ("everything", ours), (best, ranks[best])
    rows = {name: ranking.summarise(rank, seed).loc["MRR"] for name, rank in both}
    rows["difference"] = ranking.differences(ours, ranks[best], seed).loc["MRR_difference"]
    return pd.DataFrame(rows).T


def by_posts(gallery: AccountGallery, older: Samples, account: str, decision: Decision = Decision()) -> pd.DataFrame:
    """How well one account's other half is found as more of its older posts are read: ``posts, rank, probability``."""
    sample = _half(gallery, older, account)
    sizes = [size for size in (2, 4, 8, 16, 32, 64) if size < sample.count[0]] + [int(sample.count[0])]
    found = [(size, *_own(gallery, last_posts(sample, size), account, decision)) for size in sizes]
    return pd.DataFrame(found, columns=["posts", "rank", "probability", "llr"])


def by_habit(gallery: AccountGallery, older: Samples, account: str, decision: Decision = Decision(),
             seed: int = 0) -> pd.DataFrame:
    """What changing one's writing does: ``habit, rank, probability, llr`` of the account's other half.

    The posts are those of its older half, as the encoder read them. Where times are known there is one row more, as if
    posts had waited some hours. Raises ValueError as :func:`by_posts`.
    """
    sample = _half(gallery, older, account)
    posts = sample.first[0] + np.arange(sample.count[0])
    written, times = texts(sample.store, posts, gallery.encoder.tokenizer), sample.store.time[posts]
    tried = {name: ([change(text) or text for text in written], times) for name, change in HABITS.items()}
    if gallery.hours:
        tried["posted at random hours"] = written, times + np.random.default_rng(seed).integers(0, 86400, len(posts))
    found = []
    for name, (changed, when) in tried.items():
        with suppress(ValueError):  # nothing that is the account's own is left of so few posts
            queries = gallery.queries([changed], [when.tolist()] if gallery.hours else None)
            found.append((name, *_own(gallery, queries, account, decision)))
    return pd.DataFrame(found, columns=["habit", "rank", "probability", "llr"])


def _half(gallery, older, account):
    row = int(gallery.columns([account])[0])
    if row < 0:
        raise ValueError(f"account {account!r} has too few posts to be cut in halves")
    return older[np.array([row])]


def _own(gallery, queries, account, decision) -> tuple[int, float, float]:
    row = gallery.rank(queries, ["it"], len(gallery), decision).set_index("target").loc[account]
    return int(row["rank"]), float(row.probability), float(row.llr)
