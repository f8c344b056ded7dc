"""Write an answer as one page to read, print and send, and as tables beside it.

A record holds all that is said, as JSON: numbers, names to show, posts as escaped HTML, and the
sentences that a template makes of them for page and terminal. The page needs no network. What a
record holds is escaped in it. One script saves decisions; a content security policy allows it by
its hash, and forbids loading anything.
"""

import base64
import hashlib
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape

from ..core.artifacts import atomic_write, make_folder, write_json
from ..core.messages import printable, without_formulas
from ..core.paths import PROGRAM
from ..core.progress import progress_bar
from ..corpus.loss_lines import (
    DATA_CARD,
    DROPPED,
    MAX_SILENT_SHARE,
    PLACEHOLDER_AUTHOR,
)
from .answers import LIKELY, LINKED, LISTS, MIN_LIKELY, NOT_LINKED, SIDES, STATES, Answer
from .decisions import JOINER
from .encoder import ENOUGH
from .gallery import UNJUDGED
from .reading import NO_HOURS, OwnPosts
from .samples import MAX_TOKENS, MIN_POSTS, MOST_POSTS
from .signs import evidence
from .unjudged import REASONS, SET_ASIDE, UNSURE
from .validation import MIN_POSTS_OF_HALF

NOTE = "note_"  # begins the names of a data card's counts of odd rows
MAX_SHOWN = 20  # linked and likely pairs that are shown with their evidence
LEAST_RIVAL = 0.05  # probability of another pair of one account that is named with a pair
MAX_RIVALS = 2
LEAST_SHOWN = 3  # pairs that are shown even if none is linked or likely
PROVING_ACCOUNTS = 100  # with fewer accounts, a sentence says that they prove little
MAX_CALIBRATION_LOSS = 0.2  # a larger loss, in bits, gives a warning
FOLDER = Path(__file__).parent
PAGE = "report.html"
TABLES = {  # files beside the page
    "pairs": "pairs.csv",
    "accounts": "accounts.csv",
    "same_texts": "same_texts.csv",
    "record": "answers.json",
}
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "script-src 'sha256-{}'"
)
# states of accounts, beside UNJUDGED and SET_ASIDE
COMPARED = "compared"
NOT_ASKED = "not asked about"
ACCOUNT_COLUMNS = "account posts state language problem nobody".split()
# parts of a record that are sentences
TEXTS = ("headline", "read", "asked", "assumed", "fitted_on", "judgement", "sentences")


def percent(probability: float, limit: float = 1.0) -> str:
    """Return a probability as text; none is rounded to certainty, impossibility or a limit.

    Parameters
    ----------
    probability : float
        between 0 and 1, or NaN for none
    limit : float
        a lower probability that would have the same text is "just under" it
    """
    if np.isnan(probability):
        return "none"
    if probability > 0.995:
        return "over 99%"
    if probability < 0.005:
        return "under 1%"
    text = f"{probability:.0%}"
    if probability < limit and text == f"{limit:.0%}":
        return f"just under {text}"
    return text


@cache
def templates() -> Environment:
    """Return the templates; what they show of a record is escaped in HTML."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=select_autoescape(["html"])
    )
    environment.filters["percent"] = percent
    environment.globals |= {
        "enough": ENOUGH,
        "max_tokens": MAX_TOKENS,
        "min_likely": MIN_LIKELY,
        "min_posts": MIN_POSTS,
        "most_posts": MOST_POSTS,
        "no_hours": NO_HOURS,
        "posts_of_halves": 2 * MIN_POSTS_OF_HALF,
        "proving_accounts": PROVING_ACCOUNTS,
        "max_calibration_loss": MAX_CALIBRATION_LOSS,
        "program": PROGRAM,
        "tables": TABLES,
        "unsure": UNSURE,
    }
    return environment


def sentences(part: str, record: dict) -> list[str]:
    """Return what is said in one part of an answer.

    Parameters
    ----------
    part : str
        a macro of ``sentences.txt``
    record : dict
        what it takes: a record, or a part of one
    """
    text = getattr(templates().get_template("sentences.txt").module, part)(record)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line]


def render(record: dict) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    record : dict
        result of :func:`answer_record`
    """
    script = (FOLDER / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    page = templates().get_template("page.html")
    style = (FOLDER / "page.css").read_text("utf-8")
    made = f"{datetime.now(UTC):%Y-%m-%d}"
    return page.render(record, made=made, policy=POLICY.format(digest), script=script, style=style)


def printable_names(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of accounts, or of pairs of them, whose names cannot harm a terminal.

    Parameters
    ----------
    table : DataFrame
        has a column ``account``, or ``account_a`` and ``account_b``
    """
    columns = table.columns.intersection(["account", "reason", *SIDES])
    return table.assign(**{column: table[column].map(printable) for column in columns})


def shown_pairs(answer: Answer) -> pd.DataFrame:
    """Return the pairs that are shown with their evidence; of two lists the best one of each.

    Parameters
    ----------
    answer : Answer
        what was found
    """
    judged = answer.pairs[answer.pairs.state != UNJUDGED]
    if not answer.is_one:
        judged = judged.drop_duplicates("account_a").drop_duplicates("account_b")
    listed = int(judged.state.isin([LINKED, LIKELY]).sum())
    return judged.head(min(max(listed, LEAST_SHOWN), MAX_SHOWN))


def answer_record(answer: Answer, files: list[str], encoder: str) -> dict:
    """Return all that the page says, as a dict for JSON.

    Parameters
    ----------
    answer : Answer
        what was found
    files : list of str
        names of the lists
    encoder : str
        its name
    """
    files = [printable(name) for name in files]
    record = numbers(answer) | {
        "files": files,
        "encoder": encoder,
        "lists": [_list_record(answer, *of_list) for of_list in zip(LISTS, files, answer.posts)],
        "same_texts": same_texts_record(answer.same_texts),
        "set_aside": set_aside_record(_set_aside(answer)),
        "pairs": _pair_records(answer),
    }
    return record | said(record)


def said(record: dict) -> dict:
    """Return the parts of a record that are sentences, made of its numbers.

    Parameters
    ----------
    record : dict
        all other parts
    """
    return {part: sentences(part, record) for part in TEXTS}


def numbers(answer: Answer) -> dict:
    """Return shares, counts, and how the answer was checked.

    Parameters
    ----------
    answer : Answer
        what was found
    """
    pairs = answer.pairs
    counts = pairs.state.value_counts()
    linked = pairs.probability[pairs.state == LINKED]
    judged = pairs.probability[pairs.state != UNJUDGED]
    unlinked = pairs.probability[pairs.state == NOT_LINKED]
    unjudged = answer.accounts[answer.accounts.problem != ""]
    listed = printable_names(unjudged[["account", "posts", "problem"]])
    asked = len(answer.queries) if answer.gallery.beyond else len(answer.gallery)
    costs = answer.costs
    return {
        "one_list": answer.is_one,
        "threshold": costs.min_probability,
        "prior": costs.prior,
        "is_prior_estimated": asked >= ENOUGH,
        "is_share_given": answer.is_share_given,
        "false_link_cost": costs.false_accept / costs.miss,
        "highest_probability": answer.highest_probability,
        "supported_by": answer.gallery.use.accounts,
        "counts": {state: int(counts.get(state, 0)) for state in STATES},
        "lowest_linked": float(linked.min()) if len(linked) else None,
        "next": unlinked.nlargest(1).tolist(),
        "likeliest": float(judged.max()) if len(judged) else None,
        "expected_wrong": float((1 - linked).sum()),
        "asked_accounts": len(answer.queries),
        "compared_accounts": answer.compared_accounts,
        "beyond": answer.gallery.beyond,
        "joined": len(answer.joint_names),
        "unknown_accounts": [printable(name) for name in answer.unknown],
        "fitted": answer.choice.fitted,
        "fitted_list": answer.fitted_list,
        "measured_elsewhere": answer.gallery.encoder.card.get("errors", ""),
        "able": answer.choice.able,
        "judged": answer.choice.metrics.iloc[:, -1:].to_dict(),
        "link_errors": answer.errors,
        "unjudged": listed.sort_values("problem", kind="stable").to_dict("records"),
        "unjudged_kinds": Counter(unjudged.problem.str.split("; ").explode()).most_common(),
    }


def _list_record(answer, letter, file, posts):
    """Return what was read of one list."""
    languages = answer.accounts.language[answer.accounts.list == letter]
    return read_record(posts) | {
        "letter": letter,
        "file": file,
        "compared": len(answer.galleries[LISTS.index(letter)]),
        "languages": Counter(languages).most_common(),
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
        "partly_read": printable_names(posts.partly_read).to_dict("records"),
        "many_shared": bool(shared > MAX_SILENT_SHARE * card["posts"]),
        "in_both": card.get("posts_in_both", 0),
        "has_times": card["columns"]["time"] is not None,
        "has_hours": posts.hours,
        "has_pseudonyms": card["pseudonymise"],
    }


def same_texts_record(pairs: pd.DataFrame) -> dict:
    """Return what a page says of accounts that posted the same texts.

    Parameters
    ----------
    pairs : DataFrame
        result of :func:`helpers.accounts.decisions.find_same_texts`
    """
    listed = printable_names(pairs).rename(columns={"account_a": "a", "account_b": "b"})
    record = {"pairs": listed.to_dict("records")}
    return record | {"sentences": sentences("same_texts", record)}


def set_aside_record(accounts: pd.DataFrame) -> list[dict]:
    """Return what a page says of accounts that are set aside, one dict a list and reason.

    Those with most posts come first.

    Parameters
    ----------
    accounts : DataFrame
        see :mod:`helpers.accounts.unjudged`, and the column ``list``, "" for one list
    """
    accounts = printable_names(accounts)
    accounts["reason"] = pd.Categorical(accounts.reason, list(REASONS))
    accounts = accounts.sort_values(["posts", "account"], ascending=[False, True])
    groups = []
    for (letter, reason), of_reason in accounts.groupby(["list", "reason"], observed=True):
        group = {
            "list": letter,
            "reason": REASONS[reason],
            "accounts": of_reason[["account", "posts", "detail"]].to_dict("records"),
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


def _pair_records(answer):
    """Return the pairs that are shown, with their evidence."""
    pairs = shown_pairs(answer).to_dict("records")
    records = []
    for record in progress_bar(pairs, desc="evidence", unit="pair", delay=2):
        names = {"a": record.pop("account_a"), "b": record.pop("account_b")}
        record |= evidence(answer, tuple(names.values()))
        for letter, name in names.items():
            # a file of decisions names the first account of a joint one
            record[f"key_{letter}"] = name.split(JOINER)[0]
            record[letter] = printable(name)
        record["rivals"] = _rivals(answer.pairs, list(names.values()))
        records.append(record)
    return records


def _rivals(pairs, accounts):
    """Return the likeliest other pairs of two accounts, LEAST_RIVAL probable at least."""
    is_of_one = pairs[SIDES].isin(accounts).sum(axis=1) == 1
    rivals = pairs[is_of_one & (pairs.probability >= LEAST_RIVAL)].head(MAX_RIVALS)
    shown = printable_names(rivals)[[*SIDES, "probability"]]
    return shown.set_axis(["a", "b", "probability"], axis=1).to_dict("records")


def accounts_table(answer: Answer) -> pd.DataFrame:
    """Return the table of all accounts as it is written to CSV; of two lists it has ``list``.

    First come those of ``answer.accounts``, then those that were only compared with them, then
    those that are set aside.
    """
    names = answer.posts[0].names
    posts = answer.posts[0].store.posts_per_author()
    unasked = pd.DataFrame({"account": names, "posts": np.minimum(posts, MOST_POSTS)})
    unasked = unasked[(posts >= MIN_POSTS) & ~unasked.account.isin(answer.accounts.account)]
    unasked = unasked.assign(problem="", state=NOT_ASKED)
    compared = pd.concat([answer.accounts.assign(state=COMPARED), unasked])
    compared.loc[compared.problem != "", "state"] = UNJUDGED

    set_aside = _set_aside(answer)
    reasons = set_aside.reason.map(REASONS).str.removeprefix("with ")
    details = (" (" + set_aside.detail + ")").where(set_aside.detail != "", "")
    set_aside = set_aside.assign(state=SET_ASIDE, problem=reasons + details)
    table = pd.concat([compared, set_aside], ignore_index=True)
    columns = ACCOUNT_COLUMNS if answer.is_one else ["list", *ACCOUNT_COLUMNS]
    return printable_names(table)[columns]


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
        "pairs": printable_names(answer.pairs),
        "accounts": accounts_table(answer),
        "same_texts": printable_names(answer.same_texts),
    }
    for name, table in tables.items():
        with atomic_write(folder / TABLES[name]) as partial:
            without_formulas(table).to_csv(partial, index=False, float_format="%.6f")
    write_json(folder / TABLES["record"], record)
    with atomic_write(folder / PAGE) as partial:
        partial.write_text(render(record), "utf-8")
    return folder / PAGE
