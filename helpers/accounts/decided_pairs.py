"""Decisions of people about pairs of accounts: the file that keeps them, and what matching heeds.

The file, ``decisions.csv``, has one decision a row: who decided when that two accounts are the same
person's or two people's, or that this is still open.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..core.escaping import unescape_formula
from ..core.files import check_readable
from ..sources.text_rows import csv_rows
from .reading import as_listed, pseudonym_of

COLUMNS = ("account_a", "account_b", "decision", "who", "when", "note")
NEEDED = COLUMNS[:3]
SAME = "same"
DIFFERENT = "different"
LATER = "later"
DECISIONS = (SAME, DIFFERENT, LATER)


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
    rows = iter(_rows(path, broken_rows))
    header = next(rows, [])
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


def _rows(path, broken_rows):
    """Return the rows of a file of decisions, its header first."""
    try:
        return list(csv_rows(path, broken_rows))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


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
    person = _persons(decided)
    for row, pair in zip(decided.itertuples(), _pairs(decided), strict=True):
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


def _persons(decided):
    """Map the pseudonym of each account to the number of its person, as chains of pairs join."""
    pairs = _pairs(decided)
    accounts = sorted(set().union(*pairs))
    number = {account: row for row, account in enumerate(accounts)}
    is_same = decided.decision == SAME
    same = [sorted(pair) for pair, joined in zip(pairs, is_same, strict=True) if joined]
    ends = np.array([[number[pair[0]], number[pair[-1]]] for pair in same], int).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), tuple(ends.T)), (len(accounts), len(accounts)))
    _, person = connected_components(graph, directed=False)
    return dict(zip(accounts, person, strict=True))


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
    listed = as_listed(accounts, names)
    return [account for account, name in zip(accounts, listed, strict=True) if name not in names]


def with_listed_names(decisions: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return decisions whose accounts are named as a list names them.

    Parameters
    ----------
    decisions : DataFrame
        result of :func:`read_decisions`
    names : sequence of str
        all accounts of the list, see :func:`helpers.accounts.reading.as_listed`
    """
    columns = ("account_a", "account_b")
    return decisions.assign(**{column: as_listed(decisions[column], names) for column in columns})


@dataclass(frozen=True, eq=False)
class DecidedPairs:
    """What was decided about two lists of accounts.

    Attributes
    ----------
    same, different : (K, 2) int, pairs of a row of list A and a row of list B, each once
    unknown : number of decisions about accounts of which no pair stands in the two lists
    """

    same: np.ndarray
    different: np.ndarray
    unknown: int


def decided_pairs(
    decisions: pd.DataFrame, names_a: Sequence[str], names_b: Sequence[str]
) -> DecidedPairs:
    """Find the accounts of decisions in two lists.

    A decision says first the account of list A. Where this fits no pair of the lists, but the
    reverse does, it is read in reverse.

    Parameters
    ----------
    decisions : DataFrame
        result of :func:`read_decisions`
    names_a, names_b : sequence of str
        pseudonyms or names of the accounts of both lists
    """
    row_a = _rows_of_accounts(decisions, names_a)
    row_b = _rows_of_accounts(decisions, names_b)
    pairs = {decision: set() for decision in DECISIONS}
    unknown = 0
    for left, right, decision in decisions[list(NEEDED)].itertuples(index=False):
        if left in row_a and right in row_b:
            pairs[decision].add((row_a[left], row_b[right]))
        elif right in row_a and left in row_b:
            pairs[decision].add((row_a[right], row_b[left]))
        else:
            unknown += 1
    same, different = [
        np.array(sorted(pairs[decision]), int).reshape(-1, 2) for decision in (SAME, DIFFERENT)
    ]
    return DecidedPairs(same, different, unknown)


def _rows_of_accounts(decisions, names):
    """Map the accounts of decisions, as these name them, to their rows in a list of names."""
    row_of_name = {name: row for row, name in enumerate(names)}
    accounts = list({*decisions.account_a, *decisions.account_b})
    rows = {}
    for account, name in zip(accounts, as_listed(accounts, names), strict=True):
        if name in row_of_name:
            rows[account] = row_of_name[name]
    return rows
