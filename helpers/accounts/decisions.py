"""What people say of accounts: whom they ask about, and decisions about pairs; equal posters.

The file of decisions, ``decisions.csv``, has one decision a row: who decided when that two accounts
are the same person's or two people's, or that this is still open. Nobody is asked again about what
was decided.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..cleaning.authors import pseudonym_key, pseudonymiser
from ..core.artifacts import folder_lock
from ..core.escaping import unescape_formula
from ..core.files import check_readable
from ..corpus.posts_table import open_database
from ..corpus.shared_texts import COLUMNS as TEXT_COLUMNS
from ..corpus.shared_texts import pairs_with_same_texts
from ..sources.table import author_names
from ..sources.text_rows import csv_rows
from ..tokens.batch import Samples
from .reading import FEWER_QUERIES, FULL_GALLERY, QUERIES, OwnPosts, column_types
from .samples import MIN_POSTS, spread_posts
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
    missing = [column for column in NEEDED if column not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}: a file of decisions has the columns "
            f"{', '.join(COLUMNS)}"
        )
    place = {column: header.index(column) for column in COLUMNS if column in header}
    empty = dict.fromkeys(COLUMNS, "")
    decisions = []
    for row in rows:
        if not any(map(str.strip, row)):  # a spreadsheet leaves such rows at the end
            continue
        values = {column: unescape_formula(row[place[column]].strip()) for column in place}
        values["decision"] = values["decision"].lower()
        decisions.append(empty | values)
    if broken_rows["broken_row"] or broken_rows["truncated_file"]:
        raise ValueError(f"{path} has a broken row: no decision may be lost, so mend it first")
    frame = pd.DataFrame(decisions, columns=COLUMNS, dtype=object)
    _check_rows(path, frame)
    _check_contradictions(path, frame)
    return frame


def _pairs(decisions):
    """Return the pair of pseudonyms of each decision; some rows may have names, some pseudonyms."""
    accounts = {*decisions.account_a, *decisions.account_b}
    pseudonym = {account: pseudonym_of(account) for account in accounts}
    written = accounts.intersection(pseudonym.values())  # accounts that other rows call by name
    pseudonym |= {account: account for account in written}
    rows = zip(decisions.account_a, decisions.account_b, strict=True)
    return [frozenset([pseudonym[left], pseudonym[right]]) for left, right in rows]


def _check_rows(path, frame):
    """Raise ValueError where a row has no account, or no decision that is known."""
    for number, row in enumerate(frame.itertuples(index=False), 1):
        if row.decision not in DECISIONS:
            raise ValueError(
                f"{path}, decision {number}: {row.decision!r} is none of {', '.join(DECISIONS)}"
            )
        if not row.account_a or not row.account_b:
            raise ValueError(f"{path}, decision {number}: an account is missing")


def _check_contradictions(path, frame):
    """Raise ValueError where a pair, in either order, is decided as the same and as different."""
    decision_of_pair = {}
    decided = frame[frame.decision != LATER]
    for row, pair in zip(decided.itertuples(), _pairs(decided), strict=True):
        if decision_of_pair.setdefault(pair, row.decision) != row.decision:
            raise ValueError(
                f"{path} says of {row.account_a} and {row.account_b} both {SAME!r} and "
                f"{DIFFERENT!r}: keep one"
            )


def check_chains(decisions: pd.DataFrame) -> None:
    """Refuse two accounts of one list that are two people, and are joined over other accounts.

    Parameters
    ----------
    decisions : DataFrame
        result of :func:`read_decisions`, about accounts of one list

    Raises
    ------
    ValueError
        Where a chain of pairs that are the same joins a pair that is different.
    """
    decided = decisions[decisions.decision != LATER]
    if decided.empty:
        return
    pairs = _pairs(decided)
    accounts = sorted(set().union(*pairs))
    same = [sorted(pair) for pair, said in zip(pairs, decided.decision) if said == SAME]
    person = dict(zip(accounts, _persons(accounts, same), strict=True))
    for row, pair in zip(decided.itertuples(), pairs, strict=True):
        if row.decision == DIFFERENT and len(pair) == 1:
            raise ValueError(
                f"the decisions say that {row.account_a} and {row.account_b} are two people, but "
                "these names differ only in case or form and are one account here: give one of "
                "them another name in the file of posts"
            )
        if row.decision == DIFFERENT and len({person[account] for account in pair}) == 1:
            raise ValueError(
                f"the decisions say that {row.account_a} and {row.account_b} are two people, but "
                f"pairs that they call {SAME!r} join them over other accounts: change one of them"
            )


def _persons(accounts, same):
    """Return the number of the person of each account, (N,), as pairs of one person join them."""
    row_of_account = {account: row for row, account in enumerate(accounts)}
    ends = [(row_of_account[pair[0]], row_of_account[pair[-1]]) for pair in same]
    left, right = np.array(ends, int).reshape(-1, 2).T
    graph = coo_array((np.ones(len(ends)), (left, right)), (len(accounts), len(accounts)))
    return connected_components(graph, directed=False)[1]


def unknown_accounts(decisions: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the accounts of decisions that a list does not have, each once.

    Parameters
    ----------
    decisions : DataFrame
        result of :func:`read_decisions`
    names : sequence of str
        all accounts of the list
    """
    accounts = list(dict.fromkeys([*decisions.account_a, *decisions.account_b]))
    listed = zip(accounts, as_listed(accounts, names), strict=True)
    known = set(names)
    return [account for account, name in listed if name not in known]


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
    accounts = list({*decisions.account_a, *decisions.account_b})
    listed = []
    for names in (names_a, names_b):
        known = set(names)
        names_of_list = zip(accounts, as_listed(accounts, names), strict=True)
        listed.append({account: name for account, name in names_of_list if name in known})
    in_a, in_b = listed
    rows = []
    for row in decisions.to_dict("records"):
        pair = (row["account_a"], row["account_b"])
        if pair[0] not in in_a or pair[1] not in in_b:
            pair = pair[::-1]
        if pair[0] in in_a and pair[1] in in_b:
            rows.append(row | {"account_a": in_a[pair[0]], "account_b": in_b[pair[1]]})
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


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
    person = _persons(posts.names, list(zip(same.account_a, same.account_b)))
    names = pd.Series(posts.names).groupby(person, sort=False).agg(list)  # as they come first
    joint_names = {}
    for members in names[names.map(len) > 1]:
        joint_names.update(dict.fromkeys(members, JOINER.join(members)))

    store = posts.store
    person = names.index.get_indexer(person)
    person_of_post = np.repeat(person, store.posts_per_author())
    order = np.lexsort([store.time, person_of_post])  # by person, then by time
    offsets = np.append(0, np.bincount(person_of_post, minlength=len(names)).cumsum())
    joined = Samples.of_lists(store, order, offsets, np.arange(len(names)))
    joined_names = names.map(JOINER.join).to_numpy(object)
    return replace(posts, store=joined.store, names=joined_names), joint_names


def find_same_texts(
    posts: OwnPosts, second_posts: OwnPosts | None = None, decisions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the pairs of accounts that posted the same texts, and of which nobody decided.

    Copies are dropped when posts are read, and with them accounts that posted nothing else. So
    these pairs are looked for in what was read, before anything else is computed.

    Parameters
    ----------
    posts : OwnPosts
        all accounts of a file
    second_posts : OwnPosts, optional
        the accounts of a second file; pairs are then those of an account of each
    decisions : DataFrame, optional
        result of :func:`read_decisions`

    Returns
    -------
    Columns ``account_a``, ``account_b``, ``texts``, the number of different texts that both posted,
    ``posts_a``, ``posts_b``, and ``compared_a``, ``compared_b``: whether MIN_POSTS posts are left
    without copies, so that the account can be compared with others
    """
    sides = [posts, second_posts or posts]
    pairs = pd.DataFrame(columns=TEXT_COLUMNS)
    paths = [side.texts_path for side in (posts, second_posts) if side is not None]
    if all(paths):
        work = paths[0].with_suffix(".work")
        with folder_lock(paths[0].parent), open_database(work) as connection:
            pairs = pairs_with_same_texts(connection, *paths)
    names = set()
    for letter, side in zip("ab", sides, strict=True):
        compared = side.names[side.store.posts_per_author() >= MIN_POSTS]
        pairs[f"compared_{letter}"] = pairs[f"account_{letter}"].isin(compared)
        names.update(side.names, pairs[f"account_{letter}"])
    if decisions is None:
        return pairs
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
    samples = spread_posts(posts.store)
    compared = posts.names[samples.authors]
    if not accounts:
        max_queries = QUERIES if len(compared) <= FULL_GALLERY else FEWER_QUERIES
        order = np.argsort(-posts.store.posts_per_author()[samples.authors], kind="stable")
        return list(compared[np.sort(order[:max_queries])])
    names = as_listed(accounts, posts.names)
    known = set(compared)
    missing = sorted({pair for pair in zip(accounts, names, strict=True) if pair[1] not in known})
    if missing:
        given, name = missing[0]
        raise ValueError(
            f"{len(missing)} of the accounts asked about are not in the file, or are set aside; "
            f"the first is {given}{_reason_of(posts.set_aside, {given, name})}"
        )
    return list(dict.fromkeys(names))


def _reason_of(set_aside, names):
    """Return why an account of some names is set aside, "" where none is."""
    rows = set_aside[set_aside.account.isin(names)]
    return "".join(f", {REASONS[reason]}" for reason in rows.reason)


def pseudonym_of(name: str) -> str:
    """Return the pseudonym that this machine's key makes of a name, whatever it looks like."""
    return pseudonymiser(pseudonym_key())(name)


def as_listed(accounts: Iterable[str], names: Iterable[str]) -> list[str]:
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
    listed = set(names)
    of_pseudonym = {pseudonym_of(name): name for name in listed}
    listed_accounts = []
    for account in accounts:
        pseudonym = pseudonym_of(account)
        if pseudonym in listed:
            listed_accounts.append(pseudonym)
        elif account in listed:
            listed_accounts.append(account)
        else:
            by_name = of_pseudonym.get(pseudonym, pseudonym)
            listed_accounts.append(of_pseudonym.get(account, by_name))
    return listed_accounts


def own_names(location: str, columns: dict | None = None) -> dict[str, str]:
    """Map the pseudonym of each author of a file to the author's name.

    This works only on the machine whose key made the pseudonyms.

    Parameters
    ----------
    location : str
        path of the file.
    columns : dict, optional
        as in :func:`helpers.accounts.reading.read_posts`.
    """
    column = column_types(location, columns or {})["author"]
    pseudonym = pseudonymiser(pseudonym_key())
    return {pseudonym(author): author for author in author_names(location, column)}
