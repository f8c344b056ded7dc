"""What people say of accounts: whom they ask about, and decisions about pairs; equal posters.

The file of decisions, ``decisions.csv``, has one decision a row: who decided when that two accounts
are the same person's or two people's, or that this is still open. Nobody is asked again about what
was decided.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..cleaning.authors import pseudonym_key, pseudonymiser
from ..core.artifacts import folder_lock
from ..core.files import check_readable
from ..core.messages import unescape_formula
from ..corpus.posts_table import open_database
from ..corpus.same_texts import pairs_with_same_texts
from ..sources.csv_and_json_lines import csv_rows
from ..tokens.batch import Samples
from .reading import FEWER_QUERIES, FULL_GALLERY, QUERIES, OwnPosts
from .samples import MIN_POSTS
from .unjudged import REASONS

COLUMNS = ("account_a", "account_b", "decision", "who", "when", "note")
NEEDED = COLUMNS[:3]
SAME = "same"
DIFFERENT = "different"
LATER = "later"
DECISIONS = (SAME, DIFFERENT, LATER)
JOINER = " + "  # between the names of accounts that are one


def read_decisions(path: str | Path) -> pd.DataFrame:
    """Read a file of decisions and check that they do not contradict each other.

    Parameters
    ----------
    path : str | Path
        a CSV file with COLUMNS, of which those after NEEDED may be missing; others are ignored

    Returns
    -------
    COLUMNS as text, "" where the file has none; accounts are named as in the file.

    Raises
    ------
    ValueError
        A column is missing, a row is broken, has no account or another decision than DECISIONS, or
        a pair was decided as the same and as different.
    """
    path = Path(path)
    check_readable(path)
    broken_rows = Counter()
    try:
        header, *rows = list(csv_rows(path, broken_rows)) or [[]]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    header = [column.strip().lower() for column in header]
    missing = [column for column in NEEDED if column not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}: a file of decisions has the columns "
            f"{', '.join(COLUMNS)}"
        )
    if broken_rows["broken_row"] or broken_rows["truncated_file"]:
        raise ValueError(f"{path} has a broken row: no decision may be lost, so mend it first")
    frame = pd.DataFrame(rows, columns=header, dtype=object).reindex(columns=COLUMNS, fill_value="")
    for column in COLUMNS:
        frame[column] = [unescape_formula(value.strip()) for value in frame[column]]
    frame["decision"] = [decision.lower() for decision in frame.decision]
    is_empty = (frame == "").all(axis=1)  # a spreadsheet leaves such rows at the end
    frame = frame[~is_empty].reset_index(drop=True)
    for row in frame.itertuples():
        if row.decision not in DECISIONS:
            raise ValueError(
                f"{path}, decision {row.Index + 1}: {row.decision!r} is none of "
                f"{', '.join(DECISIONS)}"
            )
        if not row.account_a or not row.account_b:
            raise ValueError(f"{path}, decision {row.Index + 1}: an account is missing")
    return frame


def accounts_of_one(same: Iterable[tuple]) -> dict:
    """Map each account of some pairs to all accounts of its person, in their order.

    Parameters
    ----------
    same : iterable of tuple
        pairs of accounts that are one person's; a chain of them is one person
    """
    accounts = {}
    for left, right in same:
        members = sorted({*accounts.get(left, [left]), *accounts.get(right, [right])})
        accounts |= dict.fromkeys(members, members)
    return accounts


def check_decisions(listed: pd.DataFrame, decisions: pd.DataFrame, is_one: bool) -> None:
    """Refuse two people who are one by other decisions, perhaps over a chain of accounts.

    Parameters
    ----------
    listed : DataFrame
        result of :func:`listed_decisions`
    decisions : DataFrame
        of which it is the result; an error names accounts as they do
    is_one : bool
        whether both accounts of each pair are of one list

    Raises
    ------
    ValueError
        Where decisions contradict each other.
    """
    of_second = 0 if is_one else 1
    first = [(0, name) for name in listed.account_a]
    second = [(of_second, name) for name in listed.account_b]
    pairs = list(zip(first, second, listed.decision))
    accounts = accounts_of_one(pair[:2] for pair in pairs if pair[2] == SAME)
    for row, (left, right, decision) in zip(listed.index, pairs):
        if decision == DIFFERENT and right in accounts.get(left, [left]):
            given = decisions.loc[row]
            raise ValueError(
                f"the decisions say that {given.account_a} and {given.account_b} are two people, "
                "and that they are one: by another row, over a chain of rows, or because their "
                "names differ only in case or form and are one account here. Change a row, or a "
                "name in the file of posts"
            )


def of_lists(
    decisions: pd.DataFrame | None, names: Sequence[np.ndarray], set_aside: Collection[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Return the decisions about pairs of one list or two, and the accounts that no list has.

    An account that is set aside is returned by the name that it has there, a pseudonym say.

    Parameters
    ----------
    decisions : DataFrame, optional
        result of :func:`read_decisions`, or a table with at least NEEDED
    names : sequence of array
        all accounts of each list
    set_aside : collection of str
        accounts of the files that no list has

    Raises
    ------
    ValueError
        Where decisions contradict each other, see :func:`check_decisions`.
    """
    if decisions is None:
        decisions = pd.DataFrame(columns=COLUMNS)
    decisions = decisions.reindex(columns=COLUMNS, fill_value="")
    listed = listed_decisions(decisions, names[0], names[-1])
    check_decisions(listed, decisions, len(names) == 1)
    everybody = {*names[0], *names[-1]}
    accounts = list(dict.fromkeys([*decisions.account_a, *decisions.account_b]))
    aside = set(set_aside)
    unknown = []
    for account, name in zip(accounts, as_listed(accounts, everybody | aside)):
        if name not in everybody:
            unknown.append(name if name in aside else account)
    return listed, unknown


def listed_decisions(
    decisions: pd.DataFrame, names_a: Sequence[str], names_b: Sequence[str]
) -> pd.DataFrame:
    """Return the decisions about pairs of two lists, whose accounts are named as these name them.

    A decision says first the account of list A. Where this fits no pair of the lists, but the
    reverse does, it is read in reverse.

    Parameters
    ----------
    decisions : DataFrame
        result of :func:`read_decisions`
    names_a, names_b : sequence of str
        all accounts of both lists; the same ones for one list
    """
    sides = [decisions.account_a, decisions.account_b]
    frames = []
    for first, second in (sides, sides[::-1]):
        frame = decisions.assign(
            account_a=as_listed(first, names_a), account_b=as_listed(second, names_b)
        )
        is_pair = frame.account_a.isin(list(names_a)) & frame.account_b.isin(list(names_b))
        frames.append(frame[is_pair])
    listed = pd.concat(frames)
    return listed[~listed.index.duplicated()].sort_index()


def merge_accounts(posts: OwnPosts, decisions: pd.DataFrame) -> tuple[OwnPosts, dict[str, str]]:
    """Join accounts of one person; their posts are then in the order of their times.

    Parameters
    ----------
    posts : OwnPosts
        all accounts
    decisions : DataFrame
        result of :func:`listed_decisions`; a chain of pairs that are the same is one account

    Returns
    -------
    The accounts, and for each account that was joined its name -> the name of the joint account.
    """
    same = decisions[decisions.decision == SAME]
    if same.empty:
        return posts, {}
    accounts = accounts_of_one(zip(same.account_a, same.account_b))
    joint_names = {name: JOINER.join(members) for name, members in accounts.items()}
    person, names = pd.factorize(pd.Series(posts.names).replace(joint_names))
    store = posts.store
    person_of_post = np.repeat(person, store.posts_per_author())
    order = np.lexsort([store.time, person_of_post])  # by person, then by time
    offsets = np.append(0, np.bincount(person_of_post, minlength=len(names)).cumsum())
    joined = Samples.of_lists(store, order, offsets, np.arange(len(names)))
    return replace(posts, store=joined.store, names=np.asarray(names, object)), joint_names


def find_same_texts(lists: Sequence[OwnPosts], decisions: pd.DataFrame | None) -> pd.DataFrame:
    """Return the pairs of accounts that posted the same texts, and of which nobody decided.

    Copies are dropped when posts are read, and with them accounts that posted nothing else. So
    these pairs are looked for in what was read, before anything else is computed.

    Parameters
    ----------
    lists : sequence of OwnPosts
        all accounts of a file; or of two files, and pairs are then those of an account of each
    decisions : DataFrame, optional
        result of :func:`read_decisions`

    Returns
    -------
    Columns ``account_a``, ``account_b``, ``texts``, the number of different texts that both posted,
    ``posts_a``, ``posts_b``
    """
    paths = [posts.texts_path for posts in lists]
    work = paths[0].with_suffix(".work")
    with folder_lock(paths[0].parent), open_database(work) as connection:
        pairs = pairs_with_same_texts(connection, *paths)
    if decisions is None:
        return pairs
    names = {*lists[0].names, *lists[-1].names, *pairs.account_a, *pairs.account_b}
    settled = listed_decisions(decisions[decisions.decision != LATER], names, names)
    decided = set(map(frozenset, zip(settled.account_a, settled.account_b)))
    accounts = zip(pairs.account_a, pairs.account_b)
    is_open = [frozenset(pair) not in decided for pair in accounts]
    return pairs[np.array(is_open, bool)].reset_index(drop=True)


def choose_queries(posts: OwnPosts, accounts: list[str]) -> list[str]:
    """Return the names of the accounts to ask about, as ``posts.names`` has them.

    Parameters
    ----------
    posts : OwnPosts
        all accounts.
    accounts : list[str]
        names or pseudonyms of accounts. If empty, the QUERIES accounts with most posts are chosen,
        or FEWER_QUERIES where there are more than FULL_GALLERY accounts.

    Raises
    ------
    ValueError
        Where an account is not there or has fewer than MIN_POSTS posts. The message has the first
        such account as ``accounts`` names it.
    """
    count = posts.store.posts_per_author()
    able = np.flatnonzero(count >= MIN_POSTS)
    if not accounts:
        max_queries = QUERIES if len(able) <= FULL_GALLERY else FEWER_QUERIES
        largest = np.argsort(-count[able], kind="stable")[:max_queries]
        return list(posts.names[able[np.sort(largest)]])
    names = as_listed(accounts, posts.names)
    known = set(posts.names[able])
    missing = sorted(pair for pair in set(zip(accounts, names)) if pair[1] not in known)
    if missing:
        given, name = missing[0]
        reasons = posts.set_aside.reason[posts.set_aside.account.isin([given, name])]
        raise ValueError(
            f"{len(missing)} of the accounts asked about are not in the file, or are set aside; "
            f"the first is {', '.join([given, *reasons.map(REASONS)])}"
        )
    return list(dict.fromkeys(names))


def pseudonym_of(name: str) -> str:
    """Return the pseudonym that this machine's key makes of a name, whatever it looks like."""
    return pseudonymiser(pseudonym_key())(name)


def as_listed(accounts: Iterable[str], names: Iterable[str]) -> np.ndarray:
    """Return accounts that a person named as a list names them.

    A list has pseudonyms, or names where these were kept; a person may write either. What is a name
    in the list's file is taken for a name, even if it looks like a pseudonym. An account that the
    list lacks becomes the pseudonym of its name.

    Parameters
    ----------
    accounts : iterable of str
        names or pseudonyms, as a person named them.
    names : iterable of str
        all accounts of the list.
    """
    name_of = {pseudonym_of(name): name for name in names} | {name: name for name in names}
    listed_accounts = []
    for account in accounts:
        pseudonym = pseudonym_of(account)
        listed_accounts.append(name_of.get(pseudonym, name_of.get(account, pseudonym)))
    return np.array(listed_accounts, object)
