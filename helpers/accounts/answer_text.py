"""Say in sentences what an answer found, for people without statistics."""

from collections import Counter
from pathlib import Path

import pandas as pd

from ..core.messages import printable
from ..core.paths import PROGRAM
from ..corpus.loss_lines import NAME_FORMS, PLACEHOLDER_AUTHOR
from . import languages
from .answers import (
    FEW_POSTS,
    FEW_WORDS,
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
from .reading import NO_HOURS
from .samples import MAX_TOKENS, MOST_POSTS
from .set_aside import REASONS
from .unjudged import UNCHECKED, UNREADABLE
from .validation import MIN_POSTS_OF_HALF

MAX_UNKNOWN = 5  # names in decisions that the file does not have, and are shown
MAX_NAMED = 5  # accounts that cannot be judged, which are named at the top
MAX_SET_ASIDE_NAMED = 3  # accounts that are set aside for one reason, which are named in a sentence
DROPPED = "dropped_"  # begins the names of a data card's counts of dropped rows
DATA_CARD = Path(__file__).parents[1] / "corpus" / "data_card.csv"


def percent(probability: float) -> str:
    """Return a probability as text; none is rounded to certainty or impossibility.

    Parameters
    ----------
    probability : float
        between 0 and 1
    """
    if probability > 0.995:
        return "over 99%"
    if probability < 0.005:
        return "under 1%"
    return f"{probability:.0%}"


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


def unknown_sentences(answer: Answer) -> list[str]:
    """Say which accounts of the decisions the file does not have; none where it has all."""
    if not answer.unknown:
        return []
    shown = [printable(name) for name in answer.unknown[:MAX_UNKNOWN]]
    if len(answer.unknown) > MAX_UNKNOWN:
        shown.append("...")
    return [
        f"Decisions about {_count(len(answer.unknown), 'account')} that this file does not have "
        f"were not used: {', '.join(shown)}."
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
    if counts.get(NOT_LINKED, 0) and not _can_link(answer):
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
        sentences.append(
            f"{_count(capped, 'pair')} reached the highest probability that is possible here, so "
            f"the true one may be higher. {_reason_for_cap(answer)}"
        )
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


def error_sentences(answer: Answer) -> list[str]:
    """Say how often a link like these is wrong, or why this cannot be said."""
    if answer.errors is None:
        return [
            "How often a link is wrong cannot be said for this file. The test needs "
            f"{ENOUGH} accounts with {2 * MIN_POSTS_OF_HALF} posts or more, which are cut into "
            f"halves; here {_number(answer.choice.able).lower()} "
            f"{_has(answer.choice.able)} so many."
        ]
    errors = answer.errors
    tried = (
        f"As a test, we cut {errors.accounts:,} of your accounts into an older and a newer half, "
        "as if these were two accounts."
    )
    hidden = (
        "In a second test the right half was taken away, so that any link would have been wrong: "
        f"{_number(errors.wrong_alone).lower()} of the {errors.accounts:,} "
        f"{_was(errors.wrong_alone)} linked with somebody else."
    )
    share = errors.wrong_share(answer.costs.prior)
    if share is None:
        return [
            f"How often a link is wrong cannot be said for this file. {tried} None of them was "
            f"linked with its own half, so expect that second accounts are missed. {hidden}"
        ]
    most = errors.most_wrong_share(answer.costs.prior)
    wrong = f"about {share * 100:.0f} in 100 such links will be wrong"
    if share < 0.005:
        wrong = "hardly a link will be wrong, as far as this test shows"
    if round(most * 100) > round(share * 100):
        wrong += f"; it may be up to {most * 100:.0f} in 100, since no more accounts were tested"
    result = f"{errors.right:,} of the {errors.accounts:,} {_was(errors.right)} linked with"
    missed = errors.accounts - errors.right
    if missed:
        result += f" their own half, {missed:,} {_was(missed)} missed."
    else:
        result += " their own half."
    return [
        f"{tried} {result} {hidden}",
        f"If {percent(answer.costs.prior)} of the accounts have a second one, {wrong}.",
        "The two halves of an account follow each other in time. Of second accounts that begin "
        "months later, more are missed than in this test.",
    ]


def _was(count):
    if count in (0, 1):
        return "was"
    return "were"


def _has(count):
    if count in (0, 1):
        return "has"
    return "have"


def _number(count):
    """Return a count as the first word of a sentence."""
    if count == 0:
        return "None"
    return f"{count:,}"


def own_calibration_sentence(answer: Answer) -> str:
    """Say on whose posts the probabilities were fitted."""
    if len(answer.choice.fitted):
        return (
            f"The probabilities were fitted on {len(answer.choice.fitted):,} of your own accounts, "
            "each cut in halves. With few accounts they stay close to those that come with the "
            "encoder."
        )
    return (
        "The probabilities were fitted on other people's posts, from English chats and mailing "
        "lists."
    )


def baseline_sentences(answer: Answer) -> list[str]:
    """Compare the encoder with the best TF-IDF on halves of accounts.

    Parameters
    ----------
    answer : Answer
        whose ``compared`` is told

    Returns
    -------
    A sentence in plain words and one with numbers; none where nothing was compared
    """
    if answer.compared.empty:
        return []
    first, best, difference = answer.compared.index
    rows = answer.compared
    verdict = "does as well on these accounts, as far as they can show"
    if rows.low[difference] > 0:
        verdict = "does worse on these accounts"
    elif rows.high[difference] < 0:
        verdict = "does better on these accounts"
    return [
        f"A plain count of words and letters, which anybody can make without training, {verdict}.",
        f"On the halves, the mean of 1 / rank of the right account is {rows.value[first]:.3f} by "
        f"the encoder and {rows.value[best]:.3f} by the count, {best}. The difference is "
        f"{rows.value[difference]:+.3f} ({rows.low[difference]:+.3f} to "
        f"{rows.high[difference]:+.3f}).",
    ]


def next_steps(answer: Answer, file_name: str) -> list[str]:
    """Say what to do with the answer.

    Parameters
    ----------
    answer : Answer
        what was found
    file_name : str
        of the posts
    """
    states = set(answer.pairs.state)
    steps = []
    if LINKED in states:
        steps.append(
            "Read the posts of each linked pair below, first what speaks against it. Before you "
            "act, ask a second person, and ask whoever writes there."
        )
    if LIKELY in states:
        steps.append(
            "Likely pairs are a reason to look, not to act. Look for other traces, or run this "
            "again when these accounts have more posts."
        )
    if states and not states & {LINKED, LIKELY}:
        steps.append("Nothing here is a reason to act.")
        steps += _steps_without_links(answer)
    problems = "; ".join(answer.accounts.problem)
    if problems.strip("; "):
        steps.append("Accounts that cannot be judged are neither suspected nor cleared.")
    if FEW_POSTS in problems or FEW_WORDS in problems:
        steps.append("Run this again when accounts with too few posts or words have more.")
    if UNCHECKED in problems or UNREADABLE in problems:
        steps.append(
            "Have somebody who knows the language read the accounts that the encoder cannot read, "
            "or for whose language no probability was checked."
        )
    if (answer.pairs.state != UNJUDGED).any():
        steps.append(
            "Decide at each pair below, and save the decisions under the last pair. Whoever runs "
            f"the program gives it that file: {PROGRAM} mine {file_name} --decisions "
            "decisions.csv. Accounts of one person are then read as one account, and pairs of two "
            "people do not come back; so say “one person” only if you know it."
        )
    if not answer.shown_names:
        steps.append("Accounts have pseudonyms here; ask again with --names to see their names.")
    return steps


def _steps_without_links(answer):
    """Say what helps where no pair is linked or likely."""
    if (answer.pairs.state == UNJUDGED).all():
        return []
    if not _can_link(answer):
        return [
            "If you know that more of these accounts have a second one than we guess, say so with "
            "the option --prior, for example --prior 0.2, and ask again."
        ]
    return ["If you suspect two accounts, wait until both have more posts, and ask again."]


CARE = [
    "Do not take a second account for an offence: people lose passwords and change addresses.",
    "Do not act on the number alone: a probability is no proof, and some pair is always on top of "
    "a list.",
    "Do not act on a pair that is likely but not linked.",
    "Do not take one topic for one person: people who write about the same things are alike. Do "
    "not take hours of posting for one person either: people of one region share them.",
    "Do not trust the numbers for accounts that several people share, for bots, for translated "
    "posts, or for people who quote much.",
]


def who_was_asked(answer: Answer) -> str:
    """Say which accounts were compared with all others."""
    return (
        f"{_count(len(answer.queries), 'account')} were compared with all "
        f"{answer.compared_accounts:,}: those you named, or those with most posts. Ask about "
        "others with --accounts."
    )


def asked_sentence(answer: Answer) -> str:
    """Say which accounts were compared with which, and what was assumed."""
    compared = answer.compared_accounts
    sentence = f"All {compared:,} accounts were compared with each other."
    if len(answer.queries) < compared:
        sentence = who_was_asked(answer)
    if answer.gallery.beyond:
        sentence += (
            f" Of these, {answer.gallery.beyond:,} were compared by one vector each, which can "
            "miss a pair."
        )
    return (
        f"{sentence} We assume that {percent(answer.costs.prior)} of the accounts have a second "
        f"one; unless you named this share with --prior, {_source_of_guess(answer)}. A link "
        "between two strangers counts as "
        f"{answer.costs.false_accept / answer.costs.miss:g} times as bad as a missed second "
        f"account, so a link needs a probability of {percent(answer.costs.min_probability)}."
    )


def _source_of_guess(answer):
    """Say where the share of accounts with a second one comes from, where nobody names it."""
    if len(answer.queries) < ENOUGH or not answer.gallery.normalised:
        return f"it is always this one for fewer than {ENOUGH} accounts"
    return "it was estimated from the posts of those that were asked about"
