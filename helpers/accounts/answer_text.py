"""Say in sentences what an answer found, for people without statistics."""

from collections import Counter
from pathlib import Path

import pandas as pd

from ..core.messages import printable
from ..corpus.loss_lines import MAX_SILENT_SHARE, NAME_FORMS, PLACEHOLDER_AUTHOR
from . import languages
from .answers import (
    FEW_POSTS,
    LIKELY,
    LINKED,
    MIN_LIKELY,
    MIN_POSTS_TO_JUDGE,
    NOT_LINKED,
    Answer,
)
from .encoder import ENOUGH
from .gallery import UNJUDGED
from .merging import JOINER
from .pages import percent
from .reading import NO_HOURS
from .samples import MAX_TOKENS, MOST_POSTS
from .set_aside import REASONS
from .unjudged import UNCHECKED, UNREADABLE

MAX_UNKNOWN = 5  # names in decisions that the file does not have, and are shown
MAX_NAMED = 5  # accounts that cannot be judged, which are named at the top
MAX_SET_ASIDE_NAMED = 3  # accounts that are set aside for one reason, which are named in a sentence
DROPPED = "dropped_"  # begins the names of a data card's counts of dropped rows
DATA_CARD = Path(__file__).parents[1] / "corpus" / "data_card.csv"


def shown_name(name: str, names: dict[str, str]) -> str:
    """Return the name of an account to show; a joint account has the names of all its accounts.

    Parameters
    ----------
    name : str
        as an answer has it
    names : dict
        pseudonym -> name, empty where pseudonyms are shown
    """
    return JOINER.join(printable(names.get(part, part)) for part in name.split(JOINER))


def _count(number, noun):
    """Return a number and its noun, such as "1 pair" and "2 pairs"."""
    if number == 1:
        return f"{number:,} {noun}"
    return f"{number:,} {noun}s"


def read_sentences(answer: Answer) -> list[str]:
    """Say what was read, what was left out, and in which language it is."""
    posts = answer.posts
    card = posts.card
    sentences = [
        f"{card['rows_read']:,} rows were read, {card['posts']:,} posts are kept.",
        *_dropped_sentences(card),
        f"{_count(card['accounts'], 'account')} can be compared. Of each, all posts are read, or "
        f"{MOST_POSTS:,} evenly spread ones where there are more; of each post the first "
        f"{MAX_TOKENS} subwords, about 90 words.",
    ]
    sentences += passage_sentences(card)
    sentences.append(languages.language_sentence(list(answer.accounts.language)))
    if card["columns"]["time"] is None:
        sentences.append("Times of posting are not known, so hours say nothing here.")
    elif not posts.hours:
        sentences.append(NO_HOURS)
    if answer.joint_names:
        joint = len(set(answer.joint_names.values()))
        sentences.append(
            f"You called accounts one person's: {len(answer.joint_names):,} accounts are "
            f"{_count(joint, 'joint account')} here."
        )
    return sentences + unknown_sentences(answer)


def passage_sentences(card: dict) -> list[str]:
    """Say how much of the posts stands in several of them; nothing where it is little.

    Parameters
    ----------
    card : dict
        of :class:`helpers.accounts.reading.OwnPosts`
    """
    posts = card["posts_of_shared_passages"]
    if posts <= MAX_SILENT_SHARE * card["posts"]:
        return []
    return [
        f"{posts:,} of {card['posts']:,} posts are not compared, because little stands in them but "
        "passages that other posts hold word for word: footers, signatures, forms. If a program "
        "appends such lines, take them out of the file, and more of each account can be read."
    ]


def unknown_sentences(answer: Answer) -> list[str]:
    """Say which accounts of the decisions are not compared; none where all are."""
    if not answer.unknown:
        return []
    shown = [printable(name) for name in answer.unknown[:MAX_UNKNOWN]]
    if len(answer.unknown) > MAX_UNKNOWN:
        shown.append("...")
    return [
        f"Decisions about {_count(len(answer.unknown), 'account')} that this file does not have, "
        f"or that are set aside, were not used: {', '.join(shown)}."
    ]


def _dropped_sentences(card):
    """Say which rows were dropped, and what is odd about others, in the words of the data card."""
    meaning = pd.read_csv(DATA_CARD, index_col="key").meaning
    dropped = []
    notes = []
    for name, value in card.items():
        if name.startswith(DROPPED) and value:
            text = meaning.get(name, name.removeprefix(DROPPED).replace("_", " "))
            if name == PLACEHOLDER_AUTHOR:
                text += f" ({card['placeholder_names']})"
            dropped.append(f"{value:,} {text}")
        elif name.startswith("note_") and value:
            text = meaning.get(name, name)
            if name == NAME_FORMS and "name_forms" in card:
                text += f", such as {card['name_forms']}"
            notes.append(f"{value:,} {text}")
    sentences = []
    if dropped:
        sentences.append(f"Rows that were dropped: {'; '.join(dropped)}.")
    if notes:
        sentences.append(f"Please look at these: {'; '.join(notes)}.")
    return sentences


def same_texts_sentences(pairs: pd.DataFrame, names: dict[str, str]) -> list[str]:
    """Name pairs of accounts that posted the same texts, and say what this may mean.

    Parameters
    ----------
    pairs : DataFrame
        result of :func:`helpers.accounts.same_texts.find_same_texts`
    names : dict
        pseudonym -> name, empty where pseudonyms are shown

    Returns
    -------
    The sentences, of which the first one names up to MAX_NAMED pairs; none where there is no pair
    """
    if pairs.empty:
        return []
    parts = []
    for pair in pairs.head(MAX_NAMED).itertuples():
        accounts = [shown_name(name, names) for name in (pair.account_a, pair.account_b)]
        parts.append(f"{' and '.join(accounts)} ({pair.texts:,} texts)")
    if len(pairs) > len(parts):
        parts.append(f"{len(pairs) - len(parts):,} more")
    sentences = [
        f"{_count(len(pairs), 'pair')} of accounts posted the same texts: {'; '.join(parts)}.",
        "This may be one person with two accounts, somebody who quotes or copies another, or a "
        "program that posts in several places. No probability says which: look up the posts of "
        "both accounts, see which text came first, and ask before you act.",
    ]
    if not (pairs.compared_a & pairs.compared_b).all():
        sentences.append(
            "Copies do not count below. So accounts that are not compared stand here, and among "
            "those that are set aside."
        )
    return sentences


def set_aside_sentence(accounts: pd.DataFrame, place: str = "") -> str:
    """Say how many accounts are set aside for one reason, and name the first of them.

    Parameters
    ----------
    accounts : DataFrame
        rows of one reason, with the names to show, see :mod:`helpers.accounts.set_aside`
    place : str
        what is said of where the accounts are, such as " of list A"
    """
    parts = []
    for account in accounts.head(MAX_SET_ASIDE_NAMED).itertuples():
        part = account.account
        if account.detail:
            part += f" ({account.detail})"
        parts.append(part)
    if len(accounts) > len(parts):
        parts.append(f"{len(accounts) - len(parts):,} more")
    reason = REASONS[accounts.reason.iloc[0]]
    verb = "is" if len(accounts) == 1 else "are"
    count = _count(len(accounts), "account")
    return f"{count}{place} {verb} set aside, {reason}: {', '.join(parts)}."


def headline(answer: Answer) -> str:
    """Say in one sentence how many pairs are linked, or why none is."""
    linked = answer.pairs[answer.pairs.state == LINKED]
    threshold = percent(answer.costs.min_probability)
    if len(linked):
        verb = "is" if len(linked) == 1 else "are"
        return (
            f"{_count(len(linked), 'pair')} of accounts {verb} linked, with {_chances(linked)}; a "
            f"link needs {threshold}."
        )
    judged = answer.pairs[answer.pairs.state != UNJUDGED]
    if judged.empty:
        return "No pair of accounts can be judged, so none is linked."
    highest = percent(judged.probability.max())
    if highest == threshold:
        highest = f"just under {highest}"
    if not _can_link(answer):
        return (
            "No link can be made in this file, whatever the posts say. The likeliest pair has a "
            f"probability of {highest}; a link needs {threshold}."
        )
    return (
        f"No pair of accounts is linked. The likeliest pair has a probability of {highest}; a link "
        f"needs {threshold}."
    )


def pairs_title(states: set[str]) -> str:
    """Return what is said above the pairs that a page shows.

    Parameters
    ----------
    states : set
        states of these pairs, as :mod:`helpers.accounts.answers` has them
    """
    if states & {LINKED, LIKELY}:
        return "The likeliest pairs: read these"
    return "The pairs that are most alike, none of them likely"


def _chances(pairs):
    """Return the probabilities of pairs as text, the lowest and the highest."""
    lowest, highest = percent(pairs.probability.min()), percent(pairs.probability.max())
    if lowest == highest:
        return f"a probability of {highest}"
    return f"probabilities from {lowest} to {highest}"


def _can_link(answer):
    return answer.highest_probability >= answer.costs.min_probability


def answer_sentences(answer: Answer) -> list[str]:
    """Say what else was found: likely pairs, accounts that cannot be judged, and limits."""
    counts = answer.pairs.state.value_counts()
    sentences = []
    likely = int(counts.get(LIKELY, 0))
    if likely:
        noun = "pair"
        if counts.get(LINKED, 0):
            noun = "more pair"
        verb = "is" if likely == 1 else "are"
        sentences.append(
            f"{_count(likely, noun)} {verb} likely: the probability is {MIN_LIKELY:.0%} or more, "
            "but not enough for a link."
        )
    elif counts.get(NOT_LINKED, 0) and not counts.get(LINKED, 0):
        sentences.append(
            "No pair is even likely to be one person's. This does not show that nobody here has "
            "two accounts."
        )
    reason_is_said = bool(counts.get(NOT_LINKED, 0)) and not _can_link(answer)
    if reason_is_said:
        sentences.append(
            f"No pair can have more than {percent(answer.highest_probability)} here. "
            f"{_reason_for_cap(answer)}"
        )
    sentences += unjudged_sentences(answer)
    if len(answer.gallery) < ENOUGH:
        sentences.append(
            f"The file has fewer than {ENOUGH} accounts that can be compared. A score counts by "
            "how far it stands out among those of other accounts: with so few others, none stands "
            "out far enough for a link."
        )
    capped = int((answer.pairs.highest & answer.pairs.state.isin([LINKED, LIKELY])).sum())
    if capped:
        sentence = (
            f"{_count(capped, 'pair')} reached the highest probability that is possible here, so "
            "the true one may be higher."
        )
        if not reason_is_said:
            sentence += f" {_reason_for_cap(answer)}"
        sentences.append(sentence)
    return sentences


def _reason_for_cap(answer):
    return (
        f"The reason: we assume that {percent(answer.costs.prior)} of the accounts have a second "
        f"one, and how much a likeness can say was learned from "
        f"{answer.gallery.use.accounts:,} accounts, too few to support more."
    )


def unjudged_sentences(answer: Answer) -> list[str]:
    """Say how many accounts cannot be judged, and why; a few of them are named."""
    unjudged = answer.accounts[answer.accounts.problem != ""]
    if unjudged.empty:
        return []
    parts = [
        f"{shown_name(account.account, answer.shown_names)} ({account.problem})"
        for account in unjudged.head(MAX_NAMED).itertuples()
    ]
    if len(unjudged) > MAX_NAMED:
        kinds = Counter()
        for account in unjudged.itertuples():
            kinds.update(_kinds_of_problem(account))
        parts = [f"{count:,} {kind}" for kind, count in kinds.most_common()]
    return [
        f"{_count(len(unjudged), 'account')} cannot be judged: {'; '.join(parts)}. About pairs "
        "of such accounts this page says nothing, neither for one person nor against it."
    ]


def _kinds_of_problem(account):
    """Return the problems of an account without its numbers."""
    kinds = []
    for problem in account.problem.split("; "):
        if FEW_POSTS in problem:
            kinds.append(f"with fewer than {MIN_POSTS_TO_JUDGE} posts")
        elif UNCHECKED in problem:
            kinds.append(problem.replace("writes", "that write", 1))
        elif UNREADABLE in problem:
            kinds.append(f"in {UNREADABLE}")
        else:
            kinds.append(f"with {problem}")
    return kinds


def who_was_asked(answer: Answer) -> str:
    """Say which accounts were compared with all others."""
    return (
        f"{_count(len(answer.queries), 'account')} were compared with all "
        f"{answer.compared_accounts:,}: those you named, or those with most posts. Ask about "
        "others with --accounts."
    )


def asked_sentence(answer: Answer) -> str:
    """Say which accounts were compared with which."""
    sentence = f"All {answer.compared_accounts:,} accounts were compared with each other."
    if len(answer.queries) < answer.compared_accounts:
        sentence = who_was_asked(answer)
    if answer.gallery.beyond:
        sentence += (
            f" Of these, {answer.gallery.beyond:,} were compared by one vector each, which can "
            "miss a pair."
        )
    return sentence
