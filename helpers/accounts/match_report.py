"""Say what the matching of two lists found: sentences, and a table."""

import numpy as np
import pandas as pd

from ..core.messages import printable
from .decided_pairs import DecidedPairs
from .encoder import ENOUGH
from .gallery import LINK_COSTS, AccountGallery
from .languages import language_sentence, languages_of
from .list_matching import (
    LEAST_PROBABILITY,
    MIN_FIT_POSTS,
    MatchedLists,
)

MAX_ROWS = 50  # of the table
MAX_LANGUAGES = 500  # accounts whose language is looked at, drawn at random
ONE_PARTNER = (
    "All this holds for these two lists together, and if nobody has two accounts in one list."
)


def list_sentence(letter: str, name: str, gallery: AccountGallery, in_both: int = 0) -> str:
    """Say how many accounts are in a list, in which language they write, and what was left out.

    Parameters
    ----------
    letter : "a" or "b"
    name : of its file, and which rows of it are read
    gallery : the accounts in the list
    in_both : number of its posts that were not read because their words stand in the other list
    """
    accounts = len(gallery)
    rng = np.random.default_rng(0)
    looked_at = np.sort(rng.permutation(accounts)[:MAX_LANGUAGES])
    languages = languages_of(gallery.targets[looked_at], gallery.encoder.tokenizer)
    sentence = f"List {letter.upper()} ({name}): {accounts:,} accounts."
    if in_both:
        sentence += (
            f" {in_both:,} of its posts stand in the other list as well and are not compared: the "
            "same texts in two lists would make strangers alike."
        )
    return f"{sentence} {language_sentence(languages)}"


def decided_sentence(decided: DecidedPairs) -> str:
    """Say how many decisions there are about the two lists."""
    return (
        f"Decisions about pairs of these lists: {len(decided.same):,} same, "
        f"{len(decided.different):,} different; decisions about other accounts: "
        f"{decided.unknown:,}."
    )


def calibration_sentence(letter: str, accounts: int) -> str:
    """Say on whose posts weights and probabilities rest.

    Parameters
    ----------
    letter : the list that they were fitted on; "" for none
    accounts : number of its accounts that were fitted on
    """
    sentence = (
        "Weights and probabilities are those that ship with the encoder, fitted on English posts: "
        f"in no list have {ENOUGH} accounts {MIN_FIT_POSTS} posts to fit them on."
    )
    if letter:
        sentence = (
            f"Weights and probabilities are fitted on {accounts:,} accounts of list "
            f"{letter.upper()}, whose halves are compared as if they were two accounts."
        )
    return sentence


def overlap_sentence(matched: MatchedLists, is_stated: bool) -> str:
    """Say which share of the accounts has a partner, and who says so.

    Parameters
    ----------
    matched : what was found
    is_stated : whether the user said it
    """
    share = f"{matched.overlap:.1%} of the accounts of the shorter list have a partner"
    if is_stated:
        return f"You say that {share}."
    return f"We estimate that {share}; if you know better, say so with --overlap."


def table(pairs: pd.DataFrame) -> str:
    """Return pairs as a table of MAX_ROWS rows at most.

    Parameters
    ----------
    pairs : pairs with the names to show; those that were known before are left out
    """
    if "known" in pairs:
        pairs = pairs[~pairs.known].drop(columns="known")
    if pairs.empty:
        return f"No pair has a probability of {LEAST_PROBABILITY:.0%} or more."
    rows = pairs.head(MAX_ROWS).copy()
    for column in ("account_a", "account_b"):
        rows[column] = [printable(name) for name in rows[column]]
    rows["probability"] = [_probability(value) for value in rows.probability]
    lines = rows.to_string(index=False, float_format="{:.3f}".format)
    if len(pairs) > len(rows):
        lines += f"\n... and {len(pairs) - len(rows):,} more"
    return lines


def _probability(value):
    """Return a probability as text; none is rounded to certainty."""
    if value > 0.999:
        return ">0.999"
    return f"{value:.3f}"


def _linked_pairs(matched):
    """Return the pairs that are linked and were not known before."""
    return matched.pairs[matched.pairs.linked & ~matched.pairs.known]


def count_sentence(matched: MatchedLists) -> str:
    """Say how many pairs are linked."""
    linked = len(_linked_pairs(matched))
    if linked == 0:
        return "No pair is linked."
    if linked == 1:
        return "One pair is linked."
    return f"{linked:,} pairs are linked."


def findings(matched: MatchedLists) -> list[str]:
    """Return sentences about links, and about accounts without a partner."""
    linked = _linked_pairs(matched)
    threshold = LINK_COSTS.min_probability
    sentences = [
        f"A link needs a probability of {threshold:.1%} or more, and neither account may have a "
        "likelier partner."
    ]
    if matched.highest < threshold:
        sentences.append(
            "No link is possible here: no pair can have a probability above "
            f"{matched.highest:.1%}, because few accounts were there to fit probabilities on, and "
            "few accounts seem to have a partner."
        )
    if len(linked):
        wrong = (1 - linked.probability).sum()
        sentences.append(f"If the probabilities are right, expect {wrong:.1f} wrong links.")
    for letter in "ab":
        nobody = matched.nobody[letter]
        unlinked = len(nobody) - len(linked)
        alone = int((nobody > 0.5).sum())
        sentences.append(
            f"Without a link: {unlinked:,} of {len(nobody):,} accounts of list {letter.upper()}, "
            f"{alone:,} of them probably without a partner in the other list, "
            f"{unlinked - alone:,} undecided."
        )
    return sentences
