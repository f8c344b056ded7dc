"""Write an answer as one page to read, print and send, and as tables beside it.

A record holds all that is said, as JSON: numbers, names to show, posts as escaped HTML, and the
sentences that :mod:`helpers.accounts.templates` makes of them.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.artifacts import atomic_write, folder_lock, make_folder, write_json
from ..core.escaping import without_formulas
from ..core.messages import printable
from ..core.paths import Run
from ..corpus.loss_lines import (
    DATA_CARD,
    DROPPED,
    MAX_SILENT_SHARE,
    NAME_FORMS,
    PLACEHOLDER_AUTHOR,
)
from .decisions import JOINER
from .encoder import ENOUGH
from .evidence import pair_evidence
from .gallery import UNJUDGED
from .match import (
    FEW_POSTS,
    FEW_WORDS,
    LIKELY,
    LINKED,
    MIN_POSTS_TO_JUDGE,
    STATES,
    Answer,
)
from .reading import OwnPosts
from .samples import MIN_POSTS, MOST_POSTS
from .templates import TABLES, percent, render, sentences
from .two_lists import LISTS
from .unjudged import REASONS, SET_ASIDE, UNCHECKED, UNREADABLE, WRITES
from .validation import MIN_POSTS_OF_HALF

NOTE = "note_"  # begins the names of a data card's counts of odd rows
MAX_SHOWN = 20  # pairs that are shown with their evidence,
MAX_LIKELY_SHOWN = 10  # and so many at most where the last ones are only likely
LEAST_SHOWN = 3  # pairs that are shown even if none is linked or likely
MAX_SAME_TEXTS = 100  # pairs that are listed as having posted the same texts
MAX_UNJUDGED = 200  # accounts that are listed as not judged
MAX_SET_ASIDE = 10_000  # accounts that are listed as set aside for one reason
PAGE = "report.html"
# states of accounts, beside UNJUDGED and SET_ASIDE
COMPARED = "compared"
NOT_ASKED = "not asked about"
ACCOUNT_COLUMNS = "account posts state language problem nobody".split()
LINK_COLUMNS = ["account_a", "account_b", "probability"]
# parts of a record that are sentences
TEXTS = ("read", "asked", "assumed", "fitted_on", "sentences", "unknown", "decided")


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


def with_shown_names(table: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """Return a table whose columns of accounts have the names to show.

    Parameters
    ----------
    table : DataFrame
        has a column ``account``, or ``account_a`` and ``account_b``
    names : dict
        pseudonym -> name, empty where pseudonyms are shown
    """
    columns = table.columns.intersection(["account", "account_a", "account_b"])
    shown = {column: [shown_name(name, names) for name in table[column]] for column in columns}
    return table.assign(**shown)


def shown_pairs(answer: Answer) -> pd.DataFrame:
    """Return the pairs that are shown with their evidence; of two lists the best one of each.

    Parameters
    ----------
    answer : Answer
        what was found; known pairs are left out
    """
    judged = answer.new_pairs[answer.new_pairs.state != UNJUDGED]
    if not answer.is_one:
        judged = judged.drop_duplicates("account_a").drop_duplicates("account_b")
    linked = int((judged.state == LINKED).sum())
    likely = int((judged.state == LIKELY).sum())
    wanted = max(linked, min(linked + likely, MAX_LIKELY_SHOWN), LEAST_SHOWN)
    return judged.head(min(wanted, MAX_SHOWN))


def answer_record(
    answer: Answer, files: list[str], encoder: str, progress: Callable = iter
) -> dict:
    """Return all that the page says, as a dict for JSON.

    Parameters
    ----------
    answer : Answer
        what was found
    files : list of str
        names of the lists
    encoder : str
        its name
    progress : callable
        takes the pairs whose evidence is collected, and yields them
    """
    names = answer.shown_names
    files = [printable(name) for name in files]
    pairs = _pair_records(answer, progress)
    worth_reading = int(answer.new_pairs.state.isin([LINKED, LIKELY]).sum())
    record = numbers(answer) | {
        "files": files,
        "encoder": encoder,
        "lists": [_list_record(answer, *of_list) for of_list in zip(LISTS, files, answer.posts)],
        "same_texts": same_texts_record(answer.same_texts, names),
        "set_aside": set_aside_record(_set_aside(answer), names, MAX_SET_ASIDE),
        "pairs": pairs,
        "pairs_more": worth_reading - len(pairs),
    }
    return record | said(record)


def said(record: dict) -> dict:
    """Return the parts of a record that are sentences, made of its numbers.

    Parameters
    ----------
    record : dict
        all other parts
    """
    (headline,) = sentences("headline", record)
    return {part: sentences(part, record) for part in TEXTS} | {"headline": headline}


def numbers(answer: Answer) -> dict:
    """Return shares, counts, and how the answer was checked.

    Parameters
    ----------
    answer : Answer
        what was found
    """
    pairs = answer.new_pairs
    counts = pairs.state.value_counts()
    linked = pairs.probability[pairs.state == LINKED]
    judged = pairs.probability[pairs.state != UNJUDGED]
    unjudged = answer.accounts[answer.accounts.problem != ""]
    problems = "; ".join(unjudged.problem)
    asked = len(answer.queries) if answer.gallery.beyond else len(answer.gallery)
    costs = answer.costs
    record = {
        "one_list": answer.is_one,
        "names_shown": bool(answer.shown_names),
        "threshold": costs.min_probability,
        "prior": answer.prior,
        "is_prior_estimated": asked >= ENOUGH,
        "false_link_cost": costs.false_accept / costs.miss,
        "highest_probability": answer.highest_probability,
        "supported_by": answer.supported_by,
        "counts": {state: int(counts.get(state, 0)) for state in STATES},
        "lowest_linked": float(linked.min()) if len(linked) else None,
        "likeliest": float(judged.max()) if len(judged) else None,
        "expected_wrong": float((1 - linked).sum()),
        "capped": int((pairs.highest & pairs.state.isin([LINKED, LIKELY])).sum()),
        "asked_accounts": len(answer.queries),
        "compared_accounts": answer.compared_accounts,
        "beyond": answer.gallery.beyond,
        "joined": len(answer.joint_names),
        "joint": len(set(answer.joint_names.values())),
        "decisions": answer.decisions.decision.value_counts().to_dict(),
        "unheeded": answer.unheeded,
        "unknown_accounts": [printable(name) for name in answer.unknown],
        "enough": ENOUGH,
        "posts_of_halves": 2 * MIN_POSTS_OF_HALF,
        "fitted": answer.fitted,
        "fitted_list": answer.fitted_list,
        "few_posts_or_words": FEW_POSTS in problems or FEW_WORDS in problems,
        "unread_language": UNCHECKED in problems or UNREADABLE in problems,
        "measured_elsewhere": answer.gallery.encoder.card.get("errors", ""),
        "able": 0,
        "messages": [],
        "link_errors": None,
        "baseline": answer.compared.reset_index(names="system").to_dict("records"),
    }
    if answer.choice is not None:
        record |= {"able": answer.choice.able, "messages": answer.choice.messages}
    if answer.errors is not None:
        record["link_errors"] = asdict(answer.errors) | {
            "wrong_share": answer.errors.wrong_share(answer.prior),
            "most_wrong_share": answer.errors.most_wrong_share(answer.prior),
        }
    return record | _unjudged(unjudged, answer.shown_names)


def _unjudged(unjudged, names):
    """Return the accounts that cannot be judged, of many the first ones, and all their problems."""
    problems = unjudged.problem.str.split("; ").explode()
    kinds = Counter(_kind_of_problem(problem) for problem in problems)
    listed = with_shown_names(unjudged, names).sort_values("problem", kind="stable")
    listed = listed.head(MAX_UNJUDGED)[["account", "posts", "problem"]]
    return {
        "unjudged": listed.to_dict("records"),
        "unjudged_more": len(unjudged) - len(listed),
        "unjudged_kinds": kinds.most_common(),
    }


def _kind_of_problem(problem):
    """Return what a problem is, without its numbers."""
    if FEW_POSTS in problem:
        return f"with fewer than {MIN_POSTS_TO_JUDGE} posts"
    if UNREADABLE in problem:
        return f"in {UNREADABLE}"
    if problem.startswith(WRITES):
        return problem.replace(WRITES, "that write", 1)
    return f"with {problem}"


def _list_record(answer, letter, file, posts):
    """Return what was read of one list, and who of it has no partner."""
    accounts = answer.accounts[answer.accounts.list == letter]
    nobody = accounts.nobody.dropna()
    return read_record(posts) | {
        "letter": letter,
        "file": file,
        "compared": len(answer.galleries[LISTS.index(letter)]),
        "languages": Counter(accounts.language).most_common(),
        "matched": len(nobody),
        "unlinked": len(nobody) - int((answer.new_pairs.state == LINKED).sum()),
        "alone": int((nobody > 0.5).sum()),
    }


def read_record(posts: OwnPosts) -> dict:
    """Return what was read of a file, which rows were dropped, and what is odd about others.

    The rows are told in the words of the data card.

    Parameters
    ----------
    posts : OwnPosts
        what was read
    """
    card = posts.card
    examples = {PLACEHOLDER_AUTHOR: " ({placeholder_names})"}
    if "name_forms" in card:
        examples[NAME_FORMS] = ", such as {name_forms}"
    meaning = pd.read_csv(DATA_CARD, index_col="key").meaning
    rows = {DROPPED: [], NOTE: []}
    for name, value in card.items():
        start = name.split("_")[0] + "_"
        if start in rows and value:
            text = meaning.get(name, name.removeprefix(start).replace("_", " "))
            text += examples.get(name, "").format_map(card)
            rows[start].append(printable(f"{value:,} {text}"))
    shared = card["posts_of_shared_passages"]
    return {
        "rows_read": card["rows_read"],
        "posts": card["posts"],
        "accounts": card["accounts"],
        "dropped": rows[DROPPED],
        "notes": rows[NOTE],
        "shared": shared,
        "many_shared": bool(shared > MAX_SILENT_SHARE * card["posts"]),
        "in_both": card.get("posts_in_both", 0),
        "has_times": card["columns"]["time"] is not None,
        "has_hours": posts.hours,
    }


def same_texts_record(pairs: pd.DataFrame, names: dict[str, str]) -> dict:
    """Return what a page says of accounts that posted the same texts.

    Parameters
    ----------
    pairs : DataFrame
        result of :func:`helpers.accounts.decisions.find_same_texts`
    names : dict
        pseudonym -> name, empty where pseudonyms are shown
    """
    listed = with_shown_names(pairs.head(MAX_SAME_TEXTS), names)
    listed = listed.rename(columns={"account_a": "a", "account_b": "b"})
    record = {
        "pairs": listed.to_dict("records"),
        "number": len(pairs),
        "more": len(pairs) - len(listed),
        "all_compared": bool(pairs.filter(like="compared").all(axis=None)),
    }
    return record | {"sentences": sentences("same_texts", record)}


def set_aside_record(
    accounts: pd.DataFrame, names: dict[str, str], most: int | None = None
) -> list[dict]:
    """Return what a page says of accounts that are set aside, one dict a list and reason.

    Those with most posts come first.

    Parameters
    ----------
    accounts : DataFrame
        see :mod:`helpers.accounts.unjudged`, and the column ``list``, "" for one list
    names : dict
        pseudonym -> name, empty where pseudonyms are shown
    most : int, optional
        so many accounts of a reason are listed; by default all
    """
    accounts = with_shown_names(accounts, names)
    accounts["reason"] = pd.Categorical(accounts.reason, list(REASONS))
    accounts = accounts.sort_values(["posts", "account"], ascending=[False, True])
    groups = []
    for (letter, reason), of_reason in accounts.groupby(["list", "reason"], observed=True):
        listed = of_reason.head(most or len(of_reason))
        group = {
            "list": letter,
            "reason": REASONS[reason],
            "number": len(of_reason),
            "accounts": listed[["account", "posts", "detail"]].to_dict("records"),
            "more": len(of_reason) - len(listed),
        }
        groups.append(group | {"sentence": sentences("set_aside", group)[0]})
    return groups


def _set_aside(answer):
    """Return the accounts that are set aside, but those that are part of a joint account."""
    frames = []
    for letter, posts in zip(LISTS, answer.posts):
        compared = posts.names[posts.store.posts_per_author() >= MIN_POSTS]
        joined = [name for name, joint in answer.joint_names.items() if joint in compared]
        set_aside = posts.set_aside[~posts.set_aside.account.isin(joined)]
        frames.append(set_aside.assign(list="" if answer.is_one else letter))
    return pd.concat(frames)


def _pair_records(answer, progress):
    """Return the pairs that are shown, with their evidence."""
    records = []
    with answer.gallery.model.inference(), answer.galleries[-1].model.inference():
        for record in progress(shown_pairs(answer).to_dict("records")):
            names = {"a": record.pop("account_a"), "b": record.pop("account_b")}
            record |= pair_evidence(answer.galleries, *names.values())
            record["probability_text"] = percent(record["probability"])
            for letter, name in names.items():
                # a file of decisions names the first account of a joint one
                first = name.split(JOINER)[0]
                record[f"key_{letter}"] = answer.shown_names.get(first, first)
                record[letter] = shown_name(name, answer.shown_names)
            records.append(record)
    return records


def pairs_table(answer: Answer) -> pd.DataFrame:
    """Return the table of all pairs as it is written to CSV."""
    names = answer.shown_names
    reasons = []
    for problems in answer.pairs.reason:
        of_pair = [f"{shown_name(name, names)}: {problem}" for name, problem in problems.items()]
        reasons.append("; ".join(of_pair))
    return with_shown_names(answer.pairs, names).assign(reason=reasons)


def accounts_table(answer: Answer) -> pd.DataFrame:
    """Return the table of all accounts as it is written to CSV; of two lists it has ``list``.

    First come those of ``answer.accounts``, then those that were only compared with them, then
    those that are set aside.
    """
    names = answer.posts[0].names
    posts = answer.posts[0].store.posts_per_author()
    unasked = pd.DataFrame({"account": names, "posts": np.minimum(posts, MOST_POSTS)})
    unasked = unasked[(posts >= MIN_POSTS) & ~unasked.account.isin(answer.accounts.account)]
    problem_of = dict(zip(answer.gallery.names, answer.gallery.problems))
    problems = [problem_of.get(name, "") for name in unasked.account]
    unasked = unasked.assign(problem=problems, state=NOT_ASKED)
    compared = pd.concat([answer.accounts.assign(state=COMPARED), unasked])
    compared.loc[compared.problem != "", "state"] = UNJUDGED

    set_aside = _set_aside(answer)
    reasons = set_aside.reason.map(REASONS).str.removeprefix("with ")
    details = (" (" + set_aside.detail + ")").where(set_aside.detail != "", "")
    set_aside = set_aside.assign(state=SET_ASIDE, problem=reasons + details)
    table = pd.concat([compared, set_aside], ignore_index=True)
    columns = ACCOUNT_COLUMNS if answer.is_one else ["list", *ACCOUNT_COLUMNS]
    return with_shown_names(table, answer.shown_names)[columns]


def write_page(answer: Answer, record: dict, folder: Path) -> Path:
    """Write the page, its record and its tables to a folder, each whole or not at all.

    Parameters
    ----------
    answer : Answer
        what was found
    record : dict
        result of :func:`answer_record`
    folder : Path
        of the run; files of an earlier answer are replaced

    Returns
    -------
    The path of the page
    """
    make_folder(folder)
    tables = {
        "pairs": pairs_table(answer),
        "accounts": accounts_table(answer),
        "same_texts": with_shown_names(answer.same_texts, answer.shown_names),
    }
    for name, table in tables.items():
        with atomic_write(folder / TABLES[name]) as partial:
            without_formulas(table).to_csv(partial, index=False, float_format="%.6f")
    write_json(folder / TABLES["record"], record)
    with atomic_write(folder / PAGE) as partial:
        partial.write_text(render(record), "utf-8")
    return folder / PAGE


def log_answer(run: Run, asked: list[str], links: pd.DataFrame) -> None:
    """Add a line to ``asked.jsonl``: who was asked about, when, and what was linked.

    Parameters
    ----------
    run : Run
        the run in whose folder the file is
    asked : list of str
        names of the accounts that were asked about
    links : DataFrame
        LINK_COLUMNS of the pairs that are linked
    """
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked": asked,
        "linked": links[LINK_COLUMNS].to_dict("records"),
    }
    with folder_lock(run.folder):
        path = run.folder / "asked.jsonl"
        path.touch(0o600)
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
