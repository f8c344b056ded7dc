"""Collect all that an answer says, for the page and the files beside it."""

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pandas as pd

from ..core.messages import printable
from .answer_text import (
    answer_sentences,
    asked_sentence,
    headline,
    percent,
    read_sentences,
    same_texts_sentences,
    set_aside_sentence,
    shown_name,
)
from .answers import FEW_POSTS, FEW_WORDS, LIKELY, LINKED, STATES, Answer
from .encoder import ENOUGH
from .gallery import UNJUDGED
from .merging import JOINER
from .pair_evidence import PairEvidence, evidence_sentences, pair_evidence
from .samples import MIN_POSTS, MOST_POSTS
from .set_aside import REASONS, SET_ASIDE, problem_text
from .unjudged import UNCHECKED, UNREADABLE
from .validation import MIN_POSTS_OF_HALF

MAX_SHOWN = 20  # pairs that are shown with their evidence,
MAX_LIKELY_SHOWN = 10  # and so many at most where the last ones are only likely
LEAST_SHOWN = 3  # pairs that are shown even if none is linked or likely
MAX_SAME_TEXTS = 100  # pairs that are listed as having posted the same texts
MAX_UNJUDGED = 200  # accounts that are listed as not judged
MAX_SET_ASIDE = 10_000  # accounts that are listed as set aside for one reason
SAME_TEXTS = "same_texts.csv"  # beside the page
# states of accounts, beside UNJUDGED and SET_ASIDE
COMPARED = "compared"
NOT_ASKED = "not asked about"
ACCOUNT_TABLE_COLUMNS = "account posts state language problem nobody".split()
HIGHEST = "This is the highest probability that is possible here; the true one may be higher."


def shown_pairs(answer: Answer) -> pd.DataFrame:
    """Return the pairs that are shown with their evidence, as rows of ``answer.pairs``."""
    judged = answer.pairs[answer.pairs.state != UNJUDGED]
    linked = int((judged.state == LINKED).sum())
    likely = int((judged.state == LIKELY).sum())
    wanted = max(linked, min(linked + likely, MAX_LIKELY_SHOWN), LEAST_SHOWN)
    return judged.head(min(wanted, MAX_SHOWN))


def answer_record(answer: Answer, file_name: str, encoder: str, progress: Callable = iter) -> dict:
    """Return all that the page says, as a dict for JSON.

    Parameters
    ----------
    answer : Answer
        what was found
    file_name : str
        of the posts
    encoder : str
        its name
    progress : callable
        takes the pairs whose evidence is collected, and yields them
    """
    return {
        "file": printable(file_name),
        "encoder": encoder,
        "read": read_sentences(answer),
        "asked": asked_sentence(answer),
        "headline": headline(answer),
        "sentences": answer_sentences(answer),
        "messages": answer.choice.messages,
        "measured_elsewhere": answer.gallery.encoder.card.get("errors", ""),
        "same_texts": same_texts_record(answer.same_texts, answer.shown_names, SAME_TEXTS),
        **numbers(answer),
        **_pairs(answer, progress),
        **_unjudged(answer),
        "set_aside": set_aside_record(_set_aside(answer), answer.shown_names, MAX_SET_ASIDE),
    }


def same_texts_record(pairs: pd.DataFrame, names: dict[str, str], table: str = "") -> dict:
    """Return what a page says of accounts that posted the same texts.

    Parameters
    ----------
    pairs : DataFrame
        result of :func:`helpers.accounts.same_texts.find_same_texts`
    names : dict
        pseudonym -> name, empty where pseudonyms are shown
    table : str
        name of the file that holds all pairs; "" where there is none
    """
    records = []
    for pair in pairs.head(MAX_SAME_TEXTS).to_dict("records"):
        record = {"texts": pair["texts"]}
        for letter in "ab":
            note = f"{pair[f'posts_{letter}']:,} posts"
            if not pair[f"compared_{letter}"]:
                note += ", not compared"
            record[letter] = shown_name(pair[f"account_{letter}"], names)
            record[f"posts_{letter}"] = pair[f"posts_{letter}"]
            record[f"note_{letter}"] = note
        records.append(record)
    return {
        "sentences": same_texts_sentences(pairs, names),
        "pairs": records,
        "more": len(pairs) - len(records),
        "table": table,
    }


def set_aside_record(
    accounts: pd.DataFrame, names: dict[str, str], most: int | None = None, place: str = ""
) -> list[dict]:
    """Return what a page says of accounts that are set aside, one dict a reason.

    Those with most posts come first.

    Parameters
    ----------
    accounts : DataFrame
        see :mod:`helpers.accounts.set_aside`
    names : dict
        pseudonym -> name, empty where pseudonyms are shown
    most : int, optional
        so many accounts of a reason are listed; by default all
    place : str
        what is said of where the accounts are, such as " of list A"
    """
    shown = [shown_name(name, names) for name in accounts.account]
    accounts = accounts.assign(account=shown)
    accounts = accounts.sort_values(["posts", "account"], ascending=[False, True])
    groups = []
    for reason in REASONS:
        of_reason = accounts[accounts.reason == reason]
        if of_reason.empty:
            continue
        listed = []
        for account in of_reason.head(most or len(of_reason)).itertuples():
            note = account.detail or f"{account.posts:,} posts"
            listed.append({"account": account.account, "note": note})
        group = {"sentence": set_aside_sentence(of_reason, place), "accounts": listed}
        groups.append(group | {"more": len(of_reason) - len(listed)})
    return groups


def _set_aside(answer):
    """Return the accounts that are set aside, but those that are part of a joint account."""
    store = answer.posts.store
    compared = set(answer.posts.names[store.posts_per_author() >= MIN_POSTS])
    joined = [name for name, joint in answer.joint_names.items() if joint in compared]
    set_aside = answer.posts.set_aside
    return set_aside[~set_aside.account.isin(joined)]


def numbers(answer: Answer) -> dict:
    """Return the prior, what follows from it, counts, and how the answer was checked."""
    counts = answer.pairs.state.value_counts()
    problems = "; ".join(answer.accounts.problem)
    costs = answer.costs
    few_queries = len(answer.queries) < ENOUGH or not answer.gallery.normalised
    return {
        "threshold": costs.min_probability,
        "prior": costs.prior,
        "is_prior_estimated": not few_queries,
        "false_link_cost": costs.false_accept / costs.miss,
        "highest_probability": answer.highest_probability,
        "counts": {state: int(counts.get(state, 0)) for state in STATES},
        "link_errors": _link_errors(answer),
        "enough": ENOUGH,
        "posts_of_halves": 2 * MIN_POSTS_OF_HALF,
        "able": int(answer.choice.able),
        "fitted": len(answer.choice.fitted),
        "baseline": _baseline(answer.compared),
        "few_posts_or_words": FEW_POSTS in problems or FEW_WORDS in problems,
        "unread_language": UNCHECKED in problems or UNREADABLE in problems,
        "names_shown": bool(answer.shown_names),
    }


def _link_errors(answer):
    """Return counts of links among halves, and the share of wrong links; None without a test."""
    errors = answer.errors
    if errors is None:
        return None
    shares = {
        "wrong_share": errors.wrong_share(answer.costs.prior),
        "most_wrong_share": errors.most_wrong_share(answer.costs.prior),
    }
    return asdict(errors) | shares


def _baseline(compared):
    """Return the encoder beside the best TF-IDF on halves; None where nothing was compared."""
    if compared.empty:
        return None
    encoder, count, difference = compared.itertuples()
    return {
        "encoder": encoder.value,
        "count": count.value,
        "name": count.Index,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
    }


def _pairs(answer, progress):
    """Return the pairs that are shown, with their evidence, and how many more there are."""
    pairs = []
    with answer.gallery.model.inference():
        for pair in progress(list(shown_pairs(answer).itertuples())):
            evidence = pair_evidence(answer.gallery, pair.account_a, pair.account_b)
            pairs.append(_pair_record(pair, evidence, answer.shown_names))
    worth_reading = int(answer.pairs.state.isin([LINKED, LIKELY]).sum())
    return {"pairs": pairs, "pairs_more": worth_reading - len(pairs)}


def _unjudged(answer):
    """Return the accounts that cannot be judged, of many the first ones, and how many more."""
    unjudged = answer.accounts[answer.accounts.problem != ""]
    listed = []
    for account in unjudged.sort_values("problem", kind="stable").head(MAX_UNJUDGED).itertuples():
        name = shown_name(account.account, answer.shown_names)
        listed.append({"account": name, "posts": int(account.posts), "problem": account.problem})
    return {"unjudged": listed, "unjudged_more": len(unjudged) - len(listed)}


def _pair_record(pair, evidence: PairEvidence, names):
    record = asdict(evidence)
    record["posts_html"] = record.pop("posts")
    sentences = []
    if pair.highest:
        sentences.append(HIGHEST)
    shown = [shown_name(name, names) for name in (pair.account_a, pair.account_b)]
    sentences += evidence_sentences(evidence, shown)
    if evidence.words_of_topic:
        sentences.append(
            f"Features with words of their common topic add {evidence.part_of_topic:+.2f} to the "
            f"score of {evidence.score:.2f}."
        )
    return record | {
        "key_a": _key(pair.account_a, names),
        "key_b": _key(pair.account_b, names),
        "a": shown[0],
        "b": shown[1],
        "state": pair.state,
        "probability": float(pair.probability),
        "probability_text": percent(pair.probability),
        "llr": float(pair.llr),
        "posts_a": int(pair.posts_a),
        "posts_b": int(pair.posts_b),
        "decision": pair.decision,
        "note": pair.note,
        "sentences": sentences,
        "score_sentence": (
            f"The score is {evidence.score:.3f}, the sum of what each system says. The natural "
            f"logarithm of the likelihood ratio is {pair.llr:.2f}, the lower one of both "
            "directions. The probability also depends on how well both accounts fit all others."
        ),
    }


def _key(name, names):
    """Return the name by which a file of decisions names an account, or the first joint one."""
    first = name.split(JOINER)[0]
    return names.get(first, first)


def pairs_table(answer: Answer) -> pd.DataFrame:
    """Return the table of all pairs as it is written to CSV."""
    frame = answer.pairs.copy()
    for column in ("account_a", "account_b"):
        frame[column] = [shown_name(name, answer.shown_names) for name in frame[column]]
    frame["reason"] = [_reason_text(problems, answer.shown_names) for problems in frame.reason]
    return frame


def same_texts_table(answer: Answer) -> pd.DataFrame:
    """Return the table of pairs that posted the same texts as it is written to CSV."""
    frame = answer.same_texts.copy()
    for column in ("account_a", "account_b"):
        frame[column] = [shown_name(name, answer.shown_names) for name in frame[column]]
    return frame


def _reason_text(problems, names):
    """Return why a pair cannot be judged, from the problems of its accounts."""
    return "; ".join(f"{shown_name(name, names)}: {text}" for name, text in problems.items())


def accounts_table(answer: Answer) -> pd.DataFrame:
    """Return the table of all accounts of the file as it is written to CSV.

    First come those of ``answer.accounts``, then those that were only compared with them, then
    those that are set aside.
    """
    posts = answer.posts.store.posts_per_author()
    problem_of = dict(zip(answer.gallery.names, answer.gallery.problems, strict=True))
    names = answer.posts.names
    is_unasked = (posts >= MIN_POSTS) & ~pd.Index(names).isin(answer.accounts.account)
    unasked = pd.DataFrame({"account": names[is_unasked]})
    unasked["posts"] = np.minimum(posts[is_unasked], MOST_POSTS)
    unasked["problem"] = [problem_of.get(name, "") for name in unasked.account]
    judged = answer.accounts.assign(state=COMPARED)
    compared = pd.concat([judged, unasked.assign(state=NOT_ASKED)])
    compared.loc[compared.problem != "", "state"] = UNJUDGED

    set_aside = _set_aside(answer)
    problems = [problem_text(row.reason, row.detail) for row in set_aside.itertuples()]
    set_aside = set_aside.assign(state=SET_ASIDE, problem=problems)
    table = pd.concat([compared, set_aside], ignore_index=True)
    table["account"] = [shown_name(name, answer.shown_names) for name in table.account]
    return table[ACCOUNT_TABLE_COLUMNS]
