"""Say what the matching of two lists found: sentences, a table, and the evidence for its links."""

import numpy as np
import pandas as pd

from ..core.names import label
from ..core.terminal import printable
from .contributions import NOT_WORDS, scores_by_member
from .decided_pairs import DecidedPairs
from .encoder import ENOUGH
from .gallery import LINK_COSTS
from .list_matching import (
    LEAST_PROBABILITY,
    MIN_FIT_POSTS,
    MatchedLists,
    TwoLists,
)
from .reading import OwnPosts
from .samples import MIN_POSTS

MAX_ROWS = 50  # of the table
EVIDENCE_PAIRS = 10  # linked pairs whose evidence is told
FEATURES_FOR = 10  # features that speak most for a pair, and those most against it
FEATURES_AGAINST = 5
EVIDENCE_TITLE = "What speaks for the links, and what against them"


def list_sentence(letter: str, name: str, posts: OwnPosts, accounts: int) -> str:
    """Say which accounts are in a list, and which are left out.

    Parameters
    ----------
    letter : "a" or "b"
    name : of its file, and which rows of it are read
    posts : what was read
    accounts : number of accounts in the list
    """
    left_out = posts.card["accounts_with_few_posts"] + len(posts.names) - accounts
    sentence = f"List {letter.upper()} ({printable(name)}): {accounts:,} accounts."
    if left_out:
        sentence += f" {left_out:,} more have fewer than {MIN_POSTS} posts of their own words."
    return sentence


def decided_sentence(decided: DecidedPairs) -> str:
    """Say how many decisions there are about the two lists."""
    return (
        f"Decisions about pairs of these lists: {len(decided.same):,} same, "
        f"{len(decided.different):,} different; decisions about other accounts: "
        f"{decided.unknown:,}."
    )


def calibration_sentence(letter: str, accounts: int, matched: MatchedLists) -> str:
    """Say on whose posts weights and probabilities rest.

    Parameters
    ----------
    letter : the list that they were fitted on; "" for none
    accounts : number of its accounts that were fitted on
    matched : what was found
    """
    sentence = (
        "Weights and probabilities are those that ship with the encoder: in no list have "
        f"{ENOUGH} accounts {MIN_FIT_POSTS} posts to fit them on."
    )
    if letter:
        sentence = (
            f"Weights and probabilities are fitted on {accounts:,} accounts of list "
            f"{letter.upper()}, whose halves are compared as if they were two accounts."
        )
    if matched.known_calibrate:
        sentence += " Then the probabilities are fitted on the known pairs."
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
    """Return the best pair of each account of list A as a table of MAX_ROWS rows at most.

    Parameters
    ----------
    pairs : pairs of a matching, with the names to show; known pairs are left out
    """
    best = pairs[~pairs.known].drop_duplicates("account_a").drop(columns="known")
    if best.empty:
        return f"No pair has a probability of {LEAST_PROBABILITY:.0%} or more."
    rows = best.head(MAX_ROWS).copy()
    for column in ("account_a", "account_b"):
        rows[column] = [printable(name) for name in rows[column]]
    rows["probability"] = [_probability(value) for value in rows.probability]
    lines = rows.to_string(index=False, float_format="{:.3f}".format)
    if len(best) > len(rows):
        lines += (
            f"\n... and {len(best) - len(rows):,} more accounts of list A with a less likely pair"
        )
    return lines


def _probability(value):
    """Return a probability as text; none is rounded to certainty."""
    if value > 0.999:
        return ">0.999"
    return f"{value:.3f}"


def findings(matched: MatchedLists) -> list[str]:
    """Return sentences about links, and about accounts without a partner."""
    linked = matched.pairs[matched.pairs.linked & ~matched.pairs.known]
    threshold = LINK_COSTS.min_probability
    sentences = [
        f"Linked pairs: {len(linked):,}. A link needs a probability of {threshold:.1%} or more, "
        "and neither account may have a likelier partner."
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
            f"Of {len(nobody):,} accounts of list {letter.upper()}, {unlinked:,} have no link: "
            f"{alone:,} probably have no partner in the other list, {unlinked - alone:,} are "
            "undecided."
        )
    return sentences


def evidence(lists: TwoLists, matched: MatchedLists, shown: pd.DataFrame) -> str:
    """Return what speaks for the first EVIDENCE_PAIRS linked pairs, and what against them.

    Parameters
    ----------
    lists : both lists
    matched : what :func:`helpers.accounts.list_matching.match_lists` found
    shown : ``matched.pairs`` with the names to show
    """
    is_told = matched.pairs.linked & ~matched.pairs.known
    texts = [
        f"{EVIDENCE_TITLE}: the parts of a pair's score that add up to it, by the systems that "
        "read the posts, and the strongest words and habits. Words of a common topic are no "
        "evidence for one person: read the posts.\n"
    ]
    with lists.galleries["a"].model.inference(), lists.galleries["b"].model.inference():
        for row in np.flatnonzero(is_told)[:EVIDENCE_PAIRS]:
            pair = matched.pairs.iloc[row]
            names = [printable(shown.loc[row, f"account_{letter}"]) for letter in "ab"]
            parts = lists.evidence(pair.account_a, pair.account_b)
            texts.append(f"{names[0]} and {names[1]}, probability {_probability(pair.probability)}")
            texts.append(_evidence_lines(parts))
    return "\n".join(texts)


def _evidence_lines(parts):
    """Return lines about the parts of one score."""
    sums = scores_by_member(parts)
    systems = [f"{label(name)} {value:+.2f}" for name, value in sums.iloc[:-1].to_numpy()]
    words = parts[~parts.feature.isin(NOT_WORDS)]
    lines = [
        f"  score    {sums.contribution.iloc[-1]:.2f}: {', '.join(systems)}",
        f"  for      {_features(words[words.contribution > 0].head(FEATURES_FOR))}",
        f"  against  {_features(words[words.contribution < 0].head(FEATURES_AGAINST))}",
    ]
    return "\n".join([*lines, ""])


def _features(parts):
    """Return features as text, each with the member that it counts for and its part."""
    texts = []
    for row in parts.itertuples():
        texts.append(f'"{printable(row.feature)}" ({label(row.member)}) {row.contribution:+.3f}')
    return ", ".join(texts) or "nothing"
